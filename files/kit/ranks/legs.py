# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A distributed workload's legs: its run on all ranks, and a run on fewer ranks before and after it (A-B-A).

All legs run in one job, one after the other on the same nodes and GPUs. A drift of the machine shows as a difference
between the two runs on fewer ranks; then there is no baseline to compare with.
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
PATIENCE = 6  # seconds: the job script kills this process 10 s after asking it to end


@dataclass(frozen=True)
class Leg:
    """One of the runs: the number of ranks and of the job's nodes, and the output folder."""

    name: str
    ranks: int
    output: Path
    nodes: int = 1

    @property
    def ranks_a_node(self) -> int:
        """The number of ranks on each of its nodes."""
        return self.ranks // self.nodes


def plan(output: Path, ranks_in_all: int, baseline: int | None, nodes_in_all: int = 1) -> list[Leg]:
    """Return the legs in order. A baseline must fill whole nodes, or be on one; raise KitError otherwise."""
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
    """Return the environment of a leg's launcher; ``rendezvous`` is where launchers of several nodes meet.

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
    """Return a free port on this node."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        return int(listener.getsockname()[1])


class Runner:
    """Runs legs one after the other, and writes legs.json after each."""

    def __init__(self, command: Sequence[str], output: Path, rules: Mapping[str, Any]) -> None:
        """Run ``command`` for each leg; its environment names the leg. ``rules`` of all legs: work, steady_seconds."""
        self._command, self._output = list(command), output
        self._running: subprocess.Popen[bytes] | None = None
        self._done: dict[str, Any] = dict(rules)

    def run(self, legs: Sequence[Leg]) -> int:
        """Run the legs; return 0 or the exit code of the last that failed.

        The measured leg runs even if the one before it failed: its result on all ranks is worth having. The leg after
        it does not run then: there is nothing left to compare with.
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
        """Ask the launcher to end its ranks; if it does not, kill it, and the kernel kills its ranks."""
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
    """Return what the GPUs did in the windows; nothing if the samplers left no file (GPU.sampled reports that)."""
    try:
        return window.reduce(window.read_rows(output / nodes.SAMPLES), windows)
    except OSError:
        return {}


def look_at_gpus(output: Path) -> None:
    """Add what the GPUs did in each leg, once the samples of all nodes are complete. Without legs, change nothing.

    A node sees another node's writes late.
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
    """Return begin and end of the periods in which the leg trained steadily, according to its metrics."""
    try:
        found = strict_json.read(path)["steady"]["windows"]
        return [[float(begin), float(end)] for begin, end in found]
    except (OSError, ValueError, KeyError, TypeError):
        return []
