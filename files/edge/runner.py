# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure a model on a device: python runner.py MODEL INPUTS RESULT [options]

MODEL is an ONNX file with one input and one output, INPUTS a .npy file of samples, RESULT the JSON file that is
written. Needs Python 3.8, NumPy and ONNX Runtime. It ends when standard input is closed: whoever started it has gone,
and nothing of it is to stay.
"""

from __future__ import annotations

import argparse
import base64
import gc
import json
import os
import platform
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import disturbance
import sensors
import summary

BEGAN = time.perf_counter()
WARM_UP = 20  # inferences
REPEATS = 3  # of the measurement at most, until one is undisturbed
COMPARED, ROUND = 200, 25  # inferences of each model, and of one before it is the next one's turn
LEFT_ALONE = 3  # exit code where whoever started it has gone
BUCKETS = 60  # of the histogram, between the least and the largest time, by factors


def main() -> int:
    """Measure; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("inputs", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--model", action="append", default=[], type=Path, dest="others", help="one to compare with")
    parser.add_argument("--count", type=int, default=1000, help="inferences at least (default 1000)")
    parser.add_argument("--seconds", type=float, default=10.0, help="time at least (default 10)")
    parser.add_argument("--soak", type=float, default=0.0, help="seconds to go on with the sensors read (default 0)")
    parser.add_argument("--limit", type=int, default=3600, help="seconds until it ends itself (default 3600)")
    parser.add_argument("--rail", action="append", help="a rail that is part of the board's power")
    parser.add_argument("--root", type=Path, default=Path("/"), help="where sysfs is read below (default /)")
    arguments = parser.parse_args()
    signal.alarm(arguments.limit)
    threading.Thread(target=end_with_starter, daemon=True).start()
    write(arguments.result, measured(arguments))
    return 0


def end_with_starter() -> None:
    """End this process when standard input is closed."""
    try:
        while os.read(0, 1 << 12):
            pass
    except OSError:
        pass
    os._exit(LEFT_ALONE)


def write(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON file whole, or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("w", encoding="utf-8") as stream:
        json.dump(document, stream, allow_nan=False)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(path)


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Load the model, answer every input, and measure."""
    import numpy as np  # noqa: PLC0415 - part of the cold start

    imported = age()
    model = Model(arguments.model)
    inputs = np.load(arguments.inputs, allow_pickle=False)
    model.answer(inputs[:1])
    cold = age()
    answers = np.concatenate([model.answer(inputs[at : at + 1]) for at in range(len(inputs))]).astype("<f4")
    runs: list[dict[str, Any]] = []
    while len(runs) <= REPEATS and not (runs and runs[-1]["undisturbed"]):
        runs.append(latency(model, inputs, arguments.count, arguments.seconds))
    soaked = soak(model, inputs, arguments)
    peak = peak_rss()  # before other models are loaded
    others = {each.stem: model if each == arguments.model else Model(each) for each in arguments.others}
    return {
        "schema": 1,
        "host": platform.node(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "numpy": np.__version__,
        "onnxruntime": model.version,
        "board": sensors.board(arguments.root),
        "power_mode": sensors.power_mode(arguments.root),
        "cold_start_seconds": cold,
        "import_seconds": imported,
        "model_bytes": arguments.model.stat().st_size,
        "answers": len(answers),
        "answers_shape": list(answers.shape),
        "answers_b64": base64.b64encode(answers.tobytes()).decode("ascii"),
        "latency": runs[-1],
        "repeats": runs[:-1],
        "peak_rss_bytes": peak,
        **compared(others, inputs),
        **soaked,
    }


def age() -> float:
    """Return for how many seconds this process has run: since it was started, not since it can count them."""
    stat = sensors.text(Path("/proc/self/stat")) or ""
    fields = stat.rpartition(")")[2].split()
    began = int(fields[19]) / os.sysconf("SC_CLK_TCK") if len(fields) > 19 else 0
    if not began:  # an emulated processor's may not be told
        return time.perf_counter() - BEGAN
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began


def peak_rss() -> int:
    """Return the most memory that this process has had, in bytes.

    That of resource.getrusage is not less than what its parent had when it was started.
    """
    for line in (sensors.text(Path("/proc/self/status")) or "").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Model:
    """An ONNX model on one thread of the CPU."""

    def __init__(self, path: Path) -> None:
        """Load it."""
        import onnxruntime  # noqa: PLC0415 - part of the cold start

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.input, self.output = self.session.get_inputs()[0].name, self.session.get_outputs()[0].name
        self.version = onnxruntime.__version__

    def answer(self, window: Any) -> Any:
        """Return the answer to one sample, (1, …)."""
        return self.session.run([self.output], {self.input: window})[0]


def latency(model: Model, inputs: Any, count: int, seconds: float) -> dict[str, Any]:
    """Measure inferences of one sample, so many and so long at least; say whether anything disturbed them."""
    samples = [inputs[at : at + 1] for at in range(len(inputs))]
    for at in range(WARM_UP):
        model.answer(samples[at % len(samples)])
    times: list[int] = []
    gc.collect()
    gc.disable()
    try:
        before, begin = disturbance.usage(), time.perf_counter()
        while len(times) < count or time.perf_counter() - begin < seconds:
            times.append(timed(model, samples[len(times) % len(samples)]))
        wall, after = time.perf_counter() - begin, disturbance.usage()
    finally:
        gc.enable()
    return {**figures(times), "per_second": len(times) / wall, **disturbance.found(before, after, wall)}


def timed(model: Model, sample: Any) -> int:
    """Return how long an inference takes, in nanoseconds."""
    since = time.perf_counter_ns()
    model.answer(sample)
    return time.perf_counter_ns() - since


def compared(models: dict[str, Model], inputs: Any) -> dict[str, Any]:
    """Measure several models in turn: minutes apart, a device's own speed differs more than they do."""
    found: dict[str, Any] = {"models": {}, "compared": None}
    for _each in range(REPEATS + 1 if models else 0):
        found = _in_turn(models, inputs)
        if found["compared"]["undisturbed"]:
            break
    return found


def _in_turn(models: dict[str, Model], inputs: Any) -> dict[str, Any]:
    samples = [inputs[at : at + 1] for at in range(min(len(inputs), COMPARED))]
    times: dict[str, list[int]] = {name: [] for name in models}
    for model in models.values():
        for at in range(WARM_UP):
            model.answer(samples[at % len(samples)])
    gc.collect()
    gc.disable()
    try:
        before, begin = disturbance.usage(), time.perf_counter()
        for first in range(0, COMPARED, ROUND):
            for name, model in models.items():
                times[name] += [timed(model, samples[at % len(samples)]) for at in range(first, first + ROUND)]
        wall, after = time.perf_counter() - begin, disturbance.usage()
    finally:
        gc.enable()
    found = {name: figures(each) for name, each in times.items()}
    return {
        "models": {
            name: {key: each[key] for key in ("inferences", "p50_ms", "p99_ms")} for name, each in found.items()
        },
        "compared": disturbance.found(before, after, wall),
    }


def figures(times: list[int]) -> dict[str, Any]:
    """Return percentiles in milliseconds, and a histogram with buckets by factors, of times in nanoseconds."""
    ordered = sorted(times)
    low = max(1, ordered[0])  # a coarse clock may stand still
    high = max(ordered[-1], low + 1)
    factor = (high / low) ** (1 / BUCKETS)
    edges = [low * factor**step for step in range(BUCKETS + 1)]
    counts = [0] * BUCKETS
    at = 0
    for each in ordered:
        while at < BUCKETS - 1 and each >= edges[at + 1]:
            at += 1
        counts[at] += 1
    return {
        "inferences": len(ordered),
        "p50_ms": percentile(ordered, 50) / 1e6,
        "p95_ms": percentile(ordered, 95) / 1e6,
        "p99_ms": percentile(ordered, 99) / 1e6,
        "max_ms": ordered[-1] / 1e6,
        "histogram": {"edges_ms": [edge / 1e6 for edge in edges], "counts": counts},
    }


def percentile(ordered: list[int], per_cent: float) -> float:
    """Return a percentile of sorted values, interpolated between the two nearest."""
    place = (len(ordered) - 1) * per_cent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def soak(model: Model, inputs: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """Go on answering for a time, with the sensors read each second; without a time, read them once."""
    samples = [inputs[at : at + 1] for at in range(len(inputs))]
    with sensors.Reader(arguments.root) as reader:
        rows = [reader.row()]
        begin, inferences = time.monotonic(), 0
        while time.monotonic() - begin < arguments.soak:
            if time.monotonic() - begin >= len(rows):
                rows.append(reader.row())
            model.answer(samples[inferences % len(samples)])
            inferences += 1
        if not arguments.soak:
            return {"soak": None, "sensors": rows[0]}
        rows.append(reader.row())
    chosen = sensors.whole_board(rows[0], sensors.board(arguments.root), arguments.rail)
    return {"soak": summary.summary(rows, chosen, inferences), "sensors": rows[0]}


if __name__ == "__main__":
    sys.exit(main())
