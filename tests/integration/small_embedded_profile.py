# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The embedded profile as a workload of a minute: a smaller model, fewer steps, no devices, and a named fault."""

from __future__ import annotations

import shutil
import typing as t
from pathlib import Path

import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.overrides import merge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.manifests import with_option

NAME, IDENTITY = "embedded_training", "TEST-6"
ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = ROOT / "files/workloads"
FAULTY = ROOT / "tests/workloads/profiles/faulty_embedded.py"
PROFILE = "local_embedded.yaml"
STEPS = 60
# What is faster cannot be told of a model this small, and what has no devices is not measured there.
NOT_JUDGED = ("S4-5.int8_speed", "S4-5.prune_latency", "S4-5.temperature", "S4-5.throttle", "S4-5.mode", "S4-5.power")

Json = dict[str, t.Any]


def make(folder: Path, fault: str, changes: Json) -> Json:
    """Make a copy of the workload with these changes of its manifest; return that. `well` is no fault."""
    code = WORKLOADS / "training_profiles"
    shutil.copytree(code, folder, ignore=shutil.ignore_patterns("__pycache__", "workload.yml"))
    shutil.copy(FAULTY, folder)
    profile = folder / PROFILE
    profile.write_text(yaml.safe_dump(merge(yaml.safe_load(profile.read_text(encoding="utf-8")), _changes())))
    whole = yaml.safe_load((WORKLOADS / "embedded_profile/workload.yml").read_text(encoding="utf-8"))
    small: Json = {
        "id": IDENTITY,
        "name": NAME,
        "title": "Embedded profile of a small model",
        "category": 99,
        "command": ["python", *(["train.py"] if fault == "well" else [FAULTY.name, fault]), "--validate"],
        "sample_seconds": 0.1,
        "output": {"directory": f"models/{NAME.replace('_', '-')}/job-%j"},
        "criteria": {
            "S4-24.learns": {"between": [0.385, 0.8]},
            "S4-24.gap": {"between": [-0.1, 0.1]},
            "S4-5.prune_error": {"le": 0.05},  # a small model has less to spare
        },
    }
    manifest = with_option(with_option(with_option(whole, whole.pop("options")["local"]), small), changes)
    for key in ("code", "edge"):
        manifest.pop(key)
    manifest["criteria"] = [each for each in manifest["criteria"] if _judged(each["id"])]
    return manifest


def _judged(criterion: str) -> bool:
    return not criterion.startswith("S4-6") and criterion not in NOT_JUDGED


def _changes() -> Json:
    """Return what makes the profile small."""
    return {
        "model": {"hidden_size": 64, "num_layers": 2, "feedforward_size": 128},
        "training": {
            "max_steps": STEPS,
            "scheduler": {"warmup_steps": 6, "t_max": STEPS},
            "evaluation": {"every_steps": 20},
            "checkpointing": {"every_steps": 30},
        },
        "monitoring": {"weight_histogram_every_steps": 30, "interval_seconds": 0.1},
    }
