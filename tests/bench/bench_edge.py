# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pruning and whole numbers gain on a device, and what the edge runner's own loop costs.

    python -m tests.bench.bench_edge

Runs tests/workloads/profiles/device_speed.py in the workload's environment on the login node of the cluster that
HPC_VALIDATION_CLUSTER names: the embedded profile's model, with windows of 32 steps. Ends 1 if a bound is missed.
"""

from __future__ import annotations

import json
import sys
import typing as t

from tests.integration.conftest import ROOT
from tests.integration.environments import installed, on_login, payload

PROFILE = next((ROOT / "files/workloads/training_profiles/Config_Samples").glob("*A-102*"))
BOUNDS = {
    "pruned": ("median time, pruned to float", 0.92),
    "int8": ("median time, whole numbers to float", 0.7),
    "both": ("median time, pruned and in whole numbers to float", 0.7),
    "loop": ("the runner's inference to run_with_iobinding", 1.1),
}


def measured() -> dict[str, t.Any]:
    """Return what was measured on the login node."""
    with payload(ROOT / "tests/workloads/profiles/device_speed.py") as (_local, there):
        python, path = installed("deepspeed", f"{there}/files"), f"{there}/files/workloads/training_profiles"
        profile, runner = f"{path}/Config_Samples/{PROFILE.name}", f"{there}/files/edge/runner.py"
        variables = {"PYTHONPATH": f"{there}/files:{path}", "OMP_NUM_THREADS": "1"}
        done = on_login(python, f"{there}/device_speed.py", profile, runner, **variables)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Print the table; return 1 if a bound is missed."""
    found = measured()
    print("| what | figure | bound |\n|---|---|---|")
    missed = []
    for name, (what, bound) in BOUNDS.items():
        print(f"| {what} | {found[name]:.2f} | <= {bound} |")
        missed += [what] if found[name] > bound else []
    for name, milliseconds in found["milliseconds"].items():
        print(f"| median time, {name}, ms | {milliseconds:.2f} | |")
        print(f"| file, {name}, MB | {found['bytes'][name] / 1e6:.1f} | |")
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
