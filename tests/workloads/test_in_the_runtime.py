# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the workloads' own tests with the runtime that the jobs use, on the local cluster's login node."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import typing as t
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = os.environ.get("HPC_VALIDATION_CLUSTER", "local")
CACHE = Path(
    os.environ.get("HPC_VALIDATION_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "hpc_validation")
)
FOLDERS = [
    "workloads/mnist_single_gpu",
    "workloads/sft_single_gpu",
    "workloads/smollm_multi_gpu",
    "datasets/mnist",
    "datasets/cifar10",
]


def on_login(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command on the login node as the user who submits, by ssh as a play does: in the environment of a login."""
    ssh = ["ssh", "-F", str(CACHE / "clusters" / CLUSTER / "ssh_config"), "login"]
    variables = [f"{name}={value}" for name, value in environment.items()]
    line = shlex.join(["env", *variables, *command])
    return subprocess.run([*ssh, line], capture_output=True, text=True, check=False, timeout=900)


def index() -> dict[str, str]:
    """What a play would tell an installer: the package index of this machine's pip."""
    said = subprocess.check_output([sys.executable, "-m", "pip", "install", "--help"], text=True)
    found = re.search(r"index-url <url>[^(]*\(default\s+([^\s)]+)\)", said)
    assert found, "pip names no index"
    return {"UV_DEFAULT_INDEX": found[1], "PIP_INDEX_URL": found[1]}


@pytest.fixture
def payload() -> t.Iterator[str]:
    """A copy of the payload on the share, where no play looks; the path as the cluster sees it."""
    name = f"tests-{uuid.uuid4().hex}"
    local = CACHE / "clusters" / CLUSTER / "share" / name
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "files", local / "files", ignore=ignore)
    shutil.copytree(ROOT / "tests/workloads", local / "tests", ignore=ignore)
    yield f"/mnt/beegfs/{name}"
    shutil.rmtree(local)


@pytest.mark.parametrize(
    ("runtime", "kind"),
    [
        ("pytorch", "check"),
        ("standin", "check"),
        ("oumi", "check"),
        ("sft", "check"),
        pytest.param("oumi", "slow", marks=pytest.mark.slow),
        pytest.param("oumi_deepspeed", "slow", marks=pytest.mark.slow),
    ],
)
def test_what_runs_there_passes_its_tests(payload: str, runtime: str, kind: str) -> None:
    files = f"{payload}/files"
    install = ["--name", runtime, "--lock", f"{files}/requirements/{runtime}.txt", "--root", "/mnt/beegfs/venvs"]
    command = ["python3", "-m", "kit", "runtime", *install]
    installed = on_login(*command, PYTHONPATH=files, PYTHONDONTWRITEBYTECODE="1", **index())
    assert installed.returncode == 0, installed.stderr
    python = json.loads(installed.stdout)["python"]
    path = ":".join([files, *(f"{files}/{folder}" for folder in FOLDERS), f"{payload}/tests/oumi"])
    tests = ["-m", "unittest", "discover", "-s", f"{payload}/tests/{runtime}", "-p", f"{kind}_*.py"]
    done = on_login(python, *tests, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == 0, done.stderr
    written = (ROOT / "tests/workloads" / runtime).glob(f"{kind}_*.py")
    expected = sum(len(re.findall(r"^    def test_", file.read_text(), re.MULTILINE)) for file in written)
    assert re.search(rf"^Ran {expected} tests", done.stderr, re.MULTILINE), done.stderr
    assert "skipped" not in done.stderr
