# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who writes a criterion wrong is told which, where, what was expected and what was found."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import spec

from tests.unit.plugins.plugin_utils._judge.criteria_fake import as_written

GOOD = {"id": "S0-13", "title": "accuracy", "query": "metrics.accuracy", "gt": 0.95}
EACH = {"over": "gpu.groups", "query": "fields.util.mean", "count": "job.gpus", "gt": 70}
VALUE_TESTS = "gt, ge, lt, le, between, within, eq, ratio_ge, ratio_le, decreasing, finite, present"


def errors(*criteria, overrides=None, **options):
    with pytest.raises(spec.CriteriaError) as refused:
        spec.read(list(criteria), overrides, workload="W", **options)
    assert str(refused.value) == "\n".join(refused.value.errors)
    return refused.value.errors


def criterion(**changes):
    merged = {**GOOD, **changes}
    return {key: value for key, value in merged.items() if value is not None}


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        (criterion(gt="x"), "key gt: expected a finite number, found 'x'"),
        (criterion(query=None), "key query, log, artifact or each: expected exactly one of them, found none"),
        (
            criterion(artifact="a"),
            "key query, log, artifact or each: expected exactly one of them, found query and artifact",
        ),
        (criterion(gt=None), f"key test: no test; expected exactly one of {VALUE_TESTS}"),
        (criterion(lt=1), f"key test: two tests, gt and lt; expected exactly one of {VALUE_TESTS}"),
        (criterion(gt=None, exists=True), f"key exists: cannot be used with query; expected one of {VALUE_TESTS}"),
        (
            criterion(query="`1`"),
            "key query: a literal is only allowed in a comparison or in contains, starts_with, ends_with",
        ),
        (
            criterion(gt=None, within={"reference": 1, "absolute": 1, "upper": 2}),
            "key within.upper: is unknown; expected absolute, from, optional, reference, tolerance",
        ),
        (criterion(gt=None, ratio_ge={"bound": 1}), "key ratio_ge.to: is missing"),
        (
            criterion(gt=None, ratio_ge={"bound": 1, "to": "m.a", "by": 1}),
            "key ratio_ge.by: is unknown; expected bound, of, spread, to",
        ),
        (
            criterion(gt=None, ratio_ge={"bound": 1, "to": "m.a", "spread": 0}),
            "key ratio_ge.spread: expected a fraction above 0, by which the baseline's runs may differ, found 0",
        ),
        (
            criterion(gt=None, ratio_ge={"bound": 1, "to": "m.a", "spread": 0.2, "of": "own"}),
            "key ratio_ge.spread: needs a baseline, which may have several runs; own is a single run, found 0.2",
        ),
        (
            criterion(gt=None, within={"reference": 1, "absolute": -1}),
            "key within.absolute: expected at least 0, found -1",
        ),
        (
            criterion(query=None, gt=None, each={**EACH, "lt": 1}),
            f"key each: two tests, gt and lt; expected exactly one of {VALUE_TESTS}",
        ),
        (
            criterion(gt=None, query=None, each={**EACH}, lt=1),
            "key test: two tests, lt and each; expected exactly one of each",
        ),
        (criterion(gt=None, query=None, each=5), "key each: expected over, query, count and one test, found 5"),
        (
            criterion(gt=None, query=None, log=5, absent="oom"),
            "key log: expected a list of stdout and stderr, found 5",
        ),
        (
            criterion(gt=None, query=None, log=["stdout", "x"], absent="oom"),
            "key log: expected a list of stdout and stderr, found ['stdout', 'x']",
        ),
        (
            criterion(applies_when={"a": [1, [2]]}),
            "key applies_when.a: expected text, finite numbers, true or false, found [1, [2]]",
        ),
        (
            criterion(applies_when={"a": [float("nan")]}),
            "key applies_when.a: expected text, finite numbers, true or false, found [nan]",
        ),
        *(
            (
                criterion(gt=None, **{test: {"bound": bound, "to": "m.a"}}),
                f"key {test}.bound: expected a ratio above 0; any speed has at least 0, found {bound}",
            )
            for test in ("ratio_ge", "ratio_le")
            for bound in (0, -1)
        ),
        (criterion(applies_when={1: ["x"]}), "key applies_when.1: expected a list of values, found ['x']"),
        (criterion(title=None), "key title: expected text, found None"),
        (criterion(id="JOB"), None),
        ("S0-13", None),
    ],
)
def test_one_thing_wrong_is_one_line(entry, error):
    found = errors(entry)
    assert len(found) == 1
    if error is not None:
        assert found == [f"workload W: criterion S0-13: {error}"]


