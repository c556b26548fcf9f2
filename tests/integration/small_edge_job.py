# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A workload whose job leaves a model for the devices in seconds, with a named fault; the devices are the real part."""

from __future__ import annotations

import shutil
import typing as t
from pathlib import Path

import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.overrides import merge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.manifests import with_option

NAME, IDENTITY = "edge_job", "TEST-5"
ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = ROOT / "files/workloads"
JOB = ROOT / "tests/workloads/edge/edge_job.py"
PROFILE = "local_embedded.yaml"
RESOURCES = {"nodes": 1, "ntasks_per_node": 1, "cpus_per_task": 2, "mem": "2G", "time": "00:05:00"}
ON_DEVICES = ("S4-5.temperature", "S4-5.throttle", "S4-5.mode", "S4-5.power")  # and all of S4-6

Json = dict[str, t.Any]


def make(folder: Path, fault: str, changes: Json) -> Json:
    """Make a folder of the workload with these changes of its manifest; return that. `well` is no fault."""
    code = WORKLOADS / "training_profiles"
    shutil.copytree(code, folder, ignore=shutil.ignore_patterns("__pycache__", "workload.yml"))
    shutil.copy(JOB, folder)
    profile = folder / PROFILE
    bounds = {"max_power_w": 12, "soak_seconds": 6}
    profile.write_text(yaml.safe_dump(merge(_read(profile), {"power_management": bounds})))
    whole = _read(WORKLOADS / "embedded_profile/workload.yml")
    local = with_option(whole, whole.pop("options")["local"])
    small: Json = {
        "id": IDENTITY,
        "name": NAME,
        "title": "A model for the devices that nobody trained",
        "category": 99,
        "command": ["python", JOB.name, fault],
        "resources": RESOURCES,
        "data": [],
        "sample_seconds": 0.1,
        "output": {"directory": f"models/{NAME.replace('_', '-')}/job-%j", "metrics": "metrics.json"},
    }
    manifest = {**with_option(local, {}), **small}
    for key in ("code", "launcher", "legs"):
        manifest.pop(key)
    manifest["criteria"] = [each for each in manifest["criteria"] if _of_devices(each["id"])]
    return with_option(manifest, changes)


def _of_devices(criterion: str) -> bool:
    return criterion.startswith("S4-6") or criterion in ON_DEVICES


def _read(path: Path) -> Json:
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))
