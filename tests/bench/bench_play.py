# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much time a play takes beyond its job's own, with everything staged: the cost of asking the question.

Before that, how soon ansible-playbook shows its first line; after it, what each task of such a play took.

Usage: bench_play.py [--runs N]    against the local cluster that HPC_VALIDATION_CLUSTER names
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHORT = 0.3  # seconds


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


def tasks(results: Path, variables: dict[str, object]) -> list[tuple[str, float]]:
    """One play: its tasks in their order, and the seconds from the line that names one to that of the next."""
    extra = json.dumps({**variables, "hpc_validation_results": str(results)})
    command = ["ansible-playbook", "playbooks/validate_category1.yml", "-i", "inventories/local", "-e", extra]
    environment = {
        "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
        "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "1",  # else a task is named when it has ended, not when it begins
        "ANSIBLE_NOCOLOR": "1",
        "PYTHONUNBUFFERED": "1",
    }
    began: list[tuple[str, float]] = [("the start of ansible-playbook", time.monotonic())]
    given = {**os.environ, **environment}
    with subprocess.Popen(command, cwd=ROOT, env=given, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(("TASK [", "PLAY")):
                began.append((line.strip("* \n"), time.monotonic()))
    ends = [moment for _name, moment in began[1:]] + [time.monotonic()]
    return [(name, end - begin) for (name, begin), end in zip(began, ends)]


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


def print_tasks(found: list[tuple[str, float]]) -> None:
    """Print what took long, and what all the others took together."""
    short = [seconds for _name, seconds in found if seconds < SHORT]
    print(f"\n| task of {sum(seconds for _name, seconds in found):.1f} s | s |\n|---|---|")
    for name, seconds in found:
        if seconds >= SHORT:
            print(f"| {name.replace('mlops.hpc_validation.', '')} | {seconds:.1f} |")
    print(f"| {len(short)} of less than {SHORT} s each | {sum(short):.1f} |")


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
        print_tasks(tasks(Path(folder), canary))


if __name__ == "__main__":
    main()
