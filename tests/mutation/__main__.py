# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes the judge, and what it is fed by, in every small way and counts which changes their tests notice.

    python -m tests.mutation [NAME …] [--processes 3] [--list]

A name is a folder's or a file's, as much of its path as tells it from others, without suffix: _slurm, _judge/verdicts.
It may be a pattern. Ends 0 only if at least 99 % of all mutants are killed and 97 % of each file's. What is asked of
which tests stands in targets.yml.
"""

from __future__ import annotations

import argparse
import gc
import os
import select
import signal
import sys
import time

from tests.mutation.changes import Change
from tests.mutation.child import Child, Note
from tests.mutation.measure import Result, measure
from tests.mutation.targets import ROOT, MutationError, Target, read_targets
from tests.mutation.trial import warm_up

ENOUGH = 0.99
ENOUGH_OF_EACH = 0.97


def measure_all(targets: list[Target], processes: int) -> dict[str, Result]:
    """Measure so many files at once; print each outcome as it comes. Raise MutationError."""
    screen = os.dup(1)  # a child's own goes to a file
    waiting, running, results = sorted(targets, key=_work), {}, {}
    while waiting or running:
        while waiting and len(running) < processes:
            target = waiting.pop()

            def run(note: Note, target: Target = target) -> int:
                result = measure(target, lambda line: os.write(screen, f"{line}\n".encode()))
                note(result.killed, [vars(change) for change in result.survived], result.excused, result.seconds)
                return 0

            running[Child(run)] = target
        for child in select.select(list(running), [], [])[0]:
            target, ended = running.pop(child), child.end()
            if ended.code != 0:
                raise MutationError(f"{target.path}: {ended.said}")
            ((killed, survived, excused, seconds),) = ended.notes
            results[target.path] = Result(killed, [Change(**each) for each in survived], excused, seconds)
    return results


def _work(target: Target) -> tuple[bool, int]:
    """What takes longest is begun first, so that no processor is idle in the end: templates' tests run the scripts."""
    return target.path.endswith(".j2"), (ROOT / target.path).stat().st_size


def report(targets: list[Target], results: dict[str, Result], seconds: float) -> bool:
    """Print survivors and sums; say whether enough were killed, of all and of every file, and each excuse is of one."""
    wrong = [
        f"{target.path}: {name}"
        for target in targets
        for name in target.equivalent
        if results[target.path].excused.count(name) != 1
    ]
    print()
    for target in targets:
        for change in results[target.path].survived:
            print(f"survived  {target.path}:{change.line}  {change}")
    for name in wrong:
        print(f"targets.yml excuses a mutant of which there is not exactly one: {name}")
    for target in targets:
        result = results[target.path]
        print(
            f"{result.killed / result.tried:7.1%}  {result.killed:4} of {result.tried:4} killed, "
            f"{len(result.excused)} equivalent, {result.seconds:.0f} s  {target.path}"
        )
    killed, tried = sum(each.killed for each in results.values()), sum(each.tried for each in results.values())
    print(
        f"{killed / tried:7.1%}  {killed:4} of {tried:4} killed in {seconds:.0f} s; "
        f"{ENOUGH:.0%} of all and {ENOUGH_OF_EACH:.0%} of each are asked for"
    )
    enough = all(each.killed >= ENOUGH_OF_EACH * each.tried for each in results.values())
    return not wrong and enough and killed >= ENOUGH * tried


def main() -> int:
    """Return 0 only if the tests notice enough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as _slurm or _judge/verdicts; all without")
    one_more = len(os.sched_getaffinity(0)) + 1  # some tests wait
    parser.add_argument("--processes", type=int, default=one_more, help="files at once (default %(default)s)")
    parser.add_argument("--list", action="store_true", help="only say which mutants there are")
    options = parser.parse_args()
    targets = read_targets(options.names)
    if options.list:
        for target in targets:
            for change, _mutant in target.mutants():
                print(f"{target.path}:{change.line}  {change}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    warm_up()
    gc.freeze()  # each trial would go through all that is loaded here, twice
    started = time.monotonic()
    results = measure_all(targets, options.processes)
    return 0 if report(targets, results, time.monotonic() - started) else 1


if __name__ == "__main__":
    sys.exit(main())
