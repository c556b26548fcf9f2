# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The legs of jobs that validate a profile, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import acceptance
import embedded
from acceptance import Leg

LEGS: dict[str, Callable[[Leg], dict[str, Any]]] = {
    acceptance.MEASURED: acceptance.measured,
    acceptance.RESTARTED: acceptance.restarted,
    acceptance.SINGLE: acceptance.single,
    acceptance.ADAPTED: acceptance.adapted,
    acceptance.SOURCE: embedded.source,
    embedded.MADE: embedded.made,
}
ON_ONE_RANK = (acceptance.SINGLE, acceptance.ADAPTED, acceptance.SOURCE, embedded.MADE)
COMPARING = (acceptance.ADAPTED, embedded.MADE)  # the last ones, whose metrics are the job's
