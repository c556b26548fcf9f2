# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes the judge in every small way and counts which changes its tests notice.

    python -m tests.mutation [MODULE …] [--processes 2] [--list]

Ends 0 only if at least 95 % of the mutants are killed. What is asked of which tests stands in targets.yml.
"""

from __future__ import annotations

import argparse
import ast
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.mutation.changes import Change, changes
from tests.mutation.trial import FOLDER, ROOT, Trial

ENOUGH = 0.95
TARGETS = Path(__file__).with_name("targets.yml")


class MutationError(Exception):
    """The measurement itself is not sound."""


@dataclass
class Target:
    """A module, the tests that it is held against, and its mutants that behave no differently."""

    module: str
    tests: list[str]
    equivalent: dict[str, str]
    killed: int = 0
    survived: list[Change] = field(default_factory=list)
    excused: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def path(self) -> str:
        """The module's path from the root."""
        return f"{FOLDER}/{self.module}.py"

    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse((ROOT / self.path).read_text(encoding="utf-8"), self.path)


def read_targets(names: list[str]) -> list[Target]:
    """Return the targets called for, all without names."""
    described = yaml.safe_load(TARGETS.read_text(encoding="utf-8"))
    unknown = set(names) - set(described)
    if unknown:
        raise MutationError(f"no target {', '.join(sorted(unknown))}; there are {', '.join(described)}")
    return [
        Target(name, entry["tests"], {item["change"]: item["reason"] for item in entry.get("equivalent") or []})
        for name, entry in described.items()
        if not names or name in names
    ]


def try_all(target: Target, processes: int) -> None:
    """Run a trial of each mutant; tell each outcome as it comes."""
    started = time.monotonic()
    if _result(Trial(target.module, target.tree(), target.tests)) != "survived":
        raise MutationError(f"{target.path}: its tests fail on the unchanged module")
    running: list[tuple[Change, Trial]] = []
    tree = target.tree()
    try:
        for change in changes(tree):
            if str(change) in target.equivalent:
                target.excused.append(str(change))
                continue
            while len(running) >= processes:
                running = _reaped(target, running)
            running.append((change, Trial(target.module, tree, target.tests)))
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
    """Print survivors and sums; say whether enough of every module were killed and each excuse is of one mutant."""
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
        f"{killed / tried:7.1%}  {killed:4} of {tried:4} killed in {seconds:.0f} s; {ENOUGH:.0%} of each are asked for"
    )
    return not wrong and all(target.killed >= ENOUGH * (target.killed + len(target.survived)) for target in targets)


def main() -> int:
    """Return 0 only if the tests notice enough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="such as _criteria; all without")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only say which mutants there are")
    options = parser.parse_args()
    targets = read_targets(options.modules)
    if options.list:
        for target in targets:
            for change in changes(target.tree()):
                print(f"{target.path}:{change.line}  {change}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no trial is left behind
    for target in targets:
        try_all(target, options.processes)
    return 0 if report(targets) else 1


if __name__ == "__main__":
    sys.exit(main())
