# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read one GPU's values separately: a value, or None with the reason kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

from kit.gpu import nvml

# nvmlValueType_t: the member of nvmlValue_t that holds the value
VALUE_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}


class Reader:
    """One GPU and the reasons for its missing values, by dotted key."""

    def __init__(self, pynvml: Any, gpu: nvml.Gpu, root: Path = Path("/")) -> None:
        """Read ``gpu``; /proc and /sys are looked for below ``root``."""
        self.pynvml = pynvml
        self.gpu = gpu
        self.root = root
        self.unsupported: dict[str, str] = {}

    def ask_first(self, *calls: tuple[str, tuple[Any, ...]]) -> tuple[Any, str | None]:
        """Ask about this GPU with the first of ``calls`` that exists and is supported."""
        return nvml.ask_first(self.pynvml, [(name, (self.gpu.handle, *arguments)) for name, arguments in calls])

    def read_first(self, key: str, *calls: tuple[str, tuple[Any, ...]]) -> Any:
        """Return the result of the first supported call; keep the reason for None under ``key``."""
        value, why = self.ask_first(*calls)
        if why:
            self.unsupported[key] = why
        return value

    def read(self, key: str, name: str, *arguments: Any, shape: Callable[[Any], Any] | None = None) -> Any:
        """Return the result of one call, converted by ``shape``."""
        value = self.read_first(key, (name, arguments))
        return shape(value) if shape is not None and value is not None else value

    def structure(self, name: str) -> Any:
        """Return a new structure of nvidia-ml-py, or None if nvidia-ml-py is too old to have it."""
        made = getattr(self.pynvml, name, None)
        return None if made is None else made()

    def field(self, key: str, number: int, scope: int = 0) -> Any:
        """Return one value of nvmlDeviceGetFieldValues, by number."""
        values = self.read(key, "nvmlDeviceGetFieldValues", [(number, scope)])
        if values is None:
            return None
        value = values[0]
        if value.nvmlReturn != 0:
            self.unsupported[key] = self._name_of(value.nvmlReturn)
            return None
        return getattr(value.value, VALUE_MEMBERS.get(value.valueType, "ullVal"))

    def _name_of(self, code: int) -> str:
        return nvml.reason_of(self.pynvml.NVMLError(code))

    def collapsed(self, group: str, facts: dict[str, Any]) -> dict[str, Any] | None:
        """Return the group's facts, or None if all are missing for one reason, which is then kept for the group."""
        reasons = {self.unsupported.get(f"{group}.{name}") for name in facts}
        if any(value is not None for value in facts.values()) or len(reasons) > 1:
            return facts
        for name in facts:
            self.unsupported.pop(f"{group}.{name}", None)
        self.unsupported[group] = reasons.pop() or "NotSupported"
        return None
