# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of a Jetson board's GPU, which has no ECC, no link and no memory of its own."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import card, links, memory
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.facts import NUMBER, Gpu
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Judge

Json = dict[str, t.Any]
# Checks applied to a board only if the inventory sets the expectation, since most boards do not have these parts.
STATED = {
    "ecc": "gpu.ecc_mode",
    "persistence": "gpu.persistence",
    "mig": "gpu.mig",
    "power_limit_w": "gpu.power_limit",
    "pcie_generation": "gpu.pcie_generation",
    "pcie_width": "gpu.pcie_width",
    "pcie_replays_max": "gpu.pcie_replays",
    "nvlinks": "gpu.nvlink",
}


def findings(judge: Judge, gpu: Gpu) -> list[Json]:
    """Return the findings on whether it answers, its model, memory and temperature, and what else is expected."""
    stated = {check for key, check in STATED.items() if key in judge.expect}
    others = [
        *memory.ecc(judge, gpu),
        *card.state(judge, gpu),
        *links.pcie(judge, gpu),
        *links.nvlink(judge, gpu),
        card.mig(judge, gpu),
    ]
    found = [card.answers(judge, gpu), *card.identity(judge, gpu), _heat(judge, gpu)]
    return found + [finding for finding in others if finding["id"] in stated]


def _heat(judge: Judge, gpu: Gpu) -> Json:
    """Compare with the limit, if the board reports one; most do not, and lower their clocks themselves."""
    now, limit = (gpu.get(f"temperature.{key}", NUMBER) for key in ("gpu_c", "slowdown_c"))
    call = "/sys/class/thermal"
    if limit.missing and not limit.damaged and not now.missing:
        return judge.told("gpu.temperature", now, call, unit="°C")
    return judge.check_reading("gpu.temperature", "lt", limit, now, call, unit="°C")
