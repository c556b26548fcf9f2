"""JSON Lines and CSV reduced."""

from __future__ import annotations

import io
import json
import math
import random

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import rows
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.opening import EvidenceError
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.reduce import reduce_rows, slope_error
from hypothesis import given
from hypothesis import strategies as st

OWN = {"job_id": "12", "attempt": 0}


def lines(*entries, own=None):
    return "".join(json.dumps({**(OWN if own is None else own), **entry}) + "\n" for entry in entries)


def reduce(content, form="jsonl", **options):
    content = content if isinstance(content, bytes) else content.encode()
    return reduce_rows(io.BytesIO(content), form, "12", 0, **options)


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
    assert field["fit_first"] == pytest.approx(mean_y + slope * (xs[0] - mean_x), rel=1e-6)
    squares = math.fsum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in zip(xs, ys))
    error = math.sqrt(squares / (size - 2) / math.fsum((x - mean_x) ** 2 for x in xs)) if size > 2 else None
    assert field["slope_error"] == (error and pytest.approx(error, rel=1e-6))
    assert (field["first"], field["last"], field["min"], field["max"]) == (ys[0], ys[-1], min(ys), max(ys))


def test_without_x_rows_are_counted_and_a_single_number_has_no_slope():
    assert reduce(lines({"y": 1}, {"y": 3}, {"y": 5}))["fields"]["y"]["slope"] == 2
    assert reduce(lines({"y": 1}))["fields"]["y"]["slope"] is None


def test_an_x_that_is_not_always_a_number_gives_no_slope():
    assert reduce(lines({"y": 1, "t": 1}, {"y": 3}), x="t")["fields"]["y"]["slope"] is None


@pytest.mark.parametrize("size", [1, 199, 200, 201, 400, 4096, 30_000])
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
        '{"job_id":"12","attempt":0,"v":[{}\n{}]}\n',
        '{"job_id":"12","attempt":0,"v":[{}\n{}]}\n{},{},{}\n',
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
        {"job_id": "12", "attempt": 0.0},
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


def told(content, form="jsonl", **options):
    with pytest.raises(EvidenceError) as problem:
        reduce(content, form, **options)
    return str(problem.value)


def test_all_that_is_told_of_a_field():
    document = reduce(lines({"v": 0, "t": "a"}, {"v": 1}, {"v": 1}))
    assert set(document) == {"rows", "malformed", "fields", "series"}
    assert set(document["fields"]) == {"v", "t"}
    error = math.sqrt((2 / 3 - 1 / 2) / 2)
    assert document["fields"]["v"] == {
        "count": 3,
        "first": 0,
        "last": 1,
        "min": 0,
        "max": 1,
        "mean": pytest.approx(2 / 3),
        "slope": 0.5,
        "slope_error": pytest.approx(error),
        "fit_first": pytest.approx(1 / 6),
        "fit_last": pytest.approx(7 / 6),
        "nulls": 0,
        "non_finite": 0,
        "other": 0,
    }
    nothing = dict.fromkeys(document["fields"]["v"])
    assert document["fields"]["t"] == {**nothing, "count": 0, "nulls": 2, "non_finite": 0, "other": 1}
    assert document["series"] == {"v": [[0, 0], [1, 1], [2, 1]]}


@pytest.mark.parametrize("values", [[1e-20], [1e-20, 3e-20]])
def test_a_small_number_is_its_own_extreme_and_not_lost(values):
    field = reduce(lines(*({"v": value} for value in values)))["fields"]["v"]
    assert (field["min"], field["max"]) == (min(values), max(values))
    assert field["mean"] == pytest.approx(sum(values) / len(values), rel=1e-9, abs=0)


def test_ends_that_are_equal_are_no_constant():
    field = reduce(lines({"v": 1}, {"v": 4}, {"v": 0}, {"v": 1}))["fields"]["v"]
    assert (field["min"], field["max"], field["mean"], field["slope"]) == (0, 4, 1.5, pytest.approx(-0.4))
    assert field["slope_error"] > 0


@pytest.mark.parametrize("size", [3, 7, 1000, 2049])
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e9 + 0.1])
def test_what_never_changes_has_exactly_no_slope(size, value):
    field = reduce(lines(*({"v": value, "t": 0.3 * n} for n in range(size))), x="t")["fields"]["v"]
    if size <= 2048:
        assert (field["slope"], field["slope_error"]) == (0, 0)
    assert field["slope"] == pytest.approx(0, abs=1e-6)


