# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An inventory's changes move a bound and nothing else."""

from __future__ import annotations

import datetime

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import spec
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import Waiver
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.overrides import merge

from tests.unit.plugins.plugin_utils._judge.criteria_fake import as_written

GOOD = {"id": "S0-13", "title": "accuracy", "query": "metrics.accuracy", "gt": 0.95}
EACH = {"over": "gpu.groups", "query": "fields.util.mean", "count": "job.gpus"}
WITHIN = {"within": {"reference": 10, "tolerance": 0.1}}
LATER = {"reason": " fan on order ", "expires": "2030-01-01"}


def criterion(**changes):
    """GOOD with changes; None deletes."""
    merged = {**GOOD, **changes}
    return {key: value for key, value in merged.items() if value is not None}


def overridden(override, **body):
    """Return one criterion with its override."""
    read = spec.read([criterion(**body)], {"S0-13": override}, workload="W")
    assert len(read) == 1
    return read[0]


BAD_OVERRIDES = [
    (
        {"S0-99": {"gt": 1}},
        "unknown criterion 'S0-99'; available: S0-13, EACH, EACH.within, EQ, TRUE, LOG, RATIO, WITHIN, FALLS",
    ),
    ({"JOB": {"waive": {"reason": "x", "expires": "2030-01-01"}}}, "cannot be overridden or waived"),
    ({"S0-13": 5}, "expected an override"),
    ({"S0-13": {"lt": 5}}, "key lt: an override can move the bound of the test, gt, not change the test"),
    (
        {"S0-13": {"gt": None}},
        "key gt: an override can move a bound, not remove it; to let the criterion fail, waive it",
    ),
    ({"S0-13": {"gt": None, "lt": 5}}, "key lt: an override can move the bound of the test, gt,"),
    ({"S0-13": {"gt": None, "ge": 0.95}}, "key ge: an override can move the bound of the test, gt,"),
    ({"S0-13": {"remedy": None}}, "key remedy: an override can change a key, not delete it"),
    ({"S0-13": {"unit": None}}, "key unit: an override can change a key, not delete it"),
    ({"S0-13": {"severity": None}}, "key severity: an override can change a key, not delete it"),
    ({"S0-13": {"missing_at_most": {"rows": 9, "reason": "x"}}}, "key missing_at_most: cannot be overridden"),
    ({"WITHIN": {"within": None}}, "key within: an override can move a bound, not remove it"),
    ({"WITHIN": {"within": 5}}, "key within: expected reference or tolerance or absolute with another value"),
    ({"WITHIN": {"within": {"tolerance": None, "absolute": 1}}}, "key within.tolerance: an override can move a bound"),
    (
        {"WITHIN": {"within": {"from": None, "reference": 1}}},
        "key within.from: cannot be overridden; put the site's number",
    ),
    ({"WITHIN": {"within": {"optional": True}}}, "key within.optional: cannot be overridden"),
    ({"WITHIN": {"within": {"from": "nothing"}}}, "key within.from: cannot be overridden; put the site's number"),
    ({"WITHIN": {"within": {"reference": 5}}}, "key within: expected either reference, a number, or from"),
    ({"EACH.within": {"each": {"within": {"from": "nothing"}}}}, "key each.within.from: cannot be overridden"),
    ({"FALLS": {"decreasing": True}}, "key decreasing: expected min_drop with another value"),
    (
        {"FALLS": {"decreasing": {"min_drop": None}}},
        "key decreasing.min_drop: an override can move a bound, not remove it",
    ),
    ({"TRUE": {"eq": False}}, "key eq: true has no bound to move"),
    ({"TRUE": {"eq": 1}}, "key eq: true has no bound to move"),
    ({"EACH": {"each": None}}, "key each: expected gt with another bound"),
    ({"EACH": {"each": {"gt": None}}}, "key each.gt: an override can move a bound, not remove it"),
    ({"EACH": {"each": {"gt": None, "lt": 1}}}, "key each.lt: an override can move the bound of the test, gt,"),
    ({"EACH": {"each": {"at_least": 1}}}, "key each.at_least: cannot be overridden"),
    ({"EACH.within": {"each": {"within": {"optional": True}}}}, "key each.within.optional: cannot be overridden"),
    ({"EACH.within": {"each": {"within": {"from": "other", "tolerance": None}}}}, "key each.within.tolerance: an over"),
    ({"S0-13": {"gt": "high"}}, "key gt"),
    ({"S0-13": {"limit": 5}}, "key limit"),
    ({"S0-13": {"query": "metrics.other"}}, "key query"),
    ({"S0-13": {"id": "X"}}, "key id"),
    ({"S0-13": {"applies_when": {"accelerator": ["never"]}}}, "key applies_when"),
    ({"S0-13": {"severity": "record"}}, "key severity"),
    ({"S0-13": {"gt": None, "present": True}}, "key present: an override can move the bound of the test"),
    ({"S0-13": {"gt": None, "finite": True}}, "key finite"),
    ({"S0-13": {"gt": None, "eq": "high"}}, "can move the bound of the test"),
    ({"S0-13": {"waive": {"reason": "x"}}}, "key waive"),
    ({"S0-13": {"waive": {"reason": " ", "expires": "2030-01-01"}}}, "key waive.reason"),
    ({"S0-13": {"waive": {"reason": "x", "expires": "soon"}}}, "key waive.expires"),
    ({"S0-13": {"waive": {"reason": "x", "expires": 20300101}}}, "key waive.expires"),
    ({"S0-13": {"waive": {"reason": "x", "expires": "2030-01-01", "by": "me"}}}, "key waive"),
    ({"S0-13": {"waive": True}}, "key waive"),
    ({"S0-13": {"waive": {"reason": 5, "expires": "2030-01-01"}}}, "key waive.reason"),
    ({"EACH": {"each": 5}}, "key each"),
    ({"EACH": {"each": {"count": 1}}}, "key each.count"),
    ({"EACH": {"each": {"over": "metrics.other"}}}, "key each.over"),
    ({"EQ": {"eq": True}}, "key eq"),
    ({"EQ": {"eq": None}}, "key eq: an override can move a bound, not remove it"),
    ({"EQ": {"eq": None, "gt": 0}}, "key gt: an override can move the bound of the test, eq,"),
    ({"FALLS": {"decreasing": {"min_drop": 0}}}, "key decreasing.min_drop: expected a fraction above 0; an override"),
    ({"FALLS": {"decreasing": {"min_drop": "0"}}}, "key decreasing.min_drop: expected a finite number"),
    ({"RATIO": {"ratio_ge": {"bound": 0}}}, "key ratio_ge.bound: expected a ratio above 0"),
    ({"RATIO": {"ratio_ge": None}}, "key ratio_ge: an override can move a bound, not remove it"),
    ({"RATIO": {"ratio_ge": {"bound": None}}}, "key ratio_ge.bound: an override can move a bound, not remove it"),
    ({"LOG": {"absent": "oom"}}, "key absent"),
    ({"RATIO": {"ratio_ge": {"to": "metrics.other"}}}, "key ratio_ge.to"),
    ({"RATIO": {"ratio_ge": {"spread": 0.5}}}, "key ratio_ge.spread: cannot be overridden"),
    ({"RATIO": {"ratio_ge": {"spread": None}}}, "key ratio_ge.spread: cannot be overridden"),
    (["S0-13"], "overrides: expected"),
]


