# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What it costs to check a training profile, and to tell others of a training.

    python -m tests.bench.bench_profiles [EVIDENCE]

EVIDENCE: the saved evidence/PROFILE-HPC.json of a run; without it the play runs on the cluster that
HPC_VALIDATION_CLUSTER names. What sinks cost is the time in their calls over the loop's in the same run: two loops
compared differ by 9 % with nothing changed. Ends 1 if a bound is missed.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORKLOAD = ROOT / "files/workloads/training_profiles"
PROFILE = next((WORKLOAD / "Config_Samples").glob("*A-101*"))
ROUNDS, FURTHER = 5, 10

Row = tuple[str, str, str, bool]


def evidence() -> dict[str, t.Any]:
    """Run the play and return what it saved."""
    with tempfile.TemporaryDirectory() as results:
        command = ["ansible-playbook", "playbooks/validate_training_hpc.yml", "-i", "inventories/local"]
        given = json.dumps({"hpc_validation_results": results})
        subprocess.run([*command, "-e", given], cwd=ROOT, check=True, stdin=subprocess.DEVNULL)
        (path,) = Path(results).glob("*/evidence/PROFILE-HPC.json")
        return dict(json.loads(path.read_text(encoding="utf-8")))


def cpu_seconds(*command: str) -> float:
    """Return the CPU seconds of a command, which must end well."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def of_the_check() -> list[Row]:
    """Return what checking costs; the rounds of all commands alternate."""
    check = [sys.executable, str(WORKLOAD / "tools/validate_config.py")]
    rounds = [
        (
            cpu_seconds(sys.executable, "-c", "import pydantic"),
            cpu_seconds(*check, str(PROFILE)),
            cpu_seconds(*check, *[str(PROFILE)] * (1 + FURTHER)),
        )
        for _each in range(ROUNDS)
    ]
    pydantic, first, many = (statistics.median(column) for column in zip(*rounds))
    ratio, further = first / pydantic, (many - first) / FURTHER
    return [
        ("first file, CPU seconds", f"{first:.2f}", "<= 0.6", first <= 0.6),
        ("first file, of importing pydantic", f"{ratio:.1f}", "<= 6", ratio <= 6),
        ("each further file, CPU seconds", f"{further:.3f}", "<= 0.03", further <= 0.03),
    ]


def of_the_run(found: dict[str, t.Any]) -> list[Row]:
    """Return what the run itself measured."""
    metrics, legs = found["metrics"], found["legs"]
    sinks = metrics["sinks"]
    each = sinks["seconds"] / sinks["rows"] * 1e6
    share = sinks["share"]
    ended = [attempt for name in legs["outcomes"] for attempt in legs[name]["attempts"]]
    job = max(attempt["ended"] for attempt in ended) - min(attempt["started"] for attempt in ended)
    return [
        ("time in sinks of the loop's, %", f"{100 * share:.3f}", "<= 2", share <= 0.02),
        ("of one row, µs", f"{each:.0f}", "", True),
        ("all legs, s", f"{job:.0f}", "<= 240", job <= 240),
    ]


def main() -> int:
    """Print the table; return 1 if a bound is missed."""
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")) if len(sys.argv) > 1 else evidence()
    print("| what | figure | bound |\n|---|---|---|")
    missed = []
    for what, figure, bound, is_kept in [*of_the_check(), *of_the_run(found)]:
        print(f"| {what} | {figure} | {bound} |")
        missed += [] if is_kept else [what]
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
