# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The progress of each rank of a distributed training: one small file per rank, which outlives the rank.

A rank that is killed or hangs cannot report it. Its file shows its last phase and step and its GPU, and the other
ranks' files show that they got further.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.files import write_json
from kit.job import current_job, node_name

FOLDER = "ranks"  # below a leg's output
ENDED, FAILED, NEVER_STARTED = "ended", "failed", "never started"
STALLED = 71  # exit code of a rank that gave up, as no step ended
USELESS = frozenset({2, 4})  # exit codes of a training that would end the same way again
WAITING = "waiting for other ranks"  # what such a rank says of itself if it is not the one that stands still
EVERY = 1.0  # seconds between two reports of a step
LONGEST = 300  # characters of an error


class RankState:
    """Reports what this rank does; the times are seconds since the epoch."""

    def __init__(self, output: Path, rank: int, gpu: str | None = None) -> None:
        """Report below ``output``, a leg's output folder."""
        self._path = output / FOLDER / f"rank-{rank}.json"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._state: dict[str, Any] = {
            **current_job().stamp,
            "rank": rank,
            "node": node_name(),
            "gpu": gpu,
            "phase": None,
            "step": None,
            "error": None,
        }
        self._reported = 0.0

    @property
    def current(self) -> str:
        """The current phase."""
        return str(self._state["phase"])

    def gpu(self, uuid: str | None) -> None:
        """Report which GPU this rank computes on."""
        self._state["gpu"] = uuid

    def phase(self, name: str, error: str | None = None) -> None:
        """Enter a phase and write it immediately."""
        self._state.update(phase=name, error=error)
        self._write()

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Enter a phase; report what is raised in it, or in those that follow inside, as this rank's failure."""
        self.phase(name)
        try:
            yield
        except BaseException as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            self.phase(f"{FAILED} in {self.current}", said[:LONGEST])
            raise

    def step(self, number: int) -> None:
        """Report the number of the step that begins; write it at most once a second."""
        self._state["step"] = number
        if time.monotonic() - self._reported >= EVERY:
            self._write(durable=False)  # a step must not wait for a disk

    def _write(self, durable: bool = True) -> None:
        self._reported = time.monotonic()
        write_json(self._path, {**self._state, "time": time.time()}, durable=durable)


def label(state: Mapping[str, Any]) -> str:
    """Return a rank's name in verdicts: its number, node and GPU."""
    place = " ".join(str(state[key]) for key in ("node", "gpu") if state.get(key))
    return f"rank {state['rank']}" + (f" ({place})" if place else "")


def read(output: Path, ranks: int) -> dict[str, dict[str, Any]]:
    """Return the states that ``ranks`` ranks left below ``output``, by label; ``last`` describes a state."""
    found = {}
    for rank in range(ranks):
        try:
            state = strict_json.read(output / FOLDER / f"rank-{rank}.json")
            state = {**state, "phase": str(state["phase"]), "rank": rank}
        except (OSError, ValueError, KeyError, TypeError):
            state = {"rank": rank, "phase": NEVER_STARTED}
        found[label(state)] = {**state, "last": _last(state)}
    return found


def _last(state: Mapping[str, Any]) -> str:
    phase = str(state["phase"])
    if phase == ENDED:
        return ENDED
    step = "" if state.get("step") is None else f", step {state['step']}"
    error = f": {state['error']}" if state.get("error") else ""
    return f"{phase}{step}{error}"


def first_failure(output: Path, states: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return which rank failed first and how; None where the launcher (`kit launch`) reported none."""
    try:
        codes = _exit_codes(output)
    except ValueError as error:
        return str(error)
    if not codes:
        return _apart(output)
    names = {state["rank"]: name for name, state in states.items()}
    by_rank = {state["rank"]: state for state in states.values()}
    rank, how = _to_blame(codes, by_rank)
    state = by_rank.get(rank, {"phase": "an unknown state", "last": "an unknown state"})
    is_told = state["phase"] == NEVER_STARTED or state["phase"].startswith(FAILED)
    return f"{names.get(rank, f'rank {rank}')}: {how}, {'' if is_told else 'last in '}{state['last']}"


def _exit_codes(output: Path) -> dict[int, int]:
    """Return the exit codes by rank, as the launchers left them. Raise ValueError."""
    codes: dict[int, int] = {}
    for path in sorted((output / FOLDER).glob("exit-codes-*.json")):
        try:
            codes.update({int(rank): int(code) for rank, code in strict_json.read(path)["exit_codes"].items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path.name} cannot be read: {error}") from None
    return codes


def _to_blame(codes: Mapping[int, int], by_rank: Mapping[int, Mapping[str, Any]]) -> tuple[int, str]:
    """Return the rank that failed first, and how.

    It is one that was killed, but not by SIGTERM, with which the launcher asks, nor by SIGABRT, with which NCCL's
    watchdog ends a rank that waited too long: there it is one that still ran. Of ranks that gave up since no step ended
    it is the one that waited for no other, else one that the launcher had to end: with SIGKILL, if it was stopped. Of
    those that ended themselves it is the first: the others lost a peer.
    """
    stalled = [rank for rank, code in sorted(codes.items()) if code == STALLED]
    asked = (signal.SIGTERM, signal.SIGABRT, *([signal.SIGKILL] if stalled else []))
    killed = [rank for rank, code in sorted(codes.items()) if code < 0 and -code not in asked]
    if killed:
        return killed[0], _ending(codes[killed[0]])
    waited = stalled or [rank for rank, code in sorted(codes.items()) if -code == signal.SIGABRT]
    alone = [rank for rank in stalled if WAITING not in str(by_rank.get(rank, {}).get("error"))]
    if alone:
        return alone[0], "it stood still"
    late = [rank for rank in sorted(by_rank) if codes.get(rank, -signal.SIGTERM) in (-signal.SIGTERM, -signal.SIGKILL)]
    if waited and late:
        return late[0], f"rank {waited[0]} gave up waiting for it"
    by_themselves = [rank for rank, code in codes.items() if -code != signal.SIGTERM] or list(codes)
    rank = min(by_themselves, key=lambda number: (by_rank.get(number, {}).get("time") or float("inf"), number))
    return rank, _ending(codes[rank])


def is_useless(output: Path) -> bool:
    """Return whether starting again would end the same way: a rank found its settings or all checkpoints unusable."""
    try:
        return not USELESS.isdisjoint(_exit_codes(output).values())
    except ValueError:
        return False


def _apart(output: Path) -> str | None:
    """Return the reports of launchers that did not meet; the most specific, from a node that called, comes first."""
    said = sorted((output / FOLDER).glob("apart-*.json"))
    texts = []
    for path in said:
        try:
            texts.append(str(strict_json.read(path)["why"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            texts.append(f"{path.name} cannot be read: {error}")
    return "; ".join(sorted(texts, key=lambda text: "did not reach" not in text)) or None


def _ending(code: int) -> str:
    return f"killed by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def write_exit_codes(output: Path, codes: Mapping[int, int]) -> None:
    """Write the exit codes of this node's failed ranks, for `first_failure`."""
    _write(output, "exit-codes", {"exit_codes": dict(codes)})


def write_apart(output: Path, why: str) -> None:
    """Write how this node's launcher failed to meet the others, for `first_failure`."""
    _write(output, "apart", {"why": why})


def _write(output: Path, kind: str, document: Mapping[str, Any]) -> None:
    name = re.sub(r"[^A-Za-z0-9._-]", "_", node_name())
    write_json(output / FOLDER / f"{kind}-{name}.json", {**current_job().stamp, **document})
