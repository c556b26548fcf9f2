# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the encoder as ONNX, of one sample at a time, and compare its answers with PyTorch's."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from encoder import Encoder
from kit.errors import KitError
from sessions import INPUT, NEWEST_IR, OPSET, OUTPUT


def export(model: Encoder, path: Path, steps: int, features: int) -> dict[str, Any]:
    """Write the model to ``path``; return what the file is. Raise KitError if onnx's own checker refuses it."""
    plain = copy.deepcopy(model).cpu().float().eval()
    example = torch.zeros(1, steps, features)
    program = torch.onnx.export(
        plain, (example,), input_names=[INPUT], output_names=[OUTPUT], opset_version=OPSET, dynamo=True, verbose=False
    )
    if program is None:
        raise KitError("PyTorch exported nothing")
    found = program.model_proto
    found.ir_version = min(found.ir_version, NEWEST_IR)
    onnx.save_model(found, str(path))
    return describe(path)


def describe(path: Path) -> dict[str, Any]:
    """Return opset, IR, size and checks of an ONNX file. Raise KitError if it is not valid."""
    try:
        found = onnx.load(str(path))
        onnx.checker.check_model(found, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, OSError, ValueError) as error:
        raise KitError(f"{path}: {error}") from error
    opsets = [each.version for each in found.opset_import if each.domain in ("", "ai.onnx")]
    return {"opset": max(opsets), "ir": found.ir_version, "bytes": path.stat().st_size, "valid": True}


def torch_answers(model: Encoder, windows: np.ndarray) -> np.ndarray:
    """Return PyTorch's answers to the same."""
    plain = copy.deepcopy(model).cpu().float().eval()
    with torch.no_grad():
        found: np.ndarray = plain(torch.from_numpy(windows)).numpy()
    return found


def furthest(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference; infinite where one of both is no number."""
    apart = float(np.abs(one.astype(np.float64) - other.astype(np.float64)).max())
    return apart if np.isfinite(apart) else float("inf")
