# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from kit.errors import KitError
from kit.profiles import job
from kit.profiles.check import UnusableError, usable

from tests.unit.kit.profiles.samples import FOLDER, HPC, changed

SCRIPT = FOLDER.parent / "scripts/train_hpc.sh"
# A sbatch that says what it was given; `kit legs` and `kit sample` are not started by it.
SBATCH = """#!/bin/sh
printf '%s\\n' "$@"
"""


@pytest.fixture
def profile(tmp_path):
    def made(**values):
        file = tmp_path / "profile.yaml"
        own = {"logging__directory": str(tmp_path / "logs"), **values}
        file.write_text(changed(HPC, **own), encoding="utf-8")
        return usable(file), file

    return made


def test_it_asks_for_what_the_profile_says(profile):
    one, _file = profile(resources__time='"1-02:00:00"')
    assert job.options(one, "cuda") == [
        "--job-name=hpc-a100x4",
        "--nodes=1",
        "--ntasks-per-node=4",
        "--cpus-per-task=8",
        "--mem=262144M",
        "--time=1-02:00:00",
        "--partition=gpu_large",
        "--gres=gpu:4",
    ]


def test_without_gpus_and_partition_it_asks_for_neither(profile):
    one, _file = profile(resources__partition="null")
    assert not [each for each in job.options(one, "cpu") if each.startswith(("--partition", "--gres"))]


def test_it_trains_on_all_nodes_and_again_where_a_rank_dies(profile):
    one, file = profile()
    command = job.training(one, file, 2)
    assert command[:3] == [sys.executable, "-m", "kit"]
    assert command[3:8] == ["legs", "--ranks=4", "--nodes=2", "--restarts=3", "--restart-delay=60"]
    assert command[-5:] == ["kit", "launch", "train.py", "--config", str(file)]


def test_ranks_that_do_not_fill_the_nodes_are_refused(profile):
    one, file = profile()
    with pytest.raises(KitError, match=r"4 ranks .* do not fill 3 nodes"):
        job.training(one, file, 3)


def test_it_samples_as_often_as_the_profile_says(profile, tmp_path):
    one, _file = profile(monitoring__interval_seconds="2.5")
    assert job.sampling(one, tmp_path, 1)[3:] == ["sample", f"--output={tmp_path}/gpu.jsonl", "--interval=2.5"]
    several = job.sampling(one, tmp_path, 2)
    assert several[3:5] == ["nodes", "--count=2"]
    assert f"--output={tmp_path}/nodes/%N/gpu.jsonl" in several


def test_it_samples_nothing_where_the_profile_wants_no_gpu_watched(profile, tmp_path):
    one, _file = profile(monitoring__gpu="false")
    assert job.sampling(one, tmp_path, 1) is None


def test_outside_a_job_it_refuses(profile):
    one, file = profile()
    with pytest.raises(KitError, match=r"no job of Slurm's"):
        job.run(one, file, {})


def test_a_file_with_errors_is_refused_with_all_of_them(tmp_path):
    file = tmp_path / "profile.yaml"
    file.write_text(changed(HPC, training__epochs="0", model__num_heads="7"), encoding="utf-8")
    with pytest.raises(UnusableError, match=r"profile.yaml:\d+: error: training.epochs: 0; expected at least 1"):
        usable(file)
    with pytest.raises(UnusableError, match="cannot be read"):
        usable(tmp_path / "none.yaml")


