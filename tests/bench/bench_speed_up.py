# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a reported speed-up is true: MLOPS-2.1 beside a watcher that counts its steps by a clock of its own.

The watcher stands outside the cluster. It sees on the share which step each rank has come to, notes when it sees that,
and fits a line: steps a second of each leg. Nothing of what the workload measures goes into it.

Usage: bench_speed_up.py    against the local cluster that HPC_VALIDATION_CLUSTER names
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = os.environ.get("HPC_VALIDATION_CLUSTER", "local")
CACHE = Path(
    os.environ.get("HPC_VALIDATION_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "hpc_validation")
)
MODELS = CACHE / "clusters" / CLUSTER / "share/models/cifar10"
LEGS = {"before": ("baseline-before", 1), "measured": (".", 2), "after": ("baseline-after", 1)}
STEADY = ("training", "measuring speed")
Seen = dict[str, dict[int, float]]  # leg → step → when it was first seen, seconds


def watch(played: subprocess.Popen[bytes], known: set[Path]) -> Seen:
    """Look ten times a second until the play ends."""
    seen: Seen = {leg: {} for leg in LEGS}
    while played.poll() is None:
        for job in set(MODELS.glob("job-*")) - known:
            for leg, (folder, _ranks) in LEGS.items():
                try:
                    state = json.loads((job / folder / "ranks/rank-0.json").read_text())
                except (OSError, ValueError):
                    continue
                if state["phase"] in STEADY and state["step"] is not None:
                    seen[leg].setdefault(state["step"], time.monotonic())
        time.sleep(0.1)
    return seen


def steps_a_second(seen: dict[int, float]) -> float:
    """Return the middle of the rates between neighbouring sightings: an evaluation between two is an outlier."""
    points = sorted(seen.items())[2:]  # after the warm-up
    return statistics.median(
        (later - earlier) / (after - before) for (earlier, before), (later, after) in zip(points, points[1:])
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as results:
        extra = json.dumps({"hpc_validation_results": results, "hpc_validation_only": ["MLOPS-2.1"]})
        command = ["ansible-playbook", "playbooks/validate_category2.yml", "-i", "inventories/local", "-e", extra]
        known = set(MODELS.glob("job-*"))
        played = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        seen = watch(played, known)
        (evidence,) = Path(results).glob("*/evidence/MLOPS-2.1.json")
        document = json.loads(evidence.read_text())
    before, after = (run["metrics"]["samples_per_second"] for run in document["baseline"]["runs"])
    reported = document["metrics"]["samples_per_second"] / statistics.mean([before, after])
    rates = {leg: steps_a_second(seen[leg]) * ranks for leg, (_folder, ranks) in LEGS.items()}
    watched = rates["measured"] / statistics.mean([rates["before"], rates["after"]])
    print("| speed-up reported | watched | difference | steps seen before, measured, after |")
    print("|---|---|---|---|")
    counts = ", ".join(str(len(seen[leg])) for leg in LEGS)
    print(f"| {reported:.3f} | {watched:.3f} | {100 * (reported / watched - 1):+.1f} % | {counts} |")


if __name__ == "__main__":
    main()
