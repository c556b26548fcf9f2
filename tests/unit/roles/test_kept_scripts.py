# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job script of each workload, byte for byte as tests/fixtures/job_scripts keeps it.

An earlier pass stands only for the very same script, so that no change of one should go unnoticed.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import manifests, staging

from tests.unit.conftest import ROOT
from tests.unit.roles.conftest import job_script

KEPT = ROOT / "tests/fixtures/job_scripts"
WORKLOADS = sorted(path.parent.name for path in (ROOT / "files/workloads").glob("*/workload.yml"))
SHARE = "/mnt/beegfs"
# An inventory as most sites have it, and one that uses what there is.
INVENTORIES: dict[str, dict[str, t.Any]] = {
    "site": {
        "hpc_validation_python": "/usr/bin/python3",
        "hpc_validation_slurm": {"partition": "gpu", "account": "hpc", "gres_type": "h100"},
    },
    "images": {
        "hpc_validation_runtime": "apptainer",
        "hpc_validation_apptainer": {"binds": ["/scratch", "/a b:/c"]},
        "hpc_validation_nccl_tests": "/opt/nccl tests/build",
        "hpc_validation_slurm": {
            "partition": "gpu",
            "mem": None,
            "exclude": ["node1", "node2"],
            "extra": {"exclusive": True, "nice": 0},
        },
        "hpc_validation_workload_slurm": {"MLOPS-1.1": {"extra": {"licenses": "a:1"}}, "MLOPS-2.2": None},
        "hpc_validation_workload_options": {"MLOPS-2.1": "two_nodes", "MLOPS-2.2": "deepspeed"},
        "hpc_validation_baselines": {"MLOPS-2.2": "/srv/baseline.json"},
        "hpc_validation_queue_timeout": 120,
        "hpc_validation_run_timeout": "7200",
    },
}


def staged(workload: dict[str, t.Any], inventory: dict[str, t.Any]) -> dict[str, t.Any]:
    """What the role stage leaves of it."""
    planned = staging.plan([workload], {"runtime": inventory.get("hpc_validation_runtime")}, SHARE)
    found = {
        runtime["key"]: {"python": f"{SHARE}/venvs/{runtime['name']}-0123456789ab/bin/python", **runtime}
        for runtime in planned["runtimes"]
    }
    return {"__stage_plan": planned, "__stage_runtimes": found}


@pytest.mark.parametrize("inventory", INVENTORIES)
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_job_script_is_what_it_was(name: str, inventory: str, tmp_path: Path) -> None:
    settings = INVENTORIES[inventory]
    path = ROOT / "files/workloads" / name / manifests.MANIFEST
    identity = manifests.load_manifest(path)["id"]
    workload = manifests.load_manifest(path, settings.get("hpc_validation_workload_options", {}).get(identity))
    script = job_script(workload, hpc_validation_share=SHARE, **settings, **staged(workload, settings))
    kept, made = KEPT / f"{name}_{inventory}.sbatch", tmp_path / "made.sbatch"
    made.write_text(script, encoding="utf-8")
    assert kept.exists(), f"keep it if it is right: cp {made} {kept}"
    assert script == kept.read_text(encoding="utf-8"), f"if the change is meant: cp {made} {kept}"


def test_none_is_kept_of_a_workload_that_is_gone() -> None:
    assert {path.name for path in KEPT.iterdir()} == {
        f"{name}_{inventory}.sbatch" for name in WORKLOADS for inventory in INVENTORIES
    }
