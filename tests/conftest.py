# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs before any test module is imported: a second pytest worker gets a cluster of its own (noxfile.py)."""

from __future__ import annotations

import os

_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
if _WORKER != "0":
    os.environ["HPC_VALIDATION_CLUSTER"] = f"{os.environ.get('HPC_VALIDATION_CLUSTER', 'local')}-{_WORKER}"
