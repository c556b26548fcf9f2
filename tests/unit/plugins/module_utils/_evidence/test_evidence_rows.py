"""JSON Lines and CSV reduced."""

from __future__ import annotations

import io
import json
import math
import random

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _evidence_rows as rows
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence_io import EvidenceError
from hypothesis import given
from hypothesis import strategies as st

OWN = {"job_id": "12", "attempt": 0}


def lines(*entries, own=None):
    return "".join(json.dumps({**(OWN if own is None else own), **entry}) + "\n" for entry in entries)


def reduce(content, form="jsonl", **options):
    content = content if isinstance(content, bytes) else content.encode()
    return rows.reduce_rows(io.BytesIO(content), form, "12", 0, **options)


def refused(content, form="jsonl", **options):
    with pytest.raises(EvidenceError) as problem:
        reduce(content, form, **options)
    return problem.value.problem


def test_a_field_is_reduced():
    document = reduce(lines({"loss": 3}, {"loss": 2.0}, {"loss": None}, {"loss": 1}, {"loss": "x"}, {"loss": True}, {}))
    assert document["rows"] == 7
    assert document["malformed"] == 0
    field = document["fields"]["loss"]
    assert field["count"] == 3
    assert (field["first"], field["last"], field["min"], field["max"], field["mean"]) == (3, None, 1, 3, 2)
    assert (field["nulls"], field["other"], field["non_finite"]) == (2, 2, 0)
    assert "job_id" not in document["fields"]


def test_numbers_that_are_not_finite_are_counted_and_kept_out():
    content = lines({"v": 1}) + '{"job_id":"12","attempt":0,"v":NaN}\n{"job_id":"12","attempt":0,"v":1e999}\n'
    content += lines({"v": "NaN"}, {"v": "-Infinity"}, {"v": 10**400}, {"v": 3})
    field = reduce(content)["fields"]["v"]
    assert (field["count"], field["non_finite"], field["other"], field["max"]) == (2, 4, 1, 3)


def test_a_field_that_begins_late_has_nulls_before():
    field = reduce(lines({"a": 1}, {"a": 1, "b": 5}))["fields"]["b"]
    assert (field["count"], field["nulls"]) == (1, 1)
    many = lines(*({"a": 1} for _each in range(5000)), {"b": 5})
    field = reduce(many)["fields"]["b"]
    assert (field["count"], field["nulls"]) == (1, 5000)


@pytest.mark.parametrize("size", [2, 3, 2047, 2048, 2049, 10_000])
def test_the_line_is_that_of_least_squares_however_many_blocks_it_took(size):
    noise = random.Random(size)
    xs = [1.7e9 + n * 0.5 for n in range(size)]
    ys = [9 - 0.001 * n + noise.random() for n in range(size)]
    field = reduce(lines(*({"t": x, "y": y} for x, y in zip(xs, ys))), x="t")["fields"]["y"]
    mean_x, mean_y = math.fsum(xs) / size, math.fsum(ys) / size
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / math.fsum((x - mean_x) ** 2 for x in xs)
    assert field["slope"] == pytest.approx(slope, rel=1e-6, abs=1e-9)
    assert field["mean"] == pytest.approx(mean_y)
    assert field["fit_last"] == pytest.approx(mean_y + slope * (xs[-1] - mean_x), rel=1e-6)
    assert (field["first"], field["last"], field["min"], field["max"]) == (ys[0], ys[-1], min(ys), max(ys))


def test_without_x_rows_are_counted_and_a_single_number_has_no_slope():
    assert reduce(lines({"y": 1}, {"y": 3}, {"y": 5}))["fields"]["y"]["slope"] == 2
    assert reduce(lines({"y": 1}))["fields"]["y"]["slope"] is None


def test_an_x_that_is_not_always_a_number_gives_no_slope():
    assert reduce(lines({"y": 1, "t": 1}, {"y": 3}), x="t")["fields"]["y"]["slope"] is None


@pytest.mark.parametrize("size", [1, 199, 200, 201, 4096, 30_000])
def test_a_series_is_thinned_evenly_and_keeps_its_ends(size):
    series = reduce(lines(*({"y": n * 2} for n in range(size))))["series"]["y"]
    assert len(series) <= 200
    assert series[0] == [0, 0]
    assert series[-1] == [size - 1, (size - 1) * 2]
    steps = {right[0] - left[0] for left, right in zip(series, series[1:-1])}
    assert len(steps) <= 1


