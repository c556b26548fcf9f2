# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make values safe to print and to write as JSON: much of what a run records comes from nodes, jobs and people."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars


def presentable(value: t.Any) -> t.Any:
    """Return a copy whose texts are safe to print on a terminal, and whose numbers JSON can represent."""
    if isinstance(value, str):
        return scalars.printable(value)
    if isinstance(value, dict):
        return {presentable(key): presentable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [presentable(item) for item in value]
    return scalars.show(value) if scalars.is_non_finite(value) else value
