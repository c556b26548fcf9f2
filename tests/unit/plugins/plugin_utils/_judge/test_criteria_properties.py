"""What holds of the judge for any evidence whatever."""

from __future__ import annotations

import copy
import datetime
import json
import math

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import spec
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import verdicts as judge_verdicts
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.plugins.plugin_utils._judge.criteria_fake import is_whole, whole, with_stored

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
    parts = {name: stamped(name, part) for name, part in parts.items()}
    return {"schema": 1, "job": JOB, "context": {}, "logs": {}, "artifacts": {}, "files": {}, "problems": [], **parts}


def stamped(name, part):
    """What a job writes says which job it was."""
    return {"job_id": "12", "attempt": 0, **part} if name == "m" and isinstance(part, dict) else part


def judged(evidence, criteria, overrides=None):
    read = spec.read(criteria, overrides, workload="W")
    return {entry["id"]: entry for entry in judge_verdicts.judge(evidence, read, today=TODAY)}


OF_EVERY_KIND = [
    {"id": "Q", "title": "t", "query": "m.v", "gt": 0, "applies_when": {"accelerator": ["cuda"]}},
    {"id": "R", "title": "t", "query": "m.v", "ratio_ge": {"bound": 1, "to": "m.v"}},
    {"id": "E", "title": "t", "each": {"over": "m", "query": "v", "count": "job.gpus", "gt": 0}},
    {"id": "L", "title": "t", "log": ["stdout"], "absent": "cuda_errors"},
    {"id": "A", "title": "t", "artifact": "a", "exists": True},
]


def by(criteria):
    """Sort what was judged in the order of these criteria; the job's own outcome comes first."""
    places = {criterion["id"]: place for place, criterion in enumerate(criteria)}
    return lambda item: places.get(item[0], -1)


def is_number(value):
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1000


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


@given(st.lists(values, max_size=5), st.integers(1, 5), bounds, st.booleans())
def test_each_passes_only_with_enough_numbers_that_all_meet_the_bound(elements, count, bound, more):
    each = {"over": "m.list", "query": "@", "at_least" if more else "count": count, "ge": bound}
    verdict = judged(document(m={"list": elements}), [{"id": "X", "title": "t", "each": each}])["X"]["verdict"]
    enough = len(elements) >= count if more else len(elements) == count
    assert (verdict == "pass") == (enough and all(is_number(item) and item >= bound for item in elements))


@given(values, values, values)
def test_a_trend_passes_only_over_numbers(first, second, third):
    criterion = {"id": "X", "title": "t", "query": "m.v", "decreasing": True}
    verdict = judged(document(m={"v": [first, second, third]}), [criterion])["X"]["verdict"]
    if is_number(first) and is_number(second) and is_number(third):
        assert verdict != "pass" or first > third
    else:
        assert verdict == "undetermined"


@given(
    st.dictionaries(
        st.sampled_from(["job", "problems", "logs", "artifacts", "context", "files", "m", "baseline"]), values
    )
)
def test_no_evidence_whatever_breaks_the_judge_or_is_mutated_and_twice_is_the_same(evidence):
    first = judged(evidence, OF_EVERY_KIND)
    assert repr(judged(evidence, OF_EVERY_KIND)) == repr(first)
    assert all(entry["verdict"] != "pass" for entry in first.values())
    json.dumps(list(first.values()), allow_nan=False)


@given(st.lists(st.tuples(values, bounds), max_size=5), st.dictionaries(st.sampled_from("va"), values), st.randoms())
def test_the_order_of_criteria_does_not_matter(pairs, others, random):
    criteria = [
        {"id": f"C{n}", "title": "t", "query": f"m.v{n}", "ge": bound} for n, (value, bound) in enumerate(pairs)
    ] + OF_EVERY_KIND
    evidence = document(
        context={"accelerator": "cuda"},
        m={**others, **{f"v{n}": value for n, (value, bound) in enumerate(pairs)}},
        baseline={"m": others},
        logs={"stdout": others.get("v")},
        artifacts={"a": others.get("a")},
    )
    shuffled = random.sample(criteria, len(criteria))
    assert repr(judged(evidence, criteria)) == repr(dict(sorted(judged(evidence, shuffled).items(), key=by(criteria))))


