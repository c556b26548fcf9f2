# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU performance monitoring (GPM; Hopper and later): SM occupancy and tensor activity between two samples."""

from __future__ import annotations

import time
from typing import Any, Callable

from kit.gpu import nvml

SM_OCCUPANCY, TENSOR_ACTIVITY = 3, 5  # nvmlGpmMetricId_t; in percent
METRICS = {"sm_occupancy": SM_OCCUPANCY, "tensor_activity": TENSOR_ACTIVITY}
SHORTEST = 0.1  # seconds between two samples
VERSION = 1


class Gpm:
    """One GPU's monitoring. Its samples are never freed: they live as long as the process."""

    def __init__(self, pynvml: Any, handle: Any, clock: Callable[[], float] = time.monotonic) -> None:
        """Check that the GPU supports it; ``reason`` says why not."""
        self._pynvml, self._handle, self._clock = pynvml, handle, clock
        support, self.reason = self._ask("nvmlGpmQueryDeviceSupport", handle)
        if self.reason is None and not support.isSupportedDevice:
            self.reason = "NotSupported"
        self._last: tuple[float, Any] | None = None
        self._spare: Any = None

    def _ask(self, name: str, *arguments: Any) -> tuple[Any, str | None]:
        return nvml.ask_first(self._pynvml, [(name, arguments)])

    def read(self) -> tuple[dict[str, float | None], str | None]:
        """Return the metrics since the last sample, None if it is not old enough, and the reason if there are none."""
        nothing: dict[str, float | None] = dict.fromkeys(METRICS)
        if self.reason or (self._last and self._clock() - self._last[0] < SHORTEST):
            return nothing, self.reason
        sample, why = self._take()
        if why:
            return nothing, why
        before, self._last = self._last, (self._clock(), sample)
        if before is None:
            return nothing, None
        self._spare = before[1]
        return self._between(before[1], sample)

    def _take(self) -> tuple[Any, str | None]:
        buffer, why = (self._spare, None) if self._spare is not None else self._ask("nvmlGpmSampleAlloc")
        self._spare = None
        if why:
            return None, why
        sample, why = self._ask("nvmlGpmSampleGet", self._handle, buffer)
        if why:
            self._spare = buffer
        return sample, why

    def _between(self, first: Any, second: Any) -> tuple[dict[str, float | None], str | None]:
        wanted = self._pynvml.c_nvmlGpmMetricsGet_t()
        wanted.version, wanted.numMetrics = VERSION, len(METRICS)
        wanted.sample1, wanted.sample2 = first, second
        for place, number in enumerate(METRICS.values()):
            wanted.metrics[place].metricId = number
        _other, why = self._ask("nvmlGpmMetricsGet", wanted)
        if why:
            return dict.fromkeys(METRICS), why
        found = [wanted.metrics[place] for place in range(len(METRICS))]
        bad = [metric.nvmlReturn for metric in found if metric.nvmlReturn != 0]
        values = [None if metric.nvmlReturn != 0 else float(metric.value) for metric in found]
        return dict(zip(METRICS, values)), nvml.reason_of(self._pynvml.NVMLError(bad[0])) if bad else None
