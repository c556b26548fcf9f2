# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPM: a value needs two samples, far enough apart."""

from __future__ import annotations

import types
import typing as t

from kit.gpu.gpm import Gpm

from tests.unit.kit.fake_nvml import NVMLError_NotSupported, fake_pynvml, gpu

NOTHING = {"sm_occupancy": None, "tensor_activity": None}
VALUES = {"sm_occupancy": 30.0, "tensor_activity": 50.0}


def made(times: list[float], module: t.Any = None, **calls: t.Any) -> Gpm:
    device = gpu(0, calls=calls)
    clock = iter(times)
    last = [0.0]

    def now() -> float:
        last[0] = next(clock, last[0])
        return last[0]

    return Gpm(module or fake_pynvml(device), device, now)


def test_the_first_sample_has_no_value_and_the_second_has() -> None:
    gpm = made([0.0, 1.0, 1.0, 2.0, 2.0])
    assert gpm.read() == (NOTHING, None)
    assert gpm.read() == (VALUES, None)
    assert gpm.read() == (VALUES, None)


def test_samples_too_close_have_no_value() -> None:
    gpm = made([0.0, 0.05, 0.2, 0.2])
    assert [gpm.read() for _each in range(3)] == [(NOTHING, None), (NOTHING, None), (VALUES, None)]


def test_a_card_without_it_says_so() -> None:
    assert made([], nvmlGpmQueryDeviceSupport=NVMLError_NotSupported()).read() == (NOTHING, "NotSupported")
    unsupported = types.SimpleNamespace(isSupportedDevice=0)
    assert made([], nvmlGpmQueryDeviceSupport=unsupported).read() == (NOTHING, "NotSupported")
    old = fake_pynvml(gpu(0), without=["nvmlGpmQueryDeviceSupport"])
    assert made([], old).read() == (NOTHING, "FunctionNotFound")


def test_a_sample_that_fails_is_a_reason_and_the_next_may_succeed() -> None:
    answers = iter([NVMLError_NotSupported(), 1, 1])

    def get(_handle: t.Any, buffer: t.Any) -> t.Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return buffer

    gpm = made([0.0, 1.0, 1.0], nvmlGpmSampleGet=get)
    assert gpm.read() == (NOTHING, "NotSupported")
    assert gpm.read() == (NOTHING, None)
    assert gpm.read()[1] is None


def test_one_metric_may_be_missing() -> None:
    module = fake_pynvml(gpu(0))

    def between(wanted: t.Any) -> None:
        wanted.metrics[0].value, wanted.metrics[1].nvmlReturn = 12.5, 3

    module.nvmlGpmMetricsGet = between  # type: ignore[attr-defined]
    gpm = made([0.0, 1.0, 1.0], module)
    gpm.read()
    assert gpm.read() == ({"sm_occupancy": 12.5, "tensor_activity": None}, "NotSupported")
