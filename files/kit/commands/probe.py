# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit probe`: facts about the GPUs and their health."""

from kit.gpu.probe import add_arguments, run

__all__ = ["add_arguments", "run"]
