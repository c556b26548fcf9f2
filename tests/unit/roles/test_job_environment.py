# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job's workload, and the kit beside it, find of variables, umask and arguments: all of it, and no more."""

from __future__ import annotations

import stat
import subprocess
import typing as t
from pathlib import Path

import pytest

from tests.unit.roles.test_job_script import IMAGE, RANKS, VENV, render

__all__ = ["render"]
GIVEN = {"SLURM_JOB_ID": "7", "PATH": "/usr/bin:/bin"}
# What bash sets by itself, and what only the stand-in of Python does.
OF_BASH = {"PWD", "OLDPWD", "SHLVL", "_"}
PYTHON = """#!/usr/bin/env bash
notes=$(cd "$(dirname "$0")" && pwd)
printf '%s\\n' "$*" >> "$notes/calls"
for word; do
    case $word in
        train.py) env -0 > "$notes/environment"; umask > "$notes/umask"; touch "$OUTPUT_DIR/made" ;;
        *) [ ! -e "$notes/fails.$word" ] || exit "$(cat "$notes/fails.$word")" ;;
    esac
done
"""


class Job:
    """A job script that is run with stand-ins of the Pythons."""

    def __init__(self, render: t.Callable[..., str], place: Path) -> None:
        self.render, self.place, self.share = render, place, place / "share"
        self.runs = 0

    def run(self, given: dict[str, str] | None = None, **settings: t.Any) -> int:
        self.share.mkdir(exist_ok=True)
        (self.share / "jobs/.markers").mkdir(parents=True, exist_ok=True)
        python = self.place / "python"
        python.write_text(PYTHON)
        python.chmod(0o755)
        for name in ("calls", "environment"):
            (self.place / name).unlink(missing_ok=True)
        known = {
            "hpc_validation_share": str(self.share),
            "hpc_validation_python": str(python),
            "__stage_runtimes": {"pytorch": {**VENV, "python": str(python)}},
            "manifest": {"command": ["python", "train.py"]},
        }
        script = self.place / "job.sbatch"
        script.write_text(self.render(**{**known, **settings}))
        done = subprocess.run(
            ["bash", str(script)],
            env={**GIVEN, **(given or {})},
            cwd=self.place,
            check=False,
            timeout=20,
            capture_output=True,
            umask=0,  # the worst that a user can have
        )
        return done.returncode

    @property
    def environment(self) -> dict[str, str]:
        """The workload's variables beside bash's own and those that the job was given."""
        entries = (self.place / "environment").read_bytes().decode().split("\0")[:-1]
        found = dict(entry.split("=", 1) for entry in entries)
        return {key: value for key, value in found.items() if key not in OF_BASH and GIVEN.get(key) != value}

    @property
    def calls(self) -> list[str]:
        return (self.place / "calls").read_text().splitlines()


@pytest.fixture
def job(render: t.Callable[..., str], tmp_path: Path) -> Job:
    return Job(render, tmp_path)


def expected(share: Path, output: str) -> dict[str, str]:
    return {
        "SLURM_EXPORT_ENV": "ALL",
        "HPC_VALIDATION_SHARE": str(share),
        "HPC_VALIDATION_ACCELERATOR": "cuda",
        "HPC_VALIDATION_MARKERS": f"{share}/jobs/.markers",
        "HPC_VALIDATION_ATTEMPT": "0",
        "PYTHONPATH": f"{share}/scripts",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONNOUSERSITE": "1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "OMP_WAIT_POLICY": "PASSIVE",
        "DATA_DIR": f"{share}/datasets/mnist",
        "OUTPUT_DIR": f"{share}/{output}",
    }


def test_all_variables_of_a_workload(job: Job) -> None:
    assert job.run() == 0
    assert job.environment == expected(job.share, "models/mnist/job-7")


