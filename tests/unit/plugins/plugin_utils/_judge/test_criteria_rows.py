# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is reduced of rows decides nothing where a row has no number, unless the criterion lets some lack it."""

from __future__ import annotations

import copy
import io
import json

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import reduce
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import rows as evidence_rows
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import query as judge_query
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import rows as judge_rows

from tests.unit.plugins.plugin_utils._judge.criteria_fake import EACH, field, one, whole

STAMP = {"job_id": "12", "attempt": 0}
MAY_LACK = {"rows": 1, "reason": "the first step has no throughput"}
REDUCTIONS = ("first", "last", "min", "max", "mean", "slope", "slope_error", "fit_first", "fit_last")


def evidence_of(rows, form="jsonl", **options):
    """Return evidence whose progress is what the reader makes of `rows`."""
    if form == "csv":
        lines = ["job_id,attempt,v", *(f"12,0,{row.get('v', '')}" for row in rows)]
    else:
        lines = [json.dumps({**STAMP, **row}) for row in rows]
    stream = io.BytesIO("".join(line + "\n" for line in lines).encode())
    return {**whole(), "progress": reduce.reduce_rows(stream, form, "12", 0, **options)}


def verdict(evidence, **criterion):
    return one(evidence, **criterion)["verdict"]


NO_NUMBERS = [
    {"v": None},
    {},
    {"v": float("nan")},
    {"v": float("-inf")},
    {"v": "NaN"},
    {"v": "1"},
    {"v": True},
    {"v": [1]},
    {"v": {"v": 1}},
    {"v": 10**400},
]


@pytest.mark.parametrize("place", [0, 2, 4])
@pytest.mark.parametrize("row", NO_NUMBERS, ids=repr)
def test_a_row_without_a_number_leaves_each_reduction_undetermined(row, place):
    rows = [{"v": 9.0 - n} for n in range(5)]
    for name in REDUCTIONS:
        query = f"progress.fields.v.{name}"
        assert verdict(evidence_of(rows), query=query, between=[-99, 99]) == "pass", name
        lacking = evidence_of([*rows[:place], row, *rows[place:]])
        assert verdict(lacking, query=query, between=[-99, 99]) == "undetermined", name
        assert verdict(lacking, query=query, present=True) == "undetermined", name
    assert verdict(lacking, query="progress.fields.v", decreasing=True) == "undetermined"
    assert verdict(lacking, query="progress.fields.v", present=True) == "undetermined"


@pytest.mark.parametrize(
    "cell", ["", " ", "nan", "inf", "-Infinity", "NaN", "n/a", "1_000", "0005", "+0", "0x1", "1.", "٣"]
)
def test_a_cell_without_a_number_does_too(cell):
    rows = [{"v": 3}, {"v": 2.5}, {"v": cell}, {"v": 2}]
    for name in REDUCTIONS:
        assert verdict(evidence_of(rows, "csv"), query=f"progress.fields.v.{name}", between=[-99, 99]) == "undetermined"


@pytest.mark.parametrize(
    "query",
    [
        "max(values(progress.fields.loss))",
        "progress.fields.loss.*",
        "progress.fields.*.max",
        "progress.fields.loss.[min, max][0]",
        "progress.fields.loss.{a: last}.a",
        "progress.fields.[loss][0].last",
        "progress.fields.values(@)[0].last",
        "progress | fields | loss | last",
        "max(progress.fields.loss.[first, last])",
        "progress.fields.loss.last > `0`",
        "[progress.fields.loss][?last > `0`].min | [0]",
        "progress.series.loss[-1][1]",
        "progress.series.loss[*][1] | max(@)",
    ],
)
def test_no_way_of_asking_goes_round_it(query):
    evidence = whole()
    evidence["progress"]["fields"] = {"loss": field(nulls=1)}
    evidence["progress"]["series"] = {"loss": [[0, 2.0], [4, 1.0]]}
    for test in ({"ge": 0}, {"eq": True}, {"finite": True}):
        assert verdict(evidence, query=query, **test) == "undetermined"
    assert verdict(evidence, query=query, present=True) != "pass"


@pytest.mark.parametrize("allowed", [{}, {"missing_at_most": {"rows": 9, "reason": "r"}}])
@pytest.mark.parametrize("nulls", [0, 5])
def test_a_reduction_of_no_number_at_all_is_none(nulls, allowed):
    evidence = whole()
    evidence["progress"]["fields"] = {"loss": field(count=0, nulls=nulls)}
    for query, test in (("progress.fields.loss.last", {"lt": 5}), ("progress.fields.loss", {"decreasing": True})):
        assert verdict(evidence, query=query, **test, **allowed) == "undetermined"


