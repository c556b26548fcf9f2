# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests of a value. Pure. PRIVATE to the collection.

A test returns an `Outcome`, or raises `UndeterminedError` if it cannot judge the value.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import mul
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.reduce import slope_error
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import (
    COUNTS,
    Missing,
    ReducedField,
    UndeterminedError,
)

# How far the baseline's runs may differ, as a fraction of their mean, unless a criterion gives `spread`.
SPREAD = 0.1
LEAST_POINTS = 3
# A smaller drop, as a fraction of the largest value, may be rounding.
LEAST_DROP = 1e-6
# How many times its standard error a falling slope must be. Values that fall at once and then stay level reach 1.73
# times, however many they are; values that only go up and down reach less than 1.5 times in nine cases out of ten.
LEAST_SLOPE = 1.5


@dataclass(frozen=True)
class Outcome:
    """Whether the test is met; the report shows `value`, and `why` is the reason.

    A `remedy` takes precedence over the criterion's own.
    """

    met: bool
    value: Any
    why: str
    remedy: str | None = None


@dataclass(frozen=True)
class Denominator:
    """The divisor of a ratio: the run's own value, or that of each run of the baseline; `note` says which."""

    values: list[float]
    note: str | None = None


@dataclass(frozen=True)
class Needs:
    """What a test may need besides the value; all raise UndeterminedError."""

    reference: Callable[[str], float]
    denominator: Callable[[str, str], Denominator]
    missing: Missing = field(default_factory=Missing)


def judge_value(test: str, bound: Any, value: Any, needs: Needs) -> Outcome:
    """Apply `test` to `value`; raise UndeterminedError if it cannot be judged."""
    if test in _COMPARISONS:
        return _compare(test, bound, _number(value))
    if test == "eq":
        return _equal(bound, value)
    if test == "between":
        found = _number(value)
        return _outcome(bound[0] <= found <= bound[1], found, test, bound)
    if test == "within":
        return _within(bound, _number(value), needs)
    if test in ("ratio_ge", "ratio_le"):
        return _ratio(test, bound, _number(value), needs)
    if test == "decreasing":
        return _decreasing(bound, value, needs)
    if test == "finite":
        return _finite(value)
    if test == "present":
        return _present(value, needs)
    raise UndeterminedError(f"unknown test {test!r}")


_COMPARISONS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "gt": (">", lambda value, bound: value > bound),
    "ge": (">=", lambda value, bound: value >= bound),
    "lt": ("<", lambda value, bound: value < bound),
    "le": ("<=", lambda value, bound: value <= bound),
}


def bound_text(test: str, bound: Any) -> str:
    """Return the bound as a report shows it, such as '> 0.95'."""
    show = scalars.show
    if test in _COMPARISONS:
        return f"{_COMPARISONS[test][0]} {show(bound)}"
    if test == "eq":
        return f"= {show(bound)}"
    if test == "between":
        return f"{show(bound[0])} to {show(bound[1])}"
    if test == "within":
        around = show(bound["reference"]) if "reference" in bound else f"reference {bound['from']}"
        margin = f"{show(bound['tolerance'] * 100)} %" if "tolerance" in bound else show(bound["absolute"])
        return f"{around} ± {margin}"
    if test in ("ratio_ge", "ratio_le"):
        sign = ">=" if test == "ratio_ge" else "<="
        whose = "baseline's" if is_against_baseline(test, bound) else "own"
        return f"{sign} {show(bound['bound'])} x {whose} {bound['to']}"
    if test == "decreasing":
        drop = bound.get("min_drop", 0) if isinstance(bound, dict) else 0
        return f"decreasing by at least {show(drop * 100)} %" if drop else "decreasing"
    return "all numbers finite" if test == "finite" else "present"


def is_against_baseline(test: str, bound: Any) -> bool:
    """Return whether the test forms a ratio to a baseline."""
    return test in ("ratio_ge", "ratio_le") and bound.get("of") != "own"


def _outcome(met: bool, value: Any, test: str, bound: Any) -> Outcome:
    return Outcome(met, value, f"{scalars.show(value)} is {'' if met else 'not '}{bound_text(test, bound)}")


