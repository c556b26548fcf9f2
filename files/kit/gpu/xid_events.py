# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Xid errors that the driver reports while a job runs: NVML's events, for which no right to the kernel log is needed.

https://docs.nvidia.com/deploy/nvml-api/group__nvmlEvents.html: what came before the registration is not recorded.
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
        """Register for the GPU's events."""
        self._pynvml = pynvml
        self._set, self._reason = self._ask("nvmlEventSetCreate")
        self._first = 0
        if self._reason is None:
            _none, self._reason = self._ask("nvmlDeviceRegisterEvents", handle, XID_CRITICAL_ERROR, self._set)

    def _ask(self, name: str, *arguments: Any) -> tuple[Any, str | None]:
        return nvml.ask_first(self._pynvml, [(name, arguments)])

    def read(self) -> tuple[int | None, str | None]:
        """Return the code of the first Xid (0: there was none), or None and why that is not known."""
        for _each in range(0 if self._reason else AT_ONCE):
            event, why = self._ask("nvmlEventSetWait_v2", self._set, NO_WAIT)
            if why == "Timeout":
                break
            if why:
                self._reason = why
                break
            self._first = self._first or int(event.eventData)
        return (self._first, None) if self._first or not self._reason else (None, self._reason)
