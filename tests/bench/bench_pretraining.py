# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sharding, tokens and checkpoints cost a pretraining, from the acceptance on the local cluster.

    python -m tests.bench.bench_pretraining [EVIDENCE]

EVIDENCE: the saved evidence/PRETRAIN-1.json of a run; without it the play runs on the cluster that
HPC_VALIDATION_CLUSTER names. CPU seconds are the sturdier measure where ranks share cores. Ends 1 if a bound is missed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def evidence() -> dict[str, t.Any]:
    """Run the play and return what it saved."""
    with tempfile.TemporaryDirectory() as results:
        command = ["ansible-playbook", "playbooks/validate_pretraining.yml", "-i", "inventories/local"]
        given = json.dumps({"hpc_validation_results": results})
        subprocess.run([*command, "-e", given], cwd=ROOT, check=True, stdin=subprocess.DEVNULL)
        (path,) = Path(results).glob("*/evidence/PRETRAIN-1.json")
        return dict(json.loads(path.read_text(encoding="utf-8")))


def rows(found: dict[str, t.Any]) -> list[tuple[str, str, str, bool]]:
    """Return each figure with its bound, and whether it is kept."""
    metrics, legs = found["metrics"], found["legs"]
    plain = metrics["plain"]
    processor = metrics["cpu_seconds_per_token"] / plain["cpu_seconds_per_token"]
    speed = metrics["tokens_per_second"] / plain["tokens_per_second"]
    loader = 1 / metrics["input_share"]
    memory = max(each["resident"] for each in metrics["memory_bytes"].values()) / 1e6
    job = sum(legs[name]["ended"] - legs[name]["started"] for name in legs["outcomes"])
    saved = [each["bytes"] / each["seconds"] / 1e6 for each in metrics["checkpoint"]["saved"].values()]
    resumed = metrics["resumed"]["restart_seconds"]
    return [
        ("CPU seconds per token, ZeRO-3 to DDP", f"{processor:.2f}", "<= 1.6", processor <= 1.6),
        ("tokens per second, ZeRO-3 to DDP", f"{speed:.2f}", ">= 0.35", speed >= 0.35),
        ("speed of the loader to what the training takes", f"{loader:.0f}", ">= 10", loader >= 10),
        ("memory of a rank, MB", f"{memory:.0f}", "<= 900", memory <= 900),
        ("all legs, s", f"{job:.0f}", "<= 180", job <= 180),
        ("checkpoint, MB/s", f"{min(saved):.0f} to {max(saved):.0f}", "", True),
        ("from the processes' begin to the first step after a kill, s", f"{resumed:.1f}", "<= 30", resumed <= 30),
    ]


def main() -> int:
    """Print the table; return 1 if a bound is missed."""
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")) if len(sys.argv) > 1 else evidence()
    print("| what | figure | bound |\n|---|---|---|")
    missed = []
    for what, figure, bound, is_kept in rows(found):
        print(f"| {what} | {figure} | {bound} |")
        missed += [] if is_kept else [what]
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
