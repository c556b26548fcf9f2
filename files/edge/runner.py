# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure a model on a device: python runner.py MODEL INPUTS RESULT [options]

MODEL is an ONNX file with one input and one output, INPUTS a .npy file of samples, RESULT the JSON file that is
written; the answers go to a .npy file beside it. Needs Python 3.8, NumPy and ONNX Runtime. It ends when standard input
is closed: whoever started it has gone, and nothing of it is to stay.
"""

from __future__ import annotations

import argparse
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

import sensors

BEGAN = time.perf_counter()
WARM_UP = 20  # inferences
REPEATS = 3  # measurements at most, until one is undisturbed
CPU_SHARE, RUN_DELAY = 0.95, 0.01  # of the wall time: less, or more, is a disturbance
LEFT_ALONE = 3  # exit code where whoever started it has gone
BUCKETS = 60  # of the histogram, between the least and the largest time, by factors


def main() -> int:
    """Measure; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("inputs", type=Path)
    parser.add_argument("result", type=Path)
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
    while os.read(0, 1 << 12):
        pass
    os._exit(LEFT_ALONE)


def write(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON file whole, or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("w", encoding="utf-8") as stream:
        json.dump(document, stream)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(path)


def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    """Load the model, answer every input, and measure."""
    import numpy as np  # noqa: PLC0415 - part of the cold start

    imported = time.perf_counter()
    model = Model(arguments.model)
    inputs = np.load(arguments.inputs, allow_pickle=False)
    model.answer(inputs[:1])
    cold = time.perf_counter() - BEGAN
    answers = np.concatenate([model.answer(inputs[at : at + 1]) for at in range(len(inputs))])
    with arguments.result.with_suffix(".npy").open("wb") as stream:
        np.save(stream, answers, allow_pickle=False)
    runs = []
    while len(runs) < REPEATS and not (runs and runs[-1]["undisturbed"]):
        runs.append(latency(model, inputs, arguments.count, arguments.seconds))
    best = runs[-1]
    rows, chosen = soak(model, inputs, arguments), sensors.whole_board(arguments.root, arguments.rail)
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
        "import_seconds": imported - BEGAN,
        "model_bytes": arguments.model.stat().st_size,
        "answers": len(answers),
        "latency": best,
        "repeats": runs[:-1],
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "soak": sensors.summary(rows, chosen) if rows else None,
        "sensors": rows[0] if rows else sensors.row(arguments.root),
    }


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
        before, begin = _usage(), time.perf_counter()
        while len(times) < count or time.perf_counter() - begin < seconds:
            sample = samples[len(times) % len(samples)]
            since = time.perf_counter_ns()
            model.answer(sample)
            times.append(time.perf_counter_ns() - since)
        wall, after = time.perf_counter() - begin, _usage()
    finally:
        gc.enable()
    return {**figures(times), "per_second": len(times) / wall, **disturbance(before, after, wall)}


def figures(times: list[int]) -> dict[str, Any]:
    """Return percentiles in milliseconds, and a histogram with buckets by factors, of times in nanoseconds."""
    ordered = sorted(times)
    low, high = ordered[0], max(ordered[-1], ordered[0] + 1)
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


def _usage() -> dict[str, Any]:
    """Return this process's CPU time, its time in the run queue (s), and throttled periods of its control group."""
    delay = sensors.text(Path("/proc/self/schedstat"))
    return {
        "cpu": time.process_time(),
        "delay": int(delay.split()[1]) / 1e9 if delay else None,
        "throttled": throttled_periods(Path("/")),
        "switches": resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
    }


def throttled_periods(root: Path) -> int | None:
    """Return how many periods this process's control group was throttled in; None where that cannot be read."""
    for line in (sensors.text(root / "proc/self/cgroup") or "").splitlines():
        _number, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        folder = root / "sys/fs/cgroup" / (controllers and "cpu,cpuacct")
        for stat in (folder / path.lstrip("/") / "cpu.stat", folder / "cpu.stat"):
            found = dict(each.split() for each in (sensors.text(stat) or "").splitlines() if len(each.split()) == 2)
            if found.get("nr_throttled", "").isdigit():
                return int(found["nr_throttled"])
    return None


def disturbance(before: dict[str, Any], after: dict[str, Any], wall: float) -> dict[str, Any]:
    """Return what shows whether something else ran on this core; what cannot be read shows nothing, and is named."""
    share = (after["cpu"] - before["cpu"]) / wall
    delay = None if after["delay"] is None or before["delay"] is None else (after["delay"] - before["delay"]) / wall
    periods = (after["throttled"], before["throttled"])
    throttled = None if None in periods else periods[0] - periods[1]
    why = []
    if share < CPU_SHARE:
        why.append(f"the CPU was this process's for {share:.0%} of the time, expected {CPU_SHARE:.0%}")
    if delay is not None and delay > RUN_DELAY:
        why.append(f"it waited for the CPU for {delay:.1%} of the time, expected at most {RUN_DELAY:.0%}")
    if throttled:
        why.append(f"its control group was throttled in {throttled} periods")
    return {
        "cpu_share": share,
        "run_delay": delay,
        "throttled_periods": throttled,
        "switches": after["switches"] - before["switches"],
        "undisturbed": not why,
        "disturbed_by": "; ".join(why) or "nothing",
    }


def soak(model: Model, inputs: Any, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Go on answering for a time, and read the sensors each second."""
    rows: list[dict[str, Any]] = []
    if not arguments.soak:
        return rows
    end = time.monotonic() + arguments.soak
    at, due = 0, 0.0
    while time.monotonic() < end:
        if time.monotonic() >= due:
            rows.append(sensors.row(arguments.root))
            due = time.monotonic() + 1.0
        model.answer(inputs[at % len(inputs)][None])
        at += 1
    rows.append(sensors.row(arguments.root))
    return rows


if __name__ == "__main__":
    sys.exit(main())
