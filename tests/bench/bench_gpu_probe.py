# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long `python -m kit probe` takes for eight simulated GPUs, kernel log included, against the limit of 2 s.

Usage: bench_gpu_probe.py [--runs N]    against the local cluster that HPC_VALIDATION_CLUSTER names
Gives compute01 six more GPUs for the time of the bench. The kit must be on the share (any play puts it there).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time

from tests.bench.bench_play import ROOT

CLUSTER = os.environ.get("HPC_VALIDATION_CLUSTER", "local")
LIMIT = 2.0  # seconds
MORE = """
for n in 2 3 4 5 6 7; do
    sed -e "s/^uuid=.*/uuid=GPU-0000000$n-0000-0000-0000-000000000000/" -e "s/^bus_id=.*/bus_id=00000000:${n}F:00.0/" \\
        /run/hpcval/gpu0.state > /run/hpcval/gpu$n.state
    install -m 666 /dev/null /run/hpcval/gpu$n.held
    mknod -m 666 /dev/nvidia$n c 195 $n
done
"""
LESS = "for n in 2 3 4 5 6 7; do rm -f /run/hpcval/gpu$n.state /run/hpcval/gpu$n.held /dev/nvidia$n; done"
PROBE = "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/mnt/beegfs/scripts exec python3 -m kit probe"


def node(script: str) -> str:
    """Run a fixed script on compute01; what it printed."""
    command = [str(ROOT / "tests/cluster/cluster"), "exec", "--name", CLUSTER, "compute01", "--", "sh", "-ec", script]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    node(f"{LESS}\n{MORE}")
    try:
        began = time.monotonic()
        node("true")
        entering = time.monotonic() - began
        walls = []
        for _each in range(arguments.runs):
            began = time.monotonic()
            facts = json.loads(node(PROBE))
            walls.append(time.monotonic() - began - entering)
    finally:
        node(LESS)
    wall = statistics.median(walls)
    print("| GPUs | runs | wall, median s | of the limit |")
    print("|---|---|---|---|")
    print(f"| {len(facts['gpus'])} | {len(walls)} | {wall:.2f} | {wall / LIMIT:.2f} |")


if __name__ == "__main__":
    main()
