# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed and memory, as ratios against peers and limits: `python -m tests.bench.bench_NAME` in the checkout."""

import sys
from pathlib import Path

# Unlike pytest and ansible-playbook, Python does not find the collection in a checkout by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "collections"))
