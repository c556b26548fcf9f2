# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays of the canary in a row where nothing is wrong: none may fail. Ends 0 only if every one passed.

On several clusters they are played side by side, on each of them in a row.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.faults import table
from tests.integration.conftest import CLUSTER, ROOT, cluster, started_play

SECONDS = 300  # for one play


@dataclass(frozen=True)
class Run:
    """One play: how long it took, and what was wrong with it."""

    cluster: str
    seconds: float
    problem: str


def problem(code: int, results: Path, left: str) -> str:
    """What is wrong with a play that must pass; nothing where it passed."""
    verdicts = [json.loads(path.read_text(encoding="utf-8")) for path in results.glob("*/verdict.json")]
    said = [f"{verdict['verdict']}: {verdict['why']}" for verdict in verdicts if verdict["verdict"] != "pass"]
    if len(verdicts) != 1:
        said.append(f"{len(verdicts)} verdicts")
    if code:
        said.append(f"ansible-playbook ended with {code}")
    if left:
        said.append(f"jobs are left: {left}")
    return "; ".join(said)


def play(name: str, folder: Path) -> Run:
    """Play the canary once on this cluster; its screen and results go to the folder."""
    variables = {
        "hpc_validation_results": str(folder / "results"),
        "hpc_validation_workload_folders": [str(ROOT / "tests/integration")],
        "hpc_validation_only": ["TEST-1"],
    }
    folder.mkdir(parents=True)
    start = time.monotonic()
    process = started_play(variables, folder / "screen", {"HPC_VALIDATION_CLUSTER": name})
    try:
        code = process.wait(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        return Run(name, time.monotonic() - start, f"it did not end within {SECONDS} s")
    seconds = time.monotonic() - start
    left = cluster("login", "squeue", "--noheader", "--format=%i", name=name).strip()
    return Run(name, seconds, problem(code, folder / "results", left))


def in_a_row(name: str, count: int, folder: Path) -> t.Iterator[Run]:
    """Bring the cluster up and play so often on it, saying how each play came out."""
    subprocess.run([ROOT / "tests/cluster/cluster", "up", "--name", name], check=True, stdout=subprocess.DEVNULL)
    for number in range(1, count + 1):
        run = play(name, folder / f"{name}-{number}")
        print(f"{name} {number}/{count}: {run.problem or 'pass'}, {run.seconds:.1f} s", flush=True)
        yield run


def summary(runs: list[Run]) -> dict[str, t.Any]:
    """What is kept of the runs."""
    seconds = [run.seconds for run in runs]
    return {
        "runs": len(runs),
        "passed": sum(not run.problem for run in runs),
        "seconds": {"median": round(statistics.median(seconds), 1), "worst": round(max(seconds), 1)},
    }


def main(arguments: list[str] | None = None) -> int:
    """Play, write what came of it into docs/faults.json, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30, help="of all clusters together")
    parser.add_argument("--clusters", nargs="+", default=[CLUSTER], metavar="NAME")
    parser.add_argument("--document", action="store_true", help="write docs/faults.json and docs/faults.md")
    told = parser.parse_args(arguments)
    each, more = divmod(told.runs, len(told.clusters))
    if not each:
        parser.error("there must be at least one run for each cluster")
    counts = [each + (place < more) for place in range(len(told.clusters))]
    folder = Path(tempfile.mkdtemp(prefix="clean-runs-"))
    with ThreadPoolExecutor(len(told.clusters)) as together:
        rows = together.map(lambda name, count: list(in_a_row(name, count, folder)), told.clusters, counts)
        runs = [run for row in rows for run in row]
    result = summary(runs)
    print(f"{result['passed']} of {result['runs']} passed; screens and verdicts are in {folder}")
    if told.document:
        table.renew({"clean": result})
    return 0 if result["passed"] == told.runs else 1


if __name__ == "__main__":
    sys.exit(main())
