# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The criteria of MLOPS-1.1: a sound run passes all of them, and each has a run that does not."""

from __future__ import annotations

import copy
import datetime
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _criteria, _criteria_spec

GATES = {
    "JOB",
    "S0-10",
    "S0-11",
    "S0-11.visible",
    "S0-12",
    "S0-12.slurm",
    "S0-12.clock",
    "S0-13",
    "S0-13.completed",
    "S0-13.loss",
    "S0-14",
    "S0-15",
    "S0-15.finite",
    "S0-16",
    "S0-16.warnings",
}
CUDA_ONLY = {"S0-11.cuda", "S0-15.gpu"}


def sound(accelerator: str) -> dict[str, t.Any]:
    """Evidence of a good run, with values as recorded from Slurm 24.11.5, Debian 13."""
    end = {"job_id": "2", "attempt": 0, "exit_code": 0}
    log = {"path": "/x", "lines": 9, "counts": {}, "hits": {"cuda_errors": [], "cuda_warnings": []}, "end": end}
    log["counts"] = {"cuda_errors": 0, "cuda_warnings": 0}
    on_gpu = accelerator == "cuda"
    return {
        "schema": 1,
        "context": {"accelerator": accelerator},
        "problems": [],
        "job": {
            **end,
            "state": "COMPLETED",
            "signal": 0,
            "derived_exit_code": 0,
            "gpus": 1,
            "run_seconds": 23.0,
            "nodes": ["compute01"],
            "steps": [{"id": "batch", "state": "COMPLETED", "exit_code": 0, "signal": 0}],
        },
        "metrics": {
            "job_id": "2",
            "attempt": 0,
            "epochs": [1, 2, 3, 4, 5],
            "loss": [0.973, 0.333, 0.183, 0.097, 0.060],
            "accuracy": [0.698, 0.894, 0.943, 0.972, 0.984],
            "test_accuracy": 0.997,
            "test_accuracy_per_epoch": [0.917, 0.944, 0.978, 0.989, 0.997],
            "training_time_seconds": 18.1,
            "wall_time_seconds": 20.5,
            "samples_per_second": 1192.0,
            "device": "cuda" if on_gpu else "cpu",
            "device_count": 1,
            "gpu_name": "A GPU" if on_gpu else None,
            "gpu_uuids": ["GPU-1"] if on_gpu else [],
            "gpu_memory_peak_bytes": 10**9 if on_gpu else None,
            "torch_version": "2.10.0+cu128",
            "cuda_version": "12.8",
            "seed": 42,
            "data": {"source": "stand-in", "train": 4311, "test": 360},
        },
        "gpu": {"fields": {"util": {"max": 90}}},
        "provenance": {"gpus_listed": 1},
        "logs": {"stdout": log, "stderr": copy.deepcopy(log)},
        "artifacts": {"mnist_cnn_single_gpu.pt": {"path": "/x", "size": 4802445, "sha256": "ab"}},
    }


@pytest.fixture(scope="module")
def criteria(root: Path) -> list[t.Any]:
    manifest = yaml.safe_load((root / "files/workloads/mnist_single_gpu/workload.yml").read_text())
    sets = [path.stem for path in (root / "files/log_patterns").glob("*.yml")]
    return _criteria_spec.read(manifest["criteria"], workload=manifest["id"], pattern_sets=sets)


def verdicts(evidence: dict[str, t.Any], criteria: list[t.Any]) -> dict[str, str]:
    """Judge; return each criterion's verdict."""
    judged = _criteria.judge(evidence, criteria, today=datetime.date(2026, 1, 1))
    return {entry["id"]: entry["verdict"] for entry in judged}


def test_a_sound_run_passes_on_a_gpu(criteria: list[t.Any]) -> None:
    found = verdicts(sound("cuda"), criteria)
    assert {name for name, verdict in found.items() if verdict == "pass"} == GATES | CUDA_ONLY
    assert {name for name, verdict in found.items() if verdict == "recorded"} == {"S0-11.busy", "S0-11.confined"}