def test_an_unknown_key_is_told_with_those_there_are():
    (found,) = errors(criterion(greater=1))
    assert found.startswith(
        "workload W: criterion S0-13: key greater: is unknown; expected one of absent, applies_when,"
    )
    assert found.endswith("title, unit, within")


def test_a_criterion_without_an_id_is_told_by_its_place():
    found = errors(criterion(id=None), criterion(id=""), criterion(id=5), GOOD)
    assert [line.split(": ")[1] for line in found] == ["criterion number 1", "criterion number 2", "criterion number 3"]


def test_overrides_of_a_workload_without_criteria():
    (found,) = errors(overrides={"A": {}})
    assert found == "workload W: overrides: unknown criterion 'A'; available: none"


@pytest.mark.parametrize("name", ["", True, None, 5, ["oom"]])
@pytest.mark.parametrize("test", ["absent", "present"])
@pytest.mark.parametrize("sets", [None, ["oom"]])
def test_a_pattern_set_is_named(name, test, sets):
    entry = {"id": "S0-16", "title": "t", "log": ["stdout"], test: name}
    assert errors(entry, pattern_sets=sets) == [
        f"workload W: criterion S0-16: key {test}: expected the name of a pattern set, found {name!r}"
    ]


def test_any_pattern_set_goes_unless_there_is_a_list():
    entry = {"id": "S0-16", "title": "t", "log": ["stdout", "stderr"], "absent": "oom"}
    assert spec.read([entry], workload="W")
    assert spec.read([entry], workload="W", pattern_sets=iter(["cuda", "oom"]))
    assert errors(entry, pattern_sets=["b", "a"]) == [
        "workload W: criterion S0-16: key absent: expected one of the pattern sets a, b, found 'oom'"
    ]


@pytest.mark.parametrize(
    "entry",
    [
        criterion(id="x" * 64),
        criterion(id="9.a_b-C"),
        criterion(unit="s", remedy="do", severity="record", applies_when={"a": ["x", 1, 2.5, True]}),
        criterion(gt=None, between=[1, 1]),
        criterion(gt=None, within={"reference": 0, "absolute": 0}),
        criterion(gt=None, within={"reference": 5, "tolerance": 0}),
        criterion(gt=None, ratio_le={"bound": 0.001, "to": "m.a", "of": "baseline"}),
        criterion(gt=None, ratio_le={"bound": 0.001, "to": "m.a", "of": "baseline", "spread": 0.001}),
        criterion(gt=None, ratio_ge={"bound": 0.001, "to": "m.a", "spread": 0.999}),
        criterion(gt=None, decreasing={}),
        criterion(gt=None, decreasing={"min_drop": 0}),
        criterion(gt=None, eq=""),
        criterion(query=None, gt=None, artifact="a", exists=True),
        criterion(query=None, gt=None, artifact="a", exists={}),
        criterion(query=None, gt=None, artifact="a", exists={"min_bytes": 1}),
        criterion(query=None, gt=None, each={**EACH, "count": 1}),
        criterion(query=None, gt=None, each={"over": "m.a", "query": "v", "at_least": "job.gpus", "gt": 1}),
        criterion(gt=None, within={"from": "x", "tolerance": 0.999}),
        criterion(gt=None, decreasing={"min_drop": 1}),
        criterion(query=None, gt=None, each={**EACH, "query": "@"}),
    ],
    ids=str,
)
def test_what_is_well_formed_is_read(entry):
    (read,) = spec.read([entry], workload="W")
    common = {key: getattr(read, key) for key in ("id", "title", "unit", "remedy", "severity", "applies_when")}
    whole = {"unit": None, "remedy": None, "severity": "gate", "applies_when": {}, **entry}
    if "exists" in entry:
        whole["exists"] = {"min_bytes": 1, **({} if entry["exists"] is True else entry["exists"])}
    assert {**common, **as_written(read)} == whole


# Of another kind, at the ends of what is allowed, and several at once


def test_criteria_without_an_id_are_not_one_used_twice():
    found = errors(criterion(id=None), criterion(id=""), criterion(id=None))
    assert len(found) == 3
    assert all("key id: " in each and "appears twice" not in each for each in found)


