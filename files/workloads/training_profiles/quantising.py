# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole numbers of 8 bits in place of floating-point ones, in every product with constant weights but the last.

Activations are unsigned and weights signed, one scale for each channel; weights have 7 bits, since CPUs without VNNI
overflow with 8. The products of attention have no constant weights and stay as they are, as does the head: its answers
would be a grid.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process
from sessions import INPUT, session

PRODUCTS = ("MatMul", "Gemm")
WHOLE = ("QLinearMatMul", "QGemm", "MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeMatMul")
NEAR = 0.1  # of the answers' own unit: what counts as the same answer


class Windows(CalibrationDataReader):
    """Windows, one after the other, for the calibration."""

    def __init__(self, windows: np.ndarray) -> None:
        """``windows``: (samples, time steps, features)."""
        self._each: Iterator[np.ndarray] = iter(windows)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Return the next one as the model's input, None at the end."""
        window = next(self._each, None)
        return None if window is None else {INPUT: window[None]}


def quantize(path: Path, target: Path, method: str, calibration: np.ndarray | None) -> dict[str, Any]:
    """Write the model at ``path`` with 8 bits to ``target``; return what is whole in it, and what is not."""
    with tempfile.TemporaryDirectory() as scratch:
        prepared = Path(scratch) / "prepared.onnx"
        quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
        left, due = left_out(prepared)
        common = {
            "per_channel": True,
            "reduce_range": True,
            "nodes_to_exclude": left,
            "op_types_to_quantize": [*PRODUCTS],
        }
        if method == "dynamic":
            quantize_dynamic(str(prepared), str(target), weight_type=QuantType.QInt8, **common)
        else:
            quantize_static(
                str(prepared),
                str(target),
                Windows(calibration),
                quant_format=QuantFormat.QDQ,
                activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8,
                calibrate_method=CalibrationMethod.MinMax,
                **common,
            )
    _tidy(target)
    return {"method": method, "due": due, **products(target, left)}


def left_out(path: Path) -> tuple[list[str], int]:
    """Return the names of the products that stay, without constant weights or the last, and how many do not."""
    graph = onnx.load(str(path)).graph
    constant = {each.name for each in graph.initializer}
    found = [node for node in graph.node if node.op_type in PRODUCTS]
    left = [node.name for node in found if node.input[1] not in constant or node is found[-1]]
    return left, len(found) - len(left)


def products(path: Path, left: list[str]) -> dict[str, Any]:
    """Return how many products of the graph that is run are whole numbers, and the names of those that should be too.

    ``left``: the names of those that should not.
    """
    with tempfile.TemporaryDirectory() as scratch:
        optimized = Path(scratch) / "optimized.onnx"
        session(path, optimized)
        graph = onnx.load(str(optimized)).graph
    constant = {each.name for each in graph.initializer}
    whole = [node.op_type for node in graph.node if node.op_type in WHOLE]
    floats = [
        node.name or node.output[0]
        for node in graph.node
        if node.op_type in (*PRODUCTS, "FusedMatMul", "FusedGemm") and any(name in constant for name in node.input[:2])
    ]
    return {"whole": len(whole), "floats": [name for name in floats if name not in left]}


def _tidy(path: Path) -> None:
    """Drop the imports of operators that no node has."""
    found = onnx.load(str(path))
    used = {node.domain for node in found.graph.node} | {""}
    kept = [each for each in found.opset_import if each.domain in used or (each.domain == "ai.onnx" and "" in used)]
    del found.opset_import[:]
    found.opset_import.extend(kept)
    onnx.save_model(found, str(path))


def compared(floats: np.ndarray, wholes: np.ndarray) -> dict[str, float]:
    """Return the share of answers that are near one another, and the largest difference."""
    apart = np.abs(floats.astype(np.float64) - wholes.astype(np.float64)).max(axis=1)
    return {"near": float((apart <= NEAR).mean()), "furthest": float(apart.max())}


def drift(calibration: np.ndarray, training: np.ndarray) -> dict[str, float]:
    """Return how far the features of the calibration data are from those of the training data.

    ``mean``: the largest difference of a feature's means, in its deviations. ``deviation``: the largest difference of
    its deviations, as a share. A feature that has one value in all of the training data must have that one.
    """
    one, other = (each.reshape(-1, each.shape[-1]).astype(np.float64) for each in (calibration, training))
    unchanged = (one == other[0]).all(axis=0) & (other == other[0]).all(axis=0)
    spread = np.where(unchanged, 1.0, other.std(axis=0))
    if not spread.all():
        return {"mean": float("inf"), "deviation": float("inf")}
    return {
        "mean": float((np.abs(one.mean(axis=0) - other.mean(axis=0)) / spread).max()),
        "deviation": float((np.abs(one.std(axis=0) - other.std(axis=0)) / spread).max()),
    }