def test_what_only_counts_rows_may_be_asked_for():
    evidence = whole()
    evidence["progress"]["fields"]["loss"] = field(nulls=1, non_finite=2)
    for name, count in (("count", 5), ("nulls", 1), ("non_finite", 2), ("other", 0)):
        assert verdict(evidence, query=f"progress.fields.loss.{name}", eq=count) == "pass"


@pytest.mark.parametrize("key", ["nulls", "non_finite", "other", "count"])
@pytest.mark.parametrize("count", [None, -1, "0", True, 0.5, {"non_finite": "NaN"}])
def test_a_reduction_that_does_not_count_its_rows_decides_nothing(key, count):
    evidence = whole()
    evidence["progress"]["fields"]["loss"] = field(**{key: count})
    assert verdict(evidence, query="progress.fields.loss.last", lt=9) == "undetermined"
    del evidence["progress"]["fields"]["loss"][key]
    assert verdict(evidence, query="progress.fields.loss.last", lt=9) == "undetermined"


@pytest.mark.parametrize(("wrong", "rows"), [({"non_finite": 1, "other": 1}, 2), ({"nulls": 3, "other": 2}, 2)])
def test_how_many_rows_are_no_number_is_told(wrong, rows):
    evidence = whole()
    evidence["progress"]["fields"]["loss"] = field(**wrong)
    why = one(evidence, query="progress.fields.loss.last", lt=9)["why"]
    assert f"progress.fields.loss is not a finite number in {rows} of {5 + sum(wrong.values())} rows" in why


def test_none_may_lack_it_where_the_criterion_does_not_say():
    evidence = whole()
    evidence["progress"]["fields"]["loss"] = field(nulls=1)
    why = one(evidence, query="progress.fields.loss.last", lt=9)["why"]
    assert "progress.fields.loss is missing in 1 of 6 rows, and none may be without it" in why
    reduced = judge_rows.with_reduced_fields(evidence)["progress"]["fields"]["loss"]
    with pytest.raises(judge_rows.UndeterminedError):
        judge_rows.Missing().require_numbers(reduced)
    for ask in (judge_query.evaluate_element, lambda tree, value: judge_query.evaluate(tree, value, set())):
        with pytest.raises(judge_rows.UndeterminedError):
            ask(judge_query.parse("loss.last"), {"loss": reduced})


@pytest.mark.parametrize("made_up", [None, 5, "text", [], [1]])
@pytest.mark.parametrize("place", ["fields", "field", "groups", "group", "group fields"])
def test_rows_that_are_made_up_decide_nothing(place, made_up):
    evidence = whole()
    if place == "fields":
        evidence["gpu"]["fields"] = made_up
    elif place == "field":
        evidence["gpu"]["fields"]["util"] = made_up
    elif place == "groups":
        evidence["gpu"]["groups"] = made_up
    else:
        evidence["gpu"]["groups"]["GPU-a"] = made_up if place == "group" else {"rows": 1, "fields": made_up}
    query = "gpu.fields.util.max" if place.startswith("field") else "gpu.groups.*.fields.util.max | [0]"
    judged = one(evidence, query=query, gt=0)
    assert judged["verdict"] == "undetermined"
    assert "judging it failed" not in judged["why"]


@pytest.mark.parametrize(("uuid", "rows"), [("GPU-a", 10), ("GPU-b", 1)])
def test_a_group_that_lacks_numbers_is_named(uuid, rows):
    evidence = whole()
    evidence["gpu"]["groups"][uuid]["fields"]["util"].update(nulls=rows)
    judged = one(evidence, each={**EACH, "gt": 70})
    assert judged["verdict"] == "undetermined"
    assert f"gpu.groups.{uuid}.fields.util is missing in {rows} of {rows + 5} rows" in judged["why"]
    del evidence["gpu"]["groups"][uuid]["fields"]["util"]
    assert verdict(evidence, each={**EACH, "gt": 70}) == "undetermined"


def test_first_and_last_are_the_first_and_the_last_rows():
    evidence = evidence_of([{}, {"v": 2.0}, {"v": 0.5}, {"v": float("nan")}])
    reduced = evidence["progress"]["fields"]["v"]
    assert (reduced["first"], reduced["last"], reduced["count"]) == (None, None, 2)
    late = evidence_of([{"v": 2.0}, {"v": 0.5}, {}], group_by=None)
    may = {"missing_at_most": MAY_LACK}
    assert verdict(late, query="progress.fields.v.min", lt=1, **may) == "pass"
    assert verdict(late, query="progress.fields.v.last", lt=1, **may) == "undetermined"
    assert verdict(late, query="progress.fields.v.first", lt=9, **may) == "pass"


