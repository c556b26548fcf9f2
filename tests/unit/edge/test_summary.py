# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What comes of the rows of a soak: values, or a reason by name."""

from __future__ import annotations

import pytest
from edge import summary

NOTHING = {"rails": [], "error": "none"}


def rows(*each):
    """Rows of a soak, one a second, with only what is given."""
    empty = {"rails": {}, "zones": {}, "counters": {}, "throttling": {}, "clocks": {}, "energy": {}, "firmware": None}
    return [{**empty, "time": float(second), **row} for second, row in enumerate(each)]


def of(taken, chosen=None, inferences=10):
    return summary.summary(taken, chosen or NOTHING, inferences)


def watts(*each):
    return rows(*({"rails": {name: {"watts": value} for name, value in row.items()}} for row in each))


def counted(*counts, wraps_at=10_000_000):
    return rows(*({"energy": {"package-0": {"microjoules": count, "wraps_at": wraps_at}}} for count in counts))


def test_it_says_how_much_was_done_in_what_time():
    found = of(rows({}, {}, {}), inferences=500)
    assert (found["samples"], found["seconds"], found["inferences"], found["per_second"]) == (3, 2, 500, 250)
    assert "millijoules_per_inference" not in found


def test_its_time_is_that_between_the_first_row_and_the_last():
    later = [{**row, "time": row["time"] + 50} for row in rows({}, {}, {})]
    assert (of(later)["seconds"], of(later)["per_second"]) == (2, 5)
    assert (of(later[:1])["seconds"], of(later[:1])["per_second"]) == (0, None)


# -- power and energy


def test_the_mean_is_that_of_all_chosen_rails_together():
    taken = watts({"a": 1, "b": 2}, {"a": 3, "b": 4}, {"a": 2, "b": 1})
    found = of(taken, {"rails": ["a", "b"], "error": None})
    assert found["power"] == {"mean": 5, "highest": 7, "rails": ["a", "b"], "error": None}
    assert found["millijoules_per_inference"] == 1000  # 5 W in 2 s by 10 inferences
    assert found["energy_of"] == ["a", "b"]
    found = of(watts({"a": 5}, {"a": 5}, {"a": 5}), {"rails": ["a"], "error": None})
    assert found["millijoules_per_inference"] == 1000  # 5 W in 2 s


def test_the_mean_is_of_what_was_read_while_it_computed():
    found = of(watts({"a": 4}, *[{"a": 20}] * 5), {"rails": ["a"], "error": None})
    assert (found["power"]["mean"], found["power"]["highest"]) == (20, 20)
    found = of(watts({"a": 24}, {"a": 20}), {"rails": ["a"], "error": None})
    assert (found["power"]["mean"], found["power"]["highest"]) == (20, 24)


@pytest.mark.parametrize("row", [0, 1, 2])
def test_a_rail_that_was_not_read_lowers_no_sum(row):
    taken = watts(*[{"a": 20, "b": 1}] * 3)
    taken[row]["rails"]["b"] = {"error": "-8 W"}
    found = of(taken, {"rails": ["a", "b"], "error": None})["power"]
    assert (found["mean"], found["error"]) == (None, "b (-8 W) could not be read all the time")
    assert of(taken, {"rails": ["a"], "error": None})["power"]["mean"] == 20


def test_in_no_time_there_is_no_power():
    found = of(watts({"a": 1}), {"rails": ["a"], "error": None})["power"]
    assert (found["mean"], found["error"]) == (None, "the time of the soak could not be read all the time")


def test_energy_that_was_not_chosen_is_no_power():
    taken = [{**one, "energy": other["energy"]} for one, other in zip(watts({"a": 1}, {"a": 1}), counted(0, 9))]
    assert of(taken, {"rails": ["a"], "error": None})["power"]["mean"] == 1


def test_a_rail_that_was_not_read_all_the_time_is_named():
    found = of(watts({"a": 1}, {}), {"rails": ["a"], "error": None})
    assert (found["power"]["mean"], found["power"]["error"]) == (None, "a could not be read all the time")
    assert found["power"]["highest"] is None
    assert "millijoules_per_inference" not in found


