# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requirements of modules that call Slurm's commands."""

from __future__ import annotations


class ModuleDocFragment:
    """Requirements on the host."""

    DOCUMENTATION = r"""
options: {}
requirements:
  - Slurm 22.05 or later, with its client commands (C(sbatch), C(squeue), C(scancel), C(scontrol); C(sacct) is used
    where it answers) on the host that the task runs on, usually a login node
  - Python 3.9 or later on that host
"""
