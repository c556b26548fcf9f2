# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about a runtime from inside, by its own Python: libraries, lock, and in a container also the GPUs.

`apptainer exec --nv` on a node without a driver only warns, so facts from outside do not prove what is inside.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import sys
from pathlib import Path
from typing import Any

from kit.gpu import nvml
from kit.host.facts import os_name, read_json

LIBRARIES = ("torch", "torchvision", "numpy", "transformers", "accelerate", "peft", "trl", "oumi")
RUNTIME = ("key", "lock_sha256", "installer", "installed")


def version(name: str) -> str | None:
    """Return a package's version from its metadata: importing PyTorch takes seconds."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def cuda_libraries() -> dict[str, str | None]:
    """Return the versions of CUDA, cuDNN and NCCL that PyTorch was built with or includes."""
    found: dict[str, str | None] = {"cuda": None, "cudnn": None, "nccl": None}
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return found
    text = (Path(spec.origin).parent / "version.py").read_text()
    said = re.search(r"^cuda\b[^=]*= *'([0-9.]+)'", text, re.MULTILINE)
    if said is None:
        return found
    suffix = "-cu" + said[1].split(".")[0]
    found = {"cuda": said[1], "cudnn": version(f"nvidia-cudnn{suffix}"), "nccl": version(f"nvidia-nccl{suffix}")}
    if not (found["cudnn"] and found["nccl"]):  # a build with external libraries
        import torch  # noqa: PLC0415 - takes seconds, and is rarely needed

        found["cudnn"] = found["cudnn"] or str(torch.backends.cudnn.version())
        found["nccl"] = found["nccl"] or ".".join(map(str, torch.cuda.nccl.version()))
    return found


def gpus() -> dict[str, dict[str, bool]]:
    """Return the GPUs that this process may use, by UUID, and whether they answer NVML; none without NVML."""
    usable = nvml.usable_gpus().gpus
    return {gpu.uuid or f"index {gpu.index}": {"answers": gpu.error is None} for gpu in usable}


def facts() -> dict[str, Any]:
    """Return facts about the runtime. ``container`` is the path of the image that this runs in, None outside one."""
    runtime = read_json(Path(sys.prefix) / "runtime.json")
    entered = os.environ.get("APPTAINER_CONTAINER") if Path("/.singularity.d").is_dir() else None
    return {
        "python": sys.executable,
        "container": entered,
        "os": os_name(),
        "gpus": gpus(),
        "runtime": {key: runtime[key] for key in RUNTIME if key in runtime} if isinstance(runtime, dict) else None,
        "libraries": {
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
            **cuda_libraries(),
        },
    }
