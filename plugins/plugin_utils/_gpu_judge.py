# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts one reading of a GPU to one test: what the inventory excuses, what the card does not have, and all others."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, replace

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _numbers
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import _findings, _remedies
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu_expect import GPU
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu_facts import Reading

Json = dict[str, t.Any]

TITLES = {
    "gpu.readable": "NVML answers on the node",
    "gpu.count": "Every GPU of the node is listed",
    "gpu.driver": "The driver is the one expected",
    "gpu.unique": "No two GPUs share a UUID or a PCI address",
    "gpu.kernel_log": "The kernel log can be read",
    "gpu.answers": "The GPU answers",
    "gpu.model": "The GPU is of the model expected",
    "gpu.memory": "The GPU has the memory expected",
    "gpu.ecc_mode": "ECC is as expected, and no change of it is pending",
    "gpu.ecc_uncorrected_volatile": "No uncorrected ECC errors since the driver was loaded",
    "gpu.ecc_uncorrected_aggregate": "Every uncorrected ECC error of the card's life was dealt with",
    "gpu.ecc_corrected": "Corrected ECC errors since the driver was loaded are few",
    "gpu.sram_threshold": "SRAM errors are below the threshold at which the card is replaced",
    "gpu.retired_pages": "Retired memory pages are below the limit",
    "gpu.retired_pages_pending": "No memory page waits to be retired",
    "gpu.row_remap_pending": "No memory row waits to be remapped",
    "gpu.row_remap_failure": "No memory row failed to be remapped",
    "gpu.row_remap_count": "Rows remapped for uncorrectable errors are below the limit",
    "gpu.row_remap_exhausted": "Every memory bank has spare rows left",
    "gpu.recovery_action": "The driver asks for no recovery of the GPU",
    "gpu.throttle": "Clocks are not lowered for heat, power supply or hardware protection",
    "gpu.temperature": "The GPU is cooler than its own limit",
    "gpu.memory_temperature": "The GPU's memory is cooler than its own limit",
    "gpu.pcie_width": "PCIe width is the card's own",
    "gpu.pcie_generation": "PCIe generation under load is the card's own",
    "gpu.pcie_replays": "PCIe replays since the driver was loaded are few",
    "gpu.nvlink": "Every NVLink is up",
    "gpu.nvlink_errors": "No NVLink had to recover",
    "gpu.nvlink_retries": "NVLink replays and checksum errors",
    "gpu.fabric": "The GPU has joined its NVLink fabric",
    "gpu.power_limit": "The power limit is not lowered",
    "gpu.persistence": "Persistence mode is as expected",
    "gpu.mig": "MIG is as expected, and no change of it is pending",
    "gpu.foreign_processes": "No other process uses the GPU",
    "gpu.xid": "No fatal Xid in the kernel log",
    "gpu.xid_warnings": "Xids that are no failure of the GPU",
}


@dataclass(frozen=True)
class Judge:
    """Judges readings of one node, or of one GPU of it where `gpu` names one."""

    expect: Json
    node: str
    reader: str = "NVML"
    gpu: str | None = None

    def of(self, gpu: str) -> Judge:
        """Return the judge of one GPU of this node."""
        return replace(self, gpu=gpu)

    @property
    def where(self) -> Json:
        """The part that is judged."""
        return {"node": self.node, **({"gpu": self.gpu} if self.gpu else {})}

    def check(
        self,
        identity: str,
        test: str,
        bound: t.Any,
        reading: Reading,
        call: str,
        *,
        needed: bool = True,
        unit: str | None = None,
        detail: str | None = None,
        symptom: str | None = None,
    ) -> Json:
        """Return the finding. What a card does not have fails closed where it is `needed`, and is recorded otherwise.

        `bound` may be a reading itself. `call` names where the value comes from.
        """
        excused = self.excused(identity, call)
        if excused:
            return excused
        asked = bound if isinstance(bound, Reading) else Reading(bound)
        absent = reading if reading.missing else asked
        if absent.missing and absent.unsupported and not needed:
            return self.record(identity, reading.value, absent.missing, call, unit=unit)
        if absent.missing:
            symptom = absent.symptom or ("gpu.unsupported" if absent.unsupported else "gpu.unread")
        if asked.value is None:
            why = absent.missing or "nothing says what it should be"
            return {**self.decided(identity, "undetermined", reading.value, "-", why, call, symptom), "unit": unit}
        return _findings.judged(
            identity,
            TITLES[identity],
            test,
            asked.value,
            reading.value,
            source=self._source(call),
            unit=unit,
            where=self.where,
            missing=absent.missing,
            detail=None if absent.missing else detail,
            symptom=symptom,
        )

    def decided(
        self, identity: str, verdict: str, value: t.Any, bound: str, why: str, call: str, symptom: str | None = None
    ) -> Json:
        """Return a finding that was decided by the caller, with its remedy; or what excuses it."""
        wanting = verdict in ("fail", "undetermined")
        return self.excused(identity, call) or _findings.finding(
            identity,
            TITLES[identity],
            verdict,
            value=_numbers.bounded(value),
            bound=_numbers.printable(bound),
            source=self._source(call),
            why=_numbers.printable(why),
            remedy=_remedies.remedy(symptom or identity, self.where) if wanting else None,
            where=self.where,
        )

    def record(self, identity: str, value: t.Any, why: str, call: str, *, unit: str | None = None) -> Json:
        """Return a finding that reports and decides nothing."""
        return {**self.decided(identity, "recorded", value, "-", why, call), "unit": unit}

    def told(self, identity: str, reading: Reading, call: str, *, unit: str | None = None, key: str = "") -> Json:
        """Record a value of which nothing is expected; `key` is the expectation that would have it judged."""
        why = reading.missing or (f"nothing is expected of it ({GPU.setting}.{key})" if key else "it is only reported")
        return self.record(identity, reading.value, why, call, unit=unit)

    def excused(self, identity: str, call: str) -> Json | None:
        """Return the finding for what the inventory says does not apply; None where it says nothing."""
        reason = self.expect["not_applicable"].get(identity)
        return self.not_applicable(identity, f"the inventory says: {reason}", call) if reason else None

    def not_applicable(self, identity: str, reason: str, call: str) -> Json:
        """Return the finding for what does not apply."""
        return _findings.not_applicable(
            identity, TITLES[identity], _numbers.printable(reason), source=self._source(call), where=self.where
        )

    def _source(self, call: str) -> str:
        return f"{self.reader}: {call}"