@given(values, bounds, st.sampled_from(TESTS), bounds)
def test_no_override_makes_a_pass_of_what_could_not_be_judged(value, bound, test, other_bound):
    evidence = document(m={"v": value})
    criteria = [{"id": "X", "title": "t", "query": "m.v", test: bound}]
    override = {test: other_bound, "waive": {"reason": "x", "expires": "2030-01-01"}}
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
    verdict = judge_verdicts.overall(entries)
    assert verdict == judge_verdicts.overall(random.sample(entries, len(entries)))
    assert (verdict == "fail") == ("fail" in verdicts)
    if verdict == "pass":
        assert "pass" in verdicts
        assert set(verdicts) <= {"pass", "not_applicable", "recorded", "waived"}


# An oracle of its own for each test over one value: it knows nothing of how the judge goes about it.

HUGE = [10**400, -(10**400), 2**1000, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf")]
TEXTS = ["1", "1e9", "0x10", "٣", "True", "NaN", "Infinity", "-Infinity", "null", "", " 1 "]


def nested(depth, kind):
    value = 1.0
    for _level in range(depth):
        value = [value] if kind == "list" else {"v": value}
    return value


anything = (
    st.recursive(
        scalars | st.sampled_from([*HUGE, *TEXTS, {"non_finite": "NaN"}, {"non_finite": "Infinity"}]),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.text(max_size=4) | st.sampled_from(["count", "non_finite", "slope"]), inner, max_size=4
            )
        ),
    )
    | st.builds(nested, st.integers(60, 120), st.sampled_from(["list", "object"]))
    | st.fixed_dictionaries(
        {
            key: st.integers(-2, 3) | scalars
            for key in ("count", "first", "last", "slope", "nulls", "non_finite", "other")
        }
    )
)
low_and_high = st.tuples(bounds, bounds).map(sorted)


def oracle(test, bound, value):
    """Return whether `value` satisfies `test` beyond doubt; for a list of tests that take one number or one word."""
    if test == "eq":
        return type(value) is type(bound) is str and value == bound and not value.lstrip("-").startswith(("NaN", "Inf"))
    if not is_number(value):
        return False
    if test == "between":
        return bound[0] <= value <= bound[1]
    if test == "within":
        return bound["reference"] - bound["absolute"] <= value <= bound["reference"] + bound["absolute"]
    if test == "ratio_le":
        return value >= 0 and value / 2 <= bound["bound"]
    return {"gt": value > bound, "ge": value >= bound, "lt": value < bound, "le": value <= bound}[test]


tests_of_one_value = st.one_of(
    st.tuples(st.sampled_from(TESTS), bounds),
    st.tuples(st.just("between"), low_and_high),
    st.tuples(st.just("within"), st.fixed_dictionaries({"reference": bounds, "absolute": st.floats(0, 1e6)})),
    st.tuples(
        st.just("ratio_le"),
        st.fixed_dictionaries({"bound": st.floats(1e-6, 1e6), "to": st.just("job.gpus"), "of": st.just("own")}),
    ),
    st.tuples(st.just("eq"), st.sampled_from(["1", "True", "cuda"])),
)


@given(anything, tests_of_one_value)
@example("1", ("eq", "1"))
@example(1, ("eq", "1"))
@example(True, ("eq", "True"))
@example(True, ("ge", 1.0))
@example(False, ("ge", 0.0))
@example("NaN", ("le", 0.0))
@example(10**400, ("gt", 0.0))
@example(float("-inf"), ("lt", 0.0))
@example(-1, ("ratio_le", {"bound": 1.0, "to": "job.gpus", "of": "own"}))
def test_no_json_value_whatever_passes_unless_it_satisfies_the_bound(value, test_and_bound):
    test, bound = test_and_bound
    verdict = judged(document(m={"v": value}), [{"id": "X", "title": "t", "query": "m.v", test: bound}])["X"]["verdict"]
    assert (verdict == "pass") == oracle(test, bound, value)


