# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locate a run's results where the document expects them. No PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def runs_root(environment: Mapping[str, str]) -> Path | None:
    """Return the folder of all runs' results: RUNS_ROOT, else on the share; None if neither is set."""
    if environment.get("RUNS_ROOT"):
        return Path(environment["RUNS_ROOT"])
    share = environment.get("HPC_VALIDATION_SHARE")
    return Path(share, "results", "training") if share else None
