# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the workloads' own tests with the runtime that the jobs use, on the local cluster's login node."""

from __future__ import annotations

import re
import shutil
import typing as t
import uuid

import pytest

from tests.integration.conftest import CACHE, CLUSTER, ROOT
from tests.integration.environments import fake_gcs_server, installed, on_login

FOLDERS = [
    "workloads/mnist_single_gpu",
    "workloads/sft_single_gpu",
    "workloads/smollm_multi_gpu",
    "datasets/mnist",
    "datasets/cifar10",
]


@pytest.fixture
def payload() -> t.Iterator[str]:
    """A copy of the payload on the share, where no play looks; the path as the cluster sees it."""
    name = f"tests-{uuid.uuid4().hex}"
    local = CACHE / "clusters" / CLUSTER / "share" / name
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "files", local / "files", ignore=ignore)
    shutil.copytree(ROOT / "tests/workloads", local / "tests", ignore=ignore)
    shutil.copy(fake_gcs_server(), local / "fake-gcs-server")
    yield f"/mnt/beegfs/{name}"
    shutil.rmtree(local)


RUNTIME = {"profiles": "deepspeed"}  # of a folder that is not called as its runtime
FIRST = {"profiles": ["workloads/training_profiles"]}  # before the others, whose modules may have the same names


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("pytorch", "check"),
        pytest.param("pytorch", "slow", marks=pytest.mark.slow),
        ("standin", "check"),
        pytest.param("oumi", "check", marks=pytest.mark.slow),
        ("sft", "check"),
        pytest.param("oumi", "slow", marks=pytest.mark.slow),
        pytest.param("oumi_deepspeed", "slow", marks=pytest.mark.slow),
        ("deepspeed", "check"),
        pytest.param("deepspeed", "slow", marks=pytest.mark.slow),
        pytest.param("profiles", "check", marks=pytest.mark.slow),
        pytest.param("profiles", "slow", marks=pytest.mark.slow),
    ],
)
def test_what_runs_there_passes_its_tests(payload: str, folder: str, kind: str) -> None:
    files = f"{payload}/files"
    python = installed(RUNTIME.get(folder, folder), files)
    path = ":".join(
        [files, *(f"{files}/{each}" for each in (*FIRST.get(folder, []), *FOLDERS)), f"{payload}/tests/oumi"]
    )
    tests = ["-m", "unittest", "discover", "-s", f"{payload}/tests/{folder}", "-p", f"{kind}_*.py"]
    bucket = f"{payload}/fake-gcs-server"
    done = on_login(python, *tests, PYTHONPATH=path, OMP_WAIT_POLICY="PASSIVE", FAKE_GCS_SERVER=bucket)
    assert done.returncode == 0, done.stderr
    written = (ROOT / "tests/workloads" / folder).glob(f"{kind}_*.py")
    expected = sum(len(re.findall(r"^    def test_", file.read_text(), re.MULTILINE)) for file in written)
    assert re.search(rf"^Ran {expected} tests", done.stderr, re.MULTILINE), done.stderr
    assert "skipped" not in done.stderr
