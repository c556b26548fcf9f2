# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stream of reports: what is damaged is named, costs no other report, and never raises."""

from __future__ import annotations

import gzip
import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import reports

Json = dict[str, t.Any]
WHOLE = [{"job": "7", "host": {"a": 1}}, {"job": "8", "host": None}]


def line(document: t.Any) -> bytes:
    return json.dumps(document).encode() + b"\n"


def read(tmp_path: Path, content: bytes) -> tuple[list[str], list[str]]:
    """Return the jobs of the reports that could be read, and the problems."""
    path = tmp_path / reports.FILE
    path.write_bytes(content)
    stream = reports.Reports(path)
    return [job for job, _report in stream], stream.problems


def test_every_report_is_read_with_its_job(tmp_path: Path) -> None:
    path = tmp_path / reports.FILE
    path.write_bytes(gzip.compress(b"".join(map(line, WHOLE))))
    stream = reports.Reports(path)
    assert list(stream) == [("7", WHOLE[0]), ("8", WHOLE[1])]
    assert stream.problems == []


@pytest.mark.parametrize(
    "bad",
    [
        b"\x00\n",
        b"{\n",
        b"[]\n",
        b"5\n",
        b"{}\n",
        b'{"job": 7}\n',
        b'{"job": null}\n',
        b"[" * 99999 + b"\n",
        line(WHOLE[0]),
    ],
)
def test_a_line_that_is_no_report_hides_no_other(tmp_path: Path, bad: bytes) -> None:
    jobs, problems = read(tmp_path, gzip.compress(line(WHOLE[0]) + bad + line(WHOLE[1])))
    assert jobs == ["7", "8"]
    assert len(problems) == 1


@pytest.mark.parametrize("content", [b"", b"\x00", b"{}", gzip.compress(b"x" * 999, mtime=0)[:-9]])
def test_a_file_that_is_none_has_no_reports(tmp_path: Path, content: bytes) -> None:
    jobs, problems = read(tmp_path, content)
    assert jobs == []
    assert len(problems) <= 1
    assert problems or content == b""


def test_every_cut_of_the_file_is_noticed(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(map(line, WHOLE)), mtime=0)
    for length in range(1, len(whole)):
        _jobs, problems = read(tmp_path, whole[:length])
        assert problems, length


def test_a_file_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    stream = reports.Reports(tmp_path / reports.FILE)
    assert list(stream) == []
    assert len(stream.problems) == 1


def test_a_report_without_an_end_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "LINE_BYTES", 1000)
    jobs, problems = read(tmp_path, gzip.compress(line(WHOLE[0]) + b" " * 5000 + line(WHOLE[1])))
    assert (jobs, len(problems)) == (["7"], 1)
    assert read(tmp_path, gzip.compress(b" " * (1000 - len(line(WHOLE[1]))) + line(WHOLE[1]))) == (["8"], [])
