# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xid errors that the driver reports while a job runs: NVML's events, which need no access to the kernel log.

https://docs.nvidia.com/deploy/nvml-api/group__nvmlEvents.html: errors before the registration are not recorded.
Not every Xid in the kernel log is an event: whether a GPU fell off the bus or needs a reset is read from the GPU.
"""

from __future__ import annotations

from typing import Any

from kit.gpu import nvml

XID_CRITICAL_ERROR = 0x8  # nvmlEventTypeXidCriticalError
NO_WAIT = 1  # milliseconds
AT_ONCE = 100  # events per reading; the next takes the rest


class XidEvents:
    """One GPU's Xids from now on. The event set is never freed: it lives as long as the process."""

    def __init__(self, pynvml: Any, handle: Any) -> None:
        """Register for the GPU's events; ``reason`` says why they are unknown, or no longer known."""
        self._pynvml = pynvml
        self._set, self.reason = self._ask("nvmlEventSetCreate")
        if self.reason is None:
            _none, self.reason = self._ask("nvmlDeviceRegisterEvents", handle, XID_CRITICAL_ERROR, self._set)
        mig, _other = self._ask("nvmlDeviceGetMigMode", handle)
        if mig and mig[0]:  # the driver silently withholds a GPU's events from users of its instances
            self.reason = self.reason or "MIG mode"

    def _ask(self, name: str, *arguments: Any) -> tuple[Any, str | None]:
        return nvml.ask_first(self._pynvml, [(name, arguments)])

    def new(self) -> list[int]:
        """Return the codes of the Xids since the last call. After an error the event set is not read again."""
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
