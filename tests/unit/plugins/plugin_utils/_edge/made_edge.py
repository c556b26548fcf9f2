# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job, the bundle that it left, and what a device answered, for tests of what the controller makes of them."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import typing as t
import zipfile
from pathlib import Path

Json = dict[str, t.Any]
RUN = "20261126T080000Z-abc123"
PLACE = f"{RUN}-PROFILE-EMBEDDED"  # on a device
JOB: Json = {
    "job_id": "12",
    "attempt": 0,
    "name": "embedded-profile",
    "state": "COMPLETED",
    "flags": [],
    "exit_code": 0,
    "signal": 0,
    "derived_exit_code": 0,
    "steps": [],
    "reason": "None",
    "reason_text": "",
}
LIMITS: Json = {
    "latency_ms": 5.0,
    "size_mb": 50.0,
    "memory_gb": 12.0,
    "temperature_c": 85.0,
    "power_w": None,
    "power_rails": ["VDD_IN"],
    "soak_seconds": 60.0,
    "power_mode": "MAXN",
}
ANSWERS = [float(value % 8) for value in range(1000)]
PACKAGES = {"onnxruntime": "1.32.0", "numpy": "2.4.6", "packaging": "26.4"}
LOOK: Json = {
    "schema": 1,
    "python": "3.11.2",
    "implementation": "cpython",
    "machine": "x86_64",
    "libc": "glibc 2.36",
    "system": "Linux",
    "board": None,
    "device": None,
    "home": "/home/admin",
    "free_mb": 1234,
}


def raw(values: t.Iterable[float]) -> bytes:
    found = list(values)
    return struct.pack(f"<{len(found)}f", *found)


def npy(values: t.Iterable[float], shape: tuple[int, ...], kind: str = "<f4", order: str = "False") -> bytes:
    """A .npy file as NumPy writes it."""
    header = f"{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + raw(values)


def files() -> dict[str, bytes]:
    models = {f"{name}.onnx": f"model {name}".encode() * 100 for name in ("float", "pruned", "int8")}
    return {**models, "inputs.npy": npy(range(8), (8, 1, 1)), "answers.npy": npy(ANSWERS, (1000, 1))}


def described(content: bytes) -> Json:
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def contents(parts: dict[str, bytes], **changes: t.Any) -> Json:
    found: Json = {"schema": 1, "job_id": "12", "attempt": 0, "profile": "embedded-orin", "deployed": "int8"}
    found["files"] = {name: described(content) for name, content in parts.items()}
    return {**found, "limits": LIMITS, **changes}


def write_bundle(path: Path, parts: dict[str, bytes] | None = None, told: t.Any = None, **changes: t.Any) -> Path:
    """Write a bundle; `told` is bundle.json if it is not what the parts are, `changes` of it."""
    parts = files() if parts is None else parts
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bundle.json", json.dumps(contents(parts, **changes) if told is None else told))
        for name, content in parts.items():
            packed.writestr(name, content)
    return path


def metrics(path: Path, **changes: t.Any) -> Json:
    """What the job that left this bundle wrote of it into its metrics."""
    models = {name: described(files()[f"{name}.onnx"]) for name in ("float", "pruned", "int8")}
    found: Json = {"job_id": "12", "attempt": 0, "models": models, "deployed": "int8"}
    return {**found, "bundle": {"name": "deploy.zip", **described(path.read_bytes())}, **changes}


def found(path: Path) -> Json:
    """What ansible.builtin.stat says of a regular file."""
    return {"stat": {"exists": True, "isreg": True, "size": path.stat().st_size if path.exists() else 1}}


def measured(**changes: t.Any) -> Json:
    """A runner's result in which all is well."""
    figures = {"p50_ms": 0.4, "p95_ms": 0.5, "p99_ms": 0.6, "max_ms": 0.9, "per_second": 2400.0, "inferences": 24_000}
    calm = {"undisturbed": True, "disturbed_by": "nothing", "cpu_share": 0.99}
    return {
        "schema": 1,
        "machine": "x86_64",
        "python": "3.11.2",
        "kernel": "6.1",
        "numpy": "2.4.6",
        "onnxruntime": "1.32.0",
        "board": "Jetson AGX Orin",
        "power_mode": "MAXN",
        "cold_start_seconds": 0.3,
        "latency": {**figures, **calm},
        "compared": calm,
        "repeats": [],
        "peak_rss_bytes": 90_000_000,
        "models": {name: {"p50_ms": 0.4, "p99_ms": 0.6} for name in ("float", "pruned", "int8")},
        "answers_b64": base64.b64encode(raw(ANSWERS)).decode(),
        "answers_shape": [1000, 1],
        "soak": {
            "seconds": 60.5,
            "inferences": 140_000,
            "samples": 61,
            "temperature": {"highest": 61.5, "zones": {"cpu": 61.5, "soc": 55.0}, "error": None},
            "throttle": {
                "events": 0,
                "counters": {"soctherm oc1": 0},
                "samples_throttled": {},
                "firmware_bits": None,
                "error": None,
            },
            "power": {"mean": 14.2, "rails": ["VDD_IN"], "error": None},
            "energy": {"joules": None, "error": "no energy counter in sysfs"},
            "millijoules_per_inference": 5.5,
        },
        **changes,
    }


def answered(result: Json | None = None, **changes: t.Any) -> Json:
    """What a device answers."""
    deployed = {"model": "int8", **described(files()["int8.onnx"])}
    return {
        "schema": 1,
        "problem": None,
        "host": "device",
        "folder": f"/home/admin/.hpc_validation/{PLACE}",
        "deployed": deployed,
        "measured": measured() if result is None else result,
        **changes,
    }
