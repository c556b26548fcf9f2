# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a cell from passing. The messages go into docs/support.json: they name no machine and no path."""

from __future__ import annotations


class CellError(Exception):
    """The cell was tried, and this did not come out as it must."""


class AbsentError(Exception):
    """The cell could not be tried: this machine lacks what it needs."""


def demand(condition: object, why: str) -> None:
    """Fail the cell unless the condition holds."""
    if not condition:
        raise CellError(why)