@pytest.mark.parametrize(("overrides", "expected"), BAD_OVERRIDES, ids=[str(case[0])[:90] for case in BAD_OVERRIDES])
def test_an_override_that_would_change_more_than_a_bound_is_refused(overrides, expected):
    criteria = [
        GOOD,
        criterion(id="EACH", query=None, gt=None, each={**EACH, "gt": 1}),
        criterion(id="EACH.within", query=None, gt=None, each={**EACH, "within": {"from": "r", "tolerance": 0.1}}),
        criterion(id="EQ", gt=None, eq="cuda"),
        criterion(id="TRUE", gt=None, eq=True),
        criterion(id="LOG", query=None, gt=None, log=["stdout"], absent="cuda_errors"),
        criterion(id="RATIO", gt=None, ratio_ge={"bound": 1, "to": "metrics.a"}),
        criterion(id="WITHIN", gt=None, within={"from": "r", "tolerance": 0.1}),
        criterion(id="FALLS", gt=None, decreasing={"min_drop": 0.1}),
    ]
    with pytest.raises(spec.CriteriaError) as refused:
        spec.read(criteria, overrides, workload="W", pattern_sets=["cuda_errors", "oom"])
    assert expected in str(refused.value)


@pytest.mark.parametrize(
    ("override", "body", "test", "bound"),
    [
        ({"gt": 0.98}, {}, "gt", 0.98),
        *[({test: 0.5}, {"gt": None, test: 0.4}, test, 0.5) for test in ("ge", "lt", "le")],
        ({"between": [1, 1]}, {"gt": None, "between": [1, 2]}, "between", [1, 1]),
        ({"within": {"reference": 11}}, {"gt": None, **WITHIN}, "within", {"reference": 11, "tolerance": 0.1}),
        ({"within": {"tolerance": 0}}, {"gt": None, **WITHIN}, "within", {"reference": 10, "tolerance": 0}),
        (
            {"within": {"tolerance": 0.2}},
            {"gt": None, "within": {"from": "pace", "tolerance": 0.1}},
            "within",
            {"from": "pace", "tolerance": 0.2},
        ),
        ({"eq": 1.5}, {"gt": None, "eq": 1}, "eq", 1.5),
        ({"eq": "cpu"}, {"gt": None, "eq": "cuda"}, "eq", "cpu"),
        (
            {"ratio_ge": {"bound": 2}},
            {"gt": None, "ratio_ge": {"bound": 1, "to": "m.a"}},
            "ratio_ge",
            {"bound": 2, "to": "m.a"},
        ),
        (
            {"ratio_le": {"bound": 2}},
            {"gt": None, "ratio_le": {"bound": 1, "to": "m.a"}},
            "ratio_le",
            {"bound": 2, "to": "m.a"},
        ),
        (
            {"decreasing": {"min_drop": 0.01}},
            {"gt": None, "decreasing": {"min_drop": 1}},
            "decreasing",
            {"min_drop": 0.01},
        ),
        ({"decreasing": {"min_drop": 0}}, {"gt": None, "decreasing": True}, "decreasing", {"min_drop": 0}),
        ({"decreasing": {"min_drop": 0}}, {"gt": None, "decreasing": {"min_drop": 0}}, "decreasing", {"min_drop": 0}),
        ({"decreasing": {"min_drop": 0.5}}, {"gt": None, "decreasing": True}, "decreasing", {"min_drop": 0.5}),
        (
            {"exists": {"min_bytes": 1}},
            {"gt": None, "query": None, "artifact": "a", "exists": {"min_bytes": 9}},
            "exists",
            {"min_bytes": 1},
        ),
        ({"each": {"gt": 2}}, {"gt": None, "query": None, "each": {**EACH, "gt": 1}}, "each", {**EACH, "gt": 2}),
    ],
)
def test_a_bound_may_be_moved(override, body, test, bound):
    read = overridden(override, **body)
    assert as_written(read)[test] == bound
    assert read.bound_from == "override"