def test_all_variables_of_one_with_models_a_configuration_and_nccl_tests(job: Job) -> None:
    manifest = {"command": ["python", "train.py"], "config": "c.yaml", "models": ["m"], "data": []}
    assert job.run(manifest=manifest, hpc_validation_nccl_tests="/opt/nccl tests") == 0
    wanted = expected(job.share, "models/mnist/job-7")
    del wanted["DATA_DIR"]
    assert job.environment == {
        **wanted,
        "CONFIG_FILE": f"{job.share}/configs/mnist_single_gpu/c.yaml",
        "HPC_VALIDATION_NCCL_TESTS": "/opt/nccl tests",
        "MODEL_DIR": f"{job.share}/huggingface/models/m",
        "HF_HOME": f"{job.share}/huggingface",
        "HF_DATASETS_CACHE": f"{job.share}/huggingface/datasets",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "DO_NOT_TRACK": "true",
    }
    assert any(f"--model {job.share}/huggingface/models/m" in call for call in job.calls)


def test_a_job_is_told_what_it_goes_on_from(job: Job) -> None:
    assert job.run(hpc_validation_resume={"MLOPS-1.1": 5}) == 0
    resumed = {"HPC_VALIDATION_RESUME": f"{job.share}/models/mnist/job-5"}
    assert job.environment == {**expected(job.share, "models/mnist/job-7"), **resumed}


def test_a_link_is_told_its_chain_and_when_its_time_is_over(job: Job) -> None:
    squeue = job.place / "squeue"
    squeue.write_text(
        "#!/bin/sh\n[ \"$*\" = '--noheader --jobs=7 --format=%e' ] && date -d @1795232630 +$SLURM_TIME_FORMAT\n"
    )
    squeue.chmod(0o755)
    known = {**expected(job.share, "models/mnist/job-7"), "HPC_VALIDATION_CHAIN": "/a share/models/chain-x"}
    path = {"PATH": f"{job.place}:/usr/bin:/bin"}
    assert job.run(path, chain="/a share/models/chain-x") == 0
    assert job.environment == {**known, **path, "SLURM_JOB_END_TIME": "1795232630"}
    squeue.unlink()
    slurm_says = {"SLURM_JOB_END_TIME": "1795232631"}
    assert job.run(slurm_says, chain="/a share/models/chain-x") == 0
    assert job.environment == {**known, **slurm_says}


def test_nobody_else_may_write_to_what_it_writes(job: Job) -> None:
    assert job.run() == 0
    assert (job.place / "umask").read_text().strip() == "0022"
    output = job.share / "models/mnist/job-7"
    assert [stat.S_IMODE(path.stat().st_mode) & 0o022 for path in (output, output.parent, output / "made")] == [0] * 3


def test_how_threads_wait_may_be_said_otherwise(job: Job) -> None:
    assert job.run({"OMP_WAIT_POLICY": "ACTIVE"}) == 0
    assert job.environment == {**expected(job.share, "models/mnist/job-7"), "OMP_WAIT_POLICY": "ACTIVE"}


def test_an_attempt_has_a_folder_of_its_own(job: Job) -> None:
    assert job.run({"SLURM_RESTART_COUNT": "2"}) == 0
    wanted = {**expected(job.share, "models/mnist/job-7.2"), "HPC_VALIDATION_ATTEMPT": "2", "SLURM_RESTART_COUNT": "2"}
    assert job.environment == wanted


def test_all_that_is_called_in_its_order(job: Job) -> None:
    assert job.run() == 0
    output = f"{job.share}/models/mnist/job-7"
    before, *_between, end = job.calls
    assert (before, end) == ("-m kit begin", "-m kit end --exit-code 0")
    provenance = (
        f"-m kit provenance --output {output}/provenance.json --lock {job.share}/scripts/requirements/pytorch.txt "
        f"--data {job.share}/datasets/mnist -- {job.place}/python"
    )
    assert job.calls.index(provenance) == 1
    assert "train.py" in job.calls


@pytest.mark.parametrize(
    ("step", "code", "trained"),
    [("begin", 70, False), ("provenance", 70, False), ("end", 70, True), ("sample", 0, True)],
)
def test_a_step_of_ours_that_fails_fails_the_job(job: Job, step: str, code: int, trained: bool) -> None:
    (job.place / f"fails.{step}").write_text("3")
    assert job.run() == code
    assert ("train.py" in job.calls) is trained
    assert job.calls[-1].startswith("-m kit end")


