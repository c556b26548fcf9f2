# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a device gets, in one file: the model in all its forms, samples, and what the cluster answered to them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kit.errors import KitError
from kit.files import write_atomic
from kit.job import current_job
from kit.pretraining.checkpoints import describe
from kit.profiles.model import Profile

NAME, CONTENTS, INPUTS, TRUTH = "deploy.zip", "bundle.json", "inputs.npy", "answers.npy"
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # a bundle of the same files is the same
ANSWERS = 1000  # samples that every form of the model answers, and a device


def require_enough(samples: int, where: str) -> None:
    """Raise KitError if a device's answers to so many samples would say little of it."""
    if samples < ANSWERS:
        raise KitError(
            f"data.test, {where}, has {samples} windows; expected {ANSWERS} at least: on these the devices' answers "
            "are compared with this job's"
        )


def limits(profile: Profile) -> dict[str, Any]:
    """Return the profile's bounds for a device; null is none."""
    after, power, optimizations = profile.post_training, profile.power_management, profile.embedded_optimizations
    return {
        "latency_ms": after.max_latency_ms,
        "size_mb": after.max_size_mb,
        "memory_gb": optimizations.max_memory_gb if optimizations else None,
        "temperature_c": power.max_temperature_c if power else None,
        "power_w": power.max_power_w if power else None,
        "power_rails": power.power_rails if power else None,
        "power_mode": power.mode if power else None,
        "soak_seconds": power.soak_seconds if power else 0.0,
        "export": after.export,
    }


def pack(path: Path, folder: Path, deployed: str, models: Sequence[str], profile: Profile) -> dict[str, Any]:
    """Write the bundle of what is in ``folder``; return its name, size and SHA-256."""
    names = [*(f"{name}.onnx" for name in models), INPUTS, TRUTH]
    contents = {
        "schema": 1,
        **current_job().stamp,
        "profile": profile.metadata.name,
        "deployed": deployed,
        "files": {name: {key: describe(folder / name)[key] for key in ("sha256", "bytes")} for name in names},
        "limits": limits(profile),
    }
    parts = {
        CONTENTS: json.dumps(contents, indent=1).encode(),
        **{name: (folder / name).read_bytes() for name in names},
    }

    def fill(stream: Any) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in parts.items():
                packed.writestr(zipfile.ZipInfo(name, LONG_AGO), content, zipfile.ZIP_DEFLATED)

    write_atomic(path, fill)
    return describe(path)