def test_what_an_inventory_may_change_is_listed():
    (found,) = errors(criterion(), overrides={"S0-13": {"query": "metrics.y"}})
    assert found.partition("an inventory may change ")[2].partition(", found")[0].split(", ") == sorted(
        [
            *("unit", "remedy", "severity", "waive", "each", "within"),
            *("gt", "ge", "lt", "le", "eq", "between", "decreasing", "exists", "ratio_ge", "ratio_le"),
        ]
    )


@pytest.mark.parametrize("change", [{"gt": None}, {"unit": None}, {"lt": 5}, {"severity": "record"}])
def test_an_override_that_is_refused_is_one_error(change):
    assert len(errors(criterion(), overrides={"S0-13": change})) == 1


@pytest.mark.parametrize("change", [5, None, {"gt": 1}, []])
def test_an_override_gives_no_each_to_a_criterion_without_one(change):
    (found,) = errors(criterion(), overrides={"S0-13": {"each": change}})
    assert "an override can move the bound of the test, gt, not change the test" in found


def test_an_override_of_each_is_a_mapping():
    each = {"over": "metrics.list", "query": "@", "count": 1, "ge": 0}
    (found,) = errors(criterion(query=None, gt=None, each=each), overrides={"S0-13": {"each": 5}})
    assert "expected ge with another bound" in found


def test_an_override_of_a_criterion_without_a_test():
    bad = criterion(gt=None)
    assert any(
        "can move the bound of the test, none, not" in found for found in errors(bad, overrides={"S0-13": {"gt": 1}})
    )


@pytest.mark.parametrize("each", [5, None, "x", [], {}])
def test_an_each_of_another_kind_is_refused(each):
    bad = {"id": "X", "title": "t", "each": each}
    allowance = {"missing_at_most": {"rows": 1, "reason": "r"}}
    assert any("each" in found for found in errors(bad))
    assert any("each" in found for found in errors({**bad, **allowance}))


@pytest.mark.parametrize(
    ("within", "refused"),
    [
        ({"reference": 1, "tolerance": 0.5}, None),
        ({"reference": 0.5, "tolerance": 0}, None),
        ({"reference": 0, "tolerance": 0.5}, "must be above 0"),
        ({"reference": 5, "tolerance": 1}, "below 1"),
        ({"reference": 5, "tolerance": -0.1}, "at least 0"),
        ({"reference": 5, "absolute": -1}, "at least 0"),
        ({"reference": -5, "absolute": 0}, None),
        ({"reference": 1e308, "absolute": 1e308}, "whose sum is finite"),
        ({"reference": 0, "tolerance": "x"}, "a finite number"),
        ({"reference": "x", "absolute": 1}, "a finite number"),
    ],
)
def test_a_tolerance_is_a_fraction_of_what_is_above_zero(within, refused):
    changed = criterion(gt=None, within=within)
    if refused is None:
        assert spec.read([changed], workload="W")
    else:
        (found,) = errors(changed)
        assert refused in found


@pytest.mark.parametrize(("drop", "refused"), [(0, False), (1, False), (1.5, True), (-0.1, True), ("x", True)])
def test_a_drop_is_a_fraction(drop, refused):
    changed = criterion(gt=None, decreasing={"min_drop": drop})
    if refused:
        assert len(errors(changed)) == 1
    else:
        assert spec.read([changed], workload="W")


MAY_LACK = {"rows": 1, "reason": "the first step has none"}


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({"query": "rows.fields.v.min", "gt": 1}, True),
        ({"query": "rows.fields.v", "gt": None, "decreasing": True}, True),
        ({"query": "rows.fields.v", "gt": None, "finite": True}, False),
        ({"query": "metrics.min", "gt": 1}, False),
        ({"query": "metrics.loss", "gt": None, "decreasing": True}, False),
        (
            {"query": None, "gt": None, "each": {**EACH, "gt": 1}},
            True,
        ),
        (
            {
                "query": None,
                "gt": None,
                "each": {"over": "rows.groups", "query": "fields.v", "count": 1, "decreasing": True},
            },
            True,
        ),
        (
            {"query": None, "gt": None, "each": {"over": "metrics.list", "query": "min", "count": 1, "gt": 1}},
            False,
        ),
    ],
)
def test_rows_may_lack_only_what_is_reduced(changes, allowed):
    changed = criterion(**changes, missing_at_most=MAY_LACK)
    if allowed:
        assert spec.read([changed], workload="W")
    else:
        (found,) = errors(changed)
        assert "missing_at_most: needs a reduction of rows" in found
