# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests that a value is put to: at their bounds, and what they say of it."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import comparisons
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import (
    Missing,
    ReducedField,
    UndeterminedError,
)

from tests.unit.plugins.plugin_utils._judge import criteria_fake


def field(**changes):
    """A reduced field as the judge sees one."""
    return ReducedField("progress.fields.loss", criteria_fake.field(**changes))


def judge(test, bound, value, base=None, reference=None, missing=0):
    bases = comparisons.Denominator(base if isinstance(base, list) else [base])
    needs = comparisons.Needs(
        reference=lambda _name: reference, denominator=lambda _query, _whose: bases, missing=Missing(missing)
    )
    return comparisons.judge_value(test, bound, value, needs)


def refused(test, bound, value, **needs):
    with pytest.raises(UndeterminedError) as raised:
        judge(test, bound, value, **needs)
    return str(raised.value)


def test_a_test_that_the_judge_does_not_know_decides_nothing():
    assert "unknown test 'near'" in refused("near", 1, 1)


@pytest.mark.parametrize("end", [1, 2])
def test_both_ends_of_a_range_belong_to_it(end):
    assert judge("between", [1, 2], end).met
    assert judge("within", {"reference": 1.5, "absolute": 0.5}, end).met


@pytest.mark.parametrize(
    ("bound", "low", "high"),
    [
        ({"reference": 100, "tolerance": 0.25}, 75, 125),
        ({"reference": -100, "absolute": 25}, -125, -75),
        ({"reference": 0.5, "tolerance": 0.5}, 0.25, 0.75),
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
    ],
)
def test_a_ratio_meets_its_own_bound(test, value, met, why):
    outcome = judge(test, {"bound": 1.5, "to": "m.v"}, value, base=10)
    assert (outcome.met, outcome.value, outcome.why) == (met, value / 10, why)


@pytest.mark.parametrize(
    ("bound", "reference", "why"),
    [
        ({"from": "it", "tolerance": 0.1}, 0, "which is 0"),
        ({"from": "it", "tolerance": 0.1}, -5, "which is -5"),
        ({"from": "it", "tolerance": 0.9}, 1.7e308, "not a finite number"),
        ({"from": "it", "absolute": 1e308}, 1.7e308, "not a finite number"),
        ({"from": "it", "absolute": 1e308}, -1.7e308, "not a finite number"),
    ],
)
def test_a_margin_that_is_none_decides_nothing(bound, reference, why):
    assert why in refused("within", bound, reference, reference=reference)


def test_a_ratio_to_a_fraction_is_one():
    assert judge("ratio_ge", {"bound": 1.5, "to": "m.v"}, 1, base=0.5).value == 2


@pytest.mark.parametrize(("test", "met"), [("ratio_ge", False), ("ratio_le", True)])
def test_nothing_is_a_share_of_its_own_and_no_speed_to_compare(test, met):
    assert judge(test, {"bound": 1.5, "to": "m.v", "of": "own"}, 0, base=10).met is met
    assert "no ratio can be formed of 0 to 10" in refused(test, {"bound": 1.5, "to": "m.v"}, 0, base=10)


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
    noted = comparisons.Denominator([10], "stored")
    needs = comparisons.Needs(reference=float, denominator=lambda *_which: noted)
    outcome = comparisons.judge_value("ratio_ge", {"bound": 1.5, "to": "m.v"}, 15, needs)
    assert outcome.why == "15 / 10 = 1.5 is >= 1.5; stored"


def test_a_baseline_is_what_a_ratio_is_to_unless_it_says_otherwise():
    asked = []
    one = comparisons.Denominator([1.0])
    needs = comparisons.Needs(reference=float, denominator=lambda *which: asked.append(which) or one)
    comparisons.judge_value("ratio_ge", {"bound": 1, "to": "m.v"}, 1, needs)
    comparisons.judge_value("ratio_ge", {"bound": 1, "to": "m.w", "of": "own"}, 1, needs)
    assert asked == [("m.v", "baseline"), ("m.w", "own")]


@pytest.mark.parametrize(
    ("values", "least", "met", "why"),
    [
        ([4.0, 3.0, 2.0], 0.5, True, "from 4 to 2, 50 % down"),
        ([4.0, 3.0, 2.0], 0.51, False, "from 4 to 2, 50 % down"),
        ([0.5, 0.375, 0.25], 0.5, True, "from 0.5 to 0.25, 50 % down"),
        ([2.0, 2.5, 3.0], 0, False, "from 2 to 3, 50 % up"),
        ([2.0, 2.0, 2.0], 0, False, "from 2 to 2, 0 % down"),
        ([0.0, -0.5, -1.0], 0, True, "from 0 to -1"),
        ([-1.0, -1.5, -2.0], 0, True, "from -1 to -2"),
        ([3.0, 1.0, 1.0], 0, True, "from 2.6666667 to 0.66666667, 75 % down"),
        ([1.0, 5.0, 6.0, 1.0, 0.5], 0.9, False, "from 3.7 to 1.7, 54.054054 % down"),
    ],
)
def test_a_trend_is_the_fitted_lines(values, least, met, why):
    outcome = judge("decreasing", {"min_drop": least}, values)
    assert (outcome.met, outcome.why) == (met, f"the fitted line goes {why}")
    assert set(outcome.value) == {"slope", "fit_first", "fit_last"}


