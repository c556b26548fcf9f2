# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who writes a criterion wrong is told which, where, what was expected and what was found."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _criteria_spec

GOOD = {"id": "S0-13", "title": "accuracy", "query": "metrics.accuracy", "gt": 0.95}
EACH = {"over": "gpu.groups", "query": "fields.util.mean", "count": "job.gpus", "gt": 70}
VALUE_TESTS = "gt, ge, lt, le, between, within, eq, ratio_ge, ratio_le, decreasing, finite, present"


def errors(*criteria, overrides=None, **options):
    with pytest.raises(_criteria_spec.CriteriaError) as refused:
        _criteria_spec.read(list(criteria), overrides, workload="W", **options)
    assert str(refused.value) == "\n".join(refused.value.errors)
    return refused.value.errors


def criterion(**changes):
    merged = {**GOOD, **changes}
    return {key: value for key, value in merged.items() if value is not None}


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        (criterion(gt="x"), "key gt: expected a finite number, got 'x'"),
        (criterion(query=None), "key query, log, artifact or each: expected exactly one of them, got none"),
        (
            criterion(artifact="a"),
            "key query, log, artifact or each: expected exactly one of them, got query and artifact",
        ),
        (criterion(gt=None), f"key test: no test; expected exactly one of {VALUE_TESTS}"),
        (criterion(lt=1), f"key test: two tests, gt and lt; expected exactly one of {VALUE_TESTS}"),
        (criterion(gt=None, exists=True), f"key exists: does not go with query; expected one of {VALUE_TESTS}"),
        (
            criterion(query="`1`"),
            "key query: a literal may only stand beside a comparison or in contains, starts_with, ends_with",
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
            "key ratio_ge.spread: expected a fraction above 0, by which the baseline's runs may differ, got 0",
        ),
        (
            criterion(gt=None, ratio_ge={"bound": 1, "to": "m.a", "spread": 0.2, "of": "own"}),
            "key ratio_ge.spread: goes with a baseline, which may have several runs; the own run is one, got 0.2",
        ),
        (
            criterion(gt=None, within={"reference": 1, "absolute": -1}),
            "key within.absolute: expected at least 0, got -1",
        ),
        (
            criterion(query=None, gt=None, each={**EACH, "lt": 1}),
            f"key each: two tests, gt and lt; expected exactly one of {VALUE_TESTS}",
        ),
        (criterion(applies_when={1: ["x"]}), "key applies_when.1: expected a list of values, got ['x']"),
        (criterion(title=None), "key title: expected text, got None"),
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
    assert found == "workload W: overrides: there is no criterion 'A'; the workload has: none"


@pytest.mark.parametrize("name", ["", True, None, 5, ["oom"]])
@pytest.mark.parametrize("test", ["absent", "present"])
@pytest.mark.parametrize("sets", [None, ["oom"]])
def test_a_pattern_set_is_named(name, test, sets):
    entry = {"id": "S0-16", "title": "t", "log": ["stdout"], test: name}
    assert errors(entry, pattern_sets=sets) == [
        f"workload W: criterion S0-16: key {test}: expected the name of a pattern set, got {name!r}"
    ]


def test_any_pattern_set_goes_unless_there_is_a_list():
    entry = {"id": "S0-16", "title": "t", "log": ["stdout", "stderr"], "absent": "oom"}
    assert _criteria_spec.read([entry], workload="W")
    assert _criteria_spec.read([entry], workload="W", pattern_sets=iter(["cuda", "oom"]))
    assert errors(entry, pattern_sets=["b", "a"]) == [
        "workload W: criterion S0-16: key absent: expected a pattern set, one of a, b, got 'oom'"
    ]


@pytest.mark.parametrize(
    "entry",
    [
        criterion(id="x" * 64),
        criterion(id="9.a_b-C"),
        criterion(unit="s", remedy="do", severity="record", applies_when={"a": ["x", 1, None, True]}),
        criterion(gt=None, between=[1, 1]),
        criterion(gt=None, within={"reference": 0, "absolute": 0}),
        criterion(gt=None, within={"reference": 5, "tolerance": 0}),
        criterion(gt=None, ratio_le={"bound": 0, "to": "m.a", "of": "baseline"}),
        criterion(gt=None, ratio_le={"bound": 0, "to": "m.a", "of": "baseline", "spread": 0.001}),
        criterion(gt=None, ratio_ge={"bound": 0, "to": "m.a", "spread": 0.999}),
        criterion(gt=None, decreasing={}),
        criterion(gt=None, decreasing={"min_drop": 0}),
        criterion(gt=None, eq=""),
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
    (read,) = _criteria_spec.read([entry], workload="W")
    assert (read.id, read.title, read.data) == (entry["id"], entry["title"], entry)
    assert (read.severity, read.unit) == (entry.get("severity", "gate"), entry.get("unit"))
