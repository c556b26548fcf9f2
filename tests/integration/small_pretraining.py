# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pretraining as a workload of a minute: few legs, two ranks, a tiny model, and a fault where one is named."""

from __future__ import annotations

import shutil
import typing as t
from pathlib import Path

import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.overrides import merge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.manifests import with_option

NAME, IDENTITY = "pretraining", "TEST-3"
ROOT = Path(__file__).resolve().parents[2]
WORKLOAD = ROOT / "files/workloads/gpt_pretraining"
FAULTY = ROOT / "tests/workloads/deepspeed/faulty.py"
PROFILE = Path("config/profiles/mini.yaml")
RESOURCES = {"nodes": 1, "ntasks_per_node": 2, "cpus_per_task": 2, "gres": "gpu:2", "mem": "6G", "time": "00:10:00"}

Json = dict[str, t.Any]

# What has to be among the legs for a criterion to be judged; the legs are compared in `export`.
NEEDED = {
    "S3-11": {"shape", "export"},
    "S3-11.fits": {"shape", "export"},
    "S3-14.plain": {"plain", "export"},
    "S3-14.replay": {"plain", "export"},
    "S3-24.plain": {"plain", "export"},
    "S3-27.killed": {"killed", "export"},
    "S3-27.whole": {"resumed", "export"},
    "S3-27.resume": {"resumed", "export"},
    "S3-27.samples": {"resumed", "export"},
    "S3-27.resized": {"resized", "export"},
    "S3-27.resized_samples": {"resized", "export"},
    "S3-32": {"export"},
    "S3-32.whole": {"shape", "export"},
    "S3-32.loss": {"export"},
    "S3-33": {"export"},
    "S3-17": {"export"},
}
KEPT = ("training.log", "performance_metrics.jsonl")  # artifacts without `export`


def make(folder: Path, fault: str, changes: Json) -> Json:
    """Make a copy of the workload with these changes of its manifest; return that. `well` is no fault.

    Without `legs` among the changes there is one, the training itself.
    """
    shutil.copytree(WORKLOAD, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (FAULTY.name, "bucket.py"):
        shutil.copy(FAULTY.with_name(name), folder)
    profile = folder / PROFILE
    settings = merge(_read(profile), _read(FAULTY.with_name("small.yaml")))
    patient = {"training": {"watch": {"stall_seconds": 100}}}
    profile.write_text(yaml.safe_dump(merge(settings, patient)))
    whole = _read(WORKLOAD / "workload.yml")
    mini = with_option(whole, whole.pop("options")["mini"])
    del mini["legs"]
    resources = merge(RESOURCES, changes.get("resources", {}))
    begun = ["train.py"] if fault == "well" else ["faulty.py", fault]
    small: Json = {
        "id": IDENTITY,
        "name": NAME,
        "title": "Pretraining of a tiny GPT",
        "category": 99,
        "command": ["python", *begun, "--profile", "mini"],
        "resources": resources,
        "output": {"directory": f"models/{NAME}/job-%j"},
        "criteria": _bounds(resources),
    }
    manifest = with_option(with_option(mini, small), changes)
    legs = {leg.partition(":")[0] for leg in manifest.get("legs", [])}
    manifest["criteria"] = [each for each in manifest["criteria"] if NEEDED.get(each["id"], set()) <= legs]
    if "export" not in legs:
        manifest["output"]["artifacts"] = list(KEPT)
    return manifest


def _bounds(resources: Json) -> Json:
    """Return what the criteria must be for a model so small, and these ranks."""
    ranks = resources["nodes"] * resources["ntasks_per_node"]
    return {
        "S3-12": {"eq": 8},
        "S3-1.ranks": {"eq": ranks},
        "S3-1.nodes": {"eq": resources["nodes"]},
        "S3-1.distinct": {"eq": ranks},
        "S3-14": {"each": {"between": [1 / ranks, 1 / ranks + 0.001]}},
        "S3-30": {"le": 7.7},
        "S3-32": {"exists": {"min_bytes": 100_000}},
        "S3-19": {"severity": "record"},
        "S3-31.clock": {"severity": "record"},
    }


def _read(path: Path) -> Json:
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))
