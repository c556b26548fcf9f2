# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs before any test module is imported: all workers but the first get a cluster of their own (noxfile.py)."""

from __future__ import annotations

import os
import signal

_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
if _WORKER != "0":
    os.environ["HPC_VALIDATION_CLUSTER"] = f"{os.environ.get('HPC_VALIDATION_CLUSTER', 'local')}-{_WORKER}"

# What a shell starts in the background ignores Ctrl-C, and so would all that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
