# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much time a play takes beyond its job's own, with everything staged: the cost of asking the question.

Before that, how soon ansible-playbook shows its first line.

Usage: bench_play.py [--runs N]    against the local cluster that HPC_VALIDATION_CLUSTER names
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def play(results: Path, variables: dict[str, object]) -> tuple[float, float]:
    """One play: its wall time and its job's own run time by Slurm's clock, in seconds."""
    extra = json.dumps({**variables, "hpc_validation_results": str(results)})
    command = ["ansible-playbook", "playbooks/validate_category1.yml", "-i", "inventories/local", "-e", extra]
    began = time.monotonic()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    wall = time.monotonic() - began
    newest = max(results.iterdir(), key=lambda path: path.stat().st_mtime)
    (workload,) = json.loads((newest / "verdict.json").read_text())["workloads"]
    return wall, workload["job"]["run_seconds"]


def first_line() -> float:
    """Return the seconds from the start of a play to its first line; the play is then ended."""
    began = time.monotonic()
    command = ["ansible-playbook", "playbooks/validate_category1.yml", "-i", "inventories/local"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        seconds = time.monotonic() - began
        process.terminate()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    canary = {"hpc_validation_workload_folders": [str(ROOT / "tests/integration")], "hpc_validation_only": ["TEST-1"]}
    mnist = {"hpc_validation_only": ["MLOPS-1.1"]}
    soonest = statistics.median(first_line() for _each in range(5))
    print(f"first line after {soonest:.2f} s, median of five (goal: 2 s)\n")
    print("| play | runs | wall, median s | job, median s | beyond the job, median s | wall / job |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, variables in (
            ("a job that does nothing", canary),
            ("MLOPS-1.1", mnist),
        ):
            play(Path(folder), variables)  # stages what is not there yet
            times = [play(Path(folder), variables) for _each in range(arguments.runs)]
            wall = statistics.median(time[0] for time in times)
            job = statistics.median(time[1] for time in times)
            beyond = statistics.median(wall - job for wall, job in times)
            ratio = f"{wall / job:.2f}" if job else "-"
            print(f"| {name} | {len(times)} | {wall:.1f} | {job:.0f} | {beyond:.1f} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
