# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory may expect of GPUs: the setting hpc_validation_gpu."""

from __future__ import annotations

import re

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.expect import (
    COUNT,
    EXCUSES,
    FLAG,
    Expectations,
    is_count,
    is_positive,
)

CORRECTED_MAX = 50_000_000  # volatile corrected errors: Meta's cluster monitoring (GCM) treats more as critical
_DRIVER = re.compile(r"(>=)?\d+(\.\d+)*")
GPU = Expectations(
    "hpc_validation_gpu",
    {
        "count": COUNT,
        "model": (
            lambda value: isinstance(value, str) and value.strip("* ") != "",
            "a name, or the start of a name followed by *",
        ),
        "memory_gib": (is_positive, "a number of GiB above 0"),
        "driver": (
            lambda value: isinstance(value, str) and _DRIVER.fullmatch(value) is not None,
            'a version such as "570.133.20", or a minimum such as ">=570"',
        ),
        "ecc": FLAG,
        "persistence": FLAG,
        "mig": FLAG,
        "pcie_generation": (lambda value: is_count(value) and 1 <= value <= 9, "a whole number from 1 to 9"),
        "pcie_width": (lambda value: is_count(value) and value in (1, 2, 4, 8, 12, 16, 32), "1, 2, 4, 8, 12, 16 or 32"),
        "power_limit_w": (is_positive, "a number of watts above 0"),
        "nvlinks": COUNT,
        "xid_since": (lambda value: value == "boot" or is_positive(value), "boot, or a number of seconds above 0"),
        "under_load": FLAG,
        "foreign_processes": FLAG,
        "corrected_max": COUNT,
        "pcie_replays_max": COUNT,
        "not_applicable": EXCUSES,
    },
    {"corrected_max": CORRECTED_MAX, "xid_since": "boot", "not_applicable": {}},
)