def _number(value: Any) -> float:
    try:
        return scalars.number(value)
    except scalars.NotANumberError as exc:
        raise UndeterminedError(f"the value {exc}") from exc


def _compare(test: str, bound: float, value: float) -> Outcome:
    return _outcome(_COMPARISONS[test][1](value, bound), value, test, bound)


def _equal(bound: Any, value: Any) -> Outcome:
    try:
        met = scalars.same(value, bound)
    except scalars.NotComparableError as exc:
        raise UndeterminedError(f"the value cannot be judged: {exc}") from exc
    return _outcome(met, value, "eq", bound)


def _within(bound: dict[str, Any], value: float, needs: Needs) -> Outcome:
    reference = bound["reference"] if "reference" in bound else needs.reference(bound["from"])
    if "tolerance" in bound and reference <= 0:
        raise UndeterminedError(f"a tolerance is a fraction of the reference, which is {scalars.show(reference)}")
    margin = bound["absolute"] if "absolute" in bound else bound["tolerance"] * reference
    low, high = _number(reference - margin), _number(reference + margin)
    met = low <= value <= high
    shown = scalars.show
    return Outcome(met, value, f"{shown(value)} is {'' if met else 'not '}from {shown(low)} to {shown(high)}")


def _ratio(test: str, bound: dict[str, Any], value: float, needs: Needs) -> Outcome:
    shown = scalars.show
    denominator = needs.denominator(bound["to"], bound.get("of", "baseline"))
    least, most = min(denominator.values), max(denominator.values)
    # A speed of zero cannot be compared with a baseline; as a share of the run's own value, zero is valid.
    nothing = value == 0 and is_against_baseline(test, bound)
    if least <= 0 or value < 0 or nothing:
        raise UndeterminedError(f"no ratio can be formed of {shown(value)} to {shown(least)}")
    mean = statistics.mean(denominator.values)
    _require_steady((most - least) / mean, bound.get("spread", SPREAD))
    ratio = value / mean
    if not scalars.is_number(ratio):
        raise UndeterminedError(f"no ratio can be formed of {shown(value)} to {shown(mean)}")
    met = ratio >= bound["bound"] if test == "ratio_ge" else ratio <= bound["bound"]
    sign = ">=" if test == "ratio_ge" else "<="
    spread = f" ({value / most:.3g} to {value / least:.3g})" if len(denominator.values) > 1 else ""
    note = f"; {denominator.note}" if denominator.note else ""
    how = f"{shown(value)} / {shown(mean)} = {shown(ratio)}{spread}"
    return Outcome(met, ratio, f"{how} is {'' if met else 'not '}{sign} {shown(bound['bound'])}{note}")


def _require_steady(difference: float, allowed: float) -> None:
    """Require that the machine was as fast after the run as before it."""
    if difference > allowed:
        percent, most = scalars.show(difference * 100), scalars.show(allowed * 100)
        raise UndeterminedError(
            f"the baseline's runs differ by {percent} %, more than {most} %: the machine was not steady"
        )


@dataclass(frozen=True)
class _Fit:
    """A line fitted to values: its start and end, its slope with standard error, and the largest value."""

    slope: float
    start: float
    end: float
    error: float | None
    largest: float


def _decreasing(bound: Any, value: Any, needs: Needs) -> Outcome:
    least = bound.get("min_drop", 0) if isinstance(bound, dict) else 0
    fit = _fit_of_list(value) if isinstance(value, list) else _fit_of_reduction(value, needs)
    shown = scalars.show
    fall = fit.start - fit.end
    if fit.start <= 0 and least:
        raise UndeterminedError(f"a drop cannot be given as a fraction of the fitted start {shown(fit.start)}")
    drop = fall / fit.start if fit.start > 0 else None
    change = f", {shown(abs(drop) * 100)} % {'down' if drop >= 0 else 'up'}" if drop is not None else ""
    why = f"the fitted line goes from {shown(fit.start)} to {shown(fit.end)}{change}"
    met = fall > LEAST_DROP * fit.largest and (not least or (drop is not None and drop >= least))
    if met and fit.error is not None and abs(fit.slope) < LEAST_SLOPE * fit.error:
        raise UndeterminedError(
            f"{why}, but the values scatter: the slope {shown(fit.slope)} is less than {LEAST_SLOPE} times "
            f"its standard error {shown(fit.error)}"
        )
    return Outcome(met, {"slope": fit.slope, "fit_first": fit.start, "fit_last": fit.end}, why)


