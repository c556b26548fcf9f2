# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watch a training from inside: its figures for people and Prometheus, and whether it stalls."""

from __future__ import annotations

from kit.pretraining.monitor import Monitor
from kit.training.stall import Stall, solo, solo_flops

__all__ = ["Monitor", "Stall", "solo", "solo_flops"]
