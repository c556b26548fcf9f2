# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leaves for a device what the job of an embedded profile leaves, in seconds: edge_job.py FAULT

A small model that nobody trained, in the three forms, with a fault in it. What packs it, and what looks at it
afterwards, are the real parts. The plays of tests/faults/edge.yml use it.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import bundle
import numpy as np
import onnx
import sessions
from kit import strict_json
from kit.metrics import write_metrics
from kit.pretraining.checkpoints import describe
from kit.profiles.check import usable
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

STEPS, FEATURES, SAMPLES = 16, 32, 1000
FORMS = ("float", "pruned", "int8")
MEASURED = "int8"
OUTPUT = Path(os.environ["OUTPUT_DIR"])


def model(path: Path, width: int = 64, layers: int = 1) -> None:
    """Write a model of that many hidden layers with weights by chance; those between hidden layers are the same."""
    random = np.random.default_rng(7)
    shapes = {"first": (STEPS * FEATURES, width), "between": (width, width), "last": (width, 1)}
    weights = {
        name: random.standard_normal(shape).astype(np.float32) / shape[0] ** 0.5 for name, shape in shapes.items()
    }
    nodes = [helper.make_node("Flatten", [sessions.INPUT], ["x0"])]
    products = ["first", *(["between"] * (layers - 1)), "last"]
    for number, weight in enumerate(products):
        last = weight == "last"
        made = sessions.OUTPUT if last else f"y{number}"
        nodes.append(helper.make_node("MatMul", [f"x{number}", weight], [made]))
        if not last:
            nodes.append(helper.make_node("Tanh", [made], [f"x{number + 1}"]))
    graph = helper.make_graph(
        nodes,
        "made",
        [helper.make_tensor_value_info(sessions.INPUT, TensorProto.FLOAT, [1, STEPS, FEATURES])],
        [helper.make_tensor_value_info(sessions.OUTPUT, TensorProto.FLOAT, [1, 1])],
        [numpy_helper.from_array(weights[name], name) for name in dict.fromkeys(products)],
    )
    opset = [helper.make_opsetid("", sessions.OPSET)]
    onnx.save_model(helper.make_model(graph, opset_imports=opset, ir_version=sessions.NEWEST_IR), str(path))


def main() -> int:
    """Leave everything; return the exit code."""
    fault = sys.argv[1]
    profile = usable(Path(os.environ["CONFIG_FILE"]), strict_json.read(Path(os.environ["SETTINGS_FILE"])))
    folder = OUTPUT / "made"
    folder.mkdir()
    sizes = {"too_slow": (512, 600), "too_large": (4096, 2)}
    model(folder / "float.onnx", *sizes.get(fault, (64, 1)))
    shutil.copy(folder / "float.onnx", folder / "pruned.onnx")
    if fault in sizes:
        shutil.copy(folder / "float.onnx", folder / "int8.onnx")
    else:
        quantize_dynamic(str(folder / "float.onnx"), str(folder / "int8.onnx"), weight_type=QuantType.QInt8)
    windows = np.random.default_rng(8).standard_normal((SAMPLES, STEPS, FEATURES)).astype(np.float32)
    answers = sessions.answers(folder / f"{MEASURED}.onnx", windows[: 10 if fault == "too_slow" else SAMPLES])
    if fault == "too_slow":
        windows = windows[:10]
    if fault == "other_answers":
        answers = answers + answers.std()
    for name, array in ((bundle.INPUTS, windows), (bundle.TRUTH, answers)):
        np.save(folder / name, array, allow_pickle=False)
    packed = bundle.pack(OUTPUT / bundle.NAME, folder, MEASURED, FORMS, profile)
    models = {name: {key: describe(folder / f"{name}.onnx")[key] for key in ("bytes", "sha256")} for name in FORMS}
    write_metrics(OUTPUT / "metrics.json", {"models": models, "deployed": MEASURED, "bundle": packed})
    if fault == "swapped":  # by somebody who made a whole bundle of another model
        model(folder / f"{MEASURED}.onnx")
        bundle.pack(OUTPUT / bundle.NAME, folder, MEASURED, FORMS, profile)
    if fault == "torn":
        os.truncate(OUTPUT / bundle.NAME, packed["bytes"] // 2)
    if fault == "gone":
        (OUTPUT / bundle.NAME).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
