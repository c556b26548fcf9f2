# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of the embedded profile leaves, whole: of a Jetson, as the job, the device and the judge write it."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import card

Json = dict[str, t.Any]
RUN, WORKLOAD = "20261126T070000Z-abc123", "PROFILE-EMBEDDED"
FLOAT, PRUNED, INT8, BUNDLE = ("f" * 64, "e" * 64, "1" * 64, "b" * 64)
HOST = "edge01"
LIMITS = {
    "latency_ms": 5.0,
    "size_mb": 50.0,
    "memory_gb": 12.0,
    "temperature_c": 85.0,
    "power_w": None,
    "power_rails": None,
    "soak_seconds": 600.0,
    "power_mode": "MAXN",
}


def latency() -> Json:
    """1,200 inferences, most of them near 0.4 ms."""
    return {
        "inferences": 1200,
        "p50_ms": 0.401,
        "p95_ms": 0.52,
        "p99_ms": 0.61,
        "max_ms": 3.2,
        "per_second": 2410.5,
        "histogram": {"edges_ms": [0.3, 0.38, 0.45, 0.6, 0.9, 3.2], "counts": [150, 800, 230, 18, 2]},
        "cpu_share": 0.998,
        "run_delay": 0.0004,
        "undisturbed": True,
        "disturbed_by": "nothing",
    }


def answer(host: str = HOST) -> Json:
    """What the device answered."""
    return {
        "schema": 1,
        "problem": None,
        "host": host,
        "folder": f"/home/a/.hpc_validation/{RUN}",
        "deployed": {"model": "int8", "sha256": INT8, "bytes": 885_000},
        "measured": {
            "schema": 1,
            "host": host,
            "machine": "aarch64",
            "python": "3.8.10",
            "kernel": "5.10.192-tegra",
            "numpy": "1.24.4",
            "onnxruntime": "1.19.2",
            "board": "NVIDIA Jetson AGX Orin Developer Kit",
            "power_mode": "MAXN",
            "latency": latency(),
            "repeats": [],
            "models": {
                "float": {"p50_ms": 0.71, "p99_ms": 0.98},
                "pruned": {"p50_ms": 0.55, "p99_ms": 0.8},
                "int8": {"p50_ms": 0.4, "p99_ms": 0.6},
            },
            "compared": {"undisturbed": True, "disturbed_by": "nothing"},
            "soak": {
                "inferences": 1_400_000,
                "millijoules_per_inference": 4.2,
                "energy_of": ["VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"],
                "power": {"mean": 10.1, "rails": ["VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"], "error": None},
                "energy": {"joules": None, "error": "no energy counter in sysfs"},
            },
        },
    }


def judged() -> Json:
    """What edge.json has of it."""
    return {
        "machine": "aarch64",
        "board": "NVIDIA Jetson AGX Orin Developer Kit",
        "python": "3.8.10",
        "onnxruntime": "1.19.2",
        "model": "int8",
        "as_judged": True,
        "runtime": "as locked",
        "cold_start_s": 0.31,
        "p50_ms": 0.401,
        "p95_ms": 0.52,
        "p99_ms": 0.61,
        "max_ms": 3.2,
        "per_second": 2410.5,
        "memory_gb": 0.066,
        "size_mb": 0.885,
        "near": 1.0,
        "temperature_c": 61.5,
        "throttle_events": 0,
        "power_w": 10.1,
        "power_mode": "MAXN",
        "repeats": 0,
        "cpu_share": 0.998,
    }


