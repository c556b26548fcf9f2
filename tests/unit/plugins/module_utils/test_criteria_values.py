# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests that a value is put to: at their bounds, and what they say of it."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _criteria_tests
from ansible_collections.mlops.hpc_validation.plugins.module_utils._criteria_tests import UndeterminedError

from tests.unit.plugins.module_utils.criteria_fake import field

LEAST = {key: value for key, value in field().items() if key in _criteria_tests.REDUCTION_KEYS}


def judge(test, bound, value, base=None, reference=None):
    bases = _criteria_tests.Denominator(base if isinstance(base, list) else [base])
    needs = _criteria_tests.Needs(reference=lambda _name: reference, denominator=lambda _query, _whose: bases)
    return _criteria_tests.judge_value(test, bound, value, needs)


def refused(test, bound, value, **needs):
    with pytest.raises(UndeterminedError) as raised:
        judge(test, bound, value, **needs)
    return str(raised.value)


def test_a_test_that_the_judge_does_not_know_decides_nothing():
    assert "no test 'near'" in refused("near", 1, 1)


@pytest.mark.parametrize("end", [1, 2])
def test_both_ends_of_a_range_belong_to_it(end):
    assert judge("between", [1, 2], end).met
    assert judge("within", {"reference": 1.5, "absolute": 0.5}, end).met


@pytest.mark.parametrize(
    ("bound", "low", "high"),
    [
        ({"reference": 100, "tolerance": 0.25}, 75, 125),
        ({"reference": -100, "tolerance": 0.25}, -125, -75),
        ({"from": "it", "tolerance": 0.5}, 20, 60),
        ({"from": "it", "absolute": 1}, 39, 41),
    ],
)
def test_a_reference_and_its_margin(bound, low, high):
    for value, met in ((low, True), (high, True), (low - 0.01, False), (high + 0.01, False)):
        outcome = judge("within", bound, value, reference=40.0)
        assert outcome.met is met
        assert outcome.why.endswith(f"is {'' if met else 'not '}from {low:g} to {high:g}")


@pytest.mark.parametrize(
    ("test", "value", "met", "why"),
    [
        ("ratio_ge", 15, True, "15 / 10 = 1.5 is >= 1.5"),
        ("ratio_ge", 14.9, False, "14.9 / 10 = 1.49 is not >= 1.5"),
        ("ratio_le", 15, True, "15 / 10 = 1.5 is <= 1.5"),
        ("ratio_le", 15.1, False, "15.1 / 10 = 1.51 is not <= 1.5"),
        ("ratio_ge", 0, False, "0 / 10 = 0 is not >= 1.5"),
        ("ratio_le", 0, True, "0 / 10 = 0 is <= 1.5"),
    ],
)
def test_a_ratio_meets_its_own_bound(test, value, met, why):
    outcome = judge(test, {"bound": 1.5, "to": "m.v"}, value, base=10)
    assert (outcome.met, outcome.value, outcome.why) == (met, value / 10, why)


def test_a_ratio_to_a_fraction_is_one():
    assert judge("ratio_ge", {"bound": 1.5, "to": "m.v"}, 1, base=0.5).value == 2


@pytest.mark.parametrize(("value", "base"), [(1, 0), (1, -1), (-1, 1), (-1, -1), (-0.5, 1)])
def test_no_ratio_is_formed_with_nothing_or_less(value, base):
    for test in ("ratio_ge", "ratio_le"):
        assert "no ratio can be formed" in refused(test, {"bound": -9, "to": "m.v"}, value, base=base)


@pytest.mark.parametrize(
    ("bases", "value", "why"),
    [
        ([10, 10], 15, "15 / 10 = 1.5 (1.5 to 1.5) is >= 1.5"),
        ([95, 105], 150, "150 / 100 = 1.5 (1.43 to 1.58) is >= 1.5"),
        ([105, 95], 150, "150 / 100 = 1.5 (1.43 to 1.58) is >= 1.5"),
        ([95, 105], 149, "149 / 100 = 1.49 (1.42 to 1.57) is not >= 1.5"),
        ([96, 100, 104], 200, "200 / 100 = 2 (1.92 to 2.08) is >= 1.5"),
        ([10**17], 2 * 10**17, "200000000000000000 / 100000000000000000 = 2 is >= 1.5"),
        ([1.7e308, 1.7e308], 1.7e308, "1.7e+308 / 1.7e+308 = 1 (1 to 1) is not >= 1.5"),
    ],
)
def test_a_ratio_to_several_runs_is_to_their_mean_and_tells_its_range(bases, value, why):
    assert judge("ratio_ge", {"bound": 1.5, "to": "m.v"}, value, base=bases).why == why


