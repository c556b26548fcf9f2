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
from tests.mutation.trial import ROOT, Noticed, Trial, limit, warm_up

ENOUGH = 0.99
ENOUGH_OF_EACH = 0.97
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
    seconds: float = 0.0

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


def try_all(target: Target, processes: int) -> None:
    """Run a trial of each mutant; tell each outcome as it comes."""
    started, noticed = time.monotonic(), Noticed()
    unchanged = Trial(target.path, target.whole(), target.tests, noticed, timed=True)
    if _result(unchanged) != "survived":
        raise MutationError(f"{target.path}: its tests fail on the unchanged file")
    seconds = limit(unchanged.cpu_seconds)
    running: list[tuple[Change, Trial]] = []
    try:
        for change, mutant in target.mutants():
            if str(change) in target.equivalent:
                target.excused.append(str(change))
                continue
            while len(running) >= processes:
                running = _reaped(target, running)
            running.append((change, Trial(target.path, mutant, target.tests, noticed, seconds)))
        while running:
            running = _reaped(target, running)
    except BaseException:
        for _change, trial in running:
            trial.stop()
        raise
    target.seconds = time.monotonic() - started


def _result(trial: Trial) -> str:
    while True:
        outcome = trial.outcome()
        if outcome is not None:
            return outcome
        time.sleep(0.02)


def _reaped(target: Target, running: list[tuple[Change, Trial]]) -> list[tuple[Change, Trial]]:
    """Enter what has ended; return what still runs."""
    left = []
    for change, trial in running:
        outcome = trial.outcome()
        if outcome is None:
            left.append((change, trial))
            continue
        print(f"{outcome:8}  {target.path}:{change.line}  {change}", flush=True)
        if outcome == "survived":
            target.survived.append(change)
        else:
            target.killed += 1
    if len(left) == len(running):
        time.sleep(0.02)
    return left


def report(targets: list[Target]) -> bool:
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
            f"{target.seconds:.0f} s  {target.path}"
        )
    killed = sum(target.killed for target in targets)
    tried = killed + sum(len(target.survived) for target in targets)
    seconds = sum(target.seconds for target in targets)
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
    for target in targets:
        try_all(target, options.processes)
    return 0 if report(targets) else 1


if __name__ == "__main__":
    sys.exit(main())