def _require_points(count: float) -> None:
    if count < LEAST_POINTS:
        raise UndeterminedError(f"a trend needs at least three numbers, found {scalars.show(count)}")


def _fit_of_list(values: list[Any]) -> _Fit:
    numbers = []
    for position, item in enumerate(values):
        try:
            numbers.append(scalars.number(item))
        except scalars.NotANumberError as exc:
            raise UndeterminedError(f"number {position + 1} of {len(values)} {exc}") from exc
    _require_points(len(numbers))
    middle, mean = (len(numbers) - 1) / 2, _number(sum(numbers)) / len(numbers)
    xs, ys = [x - middle for x in range(len(numbers))], [y - mean for y in numbers]
    sxx, sxy, syy = (sum(map(mul, *factors)) for factors in ((xs, xs), (xs, ys), (ys, ys)))
    slope = _number(sxy / sxx)
    error = slope_error(len(numbers), sxx, syy, slope)
    start, end = _number(mean - slope * middle), _number(mean + slope * middle)
    return _Fit(slope, start, end, _number(error), max(map(abs, numbers)))


def _fit_of_reduction(value: Any, needs: Needs) -> _Fit:
    if not isinstance(value, ReducedField):
        raise UndeterminedError(
            f"the value is {scalars.describe(value)}, neither a list of numbers nor a reduced field"
        )
    needs.missing.require_numbers(value)
    _require_points(_number(value["count"]))
    slope, start, end = (_number(value.get(key)) for key in ("slope", "fit_first", "fit_last"))
    # Evidence saved by an earlier version does not have the standard error.
    error = _number(value["slope_error"]) if "slope_error" in value else None
    return _Fit(slope, start, end, error, max(abs(_number(value.get(key))) for key in ("min", "max")))


def _finite(value: Any) -> Outcome:
    found = {"numbers": 0, "non_finite": 0, "others": 0}
    _count_numbers(value, found)
    if found["non_finite"]:
        return Outcome(False, value, f"{found['non_finite']} of the numbers are NaN or infinite")
    if found["others"]:
        raise UndeterminedError(f"{found['others']} of the values are not numbers")
    if not found["numbers"]:
        raise UndeterminedError(f"no number was found in {scalars.describe(value)}")
    return Outcome(True, value, f"all of {found['numbers']} numbers are finite")


def _count_numbers(value: Any, found: dict[str, int]) -> None:
    """Count the leaves; an empty list or object counts as a value that is not a number."""
    if scalars.is_non_finite(value):
        found["non_finite"] += 1
    elif scalars.is_number(value):
        found["numbers"] += 1
    elif isinstance(value, ReducedField):
        counts = {key: _number(value.get(key)) for key in COUNTS}
        found["numbers"] += int(counts["count"])
        found["non_finite"] += int(counts["non_finite"])
        found["others"] += int(counts["nulls"] + counts["other"]) + (sum(counts.values()) == 0)
    elif isinstance(value, (list, dict)) and value:
        for item in value.values() if isinstance(value, dict) else value:
            _count_numbers(item, found)
    else:
        found["others"] += 1


def _present(value: Any, needs: Needs) -> Outcome:
    _refuse_empty(value, needs)
    return Outcome(True, value, "it is there")


def _refuse_empty(value: Any, needs: Needs) -> None:
    if value is None or value in ("", [], {}) or scalars.is_non_finite(value):
        described = '""' if value == "" else scalars.describe(value)
        raise UndeterminedError(f"the value is or holds {described}")
    if isinstance(value, ReducedField):
        needs.missing.require_numbers(value)
    if isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            _refuse_empty(item, needs)