def test_a_slope_over_less_than_one_is_a_slope():
    assert reduce(lines({"v": 1, "t": 0}, {"v": 2, "t": 0.5}), x="t")["fields"]["v"]["slope"] == 2


@pytest.mark.parametrize("xs", [[0, 1, 0.5], [0, 2, 1, 3], [3, 2, 1], [1, 1, 1], [None, 1, 2], [0, "1", 2], [0, True]])
def test_an_x_that_goes_back_or_is_none_gives_no_slope(xs):
    field = reduce(lines(*({"v": n, "t": x} for n, x in enumerate(xs))), x="t")["fields"]["v"]
    assert (field["slope"], field["fit_first"], field["fit_last"], field["slope_error"]) == (None,) * 4
    assert field["mean"] == (len(xs) - 1) / 2


RISING = [float(n) for n in range(2048)]


@pytest.mark.parametrize(
    ("xs", "has_slope"),
    [
        ([*RISING, 2047.0, 2048.0], True),
        ([*RISING, 2046.5, 2049.0], False),
        ([*RISING, 5.0], False),
        ([*RISING, None, 3000.0], False),
        ([*RISING[:-1], None, 2048.0, 2049.0], False),
        ([None, *RISING[1:], 2048.0, 2049.0], False),
        ([*RISING, 5.0, *RISING, *RISING], False),
    ],
)
def test_an_x_that_goes_back_or_is_none_in_a_later_block_gives_no_slope(xs, has_slope):
    field = reduce(lines(*({"v": n, "t": x} for n, x in enumerate(xs))), x="t")["fields"]["v"]
    assert (field["slope"] is not None) == has_slope
    assert field["count"] == len(xs)
    assert field["mean"] == pytest.approx((len(xs) - 1) / 2)


def test_the_error_of_a_slope():
    assert slope_error(2, 2.0, 1.0, 0.5) is None
    assert slope_error(3, 2.0, 2 / 3, 0.5) == pytest.approx(math.sqrt(1 / 12))
    assert slope_error(5, 2.0, 5.0, 1.0) == pytest.approx(math.sqrt(0.5))
    assert slope_error(3, 2.0, 0.0, 0.5) == 0
    assert slope_error(3, 1.0, math.inf, math.inf) == math.inf


def test_only_so_many_fields_have_a_series():
    document = reduce(lines({f"f{n:02}": n for n in range(40)}))
    assert list(document["series"]) == [f"f{n:02}" for n in range(32)]
    assert len(document["fields"]) == 40


def test_the_most_fields_and_groups_that_there_may_be():
    assert len(reduce(lines({f"f{n}": 1 for n in range(256)}))["fields"]) == 256
    assert "more than 256 different fields" in told(lines({f"f{n}": 1 for n in range(257)}))
    groups = [{"g": n} for n in range(1024)]
    assert len(reduce(lines(*groups), group_by="g")["groups"]) == 1024
    assert "more than 1024 values of g" in told(lines(*groups, {"g": 1024}), group_by="g")


@pytest.mark.parametrize("later", [{"a": 1, "b": 5}, {"b": 5}])
def test_a_field_that_begins_in_a_later_block_is_found(later):
    fields = reduce(lines(*({"a": 1} for _each in range(2048)), later))["fields"]
    assert (fields["b"]["count"], fields["b"]["nulls"], fields["b"]["first"]) == (1, 2048, None)
    assert fields["a"]["count"] + fields["a"]["nulls"] == 2049


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"job_id": "13", "attempt": 0}, 'job "13" attempt 0, not by job 12 attempt 0'),
        ({"job_id": "12", "attempt": 2}, 'job "12" attempt 2, not by'),
        ({"job_id": "12", "attempt": True}, "attempt true, not by"),
        ({"job_id": "12", "attempt": 0.0}, "attempt 0, not by"),
    ],
)
def test_who_wrote_a_foreign_row_is_told(own, words):
    assert words in told(lines({}) + lines({}, own=own))