def test_power_that_is_not_known_keeps_its_reason():
    found = of(watts({"a": 1}, {"a": 1}), {"rails": [], "error": "unknown"})["power"]
    assert found == {"mean": None, "highest": None, "rails": [], "error": "unknown"}


def test_the_power_of_packages_is_their_energy_by_time():
    found = of(counted(1_000_000, 3_000_000, 7_000_000), {"rails": ["package-0"], "error": None})
    assert (found["power"]["mean"], found["power"]["highest"], found["power"]["error"]) == (3.0, 3.0, None)
    later = [{**row, "time": row["time"] + 50} for row in counted(1_000_000, 3_000_000, 7_000_000)]
    assert of(later, {"rails": ["package-0"], "error": None})["power"]["mean"] == 3.0
    found = of(counted(1_000_000, None), {"rails": ["package-0"], "error": None})
    assert found["power"]["mean"] is None
    assert found["power"]["error"].startswith("package-0: gone")


def test_an_energy_counter_that_wraps_goes_on():
    found = of(counted(1_000_000, 3_000_000))
    assert found["energy"] == {"joules": 2.0, "packages": ["package-0"], "error": None}
    assert (found["millijoules_per_inference"], found["energy_of"]) == (200, ["package-0"])
    assert of(counted(9_000_000, 1_000_000, 2_000_000))["energy"]["joules"] == 3.0
    found = of(counted(9_000_000, 1_000_000, wraps_at=None))["energy"]
    error = "package-0: it wrapped, and where is not said"
    assert found == {"joules": None, "packages": ["package-0"], "error": error}


@pytest.mark.parametrize("wraps_at", [None, 10_000_000])
def test_an_energy_counter_that_stands_still_for_a_time_has_not_wrapped(wraps_at):
    assert of(counted(1_000_000, 1_000_000, 3_000_000, wraps_at=wraps_at))["energy"]["joules"] == 2.0


def test_without_an_inference_none_has_an_energy():
    assert "millijoules_per_inference" not in of(counted(1_000_000, 3_000_000), inferences=0)


def test_energy_that_cannot_be_read_has_its_reason():
    still = {"joules": None, "packages": ["package-0"], "error": "package-0: its counter stands still"}
    assert of(counted(5, 5, 5))["energy"] == still
    taken = rows({"energy": {"p": {"microjoules": None, "error": "root only"}}}, {})
    assert of(taken)["energy"] == {"joules": None, "packages": ["p"], "error": "p: root only"}
    assert of(rows({}, {}))["energy"] == {"joules": None, "packages": [], "error": "no energy counter in sysfs"}


# -- temperature


def zones(*each):
    return rows(*({"zones": row} for row in each))


def test_the_highest_temperature_is_that_of_all_zones_and_times():
    taken = zones({"a": {"celsius": 40}, "b": {"celsius": 90}}, {"a": {"celsius": 60}, "b": {"celsius": 50}})
    assert of(taken)["temperature"] == {"highest": 90, "zones": {"a": 60, "b": 90}, "error": None}


def test_a_part_that_is_off_for_a_time_is_no_gap():
    taken = zones({"a": {"celsius": 40}, "gpu": {"off": True}}, {"a": {"celsius": 60}, "gpu": {"celsius": 61}})
    assert of(taken)["temperature"] == {"highest": 61, "zones": {"a": 60, "gpu": 61}, "error": None}


@pytest.mark.parametrize(
    ("taken", "highest", "error"),
    [
        (zones({"a": {"celsius": 40}}, {}), 40, "a could not be read all the time"),
        (
            zones({"a": {"celsius": 40}, "b": {"error": "EIO"}}, {"a": {"celsius": 40}, "b": {"celsius": 9}}),
            40,
            "b (EIO) could not be read all the time",
        ),
        (zones({}, {}), None, "no thermal zone can be read"),
        (zones({"a": {"off": True}}, {"a": {"off": True}}), None, "no thermal zone can be read"),
        (zones({"a": {"celsius": 40}}, {"a": {"off": True}}), 40, "no thermal zone can be read"),
    ],
)
def test_where_a_temperature_is_missing_it_is_said(taken, highest, error):
    found = of(taken)["temperature"]
    assert (found["highest"], found["error"]) == (highest, error)


# -- throttling


