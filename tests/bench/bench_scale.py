# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What judging many nodes costs, from the reports of their jobs to the verdict, and how large its files are.

Usage: bench_scale.py [--nodes N ...]

For each number of nodes with eight GPUs, all well and with a fault in 5 % of the nodes, plays a playbook that judges
the reports and makes the verdict, and one that does nothing. CPU time and memory are those of all processes of
ansible-playbook; the memory is what the play needs above the empty one. Ends 1 if a goal for 1,000 nodes is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import sweep
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.reports import FILE
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import runs

from tests.bench.bench_play import ROOT
from tests.unit import fleet_reports

Json = dict[str, t.Any]
VERSIONS = {"collection": "0", "ansible": "2", "python": "3"}
PLAN = {"title": "Preflight", "accelerator": "cuda", "workloads": [], "probes_only": True}
EMPTY = [{"ansible.builtin.meta": "noop"}]
BAD = 0.05
# Goals for 1,000 nodes: the largest size of each file in MB, all well and with faults; CPU seconds; MB of memory.
SIZES = {"verdict.json": (0.5, 2.0), "findings.json.gz": (3.0, 3.0), "junit.xml": (0.5, 2.0)}
CPU_SECONDS = 30
MEMORY_MB = 300
GOAL_NODES = 1000


def prepared(results: Path, nodes: int, bad: float) -> Path:
    """Return the folder of a run whose jobs have ended and whose reports were fetched."""
    folder = runs.start(results, PLAN, VERSIONS)
    sweep.plan(folder, fleet_reports.cluster(nodes), fleet_reports.SETTINGS, [], ([], {}))
    planned = json.loads((folder / sweep.PLAN).read_text(encoding="utf-8"))
    jobs = fleet_reports.jobs(planned)
    (folder / sweep.JOBS).write_text(json.dumps(jobs), encoding="utf-8")
    with gzip.open(folder / FILE, "wb", compresslevel=6) as stream:
        for job, report in fleet_reports.reports(planned, jobs, bad):
            stream.write(json.dumps({**report, "job": job}).encode() + b"\n")
    return folder


def judging(folder: Path) -> list[Json]:
    """Return the tasks that judge the reports and make the verdict."""
    prefix = "mlops.hpc_validation."
    return [
        {f"{prefix}preflight_nodes": {"state": "judged", "folder": str(folder), "settings": fleet_reports.SETTINGS}},
        {f"{prefix}validation_run": {"state": "finished", "folder": str(folder)}, "failed_when": False},
    ]


def play(tasks: list[Json]) -> tuple[float, float, int]:
    """Return CPU seconds, the peak of memory in MB, and the lines on the screen of a play on the controller."""
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "play.yml"
        book.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with (Path(folder) / "screen").open("w+") as screen:
            process = subprocess.Popen(["ansible-playbook", str(book)], cwd=ROOT, stdout=screen, stderr=screen)
            peak = 0.0
            while process.poll() is None:
                peak = max(peak, sum(map(memory_of, family(process.pid))))
                time.sleep(0.02)
            screen.seek(0)
            lines = screen.read().splitlines()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        sys.exit("\n".join(lines))
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak, len(lines)


def family(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                found += map(int, Path(f"/proc/{parent}/task/{task}/children").read_text().split())
    return found


def memory_of(pid: int) -> float:
    """Return the MB of a process, shared pages divided among those that share them."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def main() -> int:
    """Print a table, and return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 100, GOAL_NODES])
    missed = []
    print("| nodes x 8 GPUs | with faults | verdict | findings | CPU s | MB above an empty play | lines |", end="")
    print(" " + " | ".join(f"{name} kB" for name in SIZES) + " |")
    print("|---|---|---|---|---|---|---|" + "---|" * len(SIZES))
    idle_seconds, idle_memory, _lines = play(EMPTY)
    for nodes in parser.parse_args().nodes:
        for kind, bad in enumerate((0, BAD)):
            with tempfile.TemporaryDirectory() as results:
                folder = prepared(Path(results), nodes, bad)
                seconds, memory, lines = play(judging(folder))
                verdict = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
                sizes = {name: (folder / name).stat().st_size for name in SIZES}
            seconds, memory = seconds - idle_seconds, memory - idle_memory
            print(
                f"| {nodes} | {bad:.0%} | {verdict['verdict']} | {verdict['sidecar']['count']} | {seconds:.1f} ", end=""
            )
            print(
                f"| {memory:.0f} | {lines} | " + " | ".join(f"{size / 1000:.0f}" for size in sizes.values()) + " |",
                flush=True,
            )
            if nodes == GOAL_NODES:
                missed += [name for name in SIZES if sizes[name] > SIZES[name][kind] * 1e6]
                missed += ["CPU seconds"] * (seconds > CPU_SECONDS) + ["memory"] * (memory > MEMORY_MB)
    if missed:
        print(f"missed: {', '.join(missed)}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
