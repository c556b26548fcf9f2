# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's preflight job: its markers, its parts, and what runs beside."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import typing as t
from pathlib import Path

import pytest
from kit.commands import preflight
from kit.errors import KitError

from tests.unit.conftest import ROOT

STEP = ["timeout", "--kill-after=10", "180", "srun", "--ntasks=1"]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Path]:
    """A folder for the job; its parts are made up, and it has no GPU."""
    for name in ("SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES", "SLURM_RESTART_COUNT", "HPC_VALIDATION_ATTEMPT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    monkeypatch.setattr(preflight, "_begin_messages", lambda _folder: None)
    monkeypatch.setattr(preflight.facts, "facts", lambda job, **given: {**job.stamp, **given})
    monkeypatch.setattr(preflight.facts, "devices", lambda: {"present": []})
    monkeypatch.setattr(preflight.look, "collect", lambda options: {"node": options.node, "path": options.path})
    return tmp_path


@pytest.fixture
def beside(node: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What was run beside, and after, instead of being run."""
    ran: list[list[str]] = []

    class Process:
        def __init__(self, command: list[str], **_more: t.Any) -> None:
            ran.append(command)

        returncode = 1

        def wait(self) -> int:
            assert not (node / "markers/12.end.json").exists()
            return self.returncode

        def communicate(self) -> tuple[None, str]:
            self.wait()
            return None, ""

    monkeypatch.setattr(preflight.subprocess, "Popen", Process)
    return ran


def run(node: Path, *words: str) -> None:
    parser = argparse.ArgumentParser()
    preflight.add_arguments(parser)
    given = ["--markers", str(node / "markers"), "--output", str(node), "--path", "/share", "--type", "other"]
    preflight.run(parser.parse_args([*given, *words]))


def read(path: Path) -> t.Any:
    return json.loads(path.read_text())


def kit(*words: str) -> list[str]:
    return [sys.executable, "-m", "kit", *words]


def as_a_program(folder: Path, output: Path) -> subprocess.CompletedProcess[str]:
    argv = kit("preflight", "--markers", str(folder / "markers"), "--output", str(output))
    given = {"PYTHONPATH": str(ROOT / "files"), "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [*argv, "--path", str(folder / "none"), "--type", "other"],
        env={**given, "SLURM_JOB_ID": "12"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_what_it_prints_goes_to_a_file_in_a_folder_that_it_makes(tmp_path: Path) -> None:
    done = as_a_program(tmp_path, tmp_path / "7")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "hpc-validation-end job=12 attempt=0 exit=0" in (tmp_path / "7/messages.txt").read_text()
    assert (tmp_path / "7/share.json").exists()


def test_without_a_folder_of_its_own_it_does_nothing_and_ends_as_where_the_share_is_not_writable(
    tmp_path: Path,
) -> None:
    (tmp_path / "7").mkdir()
    done = as_a_program(tmp_path, tmp_path / "7")
    assert (done.returncode, done.stderr) == (83, f"kit preflight: {tmp_path}/7: File exists\n")
    assert list(tmp_path.rglob("*")) == [tmp_path / "7"]
    (tmp_path / "7").rmdir()
    assert as_a_program(tmp_path, tmp_path / "no/7").returncode == 83
    assert list(tmp_path.rglob("*")) == []


def test_the_parts_and_the_markers_are_written(node: Path, beside: list[list[str]]) -> None:
    run(node, "--image", "a.sif")
    assert read(node / "host.json") == {"job_id": "12", "attempt": 0, "image": "a.sif", "reach": [], "index": False}
    assert read(node / "share.json") == {"node": "n7", "path": "/share"}
    assert read(node / "markers/12.begin.json")["job_id"] == "12"
    assert read(node / "markers/12.end.json")["exit_code"] == 0
    assert beside == []


def test_the_share_is_examined_as_it_is_used(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(preflight.look, "collect", lambda options: seen.append(options) or {})
    run(node)
    (options,) = seen
    assert (options.type, options.folder, options.directories, options.tool) == ("other", "jobs", ("jobs",), "own")
    assert options.checks == ("mount", "use", "speed")


def test_gpus_are_probed_and_a_step_tries_one_of_those_the_job_was_given(
    node: Path, beside: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = kit("probe", "--output", str(node / "gpus.json"), "--kernel-log", "user", "--since", "boot")
    run(node, "--gpus", "--kernel-log", "user")
    assert beside == [probe]  # the job was given none
    monkeypatch.setattr(preflight.facts, "devices", lambda: {"present": ["/dev/nvidia0", "/dev/nvidia1"]})
    for name in ("SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES"):
        beside.clear()
        with monkeypatch.context() as given:
            given.setenv(name, "0,1")
            run(node, "--gpus", "--kernel-log", "user")
        assert beside == [probe, [*STEP, "--gres=gpu:1", *kit("devices", "--output", str(node / "confined.json"))]]


def test_on_a_node_with_one_gpu_a_step_without_any_tries_as_well(
    node: Path, beside: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight.facts, "devices", lambda: {"present": ["/dev/nvidia0"]})
    run(node, "--gpus")
    assert len(beside) == 1
    monkeypatch.setenv("SLURM_JOB_GPUS", "0")
    run(node, "--gpus")
    assert beside[-1] == [*STEP, "--gres=none", *kit("devices", "--output", str(node / "without.json"))]


@pytest.fixture
def srun(node: Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[[str], None]:
    """Make an srun of these lines; the job has a GPU of a node's two, and `kit probe` does nothing."""
    monkeypatch.setenv("SLURM_JOB_GPUS", "0")
    monkeypatch.setattr(preflight.facts, "devices", lambda: {"present": ["/dev/nvidia0", "/dev/nvidia1"]})
    monkeypatch.setattr(preflight, "_probe", lambda _arguments: ["true"])

    def make(lines: str) -> None:
        (node / "bin").mkdir()
        program = node / "bin/srun"
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{node}/bin:/usr/bin:/bin")

    return make


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("exit 0", "srun --gres=gpu:1 ended with 0: it said nothing"),
        (
            "echo srun: error: no >&2; echo srun: step: refused >&2; exit 1",
            "srun --gres=gpu:1 ended with 1: srun: step: refused",
        ),
        ("printf '%0300d' 7 >&2; exit 3", f"srun --gres=gpu:1 ended with 3: {'0' * 200}"),
        ("exec sleep 30", "srun --gres=gpu:1 did not end within 1 s: it said nothing"),
        ("echo srun: retrying >&2; exit 137", "srun --gres=gpu:1 did not end within 1 s: srun: retrying"),
    ],
)
def test_a_step_that_writes_nothing_says_why(
    node: Path, srun: t.Callable[[str], None], monkeypatch: pytest.MonkeyPatch, lines: str, problem: str
) -> None:
    monkeypatch.setattr(preflight, "STEP_SECONDS", 1)
    srun(lines)
    run(node, "--gpus")
    assert read(node / "confined.json") == {"problem": problem}
    assert (node / "markers/12.end.json").exists()