@pytest.mark.parametrize(("said", "code", "trained"), [(0, 0, True), (3, 0, False), (1, 70, False)])
def test_a_link_asks_before_it_trains_whether_there_is_anything_to_do(
    job: Job, said: int, code: int, trained: bool
) -> None:
    (job.place / "fails.link").write_text(str(said))
    assert job.run({"SLURM_JOB_END_TIME": "1"}, chain="/a share/models/chain-x") == code
    link = f"-m kit link --chain /a share/models/chain-x --output {job.share}/models/mnist/job-7"
    assert job.calls[1] == link
    assert ("train.py" in job.calls) is trained
    assert job.calls[-1] == f"-m kit end --exit-code {code}"


def test_an_output_folder_that_cannot_be_made_fails_the_job(job: Job) -> None:
    (job.share / "models").mkdir(parents=True)
    (job.share / "models/mnist").write_text("a file")
    assert job.run() == 73
    assert "train.py" not in job.calls
    assert job.calls[-1] == "-m kit end --exit-code 73"


def test_an_undefined_variable_ends_it(render: t.Callable[..., str]) -> None:
    lines = render().splitlines()
    assert lines.index("set -u") < next(number for number, line in enumerate(lines) if line.startswith("share="))


@pytest.mark.parametrize("several", [False, True])
def test_what_ranks_on_several_nodes_left_is_put_together_before_and_after(job: Job, several: bool) -> None:
    resources = {**RANKS["resources"], "nodes": 2 if several else 1}
    assert job.run(manifest={**RANKS, "resources": resources}) == 0
    gathered = [n for n, call in enumerate(job.calls) if call.startswith("-m kit gather")]
    if not several:
        assert gathered == []
        return
    # The stand-in leaves no folder of nodes, so that nothing is put together at the end.
    assert [job.calls[n] for n in gathered] == [
        f"-m kit gather --output {job.share}/models/mnist/job-7 --count 2",
    ]


def test_a_failed_gathering_before_the_ranks_fails_the_job(job: Job) -> None:
    (job.place / "fails.gather").write_text("3")
    assert job.run(manifest={**RANKS, "resources": {**RANKS["resources"], "nodes": 2}}) == 70


def test_a_program_that_is_no_python_is_started_as_it_is(job: Job) -> None:
    program = job.place / "program"
    program.write_text(PYTHON.replace('"$*"', '"program $*"'))
    program.chmod(0o755)
    assert job.run(manifest={"command": [str(program), "train.py", "a b"]}) == 0
    assert "program train.py a b" in job.calls
    assert job.environment["OUTPUT_DIR"].endswith("/job-7")


HANDED_ON = """HPC_VALIDATION_X SLURM_X CUDA_X NCCL_X GLOO_X UCX_X MASTER_X TORCH_X PYTORCH_X OMP_X PYTHON_X
CONFIG_FILE HF_X TRANSFORMERS_CACHE DO_NOT_TRACK"""


def test_all_that_a_container_is_handed_on(job: Job) -> None:
    (job.place / "bin").mkdir()
    apptainer = job.place / "bin/apptainer"
    apptainer.write_text(PYTHON.replace("dirname", "dirname -- ").replace('$(dirname --  "$0")', '$(dirname "$0")/..'))
    apptainer.chmod(0o755)
    given = {**dict.fromkeys(HANDED_ON.split(), "x"), "PATH": f"{job.place}/bin:/usr/bin:/bin", "SECRET": "x"}
    assert job.run(given, __stage_runtimes={"pytorch": IMAGE}) == 0
    inside = {key.removeprefix("APPTAINERENV_"): value for key, value in job.environment.items() if key[:4] == "APPT"}
    ours = {**expected(job.share, "models/mnist/job-7"), "SLURM_JOB_ID": "7"}
    assert inside == {**dict.fromkeys(HANDED_ON.split(), "x"), **ours}