def counters(*counts, name="oc1"):
    return rows(*({"counters": {name: {"count": count}}} for count in counts))


def test_what_was_counted_before_the_soak_is_no_event():
    assert (of(counters(4, 4))["throttle"]["events"], of(counters(4, 4))["throttle"]["error"]) == (0, None)
    assert of(counters(4, 5, 6))["throttle"]["events"] == 2
    assert of(counters(4, 5, 6))["throttle"]["counters"] == {"oc1": 2}


def test_a_counter_that_goes_back_within_the_soak_loses_no_event():
    for counts in ((5, 9, 3, 5), (5, 9, 9, 5)):
        found = of(counters(*counts))["throttle"]
        assert found["events"] >= 4
        assert found["error"] == "oc1 went back"


def test_a_cooling_device_that_is_active_is_an_event():
    active = rows({"throttling": {"alert": {"state": 0}}}, {"throttling": {"alert": {"state": 1}}})
    found = of(active)["throttle"]
    assert (found["events"], found["samples_throttled"], found["error"]) == (1, {"alert": 1}, None)


@pytest.mark.parametrize(
    ("taken", "events", "error"),
    [
        (rows({}, {}), None, "nothing says whether the board was throttled"),
        (counters(4, None), None, "oc1 could not be read all the time"),
        (counters(4, 2), 0, "oc1 went back"),
        (rows({"throttling": {"x": {"state": None}}}, {}), 0, "x could not be read all the time"),
    ],
)
def test_where_nothing_says_it_is_not_0(taken, events, error):
    found = of(taken)["throttle"]
    assert (found["events"], found["error"]) == (events, error)


def said(*bits):
    return rows(*({"firmware": {"bits": each, "error": None}} for each in bits))


@pytest.mark.parametrize(
    ("bits", "new", "error"),
    [
        ((0x0, 0x0), 0, None),
        ((0x0, 0x50005), 0b101, None),
        ((0x0, 0x50000), 0b101, None),  # between two rows
        ((0x0, 0x4, 0x0), 0b100, None),
        ((0x50000, 0x50005), 0b101, None),  # it was so before, and is so now
        ((0x50000, 0x50000), 0, "under-voltage and throttling was noted before"),
        ((0x10000, 0x50000), 0b100, "under-voltage was noted before"),
        ((0x0, 0x10000, 0x10000), 0b1, None),
        ((0x0, 0x0, 0x10000), 0b1, None),
        ((0x10000, 0x10000), 0, "under-voltage was noted before"),
        ((0x10000,), 0, "under-voltage was noted before"),
        ((0x20000, 0x20000), 0, "a capped frequency was noted before"),
        ((0x40000, 0x40000), 0, "throttling was noted before"),
        ((0x80000, 0x80000), 0, "the soft limit of temperature was noted before"),
    ],
)
def test_the_firmwares_bits_are_those_of_now_and_those_that_are_new(bits, new, error):
    found = of(said(*bits))["throttle"]
    assert (found["firmware_bits"], found["events"]) == (new, bin(new).count("1"))
    assert (found["error"] or "").startswith(error or "")
    assert bool(found["error"]) == bool(error)
    assert "restart it to judge" in (found["error"] or "restart it to judge")


def test_a_firmware_that_does_not_answer_is_named():
    taken = rows({"firmware": {"bits": 0, "error": None}}, {"firmware": {"bits": None, "error": "no permission"}})
    found = of(taken)["throttle"]
    assert found["events"] is None
    assert found["error"] == "vcgencmd does not say whether the board was throttled: no permission"


def test_a_firmware_that_is_gone_is_named():
    for taken in ([*said(0), *rows({})], [*rows({}), *said(0)]):
        found = of(taken)["throttle"]
        assert found["events"] is None
        assert found["error"] == "vcgencmd does not say whether the board was throttled: it has gone"


def test_the_lowest_clock_is_kept():
    taken = rows({"clocks": {"policy0": {"khz": 5}}}, {}, {"clocks": {"policy0": {"khz": 4}}})
    assert of(taken)["clocks"] == {"policy0": 4}
    taken = rows({"clocks": {"policy0": {"khz": 5}}}, {"clocks": {"policy0": {"khz": 3}}})
    assert of(taken)["clocks"] == {"policy0": 3}
