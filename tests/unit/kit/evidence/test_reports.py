# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gathering what a preflight's jobs wrote."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest
from kit.evidence import reports


@pytest.fixture
def written(tmp_path: Path) -> Path:
    for path, text in {
        "run/7/host.json": '{"host": "a"}',
        "run/7/gpus.json": '{"gpus": []}',
        "run/7/messages.txt": "hello",
        "markers/7.begin.json": '{"time": 1.0}',
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def gather(folder: Path, *jobs: str) -> dict[str, t.Any]:
    return reports.gather(folder / "run", folder / "markers", list(jobs))


def test_what_is_there_is_read_and_what_is_not_is_named(written: Path) -> None:
    found = gather(written, "7")["7"]
    assert (found["host"], found["gpus"], found["begin"]) == ({"host": "a"}, {"gpus": []}, {"time": 1.0})
    assert found["messages"] == "hello"
    assert set(found["problems"]) == {"confined", "without", "share", "coherence", "end"}
    assert all("was not written" in problem for problem in found["problems"].values())


def test_a_job_that_wrote_nothing_hides_no_other(written: Path) -> None:
    found = gather(written, "7", "8")
    assert found["7"]["host"] == {"host": "a"}
    assert found["8"]["host"] is None


@pytest.mark.parametrize("text", ["", '{"host": "a"', "\x00", "[" * 100000])
def test_half_a_document_is_none(written: Path, text: str) -> None:
    (written / "run/7/host.json").write_text(text)
    found = gather(written, "7")["7"]
    assert found["host"] is None
    assert "incomplete" in found["problems"]["host"]


def test_a_link_a_pipe_and_a_huge_file_are_refused(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written / "run/7"
    (folder / "host.json").unlink()
    (folder / "host.json").symlink_to(folder / "gpus.json")
    (folder / "gpus.json").unlink()
    os.mkfifo(folder / "gpus.json")
    (folder / "share.json").write_text('{"a": "' + "x" * 200 + '"}')
    monkeypatch.setattr(reports, "BYTES", 100)
    found = gather(written, "7")["7"]
    assert (found["host"], found["gpus"], found["share"]) == (None, None, None)
    assert "not a regular file" in found["problems"]["gpus"]
    assert "larger than" in found["problems"]["share"]


def test_removing_takes_the_jobs_folder_and_markers_and_no_others(written: Path) -> None:
    (written / "markers/9.begin.json").write_text("{}")
    reports.remove(written / "run", written / "markers", ["7", "8"])
    assert not (written / "run").exists()
    assert [path.name for path in (written / "markers").iterdir()] == ["9.begin.json"]