def test_rows_are_read_together_and_singly_only_where_one_is_wrong(monkeypatch):
    assert rows._parse_together([b'{"a": 1}', b'{"a": 2}', b"{}"]) == [{"a": 1}, {"a": 2}, {}]
    assert rows._parse_together([b'{"a": 1}']) == [{"a": 1}]
    assert rows._parse_together([b'{"a": 1}', b"5"]) is None
    content = lines(*({"v": n} for n in range(5000)))
    monkeypatch.setattr(rows, "_parse_singly", None)
    assert reduce(content)["rows"] == 5000


def test_blocks_of_which_no_row_is_left_end_nothing():
    assert reduce(lines(*({"v": n} for n in range(2048))) + "oops\n")["fields"]["v"]["last"] == 2047
    document = reduce("job_id,attempt,v\n" + "12,0,7\n" * 2048, "csv")
    assert (document["rows"], document["malformed"], document["fields"]["v"]["last"]) == (2048, 0, 7)


def test_csv_is_taken_in_blocks_too():
    content = b"job_id,attempt,v\n" + b"12,0,7\n" * 2048 + b"\n12,0\n" + b"12,0,7\n" * 100
    assert [(len(block), bad) for block, bad in rows._csv_blocks(io.BytesIO(content))] == [(2048, 0), (100, 1)]


def test_a_blank_line_in_csv_is_no_row():
    document = reduce("job_id,attempt,v\n12,0,7\n\n12,0,8\n", "csv")
    assert (document["rows"], document["malformed"]) == (2, 0)


def test_a_long_file_may_have_long_lines_and_no_longer_ones():
    start, end = '{"job_id": "12", "attempt": 0, "v": "', '"}'
    longest = start + "x" * ((1 << 20) - len(start) - len(end)) + end
    assert reduce(longest + "\n")["rows"] == 1
    assert refused(longest[:-2] + "x" * (1 << 19)) == "too_large"
    assert refused("job_id,attempt\n12,0," + "1," * (1 << 20) + "\n", "csv") == "too_large"
    assert reduce(CSV + "12,0,1,3.5,x\n" * (1 << 17), "csv")["rows"] == 1 << 17


class Chunks:
    """A stream that gives one part at a time."""

    def __init__(self, *parts):
        self.parts = list(parts)

    def read(self, _size):
        return self.parts.pop(0) if self.parts else b""


@pytest.mark.parametrize(
    ("parts", "fits"),
    [
        ([b"x" * 10], True),
        ([b"x" * 11], False),
        ([b"x" * 6, b"x" * 4], True),
        ([b"x" * 6, b"x" * 5], False),
        ([b"x" * 5, b"x" * 5, b"x"], False),
        ([b"x\n", b"x" * 10], True),
        ([b"x\n", b"x" * 11], False),
        ([b"a\nxxx", b"x" * 7], True),
        ([b"a\nxxx", b"x" * 8], False),
        ([b"x" * 9, b"x\nx", b"x" * 9], True),
        ([b"x" * 9, b"x\nx", b"x" * 10], False),
        ([b"a\nb\nc\nd\ne\nf\ng\n"], True),
    ],
)
def test_the_length_of_a_csv_line_is_kept_over_what_is_read(monkeypatch, parts, fits):
    monkeypatch.setattr(rows, "MAX_LINE", 10)
    text = rows._Text(Chunks(*parts))
    for part in parts[:-1]:
        assert text.readinto(bytearray(20)) == len(part)
    if fits:
        assert text.readinto(bytearray(20)) == len(parts[-1])
        return
    with pytest.raises(EvidenceError, match="longer than 10 bytes"):
        text.readinto(bytearray(20))


def test_the_end_of_a_row_that_was_cut_off_is_shown():
    row = '{"job_id":"12","attempt":0,"v":"' + "a" * 200 + "b" * 80
    words = told(lines({"v": 1}) + row)
    assert "b" * 80 in words
    assert "a" * 5 not in words.split(": ", 1)[1]
    assert "ab" not in words.split(": ", 1)[1]


def test_a_group_goes_on_in_the_next_block():
    group = reduce(lines(*({"g": "a", "v": n} for n in range(3000))), group_by="g")["groups"]["a"]
    assert (group["rows"], group["fields"]["v"]["first"], group["fields"]["v"]["count"]) == (3000, 0, 3000)
