# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes the judge, and what it is fed by, in every small way and counts which changes their tests notice.

    python -m tests.mutation [NAME …] [--processes 2] [--list]

A name is a folder's or a file's, as much of its path as tells it from others, without suffix: _slurm, _judge/verdicts.
It may be a pattern. Ends 0 only if at least 99 % of all mutants are killed and 97 % of each file's. What is asked of
which tests stands in targets.yml.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import functools
import gc
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.mutation import text_changes
from tests.mutation.changes import Change, changes
from tests.mutation.order import Order
from tests.mutation.pool import Pool
from tests.mutation.trial import CPU_SECONDS, LINES, ROOT, TIMES_OF_TESTS, Trial, limit, warm_up

ENOUGH = 0.99
ENOUGH_OF_EACH = 0.97
TRACED_SECONDS = 10  # of tests that take longer, traced, the order is less well known
TARGETS = Path(__file__).with_name("targets.yml")


class MutationError(Exception):
    """The measurement itself is not sound."""


@dataclass
class Target:
    """A file, the tests that it is held against, and its mutants that behave no differently."""

    path: str
    tests: list[str]
    equivalent: dict[str, str]
    killed: int = 0
    survived: list[Change] = field(default_factory=list)
    excused: list[str] = field(default_factory=list)
    cpu_seconds: float = 0.0
    order: Order = field(init=False)
    unknown: int = 2  # how many of the trials of the unchanged file have not ended
    limit: int = CPU_SECONDS

    @property
    def name(self) -> str:
        """What it is called by: the file's path up to the first dot."""
        return self.path.partition(".")[0]

    def is_called(self, pattern: str) -> bool:
        """Say whether a name of the command line means this file, its folder, or a pattern of either."""
        forms = (pattern, f"{pattern}/*", f"*/{pattern}", f"*/{pattern}/*")
        return any(fnmatch.fnmatch(self.name, form) for form in forms)

    def whole(self) -> ast.Module | str:
        """The file as it is."""
        text = (ROOT / self.path).read_text(encoding="utf-8")
        return ast.parse(text, self.path) if self.path.endswith(".py") else text

    def mutants(self) -> Iterator[tuple[Change, ast.Module | str]]:
        """Each mutant, which lasts until the next one is asked for."""
        whole = self.whole()
        if isinstance(whole, ast.Module):
            for change in changes(whole):
                yield change, whole
        elif self.path.endswith(".j2"):
            yield from text_changes.of_template(whole)
        else:
            yield from text_changes.of_assertions(whole)

    def begin(self, pool: Pool) -> None:
        """Find out how long its tests take, and which lines each runs. Raise MutationError once one fails."""
        whole = self.whole()
        self.order = Order(whole)
        for notes, seconds in ((TIMES_OF_TESTS, CPU_SECONDS), (LINES, TRACED_SECONDS)):
            trial = functools.partial(Trial, self.path, whole, self.tests, self.order, cpu_seconds=seconds, notes=notes)
            pool.start(trial, functools.partial(self._knows, notes))

    def _knows(self, notes: str, outcome: str, seconds: float) -> None:
        if notes == TIMES_OF_TESTS:
            if outcome != "survived":
                raise MutationError(f"{self.path}: its tests fail on the unchanged file")
            self.limit = limit(seconds)
        self.unknown -= 1

    def is_known(self) -> bool:
        """Say whether mutants may be tried."""
        return self.unknown == 0

    def try_one(self, pool: Pool, change: Change, mutant: ast.Module | str) -> None:
        """Run a trial of a mutant, which must stay as it is until this returns."""
        trial = functools.partial(Trial, self.path, mutant, self.tests, self.order, change.line, self.limit)
        pool.start(trial, functools.partial(self._enter, change))

    def _enter(self, change: Change, outcome: str, seconds: float) -> None:
        print(f"{outcome:8}  {self.path}:{change.line}  {change}", flush=True)
        self.cpu_seconds += seconds
        if outcome == "survived":
            self.survived.append(change)
        else:
            self.killed += 1


def read_targets(names: list[str]) -> list[Target]:
    """Return the targets called for, all without names."""
    described = yaml.safe_load(TARGETS.read_text(encoding="utf-8"))
    targets = [
        Target(path, entry["tests"], {item["change"]: item["reason"] for item in entry.get("equivalent") or []})
        for path, entry in described.items()
    ]
    unknown = [name for name in names if not any(target.is_called(name) for target in targets)]
    if unknown:
        raise MutationError(f"no target {', '.join(unknown)}; there are {', '.join(each.name for each in targets)}")
    return [each for each in targets if not names or any(each.is_called(name) for name in names)]


def try_all(targets: list[Target], processes: int) -> None:
    """Run a trial of each mutant; tell each outcome as it comes."""
    pool = Pool(processes)
    try:
        targets[0].begin(pool)
        for target, following in zip(targets, [*targets[1:], None], strict=True):
            if following:  # what is to be known of its tests is found out beside this one's mutants
                following.begin(pool)
            pool.wait(target.is_known)
            for change, mutant in target.mutants():
                if str(change) in target.equivalent:
                    target.excused.append(str(change))
                else:
                    target.try_one(pool, change, mutant)
        pool.finish()
    except BaseException:
        pool.stop()
        raise


def report(targets: list[Target], seconds: float) -> bool:
    """Print survivors and sums; say whether enough were killed, of all and of every file, and each excuse is of one."""
    wrong = [
        f"{target.path}: {name}" for target in targets for name in target.equivalent if target.excused.count(name) != 1
    ]
    print()
    for target in targets:
        for change in target.survived:
            print(f"survived  {target.path}:{change.line}  {change}")
    for name in wrong:
        print(f"targets.yml excuses a mutant of which there is not exactly one: {name}")
    for target in targets:
        tried = target.killed + len(target.survived)
        print(
            f"{target.killed / tried:7.1%}  {target.killed:4} of {tried:4} killed, {len(target.excused)} equivalent, "
            f"{target.cpu_seconds:.0f} s of a processor  {target.path}"
        )
    killed = sum(target.killed for target in targets)
    tried = killed + sum(len(target.survived) for target in targets)
    print(
        f"{killed / tried:7.1%}  {killed:4} of {tried:4} killed in {seconds:.0f} s; "
        f"{ENOUGH:.0%} of all and {ENOUGH_OF_EACH:.0%} of each are asked for"
    )
    enough = all(each.killed >= ENOUGH_OF_EACH * (each.killed + len(each.survived)) for each in targets)
    return not wrong and enough and killed >= ENOUGH * tried


def main() -> int:
    """Return 0 only if the tests notice enough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as _slurm or _judge/verdicts; all without")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only say which mutants there are")
    options = parser.parse_args()
    targets = read_targets(options.names)
    if options.list:
        for target in targets:
            for change, _mutant in target.mutants():
                print(f"{target.path}:{change.line}  {change}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no trial is left behind
    warm_up()
    gc.freeze()  # each trial would go through all that is loaded here, twice
    started = time.monotonic()
    try_all(targets, options.processes)
    return 0 if report(targets, time.monotonic() - started) else 1


if __name__ == "__main__":
    sys.exit(main())
