# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast a device's model is in its forms, and what the edge runner's own loop costs: device_speed.py PROFILE RUNNER

The model has weights by chance, on which its speed does not depend, and windows of 32 steps. Every comparison is of
rounds that alternate in this process. Prints one JSON object of ratios; tests/bench/bench_edge.py has their bounds.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import exporting
import latency
import numpy as np
import quantising
import torch
from encoder import Encoder
from kit.profiles.check import usable
from pruning import prune
from sessions import INPUT, OUTPUT, session

STEPS, SAMPLES, INFERENCES, ROUND = 32, 200, 600, 25


def module(path: Path) -> ModuleType:
    """Return the runner as a module; its neighbours are importable."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("runner", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no module")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def forms(folder: Path, profile: Any, windows: np.ndarray) -> dict[str, Path]:
    """Write the model in all its forms."""
    model = Encoder(profile.model).eval()
    files = {name: folder / f"{name}.onnx" for name in ("float", "float_int8", "pruned", "int8")}
    exporting.export(model, files["float"], STEPS, windows.shape[2])
    prune(model, profile.post_training.pruning.amount, torch.from_numpy(windows[:1]))
    exporting.export(model, files["pruned"], STEPS, windows.shape[2])
    for name, whole in (("float", "float_int8"), ("pruned", "int8")):
        quantising.quantize(files[name], files[whole], "static", windows)
    return files


def of_the_loop(runner: Any, path: Path, windows: np.ndarray) -> float:
    """Return the median time of the runner's own inferences, relative to ONNX Runtime's with bound memory."""
    model, bound = runner.Model(path), session(path)
    samples = [windows[at : at + 1] for at in range(len(windows))]
    own, theirs = [], []
    for begin in range(0, INFERENCES, ROUND):
        for sample in (samples[at % len(samples)] for at in range(begin, begin + ROUND)):
            since = time.perf_counter_ns()
            model.answer(sample)
            own.append(time.perf_counter_ns() - since)
        for sample in (samples[at % len(samples)] for at in range(begin, begin + ROUND)):
            binding = bound.io_binding()
            binding.bind_cpu_input(INPUT, sample)
            binding.bind_output(OUTPUT)
            since = time.perf_counter_ns()
            bound.run_with_iobinding(binding)
            theirs.append(time.perf_counter_ns() - since)
    return statistics.median(own) / statistics.median(theirs)


def main() -> int:
    """Measure and print."""
    profile = usable(Path(sys.argv[1]), None)
    windows = np.random.default_rng(9).standard_normal((SAMPLES, STEPS, profile.model.input_features))
    inputs = windows.astype(np.float32)
    with tempfile.TemporaryDirectory() as scratch:
        files = forms(Path(scratch), profile, inputs)
        times = {name: each["p50"] for name, each in latency.interleaved(files, inputs, INFERENCES).items()}
        found = {
            "pruned": times["pruned"] / times["float"],
            "int8": times["float_int8"] / times["float"],
            "both": times["int8"] / times["float"],
            "loop": of_the_loop(module(Path(sys.argv[2])), files["int8"], inputs),
            "milliseconds": times,
            "bytes": {name: path.stat().st_size for name, path in files.items()},
        }
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