def run_in_a_job(tmp_path, file, training: str, seconds: float = 60):
    """Run `kit profile train` with a `kit` whose legs and sampler are these; return what came of it."""
    wrapper = (
        "import os, sys\n"
        "from kit.profiles import job\n"
        "from kit.profiles.check import usable\n"
        "from pathlib import Path\n"
        f"job.training = lambda *_: [sys.executable, '-c', {training!r}]\n"
        "say = 'import os,time; print(os.environ[\"OUTPUT_DIR\"], flush=True); time.sleep(600)'\n"
        "job.sampling = lambda *_: [sys.executable, '-c', say]\n"
        f"sys.exit(job.run(usable(Path({str(file)!r})), Path({str(file)!r}), os.environ))\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(FOLDER.parents[2]),
        "SLURM_JOB_ID": "12",
        "SLURM_JOB_NUM_NODES": "2",
    }
    return subprocess.run(
        [sys.executable, "-c", wrapper],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def test_the_job_ends_as_the_training_does_and_leaves_no_sampler(profile, tmp_path):
    _one, file = profile()
    done = run_in_a_job(tmp_path, file, "import os, sys; print(os.environ['OUTPUT_DIR']); sys.exit(3)")
    assert done.returncode == 3, done.stderr
    assert (tmp_path / "logs/job-12").is_dir()
    assert str(tmp_path / "logs/job-12") in done.stdout


def submitted(tmp_path, *arguments: str, python: str = sys.executable, script: Path = SCRIPT):
    """Run train_hpc.sh with a sbatch that only says what it is given."""
    fake = tmp_path / "bin/sbatch"
    fake.parent.mkdir(exist_ok=True)
    fake.write_text(SBATCH, encoding="utf-8")
    fake.chmod(0o755)
    environment = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}", "PYTHON": python}
    return subprocess.run(
        [str(script), *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_script_submits_with_the_options_of_the_profile_and_then_its_own(profile, tmp_path):
    _one, file = profile()
    done = submitted(tmp_path, str(file), "--nodes=2", "--ntasks-per-node=2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines.index("--nodes=1") < lines.index("--nodes=2")
    assert lines[-5:-1] == [
        str(SCRIPT.with_name("train_hpc_job.sh")),
        sys.executable,
        str(FOLDER.parents[2]),
        str(FOLDER.parent),
    ]
    assert lines[-1] == str(file)


def test_the_script_leaves_no_compiled_files_beside_the_code_that_jobs_run(profile, tmp_path):
    _one, file = profile()
    files, share = FOLDER.parents[2], tmp_path / "share"
    for folder in ("kit", "requirements", "workloads/training_profiles"):
        shutil.copytree(files / folder, share / folder, ignore=shutil.ignore_patterns("__pycache__"))
    done = submitted(tmp_path, str(file), script=share / SCRIPT.relative_to(files))
    assert done.returncode == 0, done.stderr
    assert str(share) in done.stdout
    assert not list(share.rglob("__pycache__"))


def test_the_script_is_not_for_sbatch_which_would_run_a_copy(profile, tmp_path):
    _one, file = profile()
    copy = tmp_path / "slurmd/job00042/slurm_script"
    copy.parent.mkdir(parents=True)
    shutil.copy(SCRIPT, copy)
    done = submitted(tmp_path, str(file), script=copy)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "train_hpc.sh: run it with bash, not sbatch: it submits itself\n"


def test_the_script_submits_nothing_where_the_profile_has_errors(tmp_path):
    file = tmp_path / "profile.yaml"
    file.write_text(changed(HPC, training__epochs="0"), encoding="utf-8")
    done = submitted(tmp_path, str(file))
    assert done.returncode != 0
    assert "training.epochs: 0; expected at least 1" in done.stderr
    assert "--nodes" not in done.stdout
    assert submitted(tmp_path).returncode == 2


def trained_by_hand(*arguments: str, **variables: str):
    """Run train.py in its folder, with nothing set that leads to the kit."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "RANK")}
    return subprocess.run(
        [sys.executable, "train.py", *arguments],
        env={**environment, **variables},
        cwd=FOLDER.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_training_finds_the_kit_by_itself():
    done = trained_by_hand("--help")
    assert (done.returncode, done.stderr) == (0, "")


def test_what_the_training_starts_finds_the_kit_too(profile, tmp_path):
    _one, file = profile()
    start = "import subprocess, sys\nsys.exit(subprocess.call([sys.executable, '-m', 'kit', 'profile', '--help']))\n"
    (tmp_path / "torch.py").write_text(start, encoding="utf-8")  # the first that a training imports
    done = trained_by_hand("--config", str(file), PYTHONPATH=str(tmp_path), HPC_VALIDATION_ACCELERATOR="cpu")
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: " in done.stdout


def test_the_manifest_asks_for_what_the_profile_says():
    """In a job that validates the profile the manifest decides these: both must say the same."""
    manifest = yaml.safe_load((FOLDER.parent / "workload.yml").read_text(encoding="utf-8"))
    local = manifest["options"]["local"]
    for file, said in ((next(FOLDER.glob("*A-101*")), manifest), (FOLDER.parent / "local.yaml", {**manifest, **local})):
        one = usable(file)
        resources = {**manifest["resources"], **said["resources"]}
        assert resources["nodes"] * resources["ntasks_per_node"] == one.resources.num_gpus
        assert resources["cpus_per_task"] == one.resources.cpus_per_gpu
        assert said["restarts"]["most"] == one.fault_tolerance.max_restarts
        assert said["restarts"]["delay"] == one.fault_tolerance.restart_delay_seconds
        assert said["sample_seconds"] == one.monitoring.interval_seconds