def test_what_rows_may_lack_is_counted_and_told():
    evidence = evidence_of([{"loss": 3.0}, *({"loss": 2.0, "v": 9.0} for _each in range(4))])
    judged = one(evidence, query="progress.fields.v.min", gt=8, missing_at_most=MAY_LACK)
    assert (judged["verdict"], judged["missing"]) == ("pass", 1)
    assert judged["why"].endswith("; missing in 1 of its rows, which is allowed: the first step has no throughput")
    judged = one(evidence, query="progress.fields.loss.min", gt=1, missing_at_most=MAY_LACK)
    assert (judged["verdict"], judged["missing"]) == ("pass", 0)
    assert "missing in" not in judged["why"]
    assert "missing" not in one(evidence, query="progress.fields.loss.min", gt=1)
    assert evidence["progress"]["fields"]["v"]["nulls"] == 1


def test_each_column_may_lack_as_many_and_all_are_counted_once():
    evidence = whole()
    for uuid, nulls in (("GPU-a", 1), ("GPU-b", 1)):
        evidence["gpu"]["groups"][uuid]["fields"]["util"].update(nulls=nulls)
    each = {**EACH, "query": "min(fields.util.[min, mean])", "gt": 0}
    judged = one(evidence, each=each, missing_at_most=MAY_LACK)
    assert (judged["verdict"], judged["missing"]) == ("pass", 2)
    evidence["gpu"]["groups"]["GPU-b"]["fields"]["util"].update(nulls=2)
    judged = one(evidence, each=each, missing_at_most=MAY_LACK)
    assert judged["verdict"] == "undetermined"
    assert "is missing in 2 of 7 rows, and at most 1 may be without it" in judged["why"]


@pytest.mark.parametrize("wrong", [{"non_finite": 1}, {"other": 1}])
def test_what_is_no_number_is_not_missing(wrong):
    evidence = whole()
    evidence["progress"]["fields"]["loss"] = field(**wrong)
    may = {"rows": 100, "reason": "x"}
    for criterion in (
        {"query": "progress.fields.loss.last", "lt": 9},
        {"query": "progress.fields.loss", "decreasing": True},
    ):
        assert verdict(evidence, missing_at_most=may, **criterion) == "undetermined"


def test_a_trend_may_lack_rows_too():
    rows = [{}, {"v": 3.0}, {"v": 2.0}, {"v": 1.0}]
    assert verdict(evidence_of(rows), query="progress.fields.v", decreasing=True, missing_at_most=MAY_LACK) == "pass"
    rows = [{}, *rows]
    assert (
        verdict(evidence_of(rows), query="progress.fields.v", decreasing=True, missing_at_most=MAY_LACK)
        == "undetermined"
    )


@pytest.mark.parametrize("of", ["own", "baseline"])
def test_the_denominator_of_a_ratio_is_held_to_it_as_well(of):
    evidence = whole()
    for run in (evidence, *evidence["baseline"]["runs"]):
        run["progress"] = copy.deepcopy(evidence["progress"])
    ratio = {"query": "metrics.throughput", "ratio_ge": {"bound": 1, "to": "progress.fields.loss.mean", "of": of}}
    assert verdict(evidence, **ratio) == "pass"
    lacking = evidence if of == "own" else evidence["baseline"]["runs"][1]
    lacking["progress"]["fields"]["loss"].update(nulls=1)
    assert verdict(evidence, **ratio) == "undetermined"


@pytest.mark.parametrize(
    "rows", [{}, {"rows": 5, "malformed": 0, "series": {}}, {"rows": 5, "malformed": 0, "fields": {}}]
)
def test_what_looks_reduced_in_another_document_is_no_reduction(rows):
    evidence = whole()
    evidence["metrics"].update(rows, falls=field(), fields={"loss": field()})
    for query in ("metrics.falls", "metrics.fields.loss"):
        assert verdict(evidence, query=query, decreasing=True) == "undetermined"
    evidence["metrics"]["falls"].update(mean=None)
    assert verdict(evidence, query="metrics.falls", finite=True) == "undetermined"


FALLING_X = [{"t": 9 - n, "v": 1.0 + n} for n in range(6)]


@pytest.mark.parametrize(
    "rows",
    [
        FALLING_X,
        [*({"t": n, "v": 9.0 - n} for n in range(6)), {"t": 2, "v": 0.0}],
        [{"t": 0, "v": 9.0 - n} for n in range(6)],
        [*({"t": n, "v": 9.0 - n} for n in range(6)), {"v": 0.0}],
        [*({"t": n, "v": 9.0 - n} for n in range(6)), {"t": "7", "v": 0.0}],
    ],
)
def test_a_trend_over_an_x_that_goes_back_or_stands_is_none(rows):
    rows = [{"t": float(n), "v": 9.0} for n in range(0)] + rows
    assert verdict(evidence_of(rows, x="t"), query="progress.fields.v", decreasing=True) == "undetermined"