def whole_leaves(value):
    """Return whether all leaves are there: none is null, empty or a number that is not finite."""
    if value is None or value in ("", [], {}) or value in ("NaN", "Infinity", "-Infinity"):
        return False
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict) and list(value) == ["non_finite"] and isinstance(value["non_finite"], str):
        return False
    if isinstance(value, (list, dict)):
        return all(whole_leaves(item) for item in (value.values() if isinstance(value, dict) else value))
    return True


@given(anything)
def test_only_what_is_whole_is_present(value):
    verdict = judged(document(m={"v": value}), [{"id": "X", "title": "t", "query": "m.v", "present": True}])["X"][
        "verdict"
    ]
    assert verdict == ("pass" if whole_leaves(value) else "undetermined")


@given(anything, st.sampled_from(["decreasing", "finite", "present"]))
def test_judging_changes_nothing_and_twice_is_the_same(value, test):
    evidence = document(m={"v": value})
    before = copy.deepcopy(evidence)
    criteria = [{"id": "X", "title": "t", "query": "m.v", test: True}]
    first = judged(evidence, criteria)
    assert repr(evidence) == repr(before)
    assert repr(judged(evidence, criteria)) == repr(first)
    if isinstance(value, (str, bool)) or value is None:
        assert test == "present" or first["X"]["verdict"] in ("fail", "undetermined")
    json.dumps(first, allow_nan=False)


@given(st.dictionaries(st.sampled_from(["state", "exit_code", "signal", "flags", "steps", "nodes", "gpus"]), anything))
def test_no_job_whatever_passes_unless_it_is_completed_with_zero(change):
    job = {**JOB, **change}
    verdict = judged(document(job=job), [])["JOB"]["verdict"]
    clean = job["state"] == "COMPLETED" and job["exit_code"] == 0 and is_whole(job["exit_code"])
    if verdict == "pass":
        assert clean
        assert not job.get("flags")
        assert job["signal"] is None or (is_whole(job["signal"]) and job["signal"] == 0)
        assert job["steps"] is None or all(step["state"] == "COMPLETED" for step in job["steps"])


@given(anything, anything)
def test_no_log_whatever_passes_unless_it_was_searched_to_its_end(end, counts):
    log = {"path": "/o", "bytes": 1, "hits": {"oom": []}, "counts": {"oom": counts}, "end": end}
    criterion = {"id": "X", "title": "t", "log": ["stdout"], "absent": "oom"}
    verdict = judged(document(logs={"stdout": log}), [criterion])["X"]["verdict"]
    whole = isinstance(end, dict) and (end.get("job_id"), end.get("attempt"), end.get("exit_code")) == ("12", 0, 0)
    assert verdict != "pass" or (whole and is_whole(counts) and counts == 0)


@given(anything)
def test_no_artifact_whatever_exists_without_a_size(artifact):
    criterion = {"id": "X", "title": "t", "artifact": "a", "exists": True}
    verdict = judged(document(artifacts={"a": artifact}), [criterion])["X"]["verdict"]
    size = artifact.get("size") if isinstance(artifact, dict) else None
    assert (verdict == "pass") == (is_whole(size) and size >= 1)


RATIO = {"id": "X", "title": "t", "query": "metrics.throughput"}


def against(evidence, test, bound):
    return judged(evidence, [{**RATIO, test: {"bound": bound, "to": "metrics.throughput"}}])["X"]


def meets(test, value, bound):
    return value >= bound if test == "ratio_ge" else value <= bound


near = st.floats(90, 110) | st.integers(90, 110)