@pytest.mark.parametrize(
    ("bases", "spread", "why"),
    [
        ([95, 105], {}, None),
        ([949, 1051], {}, "by 10.2 %, more than 10 %"),
        ([1051, 949], {}, "by 10.2 %, more than 10 %"),
        ([93, 107], {}, "by 14 %, more than 10 %"),
        ([93, 107], {"spread": 0.2}, None),
        ([75, 125], {"spread": 0.5}, None),
        ([75, 125], {"spread": 0.49}, "by 50 %, more than 49 %"),
        ([99, 100, 120], {}, "by 19.749216 %, more than 10 %"),
    ],
)
@pytest.mark.parametrize("test", ["ratio_ge", "ratio_le"])
def test_a_machine_that_was_not_steady_is_no_measure(test, bases, spread, why):
    bound = {"bound": 1, "to": "m.v", **spread}
    if why is None:
        assert judge(test, bound, 100, base=bases)
    else:
        told = f"the baseline's runs differ {why}: the machine was not steady"
        assert refused(test, bound, 100, base=bases) == told


def test_every_run_must_be_more_than_nothing():
    assert refused("ratio_le", {"bound": 9, "to": "m.v", "spread": 9}, 1, base=[1, 0]).endswith("of 1 to 0")
    assert refused("ratio_le", {"bound": 9, "to": "m.v", "spread": 9}, 1, base=[-1, 3]).endswith("of 1 to -1")


def test_a_ratio_beyond_all_numbers_is_none():
    assert refused("ratio_ge", {"bound": 1, "to": "m.v"}, 1e308, base=5e-324).startswith(
        "no ratio can be formed of 1e+308"
    )


def test_what_is_noted_of_the_denominator_is_told_last():
    noted = _criteria_tests.Denominator([10], "stored")
    needs = _criteria_tests.Needs(reference=float, denominator=lambda *_which: noted)
    outcome = _criteria_tests.judge_value("ratio_ge", {"bound": 1.5, "to": "m.v"}, 15, needs)
    assert outcome.why == "15 / 10 = 1.5 is >= 1.5; stored"


def test_a_baseline_is_what_a_ratio_is_to_unless_it_says_otherwise():
    asked = []
    one = _criteria_tests.Denominator([1.0])
    needs = _criteria_tests.Needs(reference=float, denominator=lambda *which: asked.append(which) or one)
    _criteria_tests.judge_value("ratio_ge", {"bound": 1, "to": "m.v"}, 1, needs)
    _criteria_tests.judge_value("ratio_ge", {"bound": 1, "to": "m.w", "of": "own"}, 1, needs)
    assert asked == [("m.v", "baseline"), ("m.w", "own")]


@pytest.mark.parametrize(
    ("values", "least", "met", "why"),
    [
        ([4.0, 2.0], 0.5, True, "from 4 to 2, 50 % down"),
        ([4.0, 2.0], 0.51, False, "from 4 to 2, 50 % down"),
        ([0.5, 0.25], 0.5, True, "from 0.5 to 0.25, 50 % down"),
        ([2.0, 3.0], 0, False, "from 2 to 3, 50 % up"),
        ([2.0, 2.0], 0, False, "from 2 to 2, 0 % down"),
        ([0.0, -1.0], 0, True, "from 0 to -1"),
        ([-1.0, -2.0], 0, True, "from -1 to -2"),
        ([1.0, 5.0, 0.0], 0, True, "from 2.5 to 1.5, 40 % down"),
    ],
)
def test_a_trend_is_the_fitted_lines(values, least, met, why):
    outcome = judge("decreasing", {"min_drop": least}, values)
    assert (outcome.met, outcome.why) == (met, f"the fitted line goes {why}")
    assert set(outcome.value) == {"slope", "fit_first", "fit_last"}
    assert judge("decreasing", True, values).met is (outcome.value["slope"] < 0)
    assert judge("decreasing", {}, values).met is (outcome.value["slope"] < 0)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([1.0], "needs at least two numbers and there are 1"),
        ([], "needs at least two numbers and there are 0"),
        ([2.0, None], "number 2 of 2 is null"),
        ([True, 1.0], "number 1 of 2 is true, a boolean"),
        (field(count=1), "needs at least two numbers and there are 1"),
        (field(nulls=1), "1 of the values are nulls"),
        (field(non_finite=1), "1 of the values are non-finite"),
        (field(other=1), "1 of the values are other"),
        (field(nulls=None), "null of the values are nulls"),
        (field(slope=None), "the value is null"),
        (field(fit_first=None), "the value is null"),
        (field(count=None), "the value is null"),
        (1.0, "the value is 1, neither"),
        ("falling", "neither a list of numbers"),
        ({"slope": -1}, "neither a list of numbers"),
    ],
)
def test_a_trend_of_something_else_decides_nothing(value, why):
    assert why in refused("decreasing", True, value)


