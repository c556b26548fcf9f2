# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the bounds of tests. Pure. PRIVATE to the collection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import Expression, ValueTest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.notes import Notes


def read_test(name: str, bound: Any, key: str, notes: Notes) -> ValueTest:
    """Return the test of a value by this name; `key` is the key of its bound."""
    if name in ("ratio_ge", "ratio_le"):
        return ValueTest(name, bound, divisor=_ratio(bound, key, notes))
    if name == "within":
        return _within(bound, key, notes)
    _CHECKS.get(name, check_number)(bound, key, notes)
    return ValueTest(name, bound)


def is_whole(value: Any, *, least: int) -> bool:
    """Return whether `value` is a whole number and at least `least`."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def least_bytes(bound: Any, key: str, notes: Notes) -> int:
    """Return the smallest size that a file may have: `bound` is true or has min_bytes."""
    if bound is True or not notes.keys(bound, key, set(), {"min_bytes"}):
        return 1
    size: int = bound.get("min_bytes", 1)
    if not is_whole(size, least=1):
        notes.wrong(f"{key}.min_bytes", "expected a whole number, at least 1", size)
    return size


def check_number(value: Any, key: str, notes: Notes, *, least: float | None = None) -> None:
    """Note a value that is not a finite number, or is below the least."""
    if not scalars.is_number(value):
        notes.wrong(key, "expected a finite number", value)
    elif least is not None and value < least:
        notes.wrong(key, f"expected at least {least:g}", value)


def _fraction(value: Any, key: str, notes: Notes) -> None:
    """Note a value that is not a fraction from 0 to below 1: a percentage would allow everything."""
    check_number(value, key, notes, least=0)
    if scalars.is_number(value) and value >= 1:
        expected = f"expected a fraction below 1, such as 0.15 for 15 %; {value:g} is {value * 100:g} %"
        notes.wrong(key, expected, value)


def _true(value: Any, key: str, notes: Notes) -> None:
    if value is not True:
        notes.wrong(key, "expected true", value)


def _equal(value: Any, key: str, notes: Notes) -> None:
    if not isinstance(value, (str, bool)) and not scalars.is_number(value):
        notes.wrong(key, "expected a finite number, text, true or false", value)


def _between(value: Any, key: str, notes: Notes) -> None:
    if not isinstance(value, list) or len(value) != 2 or not all(map(scalars.is_number, value)):
        notes.wrong(key, "expected [lowest, highest], two finite numbers", value)
    elif value[0] > value[1]:
        notes.wrong(key, "expected the lower bound first", value)


def _decreasing(value: Any, key: str, notes: Notes) -> None:
    if value is True:
        return
    if notes.keys(value, key, set(), {"min_drop"}) and "min_drop" in value:
        drop = value["min_drop"]
        check_number(drop, f"{key}.min_drop", notes, least=0)
        if scalars.is_number(drop) and drop > 1:
            notes.wrong(f"{key}.min_drop", "expected a fraction of at most 1, such as 0.05 for 5 %", drop)


_CHECKS: dict[str, Callable[[Any, str, Notes], None]] = {
    "between": _between,
    "decreasing": _decreasing,
    "eq": _equal,
    "finite": _true,
    "present": _true,
}


def _within(value: Any, key: str, notes: Notes) -> ValueTest:
    if not notes.keys(value, key, set(), {"reference", "from", "tolerance", "absolute", "optional"}):
        return ValueTest("within", value)
    before = len(notes.faults)
    if "optional" in value:
        _true(value["optional"], f"{key}.optional", notes)
    if ("reference" in value) == ("from" in value):
        notes.wrong(key, "expected either reference, a number, or from, the name of a reference", value)
    if ("tolerance" in value) == ("absolute" in value):
        notes.wrong(key, "expected either tolerance, a fraction, or absolute", value)
    if "from" in value and (not isinstance(value["from"], str) or not value["from"]):
        notes.wrong(f"{key}.from", "expected the name of a reference", value["from"])
    _margin(value, key, notes)
    if "reference" in value:
        check_number(value["reference"], f"{key}.reference", notes)
        if len(notes.faults) == before:
            _ends(value["reference"], value, key, notes)
    name = value.get("from")
    return ValueTest("within", value, reference=name, optional_reference=name if "optional" in value else None)


def _margin(value: dict[str, Any], key: str, notes: Notes) -> None:
    if "tolerance" in value:
        _fraction(value["tolerance"], f"{key}.tolerance", notes)
    if "absolute" in value:
        check_number(value["absolute"], f"{key}.absolute", notes, least=0)


def _ends(reference: float, value: dict[str, Any], key: str, notes: Notes) -> None:
    if "tolerance" in value and reference <= 0:
        expected = "is a fraction of the reference, which must be above 0; otherwise use absolute"
        notes.wrong(f"{key}.tolerance", expected, value)
    elif "absolute" in value and not scalars.is_number(abs(reference) + value["absolute"]):
        notes.wrong(key, "expected a reference and a margin whose sum is finite", value)


def _ratio(value: Any, key: str, notes: Notes) -> Expression | None:
    """Return the expression that the value is divided by."""
    if not notes.keys(value, key, {"bound", "to"}, {"of", "spread"}):
        return None
    check_number(value["bound"], f"{key}.bound", notes)
    if scalars.is_number(value["bound"]) and value["bound"] <= 0:
        notes.wrong(f"{key}.bound", "expected a ratio above 0; any speed has at least 0", value["bound"])
    whose = value.get("of", "baseline")
    if whose not in ("baseline", "own"):
        notes.wrong(f"{key}.of", "expected baseline or own", whose)
    if "spread" in value:
        _spread(value["spread"], f"{key}.spread", whose, notes)
    return notes.expression(f"{key}.to", value["to"])


def _spread(value: Any, key: str, whose: Any, notes: Notes) -> None:
    if not scalars.is_number(value) or value <= 0:
        notes.wrong(key, "expected a fraction above 0, by which the baseline's runs may differ", value)
    elif value >= 1:
        notes.wrong(key, "expected a fraction below 1, such as 0.1 for 10 %", value)
    elif whose == "own":
        notes.wrong(key, "needs a baseline, which may have several runs; own is a single run", value)
