# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which runs were interrupted so hard that nobody cancelled their jobs."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import typing as t
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import interrupted

NOW = 1_790_000_000.0
RUN = "20260921T130640Z-00000{}"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc with one process, whose name is as bad as it can be."""
    folder = tmp_path / "proc"
    (folder / "sys/kernel/random").mkdir(parents=True)
    (folder / "sys/kernel/random/boot_id").write_text("boot-1\n")
    (folder / "41").mkdir()
    after = " ".join(str(number) for number in range(3, 53))
    (folder / "41/stat").write_text(f"41 (a) b (c)) S {after}")
    return folder


@pytest.fixture
def left(tmp_path: Path) -> t.Callable[..., str]:
    """(number, changes) → a run that was left behind."""

    def make(number: int = 1, **changes: t.Any) -> str:
        run = RUN.format(number)
        (tmp_path / "results" / run).mkdir(parents=True)
        told = {"started": NOW - 60, "finished": None, "process": process(), **changes}
        plan = {key: told[key] for key in ("started", "process")}
        (tmp_path / "results" / run / "plan.json").write_text(json.dumps(plan))
        (tmp_path / "results" / run / "verdict.json").write_text(json.dumps({"finished": told["finished"]}))
        return run

    return make


def process(**changes: t.Any) -> dict[str, t.Any]:
    return {"host": platform.node(), "boot": "boot-1", "pid": 40, "began": "21", **changes}


def test_a_process_is_told_by_host_boot_number_and_begin(proc: Path) -> None:
    assert interrupted.process(41, proc) == process(pid=41)
    assert interrupted.process(40, proc) is None
    (proc / "41/stat").write_text(f"41 (cut) {' '.join(map(str, range(2, 21)))}")
    assert interrupted.process(41, proc) is None


def test_without_a_boot_id_a_process_is_not_told(proc: Path) -> None:
    (proc / "sys/kernel/random/boot_id").unlink()
    assert interrupted.process(41, proc) is None


def test_by_default_it_is_the_parent() -> None:
    own = interrupted.process()
    assert own
    assert own["pid"] == os.getppid()
    assert own == interrupted.process(os.getppid())


def test_a_process_that_has_ended_is_over() -> None:
    with subprocess.Popen(["sleep", "60"]) as running:
        told = interrupted.process(running.pid)
        assert told is not None
        assert not interrupted._is_over(told, interrupted.PROC)
        running.kill()
    assert interrupted._is_over(told, interrupted.PROC)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, True),  # no such process
        ({"process": process(pid=41)}, False),
        ({"process": process(pid=41, began="22")}, True),  # another one has its number
        ({"process": process(pid=41, boot="boot-0")}, True),  # the host was booted since
        ({"process": process(host="elsewhere")}, False),
        ({"process": None}, False),
        ({"process": {}}, False),
        ({"finished": NOW - 1}, False),
        ({"started": NOW - 3 * 3600 + 1}, True),
        ({"started": NOW - 3 * 3600}, False),
        ({"started": NOW}, True),
        ({"started": NOW + 1}, False),
        ({"started": "now"}, False),
    ],
)
def test_only_a_recent_run_whose_play_is_over_was_interrupted(
    tmp_path: Path, proc: Path, left: t.Callable[..., str], changes: dict[str, t.Any], found: bool
) -> None:
    run = left(**changes)
    assert interrupted.interrupted(tmp_path / "results", NOW, proc) == ([run] if found else [])


def test_all_are_found_in_order_and_what_is_damaged_or_foreign_hides_none(
    tmp_path: Path, proc: Path, left: t.Callable[..., str]
) -> None:
    second, first = left(2), left(1)
    (tmp_path / "results" / RUN.format(3)).mkdir()
    (tmp_path / "results" / left(4) / "plan.json").write_text("{")
    (tmp_path / "results/notes").mkdir()
    assert interrupted.interrupted(tmp_path / "results", NOW, proc) == [first, second]


def test_without_results_there_is_none(tmp_path: Path, proc: Path) -> None:
    assert interrupted.interrupted(tmp_path / "results", NOW, proc) == []
