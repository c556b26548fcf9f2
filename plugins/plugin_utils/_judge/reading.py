# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A value read from facts that may be damaged, or why there is none. PRIVATE to the collection."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """A value, or None with the reason and the symptom that has the remedy.

    `reason` is the source's own word, if any; `unsupported` whether the source says that the part has no such value;
    `damaged` whether there is a value of a wrong type.
    """

    value: t.Any = None
    missing: str | None = None
    unsupported: bool = False
    symptom: str | None = None
    reason: str | None = None
    damaged: bool = False

    def but(self, value: t.Any) -> Reading:
        """Return the reading with another value; a reading without a value is returned unchanged."""
        return self if self.missing else Reading(value)