@given(near | anything, near | anything, st.sampled_from(["ratio_ge", "ratio_le"]), st.floats(1.6, 2))
@example(95, 105, "ratio_ge", 1.8)
@example(10**400, 10**400, "ratio_le", 2.0)
@example(1e308, 1e308, "ratio_le", 2.0)
@example(True, True, "ratio_ge", 1.6)
@example(-100, -100, "ratio_le", 2.0)
def test_no_pair_of_runs_passes_unless_it_is_steady_and_satisfies_the_bound(before, after, test, bound):
    evidence = whole()
    for run, value in zip(evidence["baseline"]["runs"], (before, after)):
        run["metrics"]["throughput"] = value
    verdict = against(evidence, test, bound)["verdict"]
    if all(is_number(value) and value > 0 for value in (before, after)):
        mean = before / 2 + after / 2
        steady = abs(before - after) / mean
        if abs(steady - 0.1) < 1e-9 or abs(180 / mean - bound) < 1e-9:
            return  # so near to the bound that the last digit decides
        assert verdict == ("undetermined" if steady > 0.1 else "pass" if meets(test, 180 / mean, bound) else "fail")
    else:
        assert verdict == "undetermined"


@given(anything | st.fixed_dictionaries({"source": st.sampled_from(["legs", "stored"]), "runs": st.lists(anything)}))
def test_no_baseline_whatever_that_is_made_up_decides_anything(baseline):
    for test in ("ratio_ge", "ratio_le"):
        entry = against({**whole(), "baseline": baseline}, test, 1e-9)
        assert entry["verdict"] == "undetermined"
        assert "judging it failed" not in entry["why"]
        json.dumps(entry, allow_nan=False)


def paths(value, prefix=()):
    """Return where something stands in `value`."""
    found = [prefix] if prefix else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [path for key, item in items for path in paths(item, (*prefix, key))]


def assert_it_is_a_measure(own, run):
    """What must hold of a run that decided anything, said once more."""
    assert run["job"]["state"] == "COMPLETED"
    assert is_whole(run["job"]["exit_code"])
    assert run["job"]["exit_code"] == 0
    if own["baseline"]["source"] == "legs":
        assert run["job"] == own["job"]
        assert is_whole(run["leg"]["exit_code"])
        assert run["leg"]["exit_code"] == 0
        assert set(run["leg"]["nodes"]) == {"compute01"}
    else:
        assert run["job"]["ended"] <= own["job"]["started"]
        assert set(run["job"]["nodes"] or [run["provenance"]["node"]]) == {"compute01"}
    assert run["job"]["name"] == own["job"]["name"] == "training"
    its, mine = run["metrics"], own["metrics"]
    assert is_whole(its["world_size"])
    assert 1 <= its["world_size"] < mine["world_size"]
    assert is_whole(its["batch_per_rank"])
    assert its["batch_per_rank"] == mine["batch_per_rank"]
    assert is_number(its["steady"]["seconds"])
    assert its["steady"]["seconds"] >= own["legs"]["steady_seconds"]
    assert run["metrics"]["gpu_uuids"]
    assert set(run["metrics"]["gpu_uuids"]) <= set(own["metrics"]["gpu_uuids"])
    for path in (("driver_version",), ("runtime", "lock_sha256"), ("data", "files")):
        its, mine = run["provenance"], own["provenance"]
        for key in path:
            its, mine = its[key], mine[key]
        assert its == mine
    assert run["provenance"].get("container") is None
    assert is_number(run["metrics"]["throughput"])
    assert run["metrics"]["throughput"] > 0


@given(st.sampled_from(["legs", "stored"]), st.data())
def test_no_change_to_a_baseline_decides_anything_unless_it_is_still_a_measure(source, data):
    evidence = whole() if source == "legs" else with_stored(whole())
    runs = evidence["baseline"]["runs"]
    place = run = runs[data.draw(st.integers(0, len(runs) - 1))]
    path = data.draw(st.sampled_from(paths(run)))
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = data.draw(near | anything)
    entry = against(evidence, "ratio_ge", 1.8)
    assert "judging it failed" not in entry["why"]
    if entry["verdict"] != "undetermined":
        for one in runs:
            assert_it_is_a_measure(evidence, one)
        mean = sum(one["metrics"]["throughput"] for one in runs) / len(runs)
        assert (entry["verdict"] == "pass") == (entry["value"] >= 1.8)
        assert math.isclose(entry["value"], 180 / mean)
