# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A distributed workload's legs: runs in one job, one after the other, each a fresh set of processes.

One of them is measured. With a baseline a run on fewer ranks comes before and after it (A-B-A), on the same nodes and
GPUs: a drift of the machine shows as a difference between those two, and then there is nothing to compare with.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
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
OK, KILLED, RESTARTED = "ok", "killed", "restarted"  # how a leg can be meant to end; restarted: killed once, then ok
AS_EXPECTED = "as expected"
NO_FAILURE = "none"
OWN_LOG = "output.log"  # of a leg that is meant to fail: its errors are none of the job's
UNHARMED = 1  # exit code where a leg that was to be killed came to its end
PATIENCE = 6  # seconds: the job script kills this process 10 s after asking it to end


@dataclass(frozen=True)
class Leg:
    """One of the runs: the number of ranks and of the job's nodes, the output folder, and how it is to end."""

    name: str
    ranks: int
    output: Path
    nodes: int = 1
    ends: str = OK

    @property
    def ranks_a_node(self) -> int:
        """The number of ranks on each of its nodes."""
        return self.ranks // self.nodes


@dataclass(frozen=True)
class Restarts:
    """How often a leg that fails is started again, and after how many seconds; not one that is meant to be killed."""

    most: int = 0
    delay: float = 0.0


NEVER = Restarts()


def plan(output: Path, ranks_in_all: int, nodes_in_all: int, told: Sequence[str]) -> list[Leg]:
    """Return the legs in order, from texts ``name[:ranks[:ends]]``; without ranks on all. Raise KitError.

    Fewer ranks fill whole nodes, or are on one. The measured leg writes to ``output`` itself, the others below it.
    """
    legs = [_leg(text, output, ranks_in_all, nodes_in_all) for text in told]
    names = [leg.name for leg in legs]
    if names.count(MEASURED) != 1 or len(set(names)) < len(names):
        raise KitError(f"legs {', '.join(names) or 'none'}: expected different names, and one of them {MEASURED}")
    return legs


def _leg(text: str, output: Path, ranks_in_all: int, nodes_in_all: int) -> Leg:
    name, ranks_text, ends, *others = [*text.split(":"), "", ""][: max(3, text.count(":") + 1)]
    try:
        ranks = int(ranks_text) if ranks_text else ranks_in_all
    except ValueError:
        ranks = 0
    if others or not re.match(r"^[a-z][a-z0-9-]*$", name) or ends not in ("", OK, KILLED, RESTARTED):
        raise KitError(f"leg {text!r}: expected name[:ranks[:{OK}, {KILLED} or {RESTARTED}]]")
    if not 1 <= ranks <= ranks_in_all:
        raise KitError(f"leg {text!r}: expected 1 to {ranks_in_all} ranks")
    each = ranks_in_all // nodes_in_all
    full, rest = divmod(ranks, each)
    if full and rest:
        raise KitError(f"leg {text!r}: {ranks} ranks do not fill nodes of {each} ranks each")
    folder = {MEASURED: output, **{side: output / f"baseline-{side}" for side in (BEFORE, AFTER)}}
    return Leg(name, ranks, folder.get(name, output / name), max(1, full), ends or OK)


