# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The screen of docs/verdicts.md that no cluster here can make: the verdict on 1,000 nodes with eight GPUs each."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import sweep
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.screen import fitted
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.summary import summary
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import runs

from tests.bench.bench_scale import prepared
from tests.unit import fleet_reports

NODES = 1000
BAD = 0.01


def thousand() -> str:
    """Return the last lines of a preflight with a fault in a hundredth of the nodes."""
    with tempfile.TemporaryDirectory() as results:
        folder = prepared(Path(results), NODES, BAD)
        sweep.judge(folder, fleet_reports.SETTINGS)
        verdict = runs.finish(folder)
    lines = fitted("\n".join(summary(verdict, Path("results/20261124T090000Z-2f1c0a")))).split("\n")
    return "\n".join(["```text", *lines, "```"])