@pytest.mark.parametrize(
    "values",
    [
        [0.1] * 7,
        [0.0] * 3,
        [0.1 + 0.2, 0.3, 0.3],
        [1e9, 1e9 - 1, 1e9 - 2],
        [1e-300] * 3,
        [1.0, 1.0 - 1e-7, 1.0 - 2e-7],
        [-1e9, -1e9 - 1, -1e9 - 2],
        [1e6, 0.0, 1e6 - 1e-4],
    ],
)
def test_a_drop_within_rounding_is_none(values):
    assert not judge("decreasing", True, values).met
    ends = {"fit_first": values[0], "fit_last": values[-1]}
    reduced = field(slope=-4e-20, slope_error=0.0, min=min(values), max=max(values), **ends)
    assert not judge("decreasing", True, reduced).met


@pytest.mark.parametrize("largest", [{"max": 1e9}, {"min": -1e9}])
def test_rounding_is_that_of_the_largest_value(largest):
    assert judge("decreasing", True, field()).met
    assert not judge("decreasing", True, field(**largest)).met


@pytest.mark.parametrize(
    "values", [[1.0, 5.0, 0.0], [2.0, 0.1, 2.1, 0.0, 2.0, 0.1], [2.31, 2.10, 2.2], [9.0, 1.0, 9.0, 1.0, 9.0, 0.0]]
)
def test_a_fall_within_the_scatter_decides_nothing(values):
    assert "the values scatter" in refused("decreasing", True, values)


def test_the_scatter_of_a_reduction_counts_as_well():
    assert judge("decreasing", True, field(slope_error=0.1666)).met
    assert judge("decreasing", {}, field(slope=-0.75, slope_error=0.5)).met
    assert "the values scatter" in refused("decreasing", True, field(slope_error=0.1667))
    assert "Infinity" in refused("decreasing", True, field(slope_error={"non_finite": "Infinity"}))
    assert "null" in refused("decreasing", True, field(slope_error=None))


@pytest.mark.parametrize(
    "values", [[1e308, 1e308, 0.0], [1.7e308, 0.0, -1.7e308], [-1.7e308, 1.7e308, -1.7e308], [1e200, 1e199, 0.0]]
)
def test_a_fit_that_overflows_decides_nothing(values):
    assert "not a finite number" in refused("decreasing", True, values)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([2.0, 1.0], "needs at least three numbers, found 2"),
        ([], "needs at least three numbers, found 0"),
        ([2.0, None], "number 2 of 2 is null"),
        ([True, 1.0], "number 1 of 2 is true, a boolean"),
        (field(count=2), "needs at least three numbers, found 2"),
        (field(nulls=1), "missing in 1 of 6 rows"),
        (field(non_finite=1), "not a finite number in 1 of 6 rows"),
        (field(other=1), "not a finite number in 1 of 6 rows"),
        (field(nulls=None), "its nulls is null"),
        (field(slope=None), "the value is null"),
        (field(fit_first=None), "the value is null"),
        (field(count=None), "its count is null"),
        (dict(field()), "the value is an object with 13 keys, neither"),
        (1.0, "the value is 1, neither"),
        ("falling", "neither a list of numbers"),
        ({"slope": -1}, "neither a list of numbers"),
    ],
)
def test_a_trend_of_something_else_decides_nothing(value, why):
    assert why in refused("decreasing", True, value)


def test_a_trend_may_lack_as_many_rows_as_is_said():
    assert judge("decreasing", True, field(nulls=1), missing=1).met
    refused("decreasing", True, field(nulls=2), missing=1)


def test_evidence_of_an_earlier_version_does_not_tell_the_scatter():
    earlier = field()
    del earlier["slope_error"]
    outcome = judge("decreasing", {"min_drop": 0.5}, earlier)
    assert (outcome.met, outcome.value) == (True, {"slope": -0.25, "fit_first": 2.0, "fit_last": 1.0})


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (1.5, "all of 1 numbers are finite"),
        ([1, [2.5, {"a": 3}]], "all of 3 numbers are finite"),
        (field(), "all of 5 numbers are finite"),
        (dict(field()), "all of 13 numbers are finite"),
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
        (dict(field(first=None)), 1),
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


def test_a_drop_that_may_be_of_any_size_is_not_told():
    assert comparisons.bound_text("decreasing", {}) == "decreasing"
