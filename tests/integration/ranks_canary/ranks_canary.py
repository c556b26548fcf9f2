"""Ranks that train next to nothing, for tests of everything around them. The argument says what they do wrong.

What a fault can do to them from outside (a signal, a log line, a missing GPU) is not in here. For that a rank that has
come to its 20th step leaves rank-N.pid, its process id.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import torch
from kit.errors import KitError
from kit.metrics import write_metrics
from kit.training import all_reduce, device
from kit.training.compute_clock import ComputeClock
from kit.training.distributed import Group, group
from torch.nn.parallel import DistributedDataParallel

OUTPUT = Path(os.environ["OUTPUT_DIR"])
STEADY, DISTURBED = 3.0, 25.0  # seconds of training: to be measured, and to be disturbed
IN_THE_MIDDLE = 20  # steps


def run(joined: Group, behaviour: str, least: float) -> dict[str, object]:
    """Train for so many seconds."""
    mine = f"that of rank {joined.rank}" if behaviour == "other-data" else "the same"
    joined.require_same({"the dataset": mine})
    network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64))
    model = DistributedDataParallel(network, broadcast_buffers=False)
    clock = ComputeClock(model, joined.device)
    communication = all_reduce.check(joined, 64 * 65 * 4) if joined.size > 1 else None
    joined.state.phase("training")
    moment, began, step = time.time(), time.monotonic(), 0
    clock.begin()

    def trained() -> float:
        with clock.waiting():  # for the other rank, which is not this one's computing
            return joined.least(time.monotonic() - began)  # of the time that each has measured

    while trained() < least:
        step += 1
        joined.state.step(step)
        if step == IN_THE_MIDDLE:
            (OUTPUT / f"rank-{joined.rank}.pid").write_text(f"{os.getpid()}\n")
        time.sleep(0.01)  # computing worth its name, without taking the CPU
        model(torch.ones(8, 64)).sum().backward()
        model.zero_grad()
        clock.end()
    seconds = time.monotonic() - began
    compute, _whole = clock.take()
    ranks = joined.gather({"compute_seconds": sum(compute) / len(compute), "gpu": joined.gpu})
    fastest = min(figures["compute_seconds"] for figures in ranks.values())
    return {
        "world_size": joined.size,
        "steps_per_second": step / seconds,
        "batch_per_rank": 8,
        "batch": 8 * joined.size,
        "steady": {"seconds": seconds, "windows": [[moment, moment + seconds]]},
        "ranks": {name: {**figures, "pace": fastest / figures["compute_seconds"]} for name, figures in ranks.items()},
        "all_reduce": communication,
        "data": {"sha256": "made up"},  # a ratio is formed of runs on the same data alone
        **device.describe(joined.device, "simulated"),
        "gpu_uuids": [figures["gpu"] for figures in ranks.values()],
    }


def main() -> int:
    """Run this rank."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--behaviour", choices=("well", "other-data", "same-gpu", "never-joins", "wait"))
    behaviour = parser.parse_args().behaviour
    measured = os.environ["HPC_VALIDATION_LEG"] == "measured"
    if measured and os.environ["RANK"] == "1":
        if behaviour == "same-gpu":
            os.environ["LOCAL_RANK"] = "0"
        if behaviour == "never-joins":
            time.sleep(600)
    try:
        with group("simulated", OUTPUT) as joined:
            waits = measured and behaviour == "wait"
            metrics = run(joined, behaviour if measured else "well", DISTURBED if waits else STEADY)
            if joined.rank == 0:
                write_metrics(OUTPUT / "metrics.json", metrics)
    except KitError as error:
        print(f"ranks_canary: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
