# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A training profile as a workload of a minute: two ranks, few steps, the legs that are wanted, and a named fault."""

from __future__ import annotations

import shutil
import typing as t
from pathlib import Path

import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.overrides import merge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.manifests import with_option

NAME, IDENTITY = "training_profile", "TEST-4"
ROOT = Path(__file__).resolve().parents[2]
WORKLOAD = ROOT / "files/workloads/training_profiles"
FAULTY = ROOT / "tests/workloads/profiles/faulty_training.py"
PROFILE = "local.yaml"
RESOURCES = {"nodes": 1, "ntasks_per_node": 2, "cpus_per_task": 2, "gres": "gpu:2", "mem": "6G", "time": "00:10:00"}
STEPS = 160
LEGS = ["measured", "single:1"]
# What a profile's file is given after its text; the training has no fault of its own then.
WRITTEN = {
    "two_documents": "---\n",
    "secret_in_a_comment": f"# sync with https://deploy:{'h7Kq2' * 4}@git.example.org/profiles.git\n",
}
# What has to be among the legs for a criterion to be judged.
NEEDED = {"restarted": ("S4-11.resume", "S4-11.checkpoint", "S4-11.restarts", "S4-11.delay")}
NEEDED["adapted"] = (*NEEDED["restarted"], *(f"S4-18{part}" for part in ("", ".gain")))
NEEDED["adapted"] += tuple(f"S4-19{part}" for part in ("", ".gain", ".frozen", ".opened", ".far"))
NEEDED["single"] = ("S4-26.scaling",)

Json = dict[str, t.Any]


def make(folder: Path, fault: str, changes: Json) -> Json:
    """Make a copy of the workload with these changes of its manifest; return that. `well` is no fault."""
    shutil.copytree(WORKLOAD, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(FAULTY, folder)
    profile = folder / PROFILE
    settings = merge(_read(profile), _changes())
    profile.write_text(yaml.safe_dump(settings) + WRITTEN.get(fault, ""))
    whole = _read(WORKLOAD / "workload.yml")
    local = with_option(whole, whole.pop("options")["local"])
    plain = fault == "well" or fault in WRITTEN
    small: Json = {
        "id": IDENTITY,
        "name": NAME,
        "title": "Training profile of a small model",
        "category": 99,
        "command": ["python", *(["train.py"] if plain else [FAULTY.name, fault]), "--validate"],
        "resources": RESOURCES,
        "legs": LEGS,
        "sample_seconds": 0.1,
        "restarts": {"most": 1, "delay": 1},
        "output": {"directory": f"models/{NAME.replace('_', '-')}/job-%j"},
        "criteria": {
            "S4-3": {"eq": 2},
            "S4-3.distinct": {"eq": 2},
            "S4-24.learns": {"between": [0.385, 0.8]},
            "S4-11.delay": {"ge": 1},
        },
    }
    manifest = with_option(with_option(local, small), changes)
    legs = {leg.partition(":")[0] for leg in manifest["legs"]}
    unjudged = {name for leg, names in NEEDED.items() if leg not in legs for name in names}
    manifest["criteria"] = [each for each in manifest["criteria"] if each["id"] not in unjudged]
    return manifest


def _changes() -> Json:
    """Return what makes the profile small."""
    return {
        "training": {
            "max_steps": STEPS,
            "batch_size": 32,
            "scheduler": {"warmup_steps": 20, "t_max": STEPS},
            "evaluation": {"every_steps": 20},
            "checkpointing": {"every_steps": 40},
            "early_stopping": {"patience": 4},
        },
        "distributed": {"world_size": 2},
        "resources": {"num_gpus": 2},
        "monitoring": {"weight_histogram_every_steps": 80, "stall_seconds": 30, "interval_seconds": 0.1},
        "fault_tolerance": {"max_restarts": 1, "restart_delay_seconds": 1},
    }


def _read(path: Path) -> Json:
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))
