# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What make test-matrix says of the stand-in beside the real NVML, and of the probe that meets it."""

from __future__ import annotations

import pytest

from tests.matrix import real_nvml

COMMON = {"nvmlInit_v2", "nvmlDeviceGetCount_v2"}
ASKED = COMMON | real_nvml.LACKS["bookworm"][1] | {"nvmlDeviceGet"}
STAND_IN = COMMON | real_nvml.LACKS["bookworm"][1]


@pytest.fixture
def real():
    """The functions of each Debian's library."""
    asked = ASKED - {"nvmlDeviceGet"}
    return {suite: (asked | {"nvmlUnitGetCount"}) - lacks for suite, (_branch, lacks) in real_nvml.LACKS.items()}


def test_functions_that_the_real_library_has_are_well(real):
    assert real_nvml.amiss(STAND_IN, real, ASKED) == []


@pytest.mark.parametrize(
    ("stand_in", "told"),
    [
        (STAND_IN | {"nvmlDeviceGetMood"}, "nvmlDeviceGetMood"),
        (STAND_IN | {"read_state"}, "read_state"),
        (STAND_IN - {"nvmlDeviceGetTemperatureV"}, "nvmlDeviceGetTemperatureV"),
    ],
)
def test_what_the_stand_in_invents_or_has_no_more_is_named(real, stand_in, told):
    assert told in " ".join(real_nvml.amiss(stand_in, real, ASKED))


def test_a_function_that_a_library_has_or_lacks_unexpectedly_is_named(real):
    real["trixie"].add("nvmlDeviceGetTemperatureV")
    assert len(real_nvml.amiss(STAND_IN, real, ASKED)) == 2
    real["bookworm"].discard("nvmlInit_v2")
    assert "535 lacks" in " ".join(real_nvml.amiss(STAND_IN, real, ASKED))


def test_only_functions_that_are_defined_are_exported():
    listing = "0000 T nvmlInit_v2@@libnvidia-ml.so.1\n0001 W nvmlWeak\n0002 B data\n   U malloc\n\n0003 T helper\n"
    assert real_nvml.exported(listing) == {"nvmlInit_v2", "nvmlWeak", "helper"}


def test_calls_are_found_in_attributes_and_in_texts():
    source = 'nvml.ask(pynvml, pynvml.nvmlDeviceGetName, x); CALLS = ("nvmlSystemGetDriverVersion",); nvmlMemory_v2'
    assert real_nvml.calls([source]) == {"nvmlDeviceGetName", "nvmlSystemGetDriverVersion"}


@pytest.mark.parametrize(
    ("facts", "wrong"),
    [
        ({"error": "NVML: DriverNotLoaded", "gpus": []}, 0),
        ({"error": None, "gpus": []}, 1),
        ({"error": "LibraryNotFound", "gpus": [{"index": 0}]}, 2),
        ([], 1),
    ],
)
def test_without_a_driver_the_probe_says_so_and_sees_no_gpu(facts, wrong):
    assert len(real_nvml.unreadable(facts)) == wrong
