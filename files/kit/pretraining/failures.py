# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What failures cost a training that saves checkpoints, and how often it should save them.

A failure loses half an interval on average, since it comes at any time in it, and the time until the first step after
the restart. Failures while the same steps are repeated are not counted: they are rare if failures are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

RESTART_SECONDS = 300.0  # an assumption, until a restart has been measured
MTBF_HOURS = (24.0, 168.0, 720.0)  # a day, a week, a month; not a claim about any hardware


@dataclass(frozen=True)
class Saving:
    """How a training saves: all in seconds; ``blocking`` is the time for which a checkpoint stops the training."""

    interval: float
    restart: float
    blocking: float | None


def young_seconds(blocking: float, mtbf_hours: float) -> float:
    """Return Young's interval between checkpoints, the square root of 2 · blocking · MTBF (CACM 17, 1974)."""
    return math.sqrt(2 * blocking * mtbf_hours * 3600)


def hours_each(saving: Saving) -> float:
    """Return the hours that a failure loses on average."""
    return (saving.interval / 2 + saving.restart) / 3600


def loss(hours: float, mtbf_hours: float, saving: Saving) -> dict[str, Any]:
    """Return what ``hours`` of training lose to failures that come every ``mtbf_hours`` on average.

    ``share`` is that of the hours, ``blocking_hours`` what all checkpoints take; the latter and Young's interval are
    None if it is not known how long a checkpoint blocks.
    """
    each = hours_each(saving)
    found: dict[str, Any] = {
        "mtbf_hours": mtbf_hours,
        "failures": hours / mtbf_hours,
        "hours": hours / mtbf_hours * each,
        "share": each / mtbf_hours,
        "blocking_hours": None,
        "young_seconds": None,
    }
    if saving.blocking is not None:
        found["blocking_hours"] = hours * saving.blocking / saving.interval
        found["young_seconds"] = young_seconds(saving.blocking, mtbf_hours)
    return found
