# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A distributed workload's legs: its run on all ranks, and on fewer before and after it (A-B-A) to compare it with.

All legs run in one job, on the same nodes and GPUs and one after the other. A drift of the machine shows as a
difference of the two runs on fewer ranks; then there is nothing to compare with.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError
from kit.files import METRICS_FILE, write_json
from kit.gpu import window
from kit.job import current_job, node_name
from kit.process.bounded import die_with_parent, end
from kit.ranks import nodes
from kit.ranks import state as ranks

MEASURED, BEFORE, AFTER = "measured", "before", "after"
LEGS_FILE = "legs.json"
PATIENCE = 6  # seconds: the job script kills this process 10 after it asked it to end


@dataclass(frozen=True)
class Leg:
    """One of the runs: how many ranks on how many of the job's nodes, and the folder that it writes to."""

    name: str
    ranks: int
    output: Path
    nodes: int = 1

    @property
    def ranks_a_node(self) -> int:
        """Ranks on each of its nodes."""
        return self.ranks // self.nodes


def plan(output: Path, ranks_in_all: int, baseline: int | None, nodes_in_all: int = 1) -> list[Leg]:
    """Return the legs in their order. A baseline fills whole nodes, or is on one. KitError where it does not."""
    measured = Leg(MEASURED, ranks_in_all, output, nodes_in_all)
    if baseline is None:
        return [measured]
    full, rest = divmod(baseline, measured.ranks_a_node)
    if full and rest:
        raise KitError(f"{baseline} ranks do not fill nodes of {measured.ranks_a_node} ranks each")
    before, after = (Leg(name, baseline, output / f"baseline-{name}", max(1, full)) for name in (BEFORE, AFTER))
    return [before, measured, after]


def environment_of(
    leg: Leg,
    own: Mapping[str, str],
    cpus: int,
    most_ranks: int,
    steady_seconds: float | None = None,
    rendezvous: str | None = None,
) -> dict[str, str]:
    """Return the environment of a leg's launcher; ``rendezvous`` is where those of several nodes meet.

    A rank has as many threads in each leg: its share of the node's ``cpus`` among the ``most_ranks`` that a node has.
    """
    said = {
        **({} if rendezvous is None else {"HPC_VALIDATION_RENDEZVOUS": rendezvous}),
        **({} if steady_seconds is None else {"HPC_VALIDATION_STEADY_SECONDS": f"{steady_seconds:g}"}),
        "OUTPUT_DIR": str(leg.output),
        "HPC_VALIDATION_LEG": leg.name,
        "HPC_VALIDATION_RANKS": str(leg.ranks_a_node),
        "HPC_VALIDATION_NODES": str(leg.nodes),
        "OMP_NUM_THREADS": str(max(1, cpus // most_ranks)),
    }
    return {**own, **said, **{f"APPTAINERENV_{name}": value for name, value in said.items()}}


def free_port() -> int:
    """Return a port that nobody uses on this node."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        return int(listener.getsockname()[1])


class Runner:
    """Runs legs, one after the other, and writes legs.json after each."""

    def __init__(self, command: Sequence[str], output: Path, rules: Mapping[str, Any]) -> None:
        """Run ``command`` for each leg; its environment names the leg. ``rules`` of all legs: work, steady_seconds."""
        self._command, self._output = list(command), output
        self._running: subprocess.Popen[bytes] | None = None
        self._done: dict[str, Any] = dict(rules)

    def run(self, legs: Sequence[Leg]) -> int:
        """Run the legs; return 0 or the exit code of the last that failed.

        The measured leg runs even where the one before it failed: what can be known of all ranks is worth a run. The
        one after it does not: there is nothing left to compare with.
        """
        cpus, most = len(os.sched_getaffinity(0)), max(leg.ranks_a_node for leg in legs)
        status = 0
        for leg in legs:
            if status and leg.name != MEASURED:
                break
            meeting = f"{node_name()}:{free_port()}" if leg.nodes > 1 else None
            environment = environment_of(leg, os.environ, cpus, most, self._done.get("steady_seconds"), meeting)
            status = self._run(leg, environment) or status
        return status

    def _run(self, leg: Leg, environment: Mapping[str, str]) -> int:
        leg.output.mkdir(parents=True, exist_ok=True)
        began = time.time()
        self._running = subprocess.Popen(
            nodes.command_on(leg.nodes, self._command),
            env=nodes.environment_of_step(environment) if leg.nodes > 1 else dict(environment),
            preexec_fn=partial(die_with_parent, signal.SIGTERM),  # noqa: PLW1509 - there is no other thread
        )
        try:
            code = self._running.wait()
        except BaseException:
            self._end()
            raise
        self._done[leg.name] = {**self._facts(leg, code), "exit_code": code, "started": began, "ended": time.time()}
        write_json(self._output / LEGS_FILE, {**current_job().stamp, **self._done})
        return code

    def _end(self) -> None:
        """Ask the launcher to end its ranks; one that does not is killed, and the kernel its ranks with it."""
        if self._running is not None:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Slurm and the job script may both ask
            end(self._running, PATIENCE)

    def _facts(self, leg: Leg, code: int) -> dict[str, Any]:
        states = ranks.read(leg.output, leg.ranks)
        windows = _windows(leg.output / METRICS_FILE)
        return {
            "ranks": leg.ranks,
            "states": states,
            "first_failure": ranks.first_failure(leg.output, states)
            or ("none" if code == 0 else f"no rank's: the launcher ended with exit code {code}"),
            "nodes": sorted({str(state["node"]) for state in states.values() if state.get("node")}),
            "steady_windows": windows,
            "gpus": _gpus(self._output, windows),
        }


def _gpus(output: Path, windows: Sequence[window.Window]) -> dict[str, Any]:
    """Return what the GPUs did in the windows; nothing where the samplers left no file (GPU.sampled says so)."""
    try:
        return window.reduce(window.read_rows(output / nodes.SAMPLES), windows)
    except OSError:
        return {}


def look_at_gpus(output: Path) -> None:
    """Fill in what the GPUs did in each leg, once the samples of all nodes are there. No legs, no change.

    A node sees late what another still writes.
    """
    path = output / LEGS_FILE
    if not path.is_file():
        return
    document = strict_json.read(path)
    for name in (BEFORE, MEASURED, AFTER):
        if name in document:
            document[name]["gpus"] = _gpus(output, document[name]["steady_windows"])
    write_json(path, document)


def _windows(path: Path) -> list[list[float]]:
    """Return begin and end of the times in which the leg trained steadily, as its metrics say."""
    try:
        found = strict_json.read(path)["steady"]["windows"]
        return [[float(begin), float(end)] for begin, end in found]
    except (OSError, ValueError, KeyError, TypeError):
        return []
