# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the matrix: python -m tests.matrix [--only CELL …] [--may-miss CELL …]

Ends 0 only if every chosen cell passed; a cell that this machine has no interpreter for is `not run` and counts as
failed unless --may-miss names it. Each cell's plays lie in results/matrix/<cell>.
"""

from __future__ import annotations

import argparse
import queue
import signal
import sys
import threading
import time
import traceback

from tests.matrix import cells, checks, scene, support
from tests.matrix.problems import AbsentError, CellError

_PRINTING = threading.Lock()


def say(text: str) -> None:
    """One line, whole."""
    with _PRINTING:
        print(text, flush=True)


class Run:
    """The chosen cells, worked off by as many workers as there are clusters at a time."""

    def __init__(self, every: list[cells.Cell], chosen: list[cells.Cell]) -> None:
        self.every = every
        self.verdicts: dict[str, str] = {cell.id: "not tried" for cell in chosen}
        self.stop = threading.Event()
        self.groups: queue.SimpleQueue[list[cells.Cell]] = queue.SimpleQueue()
        for group in cells.by_cluster(chosen):
            self.groups.put(group)

    def work(self, name: str) -> None:
        """Take groups until there is none left: a cluster up, its cells, the cluster down."""
        while not self.stop.is_set():
            try:
                group = self.groups.get_nowait()
            except queue.Empty:
                return
            try:
                scene.up(name, *group[0].cluster)
                for cell in group:
                    if not self.stop.is_set():
                        self._cell(cell, name)
            except CellError as problem:
                for cell in group:
                    self._came_to(cell, support.of("fail", str(problem), time.monotonic(), {}, {}))
            finally:
                scene.down(name)

    def _came_to(self, cell: cells.Cell, line: support.Json) -> None:
        self.verdicts[cell.id] = line["verdict"]
        support.record(self.every, cell, line)
        say(f"{line['verdict']:8} {cell.id} ({line['seconds']} s) {line['why']}".rstrip())

    def _cell(self, cell: cells.Cell, name: str) -> None:
        began = time.monotonic()
        versions: dict[str, str] = {}
        done: dict[str, str] = {}
        place = scene.scene(name, cell.id)
        verdict, why = "pass", ""
        try:
            versions.update(checks.controller_versions(place))
            versions.update(checks.cluster_versions(cell, place))
            for check, told in checks.GROUPS[cell.group](cell, place, versions):
                done[check] = told
        except AbsentError as problem:
            verdict, why = "not run", str(problem)
        except CellError as problem:
            verdict, why = "fail", str(problem)
        except Exception as problem:
            say(traceback.format_exc())
            verdict, why = "fail", f"the cell itself broke: {type(problem).__name__}"
        if not self.stop.is_set():  # an interrupted cell says nothing
            self._came_to(cell, support.of(verdict, why, began, versions, done))


def main() -> int:
    """Run the command line; returns the exit status."""
    every = cells.read()
    identities = [cell.id for cell in every]
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", nargs="+", choices=identities, metavar="CELL", help=", ".join(identities))
    parser.add_argument("--may-miss", nargs="+", choices=identities, default=[], metavar="CELL")
    parser.add_argument("--name", default="matrix", help="clusters are called NAME-1 and so on (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="clusters at a time (default: %(default)s)")
    arguments = parser.parse_args()
    run = Run(every, [cell for cell in every if cell.id in (arguments.only or identities)])
    workers = [
        threading.Thread(target=run.work, args=(f"{arguments.name}-{number}",))
        for number in range(1, arguments.workers + 1)
    ]
    signal.signal(signal.SIGTERM, lambda *_: run.stop.set())
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        try:
            for worker in workers:
                worker.join()
        except KeyboardInterrupt:
            run.stop.set()
            say("interrupted: the clusters are being removed")
    bad = [
        identity
        for identity, verdict in run.verdicts.items()
        if verdict != "pass" and not (verdict == "not run" and identity in arguments.may_miss)
    ]
    say(f"{len(run.verdicts) - len(bad)} of {len(run.verdicts)} cells are well")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