def test_groups_are_reduced_apart():
    document = reduce(lines({"uuid": "a", "u": 80}, {"uuid": "b", "u": 10}, {"uuid": "a", "u": 90}), group_by="uuid")
    assert {name: group["fields"]["u"]["mean"] for name, group in document["groups"].items()} == {"a": 85, "b": 10}
    assert document["groups"]["a"]["rows"] == 2
    assert document["malformed"] == 0


@pytest.mark.parametrize("late", [0, 3000])
def test_groups_that_are_written_alike_are_duplicates(late):
    rows = [{"g": 1, "v": 1}, *({"g": 2, "v": 1} for _each in range(late)), {"g": "1", "v": 2}]
    assert refused(lines(*rows), group_by="g") == "duplicate_key"
    assert set(reduce(lines(*rows[:-1]), group_by="g")["groups"]) == ({"1", "2"} if late else {"1"})


def test_rows_of_no_group_are_malformed():
    assert reduce(lines({"uuid": "a"}, {"uuid": None}, {}, {"uuid": True}), group_by="uuid")["malformed"] == 3


def test_malformed_lines_are_counted_and_the_others_kept():
    document = reduce(lines({"v": 1}) + "oops\n[1]\n5\n\n   \n" + lines({"v": 2}))
    assert (document["rows"], document["malformed"]) == (2, 3)
    assert document["fields"]["v"]["count"] == 2


@pytest.mark.parametrize(
    "content",
    [
        '{"job_id":"12","attempt":0,"v":1},{"job_id":"12","attempt":0,"v":2}\n{"job_id":"12","attempt":0\n"v":3}\n',
        '{"job_id":"12","attempt":0,"v":[{}\n{}]}\n{},{}\n',
        '{"job_id":"12","attempt":0,"v":1}]\n[{"job_id":"12","attempt":0,"v":1}\n',
        '{"job_id":"12","attempt":0,"v":"\n"}\n',
    ],
)
def test_lines_that_are_only_right_when_joined_are_malformed(content):
    own = lines({"v": 0})
    document = reduce(own + content)
    assert document["malformed"] >= 2
    assert document["rows"] == 1


def test_a_last_row_that_was_cut_off_is_truncation_and_a_whole_one_without_its_end_is_not():
    whole = lines({"v": 1}, {"v": 2})
    assert reduce(whole[:-1])["rows"] == 2
    for cut in range(2, 20):
        assert refused(whole[:-cut]) == "truncated"


@pytest.mark.parametrize("content", ["", "\n\n", "oops\n", "   \n"])
def test_a_file_without_rows_is_empty(content):
    assert refused(content) == "empty"


@pytest.mark.parametrize(
    "own",
    [
        {},
        {"job_id": "13", "attempt": 0},
        {"job_id": "12", "attempt": 1},
        {"job_id": 12, "attempt": 0},
        {"job_id": "12", "attempt": True},
        {"job_id": "12", "attempt": False},
        {"job_id": ["12"], "attempt": 0},
        {"job_id": "12"},
    ],
)
@pytest.mark.parametrize("position", [0, 2500, 4999])
def test_one_foreign_row_makes_the_file_foreign(own, position):
    entries = [lines({"v": n}) for n in range(5000)]
    entries[position] = lines({"v": 1}, own=own)
    assert refused("".join(entries)) == "foreign"


def test_a_row_deeper_than_python_goes_is_malformed():
    deep = '{"job_id":"12","attempt":0,"v":' + "[" * 100_000 + "]" * 100_000 + "}\n"
    assert reduce(lines({"v": 1}) + deep)["malformed"] == 1


def test_what_has_no_bound_is_refused():
    assert refused(b'{"v": "' + b"x" * (3 << 20)) == "too_large"
    assert refused(lines({f"f{n}": 1 for n in range(300)})) == "too_large"
    assert refused(lines(*({"g": n} for n in range(2000))), group_by="g") == "too_large"
    assert refused(b"job_id,attempt\n12,0" + b"x" * (3 << 20), "csv") in ("too_large", "not_csv")


