# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xid errors that the driver reports while a job runs: NVML's events, for which no right to the kernel log is needed.

https://docs.nvidia.com/deploy/nvml-api/group__nvmlEvents.html: what came before the registration is not recorded. Not
every Xid of the kernel log is an event: that a GPU fell off the bus or awaits a reset is asked of the GPU itself.
"""

from __future__ import annotations

from typing import Any

from kit.gpu import nvml

XID_CRITICAL_ERROR = 0x8  # nvmlEventTypeXidCriticalError
NO_WAIT = 1  # milliseconds
AT_ONCE = 100  # events taken at one reading; the next takes the rest


class XidEvents:
    """One GPU's Xids from now on. The event set is never freed: it lives as long as the process that asks."""

    def __init__(self, pynvml: Any, handle: Any) -> None:
        """Register for the GPU's events; ``reason`` says why they are not known, or no longer."""
        self._pynvml = pynvml
        self._set, self.reason = self._ask("nvmlEventSetCreate")
        if self.reason is None:
            _none, self.reason = self._ask("nvmlDeviceRegisterEvents", handle, XID_CRITICAL_ERROR, self._set)
        mig, _other = self._ask("nvmlDeviceGetMigMode", handle)
        if mig and mig[0]:  # the driver keeps a whole GPU's events from users of its instances, without a word
            self.reason = self.reason or "MIG mode"

    def _ask(self, name: str, *arguments: Any) -> tuple[Any, str | None]:
        return nvml.ask_first(self._pynvml, [(name, arguments)])

    def new(self) -> list[int]:
        """Return the codes of the Xids since the last time. After an error nothing more is asked of the event set."""
        codes: list[int] = []
        while self.reason is None and len(codes) < AT_ONCE:
            event, why = self._ask("nvmlEventSetWait_v2", self._set, NO_WAIT)
            if why == "Timeout":
                break
            if why:
                self.reason = why
            else:
                codes.append(int(event.eventData))
        return codes
