"""What counts as a number, and how values are shown."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars


@pytest.mark.parametrize("value", [0, -1, 1.5, 2**1000 - 1, -0.0])
def test_numbers(value):
    assert scalars.is_number(value)
    assert scalars.number(value) == value


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        "1",
        "NaN",
        [],
        [1],
        {},
        {"non_finite": "NaN"},
        float("nan"),
        float("inf"),
        2**1000,
        -(2**1000),
    ],
)
def test_no_numbers(value):
    assert not scalars.is_number(value)
    with pytest.raises(scalars.NotANumberError):
        scalars.number(value)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (0.1 + 0.2, "0.3"),
        (0.99995, "0.99995"),
        (12345678, "12345678"),
        (10**18, "an integer of 60 bits"),
        (10**18 - 1, "9" * 18),
        ("a\x1b[2J\nb", '"a\ufffd[2J b"'),
        ("x" * 298, '"' + "x" * 298 + '"'),
        ("x" * 299, '"' + "x" * 298 + "…"),
        (dict.fromkeys("abcdef"), "{a: null, b: null, c: null, d: null, e: null, f: null}"),
        (dict.fromkeys("abcdefg"), "{a: null, b: null, c: null, d: null, e: null, f: null, …}"),
        ([1] * 8, "[1, 1, 1, 1, 1, 1, …]"),
        ({1}, "{1}"),
        ("Infinity", "Infinity"),
        ({"non_finite": "NaN", "b": 1}, "{non_finite: NaN, b: 1}"),
        ([1] * 6, "[1, 1, 1, 1, 1, 1]"),
        ([1] * 7, "[1, 1, 1, 1, 1, 1, …]"),
        ({"a": None}, "{a: null}"),
        ({"non_finite": "-Infinity"}, "-Infinity"),
        (float("nan"), "nan"),
    ],
)
def test_values_are_shown_on_one_printable_line(value, shown):
    assert scalars.show(value) == shown


def test_a_value_for_a_report_is_bounded_and_keeps_its_kind():
    assert scalars.bounded([True, 1, 1.5, None, "x"]) == [True, 1, 1.5, None, "x"]
    assert scalars.bounded(True) is True
    assert scalars.bounded(list(range(25))) == [*range(20), "… 5 more"]
    assert scalars.bounded({str(n): n for n in range(25)})["…"] == "5 more"
    assert scalars.bounded("x" * 300) == "x" * 300
    assert len(scalars.bounded("x" * 301)) == 300
    assert scalars.bounded([[[[1, None, {}]]]]) == [[[[1, None, "an empty object"]]]]
    assert scalars.bounded([[[[[1]]]]]) == [[[["a list of 1"]]]]
    assert scalars.bounded(float("-inf")) == {"non_finite": "-Infinity"}
    assert scalars.bounded("a\x00b") == "a\ufffdb"
    assert isinstance(scalars.bounded(10**18), str)


@pytest.mark.parametrize(("left", "right"), [(True, 1), (1, "1"), (None, None), ([], []), (float("nan"), float("nan"))])
def test_values_of_different_kinds_are_not_compared(left, right):
    with pytest.raises(scalars.NotComparableError):
        scalars.same(left, right)


@pytest.mark.parametrize(
    ("value", "described"),
    [
        (None, "null"),
        (True, "true, a boolean"),
        (False, "false, a boolean"),
        (1.5, "1.5"),
        (7, "7"),
        ("x", 'the text "x"'),
        ("NaN", "NaN"),
        ({"non_finite": "-Infinity"}, "-Infinity"),
        (float("inf"), "inf"),
        ([1], "a list of 1"),
        ([], "an empty list"),
        ({"a": 1}, "an object with 1 keys"),
        ({}, "an empty object"),
        ({1}, "set"),
    ],
)
def test_a_value_is_described_in_words(value, described):
    assert scalars.describe(value) == described


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_the_texts_of_numbers_that_are_not_finite(text):
    assert scalars.is_non_finite(text)
    assert scalars.is_non_finite({"non_finite": text})
    assert scalars.bounded(float(text)) == {"non_finite": text}


@pytest.mark.parametrize(
    "value", ["nan", "inf", "", 0, True, None, [], {"non_finite": 1}, {"non_finite": "NaN", "b": 1}, {"finite": "NaN"}]
)
def test_nothing_else_stands_for_a_number_that_is_not_finite(value):
    assert not scalars.is_non_finite(value)


@pytest.mark.parametrize(
    ("left", "right", "alike"),
    [(1, 1.0, True), (1, 2, False), (True, True, True), (True, False, False), ("a", "b", False)],
)
def test_values_of_one_kind_are_compared(left, right, alike):
    assert scalars.same(left, right) is alike


def test_a_report_keeps_what_is_small_enough_and_nothing_more():
    assert scalars.bounded({str(n): n for n in range(20)}) == {str(n): n for n in range(20)}
    assert scalars.bounded(list(range(20))) == list(range(20))
    assert scalars.bounded(10**18 - 1) == 10**18 - 1
    assert scalars.bounded(-(10**18)) == "an integer of 60 bits"
    assert scalars.bounded("x" * 301) == "x" * 299 + "…"
    assert scalars.bounded({"a": {"b": {"c": {"d": {}}}}}) == {"a": {"b": {"c": {"d": "an empty object"}}}}
    assert scalars.bounded({"a\x1b": "\t"}) == {"a\ufffd": " "}