def test_an_x_that_goes_back_from_one_block_to_the_next_is_seen():
    rows = [{"t": n, "v": 9.0 - n / 999} for n in range(evidence_rows.MAX_ROWS_AT_ONCE)]
    assert verdict(evidence_of(rows, x="t"), query="progress.fields.v", decreasing=True) == "pass"
    rows.append({"t": rows[-1]["t"] - 1, "v": 1.0})
    assert verdict(evidence_of(rows, x="t"), query="progress.fields.v", decreasing=True) == "undetermined"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0, 1.0], "undetermined"),
        ([0.1] * 5000, "fail"),
        ([0.1, 0.2] * 3000, "fail"),
        ([0.2, 0.1] * 3000, "undetermined"),
        ([1e308, 9e307, 8e307], "undetermined"),
        ([1e200, 9e199, 1.0], "undetermined"),
        ([3.0, 1.0, 1.0], "pass"),
        ([3.0, *[1.0] * 4999], "pass"),
        ([9.0 - n / 1000 for n in range(6000)], "pass"),
    ],
)
def test_a_trend_of_rows_is_that_of_a_list(values, expected):
    evidence = evidence_of([{"v": value} for value in values])
    evidence["metrics"]["v"] = values
    for query in ("progress.fields.v", "metrics.v"):
        assert verdict(evidence, query=query, decreasing=True) == expected


def test_the_error_of_the_slope_is_that_of_the_whole_however_many_blocks_it_took():
    rows = [{"v": (n * 7919) % 101 - n / 50} for n in range(5000)]
    values = [row["v"] for row in rows]
    reduced = evidence_of(rows)["progress"]["fields"]["v"]
    middle, mean = (len(values) - 1) / 2, sum(values) / len(values)
    sxx = sum((x - middle) ** 2 for x in range(len(values)))
    rest = sum((y - mean - reduced["slope"] * (x - middle)) ** 2 for x, y in enumerate(values))
    assert reduced["slope_error"] == pytest.approx((rest / (len(values) - 2) / sxx) ** 0.5)


@pytest.mark.parametrize("name", ["first", "last", "min", "max", "mean", "slope"])
def test_a_field_of_another_document_may_be_called_as_a_reduction_is(name):
    evidence = whole()
    evidence["metrics"][name] = 5
    evidence["metrics"]["inner"] = {name: 5}
    assert one(evidence, query=f"metrics.{name}", eq=5)["verdict"] == "pass"
    assert one(evidence, query=f"metrics.inner.{name}", eq=5)["verdict"] == "pass"


NEEDED = {"rows": 1, "malformed": 0, "fields": {}}


@pytest.mark.parametrize(
    ("document", "is_one"),
    [
        (NEEDED, True),
        ({**NEEDED, "series": {}}, True),
        ({**NEEDED, "series": {}, "groups": {}}, True),
        ({**NEEDED, "series": {}, "groups": {}, "job_id": "12"}, False),
        ({**NEEDED, "job_id": "12"}, False),
        *(({other: NEEDED[other] for other in NEEDED if other != key}, False) for key in NEEDED),
        ([*NEEDED], False),
        (None, False),
    ],
)
def test_a_file_of_rows_is_known_by_what_its_reduction_has(document, is_one):
    assert judge_rows.is_rows(document) is is_one


def test_columns_are_marked_and_series_left_out():
    rows = {**NEEDED, "fields": {"v": field()}, "series": {"v": [[0, 1]]}, "groups": {"a": {"fields": {"v": field()}}}}
    metrics = {"job_id": "12", "series": [1]}
    evidence = judge_rows.with_reduced_fields({"progress": rows, "metrics": metrics})
    assert evidence["metrics"] is metrics
    marked = evidence["progress"]
    assert set(marked) == {"rows", "malformed", "fields", "groups"}
    assert marked["fields"]["v"].name == "progress.fields.v"
    assert marked["groups"]["a"]["fields"]["v"].name == "progress.groups.a.fields.v"
    assert marked["fields"]["v"] == field()


def test_none_may_lack_a_number_unless_it_is_said():
    reduced = judge_rows.ReducedField("progress.fields.v", field(nulls=1))
    with pytest.raises(judge_rows.UndeterminedError, match="missing in 1 of 6 rows, and none may be without it"):
        judge_rows.Missing().require_numbers(reduced)
    missing = judge_rows.Missing(1)
    missing.require_numbers(reduced)
    missing.require_numbers(reduced)
    assert (missing.found, missing.columns) == (1, {"progress.fields.v": 1})
    more = judge_rows.ReducedField("progress.fields.v", field(nulls=2))
    with pytest.raises(judge_rows.UndeterminedError, match="missing in 2 of 7 rows, and at most 1 may be without it"):
        missing.require_numbers(more)