def test_what_srun_says_is_kept_with_the_jobs_messages(
    node: Path, srun: t.Callable[[str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    srun("echo one >&2; echo two >&2")
    run(node, "--gpus")
    assert capfd.readouterr().err.startswith("one\ntwo\n")


def test_what_a_step_wrote_counts_whatever_srun_says(node: Path, srun: t.Callable[[str], None]) -> None:
    srun(f"echo '{{}}' > {node}/confined.json; exit 1")
    run(node, "--gpus")
    assert read(node / "confined.json") == {}


def test_xids_count_for_so_many_seconds(node: Path, beside: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_790_000_000.7)
    run(node, "--gpus", "--xid-seconds", "3600")
    assert beside[0][-2:] == ["--since", "1789996400"]


@pytest.mark.parametrize("error", [KitError("no"), OSError("no")])
@pytest.mark.parametrize(("part", "other"), [("host", "share"), ("share", "host")])
def test_a_part_that_fails_keeps_no_other_from_being_written(
    node: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    part: str,
    other: str,
) -> None:
    def fail(*_words: t.Any, **_more: t.Any) -> None:
        raise error

    where = (preflight.facts, "facts") if part == "host" else (preflight.look, "collect")
    monkeypatch.setattr(*where, fail)
    run(node)
    assert not (node / f"{part}.json").exists()
    assert (node / f"{other}.json").exists()
    assert (node / "markers/12.end.json").exists()
    assert f"kit preflight: {part}.json: no" in capfd.readouterr().err


@pytest.mark.parametrize("variables", [{}, {"SLURM_JOB_ID": "1/2"}])
def test_without_its_begin_marker_it_does_nothing_and_says_why(
    node: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (node / "markers").write_text("a file where a folder should be")
    with pytest.raises(SystemExit) as ended:
        run(node)
    assert ended.value.code == 70
    assert "kit preflight: " in capfd.readouterr().err
    assert not (node / "share.json").exists()