def test_a_reduction_of_two_numbers_has_a_trend_and_without_a_fit_its_ends_are_taken():
    assert judge("decreasing", True, field(count=2)).met
    outcome = judge("decreasing", {"min_drop": 0.5}, LEAST)
    assert (outcome.met, outcome.value) == (True, {"slope": -0.25, "fit_first": 2.0, "fit_last": 1.0})


@pytest.mark.parametrize("key", sorted(_criteria_tests.REDUCTION_KEYS))
def test_a_reduced_field_that_lacks_a_part_is_none(key):
    part = {name: value for name, value in LEAST.items() if name != key}
    assert "neither a list of numbers nor a reduced field" in refused("decreasing", True, part)


def test_a_reduced_field_is_known_by_these_keys():
    assert set(LEAST) == {"count", "first", "last", "slope", "nulls", "non_finite", "other"}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (1.5, "all of 1 numbers are finite"),
        ([1, [2.5, {"a": 3}]], "all of 3 numbers are finite"),
        (field(), "all of 5 numbers are finite"),
        (LEAST, "all of 5 numbers are finite"),
        ([field(), field(count=2)], "all of 7 numbers are finite"),
    ],
)
def test_finite_numbers_are_counted(value, why):
    assert (judge("finite", True, value).met, judge("finite", True, value).why) == (True, why)


@pytest.mark.parametrize(
    ("value", "count"),
    [([1, "NaN"], 1), ([{"non_finite": "Infinity"}, "-Infinity", None], 2), (field(non_finite=3, nulls=1), 3)],
)
def test_a_number_that_is_not_finite_outweighs_what_is_none(value, count):
    outcome = judge("finite", True, value)
    assert (outcome.met, outcome.why) == (False, f"{count} of the numbers are NaN or infinite")


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (None, 1),
        ("fast", 1),
        ([], 1),
        ({}, 1),
        ([1, None, True], 2),
        (field(nulls=1, other=1), 2),
        (field(nulls=2), 2),
        (field(other=3), 3),
        (field(count=0), 1),
        ({key: value for key, value in LEAST.items() if key != "slope"} | {"first": None}, 1),
    ],
)
def test_what_is_no_number_is_not_finite_either(value, count):
    assert refused("finite", True, value) == f"{count} of the values are not numbers"


def test_no_number_at_all_is_not_finite():
    assert "no number was found" in refused("finite", True, field(count=0.5))


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (None, "null"),
        ("", '""'),
        ([], "an empty list"),
        ({}, "an empty object"),
        ("NaN", "NaN"),
        ({"non_finite": "Infinity"}, "Infinity"),
        ([1, [None]], "null"),
        ({"a": {"b": ""}}, '""'),
    ],
)
def test_what_is_empty_anywhere_is_not_present(value, what):
    assert refused("present", True, value) == f"the value is or holds {what}"


@pytest.mark.parametrize("value", [0, False, "x", [0], {"a": {"b": [False]}}])
def test_what_is_there_is_present(value):
    assert judge("present", True, value).met


@pytest.mark.parametrize(("bound", "least"), [(True, 1), ({}, 1), ({"min_bytes": 1}, 1), ({"min_bytes": 2}, 2)])
def test_a_file_must_hold_something(bound, least):
    assert _criteria_tests.minimum_bytes(bound) == least
    words = f"exists, at least {least} bytes" if least > 1 else "exists and is not empty"
    assert _criteria_tests.bound_text("exists", bound) == words
    assert _criteria_tests.bound_text("decreasing", {}) == "decreasing"