@pytest.mark.parametrize(
    ("override", "attribute", "value"),
    [
        ({"unit": "%"}, "unit", "%"),
        ({"remedy": "ask Ann"}, "remedy", "ask Ann"),
        ({"severity": "gate"}, "severity", "gate"),
        ({"waive": LATER}, "waiver", Waiver("fan on order", datetime.date(2030, 1, 1))),
    ],
)
def test_what_is_no_bound_leaves_the_bound_the_manifests(override, attribute, value):
    read = overridden(override, severity="record", unit="s", remedy="do")
    assert (getattr(read, attribute), read.bound_from) == (value, "manifest")
    assert as_written(read)["gt"] == 0.95


def test_an_override_that_is_no_bound_is_refused_once():
    with pytest.raises(spec.CriteriaError) as refused:
        overridden({"gt": {"reference": 1}})
    assert refused.value.errors == [
        "workload W: criterion S0-13: key gt: expected a finite number, found {'reference': 1}"
    ]


@pytest.mark.parametrize(
    ("body", "override", "bound_from"),
    [
        ({"gt": None, "within": {"reference": 1, "absolute": 1}}, None, "manifest"),
        ({"gt": None, "within": {"from": "r", "absolute": 1}}, None, "reference"),
        ({"gt": None, "within": {"from": "r", "absolute": 1}}, {"within": {"absolute": 2}}, "override"),
        ({"gt": None, "query": None, "each": {**EACH, "within": {"from": "r", "absolute": 1}}}, None, "reference"),
        ({"gt": None, "query": None, "each": {**EACH, "within": {"reference": 1, "absolute": 1}}}, None, "manifest"),
    ],
)
def test_it_is_known_where_a_bound_comes_from(body, override, bound_from):
    assert overridden(override, **body).bound_from == bound_from


def test_merging_is_deep_null_deletes_and_nothing_is_altered():
    base = {"a": {"b": 1, "c": [1]}, "d": 2}
    change = {"a": {"b": None, "e": {"f": 3}}, "g": 4}
    assert merge(base, change) == {"a": {"c": [1], "e": {"f": 3}}, "d": 2, "g": 4}
    assert base == {"a": {"b": 1, "c": [1]}, "d": 2}
    assert change == {"a": {"b": None, "e": {"f": 3}}, "g": 4}
    assert merge({"a": {"b": 1}}, {"a": 5}) == {"a": 5}
    assert merge({"a": [1]}, {"a": {"b": 1}}) == {"a": {"b": 1}}
    merged = merge(base, {"d": [1]})
    assert merged["a"] is base["a"]
