# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tries all mutants of a file: in forks first, which is quick, then those that live on in a trial of their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.mutation.changes import Change
from tests.mutation.child import Ended
from tests.mutation.collected import killed_in_forks
from tests.mutation.order import Order
from tests.mutation.targets import MutationError, Target
from tests.mutation.trial import CPU_SECONDS, limit, trial

OUTCOMES = {0: "survived", 1: "killed", 2: "killed"}  # 2: the module could not even be imported


@dataclass
class Result:
    """How a file's mutants fared."""

    killed: int = 0
    survived: list[Change] = field(default_factory=list)
    excused: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def tried(self) -> int:
        """How many there were."""
        return self.killed + len(self.survived)


def measure(target: Target, tell: Callable[[str], None]) -> Result:
    """Try each mutant; tell each outcome as it comes. Raise MutationError."""

    def tell_outcome(change: Change, outcome: str = "killed") -> None:
        tell(f"{outcome:8}  {target.path}:{change.line}  {change}")

    started = time.monotonic()
    order, result = Order(target.whole()), Result()
    noticed = killed_in_forks(target, order, tell_outcome)
    seconds = 0
    for place, (change, mutant) in enumerate(target.mutants()):
        if str(change) in target.equivalent:
            result.excused.append(str(change))
        elif place in noticed:
            result.killed += 1
        else:
            seconds = seconds or _limit(target, order)
            ended = trial(target, mutant, order, change.line, seconds)
            for note in ended.notes:
                order.take(note)
            outcome = _outcome(target, ended)
            tell_outcome(change, outcome)
            if outcome == "killed":
                result.killed += 1
            else:
                result.survived.append(change)
    result.seconds = time.monotonic() - started
    return result


def _limit(target: Target, order: Order) -> int:
    unchanged = trial(target, target.whole(), order, 0, CPU_SECONDS)
    if _outcome(target, unchanged) != "survived":
        raise MutationError(f"{target.path}: its tests fail on the unchanged file:\n{unchanged.said[-4000:]}")
    return limit(unchanged.cpu_seconds)


def _outcome(target: Target, ended: Ended) -> str:
    if ended.goes_round:
        return "killed"
    if ended.code not in OUTCOMES:
        raise MutationError(f"{target.path}: pytest ended with {ended.code}:\n{ended.said[-4000:]}")
    return OUTCOMES[ended.code]
