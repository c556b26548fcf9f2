# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a preflight costs: wall time, jobs submitted, and what slurmctld was asked, for one node and for all.

Usage: bench_preflight.py [--runs N]    against the local cluster that HPC_VALIDATION_CLUSTER names
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import tempfile
import time

from tests.bench.bench_play import ROOT
from tests.bench.bench_waiting import node

CALLS = re.compile(r"^\s*(REQUEST_\w+)\s+\(\s*\d+\)\s+count:(\d+)", re.MULTILINE)
QUERIES = ("JOB_INFO", "JOB_USER_INFO", "NODE_INFO", "PARTITION_INFO", "BUILD_INFO", "STATS_INFO")


def play(variables: dict[str, object]) -> tuple[float, int, int]:
    """One preflight: its wall time in seconds, the jobs it submitted, the queries slurmctld answered for it."""
    node("sdiag", "--reset")
    with tempfile.TemporaryDirectory() as results:
        extra = json.dumps({**variables, "hpc_validation_results": results})
        command = ["ansible-playbook", "playbooks/preflight.yml", "-i", "inventories/local", "-e", extra]
        began = time.monotonic()
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        wall = time.monotonic() - began
    calls = {name: int(count) for name, count in CALLS.findall(node("sdiag"))}
    queries = sum(count for name, count in calls.items() if any(name == f"REQUEST_{q}" for q in QUERIES))
    single = calls.get("REQUEST_JOB_INFO_SINGLE", 0)
    return wall, calls.get("REQUEST_SUBMIT_BATCH_JOB", 0), queries + single


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    play({})  # what is not on the share yet is put there
    print("| nodes | runs | wall, median s | jobs submitted | queries, median |")
    print("|---|---|---|---|---|")
    for name, variables in (("1", {"hpc_validation_nodes": ["compute01"]}), ("2", {})):
        runs = [play(variables) for _each in range(arguments.runs)]
        walls, jobs, queries = zip(*runs)
        print(
            f"| {name} | {len(runs)} | {statistics.median(walls):.1f} | {statistics.median(jobs):.0f} "
            f"| {statistics.median(queries):.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