def metrics() -> Json:
    """The job's metrics."""
    common = {"opset": 20, "ir": 10, "valid": True}
    return {
        "job_id": "12",
        "attempt": 0,
        "models": {
            "float": {
                **common,
                "file": "float.onnx",
                "sha256": FLOAT,
                "bytes": 3_321_000,
                "error": 0.4187,
                "p50_ms": 0.52,
                "p99_ms": 0.68,
            },
            "pruned": {
                **common,
                "file": "pruned.onnx",
                "sha256": PRUNED,
                "bytes": 2_100_000,
                "error": 0.4186,
                "p50_ms": 0.38,
                "p99_ms": 0.55,
            },
            "int8": {
                **common,
                "file": "int8.onnx",
                "sha256": INT8,
                "bytes": 885_000,
                "error": 0.4192,
                "p50_ms": 0.31,
                "p99_ms": 0.47,
            },
        },
        "deployed": "int8",
        "pruning": {
            "asked": 0.3,
            "macs": 0.63,
            "parameters": 0.64,
            "extra_steps": 150,
            "tuned": {"mae": 0.4186},
            "control": {"mae": 0.4187},
        },
        "quantization": {"method": "static", "whole": 24, "floats": [], "near": 1.0, "furthest": 0.044},
        "calibration": {"samples": 1000, "mean": 0.02, "deviation": 0.01},
        "export": {"furthest": 1.1e-06},
        "source": {"from": "this job", "weights_sha256": "5" * 64, "test": {"mae": 0.46}},
        "test": {"mae": 0.4222, "validation_loss": 0.28},
        "parameters": 809_473,
        "weights_sha256": "6" * 64,
        "profile": {"document": "95-00-06-02-A-102", "name": "embedded-orin"},
        "world_size": 1,
        "environment": {
            "python": {"profile": "3.8", "here": "3.11.9"},
            "tensorrt": {"profile": "8.5", "here": None},
        },
    }


def profile() -> Json:
    """The profile, as far as a card has of it."""
    return {
        "metadata": {
            "document": "95-00-06-02-A-102",
            "name": "embedded-orin",
            "version": "1.1",
            "owner": "ml-team@example.org",
            "description": "Fine-tuning of the HPC model for a Jetson AGX Orin",
            "created": "2026-11-26",
            "target": "embedded",
            "purpose": "fine_tune",
        },
        "model": {"task": "regression"},
        "compliance": {"data_classification": "internal", "license": "proprietary", "approved_by": None},
        "notes": "24 to 48 hours for 50 epochs are the document's figure.",
    }


def file(name: str, digit: str) -> Json:
    """A file of the job's output."""
    return {"path": f"/mnt/beegfs/models/embedded-profile/job-12/{name}", "size": 4000, "sha256": digit * 64}


def evidence() -> Json:
    """The evidence that the workload was judged on."""
    return {
        "metrics": metrics(),
        "provenance": {
            "runtime": {"key": "deepspeed-1a2b3c", "lock_sha256": "7" * 64},
            "data": {
                "name": "training_windows",
                "source": "stand-in",
                "description": "windows that a rule made",
                "files": {"train-inputs.npy": {"size": 9000, "sha256": "8" * 64}},
            },
        },
        "edge": {"schema": 1, "job_id": "12", "attempt": 0, "expected": 1, "limits": LIMITS, "hosts": {HOST: judged()}},
        "artifacts": {"deploy.zip": file("deploy.zip", "b"), "profile.json": file("profile.json", "9")},
        "files": {"metrics": file("metrics.json", "a"), "edge": file("edge/edge.json", "c")},
        "problems": [],
    }


def criterion(name: str, verdict: str, why: str, value: t.Any = None) -> Json:
    """A judged criterion."""
    return {
        "id": name,
        "title": f"title of {name}",
        "verdict": verdict,
        "value": value,
        "bound": "<= 1",
        "unit": None,
        "why": why,
    }


def workload() -> Json:
    """The workload, as the verdict has it."""
    return {
        "id": WORKLOAD,
        "name": "embedded_profile",
        "title": "Training profile for an embedded board, trained here and measured there",
        "verdict": "pass",
        "why": "every applicable criterion passed",
        "job": {"job_id": "12", "nodes": "compute01", "state": "COMPLETED", "script_sha256": "d" * 64},
        "data": {"training_windows": "stand-in for windows of a machine's sensors"},
        "criteria": [
            criterion("S4-6.p99", "pass", "0.122 is <= 1", 0.122),
            criterion("S4-5.power", "not_applicable", "the profile has no bound"),
        ],
    }


def verdict() -> Json:
    """The verdict of the run."""
    return {
        "run": RUN,
        "accelerator": "simulated",
        "versions": {"collection": "0.4.0"},
        "evidence": [{"path": f"edge/bundle-{WORKLOAD}.zip", "size": 5_000_000, "sha256": BUNDLE}],
        "workloads": [workload()],
    }


def sources(**changes: t.Any) -> card.Sources:
    """All of it; `changes` are other parts."""
    whole = {
        "verdict": verdict(),
        "workload": workload(),
        "evidence": evidence(),
        "profile": profile(),
        "hosts": {HOST: answer()},
    }
    return card.Sources(**{**whole, **changes})
