# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gathering what a preflight's jobs wrote."""

from __future__ import annotations

import gzip
import json
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


def gather(folder: Path, *jobs: str) -> dict[str, dict[str, t.Any]]:
    """What is gathered of the jobs, by job, as the controller will read it."""
    into = folder / "gathered.gz"
    size = reports.write(into, folder / "run", folder / "markers", jobs)
    assert size == into.stat().st_size
    assert [path.name for path in folder.glob(".*")] == []
    lines = gzip.decompress(into.read_bytes()).splitlines()
    return {each["job"]: each for each in map(json.loads, lines)}


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


def test_every_job_that_wrote_anything_is_known(written: Path) -> None:
    for name in ("12", "8", "x", "token"):
        (written / "run" / name).mkdir()
    assert reports.reported(written / "run") == ["7", "8", "12"]


def test_equal_reports_give_equal_files_and_a_failure_leaves_none(written: Path) -> None:
    paths = [written / name for name in ("a.gz", "b.gz")]
    for path in paths:
        reports.write(path, written / "run", written / "markers", ["7"])
    assert paths[0].read_bytes() == paths[1].read_bytes()

    def jobs() -> t.Iterator[str]:
        yield "7"
        raise OSError("the share is gone")

    with pytest.raises(OSError, match="the share is gone"):
        reports.write(written / "c.gz", written / "run", written / "markers", jobs())
    assert sorted(path.name for path in written.glob("*.gz*")) == ["a.gz", "b.gz"]
    assert list(written.glob(".*")) == []


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
    (written / "run/9").mkdir()
    reports.remove(written / "run", written / "markers", ["7", "8"])
    assert [path.name for path in (written / "run").iterdir()] == ["9"]
    assert [path.name for path in (written / "markers").iterdir()] == ["9.begin.json"]