def environment_of(
    leg: Leg,
    own: Mapping[str, str],
    cpus: int,
    most_ranks: int,
    all_ranks: int,
    steady_seconds: float | None = None,
    rendezvous: str | None = None,
) -> dict[str, str]:
    """Return the environment of a leg's launcher; ``rendezvous`` is where launchers of several nodes meet.

    A rank has as many threads in each leg: its share of the node's ``cpus`` among the ``most_ranks`` that a node has.
    ``all_ranks`` is the number in the largest leg.
    """
    said = {
        **({} if rendezvous is None else {"HPC_VALIDATION_RENDEZVOUS": rendezvous}),
        **({} if steady_seconds is None else {"HPC_VALIDATION_STEADY_SECONDS": f"{steady_seconds:g}"}),
        "OUTPUT_DIR": str(leg.output),
        "HPC_VALIDATION_LEG": leg.name,
        "HPC_VALIDATION_RANKS": str(leg.ranks_a_node),
        "HPC_VALIDATION_NODES": str(leg.nodes),
        "HPC_VALIDATION_ALL_RANKS": str(all_ranks),
        "OMP_NUM_THREADS": str(max(1, cpus // most_ranks)),
    }
    return {**own, **said, **to_container(said)}


def to_container(said: Mapping[str, str]) -> dict[str, str]:
    """Return variables under the names by which Apptainer passes them to a container."""
    return {f"{nodes.TO_CONTAINER}{name}": value for name, value in said.items()}


def free_port() -> int:
    """Return a free port on this node."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        return int(listener.getsockname()[1])


class Runner:
    """Runs legs one after the other, and writes legs.json after each: by name, what each was, and how it ended."""

    def __init__(
        self,
        command: Sequence[str],
        output: Path,
        rules: Mapping[str, Any],
        announce: Callable[[str], None] | None = None,
        restarts: Restarts = NEVER,
    ) -> None:
        """Run ``command`` for each leg; its environment names the leg. ``rules`` of all legs: work, steady_seconds.

        ``announce`` is told the name of each leg that follows another, before it is started.
        """
        self._command, self._output, self._announce = list(command), output, announce
        self._restarts = restarts
        self._running: subprocess.Popen[bytes] | None = None
        self._done: dict[str, Any] = dict(rules)

    def run(self, legs: Sequence[Leg]) -> int:
        """Run the legs; return 0, or the exit code of the last that did not end as it was meant to.

        The measured leg runs even if one before it failed: its result is worth having. No other does: each leg needs
        what those before it left.
        """
        cpus, most = len(os.sched_getaffinity(0)), max(leg.ranks_a_node for leg in legs)
        all_ranks = max(leg.ranks for leg in legs)
        self._done.update(planned=len(legs), outcomes={})
        status = 0
        for leg in legs:
            if status and leg.name != MEASURED:
                break
            status = self._run(leg, partial(self._environment, leg, cpus, most, all_ranks)) or status
        return status

    def _environment(self, leg: Leg, cpus: int, most: int, all_ranks: int) -> dict[str, str]:
        """Return the environment of an attempt: launchers of several nodes meet at another port each time."""
        meeting = f"{node_name()}:{free_port()}" if leg.nodes > 1 else None
        return environment_of(leg, os.environ, cpus, most, all_ranks, self._done.get("steady_seconds"), meeting)

    def _run(self, leg: Leg, environment: Callable[[], dict[str, str]]) -> int:
        """Run a leg, again where it fails and may be restarted; return 0, or an exit code."""
        leg.output.mkdir(parents=True, exist_ok=True)
        if self._announce and self._done["outcomes"]:
            self._announce(leg.name)
        most = 0 if leg.ends == KILLED else self._restarts.most
        attempts: list[dict[str, Any]] = []
        while True:
            is_to_fail = leg.ends == KILLED or (leg.ends == RESTARTED and not attempts)
            own = {
                "HPC_VALIDATION_ENDS": KILLED if is_to_fail else OK,
                **({"HPC_VALIDATION_RESTART": str(len(attempts))} if most else {}),
            }
            facts = self._attempt(leg, {**environment(), **own, **to_container(own)}, apart=is_to_fail)
            pause = facts["started"] - attempts[-1]["ended"] if attempts else 0.0
            own_facts = {name: facts[name] for name in ("exit_code", "first_failure", "started", "ended")}
            attempts.append({**own_facts, "pause": pause})
            # The launcher of one that is meant to fail ends well: a step that fails would make the job one that failed.
            code = int(facts["exit_code"])
            is_harmed = code != 0 or facts["first_failure"] != NO_FAILURE
            if not is_harmed or len(attempts) > most or ranks.is_useless(leg.output):
                break
            print(f"leg {leg.name}: {facts['first_failure']}; again in {self._restarts.delay:g} s", flush=True)
            states = leg.output / ranks.FOLDER
            if states.is_dir():
                states.rename(states.with_name(f"{ranks.FOLDER}-{len(attempts) - 1}"))
            time.sleep(self._restarts.delay)
        self._done[leg.name] = {**facts, **({"attempts": attempts} if most else {})}
        was_harmed = is_harmed or len(attempts) > 1
        if is_harmed == (leg.ends == KILLED) and was_harmed >= (leg.ends != OK):
            outcome = AS_EXPECTED
        else:
            outcome = str(facts["first_failure"]) if is_harmed else "ended without a failure"
        self._done["outcomes"][leg.name] = {"outcome": outcome}
        write_json(self._output / LEGS_FILE, {**current_job().stamp, **self._done})
        return 0 if outcome == AS_EXPECTED else code or UNHARMED

    def _attempt(self, leg: Leg, environment: Mapping[str, str], *, apart: bool) -> dict[str, Any]:
        """Start the ranks once and wait for them; return what became of them.

        ``apart``: what they say goes not into the job's logs, as of those that are meant to fail.
        """
        began = time.time()
        with (leg.output / OWN_LOG).open("wb") if apart else nullcontext() as said:
            self._running = subprocess.Popen(
                nodes.command_on(leg.nodes, self._command),
                env=nodes.environment_of_step(environment) if leg.nodes > 1 else dict(environment),
                stdout=said,
                stderr=said,
                preexec_fn=partial(die_with_parent, signal.SIGTERM),  # noqa: PLW1509 - there is no other thread
            )
        try:
            code = self._running.wait()
        except BaseException:
            self._end()
            raise
        return {**self._facts(leg, code), "exit_code": code, "started": began, "ended": time.time()}

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
            or (NO_FAILURE if code == 0 else f"no rank's: the launcher ended with exit code {code}"),
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
    for name in document["outcomes"]:
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
