# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the workloads' own tests with the runtime that the jobs use, on the local cluster's login node."""

from __future__ import annotations

import re

import pytest

from tests.integration.conftest import ROOT
from tests.integration.environments import fake_gcs_server, installed, on_login, payload

FOLDERS = [
    "workloads/mnist_single_gpu",
    "workloads/sft_single_gpu",
    "workloads/smollm_multi_gpu",
    "datasets/mnist",
    "datasets/cifar10",
]
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
def test_what_runs_there_passes_its_tests(folder: str, kind: str) -> None:
    server = fake_gcs_server()
    with payload(ROOT / "tests/workloads", server) as (_local, there):
        files, tests = f"{there}/files", f"{there}/workloads"
        python = installed(RUNTIME.get(folder, folder), files)
        folders = [*FIRST.get(folder, []), *FOLDERS]
        variables = {
            "PYTHONPATH": ":".join([files, *(f"{files}/{each}" for each in folders), f"{tests}/oumi"]),
            "OMP_WAIT_POLICY": "PASSIVE",
            "FAKE_GCS_SERVER": f"{there}/{server.name}",
        }
        unittest = ["-m", "unittest", "discover", "-s", f"{tests}/{folder}", "-p", f"{kind}_*.py"]
        done = on_login(python, *unittest, **variables)
    assert done.returncode == 0, done.stderr
    written = (ROOT / "tests/workloads" / folder).glob(f"{kind}_*.py")
    expected = sum(len(re.findall(r"^    def test_", file.read_text(), re.MULTILINE)) for file in written)
    assert re.search(rf"^Ran {expected} tests", done.stderr, re.MULTILINE), done.stderr
    assert "skipped" not in done.stderr
