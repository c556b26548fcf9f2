# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two processes stand for the tasks of two nodes."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import verdicts
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.coherence import coherence_findings
from kit.share import coherence, mounts


@pytest.fixture
def task(root: Path, tmp_path: Path) -> t.Callable[..., subprocess.Popen[str]]:
    """(number, node, options…) → a running task, as srun starts one; `before` is Python that runs first."""

    def start(number: object, node: str, *words: str, before: str = "") -> subprocess.Popen[str]:
        code = f"import runpy\n{before}\nrunpy.run_module('kit', run_name='__main__')"
        environment = {**os.environ, "PYTHONPATH": str(root / "files"), "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}
        environment["SLURM_PROCID"] = str(number)
        argv = [sys.executable, "-c", code, "coherence", "--folder", str(tmp_path), "--node", node, *words]
        return subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def document(process: subprocess.Popen[str]) -> t.Any:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return json.loads(out)


def test_two_tasks_on_one_good_file_system_pass(task: t.Any, tmp_path: Path) -> None:
    second, first = task(1, "compute02"), task(0, "compute01")
    found = document(first)
    assert second.communicate(timeout=60)[0] == ""
    assert second.returncode == 0
    assert found["nodes"] == ["compute01", "compute02"]
    findings = coherence_findings(found, {}, nodes=["compute01", "compute02"])
    assert [f for f in findings if f["verdict"] != "pass"] == []
    assert list(tmp_path.iterdir()) == []


def test_a_task_alone_says_that_the_other_did_not_come_and_leaves_nothing(task: t.Any, tmp_path: Path) -> None:
    found = document(task(0, "compute01", "--wait", "0.2"))
    assert "task 1 did not get to 'hello'" in found["error"]
    findings = coherence_findings(found, {}, nodes=["compute01", "compute02"])
    assert {f["verdict"] for f in findings} == {"undetermined"}
    assert list(tmp_path.iterdir()) == []
    other = task(1, "compute02", "--wait", "0.2")
    assert "task 0 did not make" in other.communicate(timeout=60)[1]
    assert other.returncode == 1


def failing(found: t.Any, **expect: t.Any) -> set[tuple[str, str]]:
    findings = coherence_findings(found, expect, nodes=["compute01", "compute02"])
    assert verdicts.overall(findings) == "fail"
    return {(f["id"], f["where"]["node"]) for f in findings if f["verdict"] == "fail"}


def test_a_reader_that_keeps_seeing_old_content_is_named(task: t.Any) -> None:
    stale = (
        "import pathlib; real, kept = pathlib.Path.read_bytes, {}\n"
        "pathlib.Path.read_bytes = lambda path: kept.setdefault(path, real(path))"
    )
    second, first = task(1, "compute02", "--wait", "1.5", before=stale), task(0, "compute01", "--wait", "1.5")
    found = document(first)
    second.communicate(timeout=60)
    # It kept what it saw first, which may be the new file half written.
    assert failing(found, coherence_seconds=1.5) >= {
        ("share.coherence_overwrite", "compute02"),
        ("share.coherence_rename", "compute02"),
    }
    assert all(step["seen"] for step in found["directions"][1]["steps"].values())


def test_locks_that_stay_on_their_node_are_named(task: t.Any) -> None:
    local = "import fcntl; fcntl.flock = fcntl.lockf = lambda *_: None"
    second, first = task(1, "compute02", before=local), task(0, "compute01")
    found = document(first)
    second.communicate(timeout=60)
    assert failing(found) == {("share.locks_across_nodes", "compute02"), ("share.locks_across_nodes", "compute01")}


def test_a_share_that_hangs_is_given_up(task: t.Any) -> None:
    hang = "import os, signal; os.fsync = lambda _: signal.pause()"
    process = task(0, "compute01", "--deadline", "0.5", before=hang)
    assert "did not let task 0 finish" in process.communicate(timeout=60)[1]
    assert process.returncode == 1


@pytest.mark.parametrize(("words", "seconds"), [([], 540), (["--wait", "60"], 2940), (["--deadline", "7"], 7)])
def test_the_deadline_grows_with_the_wait(monkeypatch: pytest.MonkeyPatch, words: list[str], seconds: float) -> None:
    parser = argparse.ArgumentParser()
    coherence.add_arguments(parser)
    asked = []
    monkeypatch.setattr(mounts, "in_child", lambda _work, deadline: asked.append(deadline))
    found = coherence.run(parser.parse_args(["--folder", "/nowhere", *words]), {"SLURM_PROCID": "0"})
    assert asked == [seconds, 10.0]
    assert found is not None
    assert found["wait"] == (60 if "60" in words else 10)
    assert "48 times --wait" in " ".join(parser.format_help().split())


def test_every_word_and_change_may_come_at_its_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the protocol waits for at most is within what the default deadline allows."""
    asked: list[int] = []
    monkeypatch.setattr(coherence.Meeting, "say", lambda _self, _word, **_said: None)
    monkeypatch.setattr(coherence, "change", lambda _step, _path: None)
    answers = {"node": "b", "seen": True, "outcome": "refused"}
    monkeypatch.setattr(
        coherence.Meeting, "hear", lambda _self, _word, times=coherence.ANSWER: asked.append(times) or answers
    )
    monkeypatch.setattr(coherence, "look", lambda _see, _seconds: True)
    monkeypatch.setattr(coherence, "attempt", lambda _path, _lock: "refused")
    coherence.take_part(coherence.Meeting(0, "a", tmp_path, 1.0))
    # What task 0 waits for at most, and making the folder, which task 1 looks for before it.
    assert sum(asked) <= coherence.ALL - coherence.LOOKED


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("", []),
        ("2", []),
        ("x", []),
        ("0", ["--run", "../up"]),
        ("0", ["--wait", "0"]),
        ("0", ["--wait", "nan"]),
        ("0", ["--deadline", "-1"]),
    ],
)
def test_what_srun_did_not_start_so_is_refused(task: t.Any, number: str, words: list[str]) -> None:
    process = task(number, "compute01", *words)
    assert "kit coherence: " in process.communicate(timeout=60)[1]
    assert process.returncode == 1