def test_bytes_that_are_not_utf8_are_a_malformed_line():
    assert reduce(lines({"v": 1}).encode() + b'{"v": "\xff"}\n')["malformed"] == 1


CSV = "job_id,attempt,step,loss,name\n"


def test_csv_is_reduced_like_json_lines():
    document = reduce(CSV + '12,0,1,3.5,"a, b"\n12,0,2,2.5,x\n12,0,3,,\n12,0,4,nan,\n', "csv", x="step")
    assert document["rows"] == 4
    loss = document["fields"]["loss"]
    assert (loss["count"], loss["slope"], loss["nulls"], loss["non_finite"]) == (2, -1, 1, 1)
    assert document["fields"]["name"]["other"] == 2


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("12", 12),
        (" 12 ", 12),
        ("-1.5", -1.5),
        ("0.05", 0.05),
        ("1e3", 1000),
        ("1.5E-3", 0.0015),
        ("2e+2", 200),
    ],
)
def test_a_cell_is_a_number_as_json_writes_one(cell, value):
    field = reduce(f"job_id,attempt,v\n12,0,{cell}\n", "csv")["fields"]["v"]
    assert (field["count"], field["first"], field["last"]) == (1, value, value)


@pytest.mark.parametrize(
    "cell",
    [
        "1_000",
        "0005",
        "00",
        "-01",
        "+0",
        "+1",
        "1.",
        ".5",
        "1e",
        "0x10",
        "٣",
        "1 000",
        "1,5",
        "--1",
        "true",
        "1" * 5000,
    ],
)
def test_any_other_cell_is_text(cell):
    field = reduce(f'job_id,attempt,v\n12,0,"{cell}"\n', "csv")["fields"]["v"]
    assert (field["count"], field["other"], field["first"]) == (0, 1, None)


@pytest.mark.parametrize("cell", ["nan", "NaN", "-nan", "inf", "+Inf", "-Infinity", "INFINITY", "1e999", "-1e999"])
def test_a_cell_may_say_that_it_is_not_finite(cell):
    field = reduce(f"job_id,attempt,v\n12,0,{cell}\n", "csv")["fields"]["v"]
    assert (field["count"], field["non_finite"], field["last"]) == (0, 1, None)


@pytest.mark.parametrize("own", ["012,0", "12.0,0", "+12,0", "12,00", "12,0.5", "12,", ",0"])
def test_a_csv_row_of_a_job_that_is_written_another_way_is_foreign(own):
    assert refused(f"job_id,attempt,v\n{own},1\n", "csv") == "foreign"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "not_csv"),
        ("a,a\n1,2\n", "not_csv"),
        (",b\n1,2\n", "not_csv"),
        (CSV, "empty"),
        (CSV + "13,0,1,1,x\n", "foreign"),
        ("step,loss\n1,2\n", "foreign"),
        (CSV + "12,0,1,3.5,x\n12,0,2,2", "truncated"),
        (CSV + "12,0,1,3.5,x", "truncated"),
        (CSV.encode() + b"12,0,1,3.5,\xff\n", "not_csv"),
        (CSV + '12,0,1,3.5,"open', "not_csv"),
        (CSV + "12,0,1,3.5,x\0\n", "not_csv"),
    ],
)
def test_csv_that_is_no_evidence(content, problem):
    assert refused(content, "csv") == problem


def test_a_csv_row_of_the_wrong_length_is_malformed():
    assert reduce(CSV + "12,0,1,2,x\n12,0,1\n12,0,1,2,x\n", "csv")["malformed"] == 1


@given(
    st.lists(
        st.one_of(st.integers(-1000, 1000), st.floats(-1e6, 1e6), st.none(), st.booleans(), st.text(max_size=3)),
        min_size=1,
    )
)
def test_every_row_is_counted_once(values):
    field = reduce(lines(*({"v": value} for value in values)))["fields"]["v"]
    assert field["count"] + field["nulls"] + field["non_finite"] + field["other"] == len(values)
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    assert field["count"] == len(numbers)
    if numbers:
        assert (field["min"], field["max"]) == (min(numbers), max(numbers))


@given(st.binary(max_size=300))
def test_no_bytes_break_it(content):
    for form in ("jsonl", "csv"):
        with pytest.raises(EvidenceError):
            reduce(content, form)
