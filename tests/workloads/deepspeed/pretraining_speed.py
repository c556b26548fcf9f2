# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the pretraining's loop, a checkpoint and a resumption cost: begun by `kit legs` instead of train.py.

The measured leg compares, in rounds that alternate, the loop with DeepSpeed's own engine on tokens in memory and with
PyTorch's DDP, for 5.3 million parameters, and a checkpoint of 23 million with a sequential write of as many bytes; it
leaves speed.json. Any other leg is train.py's, with the times of its phases in phases-RANK.jsonl.
tests/bench/bench_pretraining.py has the bounds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

BEGUN = time.time()

import statistics  # noqa: E402 - the time before all others
from collections.abc import Callable  # noqa: E402
from dataclasses import replace  # noqa: E402
from functools import partial  # noqa: E402
from typing import Any  # noqa: E402

import engine  # noqa: E402
import torch  # noqa: E402
import train  # noqa: E402
from acceptance import LEGS, MEASURED, Leg  # noqa: E402
from kit.files import write_json  # noqa: E402
from kit.job import current_job  # noqa: E402
from kit.pretraining.monitor import Monitor  # noqa: E402
from kit.ranks.state import RankState  # noqa: E402
from kit.share import speed as share_speed  # noqa: E402
from settings import load  # noqa: E402
from torch import distributed  # noqa: E402

ROUNDS, STEPS = 6, 5  # of the loop, after a round that warms up
SAVES = 5
CONFIG = Path(engine.__file__).parent / "config"
TRAINED: dict[str, Any] = {
    "model": {"n_embd": 256, "n_layer": 6, "n_head": 8, "n_positions": 256},
    "deepspeed": {"train_batch_size": 8},
}
LARGER: dict[str, Any] = {
    "model": {"n_embd": 512, "n_layer": 6, "n_head": 8, "n_positions": 32, "vocab_size": 8192},
    "deepspeed": {"train_batch_size": 4},
    "training": {"checkpoint": {"keep": 2}},
}


def speed(leg: Leg) -> dict[str, Any]:
    """Measure; called as a leg of the acceptance."""
    leg.joined.state.phase("training")
    found = {"loop": of_the_loop(leg), "checkpoint": of_a_checkpoint(leg)}
    if leg.joined.rank == 0:
        write_json(leg.output / "speed.json", found)
    return {}


def of_the_loop(leg: Leg) -> dict[str, list[float]]:
    """Return seconds, and CPU seconds of all ranks, of each round.

    ``own`` is the loop, ``bare`` DeepSpeed's engine alone, ``plain`` the loop with PyTorch's DDP.
    """
    joined = leg.joined
    leg = replace(leg, settings=load(CONFIG, "mini", TRAINED, joined.size))
    nodes = list(joined.gather(joined.node).values())
    watch = leg.settings.document()["watch"]
    steps = (ROUNDS + 1) * STEPS
    monitor = (
        None if joined.rank else Monitor(leg.output, current_job(), steps, watch, checkpoint_every=steps, nodes=nodes)
    )
    sharded = engine.Sharded(leg.settings, joined)
    own, plain = leg.training(sharded, monitor), leg.training(engine.Replicated(leg.settings, joined))
    batches = own.loader.read(1, joined.device).batches
    alone = sharded.deepspeed

    def bare(_first: int) -> None:
        for _step in range(STEPS):
            for tokens, targets in batches:
                alone.backward(alone(tokens, targets))
                alone.step()

    compared: dict[str, Callable[[int], object]] = {
        "own": lambda first: own.run(first, first + STEPS - 1, leg.output),
        "bare": bare,
        "plain": lambda first: plain.run(first, first + STEPS - 1, leg.output),
    }
    found: dict[str, list[float]] = {f"{name}{what}": [] for name in compared for what in ("", "_cpu")}
    for number in range(ROUNDS + 1):
        for name, act in compared.items():
            distributed.barrier()
            seconds, cpu = timed(partial(act, number * STEPS + 1))
            found[name].append(joined.largest(seconds))
            found[f"{name}_cpu"].append(joined.sum(cpu))
    if monitor:
        monitor.close(in_order=True)
    for each in (own, plain):
        each.loader.close()
    return {name: values[1:] for name, values in found.items()}


def timed(act: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds and this process's CPU seconds."""
    began, cpu = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - began, time.process_time() - cpu


def of_a_checkpoint(leg: Leg) -> dict[str, Any]:
    """Return MB/s of a larger model's checkpoints, and of writing as many bytes to the same folder before each."""
    joined = leg.joined
    large = replace(leg, settings=load(CONFIG, "mini", LARGER, joined.size))
    sharded = engine.Sharded(large.settings, joined)
    tokens = torch.zeros(large.settings.micro, large.settings.length, dtype=torch.long)
    sharded.step([(tokens, tokens)], 1e-3)  # moments come with the first step
    saver = large.saver(leg.output)
    tool, measure = share_speed.tool("auto")
    saved, written, size = [], [], 0
    for number in range(1, SAVES + 1):
        if joined.rank == 0 and size:
            written.append(measure("write_buffered", leg.output, size >> 20 << 20) * (1 << 20) / 1e6)
            (leg.output / "buffered.data").unlink()
        distributed.barrier()
        saver.save(sharded, number, large.settings.batch)
        (name,) = [name for name, each in saver.saved.items() if each["step"] == number]
        size, seconds = saver.saved[name]["bytes"], saver.saved[name]["seconds"]
        saved.append(size / seconds / 1e6)
    return {"bytes": size, "saved": saved[1:], "written": written, "tool": tool, "ratio": _ratio(saved[1:], written)}


def _ratio(saved: list[float], written: list[float]) -> float | None:
    return statistics.median(saved) / statistics.median(written) if written else None  # the other ranks write nothing


def note_phases() -> None:
    """Note when this rank begins, enters a phase, is killed, and has done its first step."""
    output, rank = Path(os.environ["OUTPUT_DIR"]), os.environ["RANK"]
    path = output / f"phases-{rank}.jsonl"

    def note(what: str, when: float | None = None) -> None:
        with path.open("a") as stream:
            stream.write(json.dumps({"phase": what, "time": when or time.time()}) + "\n")

    enter, kill, step = RankState.phase, os.kill, engine.Sharded.step
    done: list[bool] = []

    def phase(self: RankState, name: str, error: str | None = None) -> None:
        note(name)
        enter(self, name, error)

    def killed(process: int, number: int) -> None:
        note("killed")
        kill(process, number)

    def stepped(self: Any, *arguments: Any) -> Any:
        found = step(self, *arguments)
        if not done:
            done.append(True)
            note("stepped")
        return found

    note("begun", BEGUN)
    RankState.phase, os.kill, engine.Sharded.step = phase, killed, stepped  # type: ignore[method-assign]


if __name__ == "__main__":
    if os.environ.get("HPC_VALIDATION_LEG") == MEASURED:
        LEGS[MEASURED] = speed
    else:
        note_phases()
    sys.exit(train.main())