def test_on_simulated_gpus_only_cuda_computing_does_not_apply(criteria: list[t.Any]) -> None:
    found = verdicts(sound("simulated"), criteria)
    assert {name for name, verdict in found.items() if verdict == "pass"} == GATES
    assert {name for name, verdict in found.items() if verdict == "not_applicable"} == CUDA_ONLY


def test_every_requirement_has_its_criterion(criteria: list[t.Any]) -> None:
    assert {f"S0-{number}" for number in range(10, 17)} <= {criterion.id for criterion in criteria}


BROKEN: list[tuple[str, str, t.Any, str]] = [
    ("JOB", "job.state", "FAILED", "fail"),
    ("S0-10", "job.job_id", None, "undetermined"),
    ("S0-11", "job.gpus", 2, "fail"),
    ("S0-11", "job.gpus", None, "undetermined"),
    ("S0-11.visible", "metrics.device_count", 8, "fail"),
    ("S0-11.cuda", "metrics.device", "cpu", "fail"),
    ("S0-12", "metrics.training_time_seconds", 180, "fail"),
    ("S0-12", "metrics.training_time_seconds", "fast", "undetermined"),
    ("S0-12.slurm", "job.run_seconds", 181.0, "fail"),
    ("S0-12.clock", "metrics.wall_time_seconds", 40.0, "fail"),
    ("S0-13", "metrics.test_accuracy", 0.95, "fail"),
    ("S0-13", "metrics.test_accuracy", True, "undetermined"),
    ("S0-13", "metrics.test_accuracy", None, "undetermined"),
    ("S0-13", "metrics.test_accuracy", "NaN", "undetermined"),
    ("S0-13.completed", "metrics.test_accuracy_per_epoch", [0.9, 0.97], "fail"),
    ("S0-13.loss", "metrics.loss", [0.9, 0.95, 1.0, 1.1, 1.2], "fail"),
    ("S0-13.loss", "metrics.loss", [], "undetermined"),
    ("S0-14", "artifacts.mnist_cnn_single_gpu.pt.size", 12, "fail"),
    ("S0-15", "metrics.samples_per_second", None, "undetermined"),
    ("S0-15", "metrics.epochs", [], "undetermined"),
    ("S0-15.gpu", "metrics.gpu_memory_peak_bytes", None, "undetermined"),
    ("S0-15.finite", "metrics.loss", [0.9, "NaN", 0.1, 0.1, 0.1], "fail"),
    ("S0-16", "logs.stderr.counts.cuda_errors", 1, "fail"),
    ("S0-16", "logs.stdout.end", None, "undetermined"),
    ("S0-16.warnings", "logs.stdout.counts.cuda_warnings", 1, "fail"),
]


@pytest.mark.parametrize(("criterion", "path", "value", "verdict"), BROKEN)
def test_each_criterion_has_a_run_that_it_does_not_pass(
    criteria: list[t.Any], criterion: str, path: str, value: t.Any, verdict: str
) -> None:
    evidence = sound("cuda")
    place: dict[str, t.Any] = evidence
    words = path.replace("mnist_cnn_single_gpu.pt", "MODEL").split(".")
    *folders, last = ["mnist_cnn_single_gpu.pt" if word == "MODEL" else word for word in words]
    for folder in folders:
        place = place[folder]
    place[last] = value
    if last in ("cuda_errors", "cuda_warnings"):
        hit = {"line": 1, "text": "CUDA error", "pattern": "x", "remedy": "y"}
        evidence["logs"][folders[1]]["hits"][last] = [hit]
    assert verdicts(evidence, criteria)[criterion] == verdict


def test_every_gate_is_among_the_broken_runs(criteria: list[t.Any]) -> None:
    gates = {criterion.id for criterion in criteria if criterion.severity == "gate"}
    assert gates <= {name for name, *_ in BROKEN}
