"""What holds of the judge for any evidence whatever."""

from __future__ import annotations

import datetime
import json
import math

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _criteria, _criteria_spec
from hypothesis import given
from hypothesis import strategies as st

TODAY = datetime.date(2026, 11, 21)
JOB = {
    "job_id": "12",
    "attempt": 0,
    "state": "COMPLETED",
    "exit_code": 0,
    "signal": 0,
    "steps": None,
    "nodes": [],
    "gpus": 2,
}

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["NaN", "0.99"])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
)
bounds = st.floats(-1e6, 1e6)

TESTS = ("gt", "ge", "lt", "le")


def document(**parts):
    return {"schema": 1, "job": JOB, "context": {}, "logs": {}, "artifacts": {}, "files": {}, "problems": [], **parts}


def judged(evidence, criteria, overrides=None):
    read = _criteria_spec.read(criteria, overrides, workload="W")
    return {entry["id"]: entry for entry in _criteria.judge(evidence, read, today=TODAY)}


def is_number(value):
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and abs(value) < 2**1000
        and math.isfinite(value)
    )


@given(values, bounds, st.sampled_from(TESTS))
def test_only_a_number_that_meets_the_bound_passes(value, bound, test):
    verdict = judged(document(m={"v": value}), [{"id": "X", "title": "t", "query": "m.v", test: bound}])["X"]["verdict"]
    if is_number(value):
        met = {"gt": value > bound, "ge": value >= bound, "lt": value < bound, "le": value <= bound}[test]
        assert verdict == ("pass" if met else "fail")
    else:
        assert verdict == "undetermined"


@given(values)
def test_all_numbers_are_finite_only_if_all_are_numbers(value):
    verdict = judged(document(m={"v": value}), [{"id": "X", "title": "t", "query": "m.v", "finite": True}])["X"][
        "verdict"
    ]
    if verdict == "pass":
        leaves = [value]
        while leaves:
            leaf = leaves.pop()
            if isinstance(leaf, (list, dict)):
                assert leaf
                leaves += leaf.values() if isinstance(leaf, dict) else leaf
            else:
                assert is_number(leaf)


@given(st.lists(values, max_size=5), st.integers(1, 5), bounds)
def test_each_passes_only_with_enough_numbers_that_all_meet_the_bound(elements, count, bound):
    each = {"over": "m.list", "query": "@", "count": count, "ge": bound}
    verdict = judged(document(m={"list": elements}), [{"id": "X", "title": "t", "each": each}])["X"]["verdict"]
    good = len(elements) >= count and all(is_number(item) and item >= bound for item in elements)
    assert (verdict == "pass") == good


@given(values, values)
def test_a_trend_passes_only_over_numbers(first, second):
    criterion = {"id": "X", "title": "t", "query": "m.v", "decreasing": True}
    verdict = judged(document(m={"v": [first, second]}), [criterion])["X"]["verdict"]
    if is_number(first) and is_number(second):
        assert verdict != "pass" or first > second
    else:
        assert verdict == "undetermined"


@given(
    st.dictionaries(
        st.sampled_from(["job", "problems", "logs", "artifacts", "context", "files", "m", "baseline"]), values
    )
)
def test_no_evidence_whatever_breaks_the_judge_or_is_mutated_and_twice_is_the_same(evidence):
    criteria = [
        {"id": "Q", "title": "t", "query": "m.v", "gt": 0, "applies_when": {"accelerator": ["cuda"]}},
        {"id": "R", "title": "t", "query": "m.v", "ratio_ge": {"bound": 1, "to": "m.v"}},
        {"id": "E", "title": "t", "each": {"over": "m", "query": "v", "count": "job.gpus", "gt": 0}},
        {"id": "L", "title": "t", "log": ["stdout"], "absent": "cuda_errors"},
        {"id": "A", "title": "t", "artifact": "a", "exists": True},
    ]
    first = judged(evidence, criteria)
    assert repr(judged(evidence, criteria)) == repr(first)
    assert all(entry["verdict"] != "pass" for entry in first.values())
    json.dumps(list(first.values()), allow_nan=False)


@given(st.lists(st.tuples(values, bounds), max_size=5), st.randoms())
def test_the_order_of_criteria_does_not_matter(pairs, random):
    criteria = [
        {"id": f"C{n}", "title": "t", "query": f"m.v{n}", "ge": bound} for n, (value, bound) in enumerate(pairs)
    ]
    evidence = document(m={f"v{n}": value for n, (value, bound) in enumerate(pairs)})
    shuffled = random.sample(criteria, len(criteria))
    assert judged(evidence, criteria) == judged(evidence, shuffled)


@given(values, bounds, st.sampled_from(TESTS), bounds, st.sampled_from(TESTS))
def test_no_override_makes_a_pass_of_what_could_not_be_judged(value, bound, test, other_bound, other_test):
    evidence = document(m={"v": value})
    criteria = [{"id": "X", "title": "t", "query": "m.v", test: bound}]
    override = {test: None, other_test: other_bound, "waive": {"reason": "x", "expires": "2030-01-01"}}
    if judged(evidence, criteria)["X"]["verdict"] == "undetermined":
        assert judged(evidence, criteria, {"X": override})["X"]["verdict"] == "undetermined"


@given(
    st.lists(st.sampled_from(["pass", "fail", "undetermined", "not_applicable", "recorded", "waived", "", None])),
    st.randoms(),
)
def test_the_verdict_over_all_is_closed_and_orderless(verdicts, random):
    entries = [
        {"id": str(n), "verdict": verdict, "severity": "record" if verdict == "recorded" else "gate"}
        for n, verdict in enumerate(verdicts)
    ]
    verdict = _criteria.overall(entries)
    assert verdict == _criteria.overall(random.sample(entries, len(entries)))
    assert (verdict == "fail") == ("fail" in verdicts)
    if verdict == "pass":
        assert "pass" in verdicts
        assert set(verdicts) <= {"pass", "not_applicable", "recorded", "waived"}
