"""JMESPath's ways of making a value out of nothing are closed."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import query

EVIDENCE = {
    "m": {
        "a": 1,
        "b": 2.5,
        "list": [3, 1, 2],
        "nulls": [1, None, 3],
        "texts": ["1", "2"],
        "bools": [True, True],
        "nan": [1, {"non_finite": "NaN"}],
        "empty": [],
        "none": None,
        "true": True,
        "text": "abc",
        "rows": [{"id": 0, "v": 5}, {"id": 1, "v": 7}],
        "holes": [{"id": 0, "v": 5}, {"id": 1}],
        "by": {"x": {"v": 1}, "y": {"v": 2}},
        "nothing": {},
        "nested": [[1], [2, [3]], 4],
        "hollow": [[1], [], [2]],
    },
    "n": 1,
}


def find(expression):
    return query.evaluate(query.parse(expression), EVIDENCE, set())


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("m.a", 1),
        ("m.list[0]", 3),
        ("m.list[-1]", 2),
        ("m.list[:2]", [3, 1]),
        ("m.list[:3]", [3, 1, 2]),
        ("m.list[-3:]", [3, 1, 2]),
        ("m.list[::-1]", [2, 1, 3]),
        ("m.list[::5]", [3]),
        ("m.nested[]", [1, 2, [3], 4]),
        ("m.rows[*].v", [5, 7]),
        ("m.by.*.v", [1, 2]),
        ("m.rows[?id == `1`].v", [7]),
        ("m.rows[?id > `0` && v >= `7`].v | [0]", 7),
        ("m.rows[?!(id == `1`)].v", [5]),
        ("m.rows[?id == `9`].v", []),
        ("m.rows[?id == `0` && v == `7`].v", []),
        ("m.rows[?id == `0` || v == `7`].v", [5, 7]),
        ("contains(m.list, `1`)", True),
        ("length(m.rows[?id == `9`])", 0),
        ("length(m.empty)", 0),
        ("length(m.text)", 3),
        ("sum(m.list)", 6),
        ("avg(m.list)", 2),
        ("max(m.list)", 3),
        ("min(m.rows[*].v)", 5),
        ("sort(m.list)", [1, 2, 3]),
        ("abs(m.a)", 1),
        ("ceil(m.b)", 3),
        ("floor(m.b)", 2),
        ("keys(m.by)", ["x", "y"]),
        ("values(m.by)[0].v", 1),
        ("contains(m.text, 'b')", True),
        ("contains(m.list, `4`)", False),
        ("starts_with(m.text, 'ab')", True),
        ("starts_with(m.text, 'b')", False),
        ("ends_with(m.text, 'bc')", True),
        ("ends_with(m.text, 'ab')", False),
        ("m.a > `0`", True),
        ("m.a == `1`", True),
        ("[m.a > `1`, m.a >= `1`, m.a < `1`, m.a <= `1`]", [False, True, False, True]),
        ("m.a != `1`", False),
        ("m.[a, b]", [1, 2.5]),
        ("m.{x: a, y: b}", {"x": 1, "y": 2.5}),
        ("m.nulls[]", [1, None, 3]),
        ("m.none", None),
        ('"m"."a"', 1),
    ],
)
def test_what_is_there_is_found(expression, value):
    assert find(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "m.gone",
        "gone",
        "n.a",
        "m.none.a",
        "m.list.a",
        "m.list[9]",
        "m.text[0]",
        "m.list[:9]",
        "m.list[-9:]",
        "m.empty[*]",
        "m.empty[?a]",
        "m.nothing.*",
        "m.a.*",
        "m.a[*]",
        "m.text[]",
        "m.hollow[]",
        "max(m.hollow[])",
        "length(m.hollow[])",
        "m.empty[]",
        "m.holes[*].v",
        "m.holes[?v > `1`].id",
        "m.rows[?id].v",
        "m.rows[?m.true].v",
        "sum(m.empty)",
        "sum(m.rows[?id == `9`].v)",
        "avg(m.nulls)",
        "max(m.bools)",
        "sum(m.texts)",
        "min(m.nan)",
        "sort(m.texts)",
        "sum(m.a)",
        "abs(m.true)",
        "ceil(m.text)",
        "length(m.gone)",
        "length(m.a)",
        "length(m.none)",
        "keys(m.list)",
        "values(m.none)",
        "m.true > `0`",
        "m.text > `0`",
        "m.true == `1`",
        "m.none == `null`",
        "m.nan[1] < `9`",
        "m.a && m.true",
        "m.gone || m.true",
        "m.true || m.gone",
        "!m.a",
        "contains(m.empty, `1`)",
        "contains(m.list, 'x')",
        "contains(m.text, `1`)",
        "starts_with(m.list, 'x')",
        "m.[a, gone]",
        "m.{a: gone}",
    ],
)
def test_what_is_not_there_is_not_made_up(expression):
    with pytest.raises(query.UnansweredError):
        find(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "   ",
        "m.",
        "m..a",
        "m.[",
        "`5`",
        "'text'",
        "@",
        "m.a | `5`",
        "m.a || `5`",
        "[m.a, `5`]",
        "{a: `5`}",
        "max([m.a, `5`])",
        "not_null(m.a, m.b)",
        "max_by(m.rows, &v)",
        "map(&v, m.rows)",
        "to_number(m.text)",
        "to_array(m.a)",
        "merge(m, n)",
        "type(m.a)",
        "nonsense(m.a)",
        "length()",
        "length(m.a, m.b)",
        "m." + "a." * 600 + "a",
        None,
        5,
        ["m.a"],
    ],
)
def test_a_query_that_could_invent_an_answer_is_refused(expression):
    with pytest.raises(query.QueryError):
        query.parse(expression)


def test_an_element_may_be_the_answer_itself():
    assert query.evaluate_element(query.parse("@", element=True), 5) == 5
    with pytest.raises(query.UnansweredError) as unanswered:
        query.evaluate_element(query.parse("v", element=True), {"w": 1})
    assert unanswered.value.root is None


def test_the_documents_that_were_read_are_known():
    roots: set[str] = set()
    query.evaluate(query.parse("[m.a, n]"), EVIDENCE, roots)
    assert roots == {"m", "n"}
    with pytest.raises(query.UnansweredError) as unanswered:
        find("gone.a")
    assert unanswered.value.root == "gone"


def test_more_expressions_than_jmespath_keeps_are_parsed(monkeypatch):
    from jmespath.parser import Parser

    real = Parser._do_parse

    def full(self, expression):
        # jmespath 1.0.0 on Python 3.11, which takes a sample of a dictionary's keys
        if len(self._CACHE) >= 3:
            raise TypeError("Population must be a sequence. For dicts or sets, use sorted(d).")
        return real(self, expression)

    monkeypatch.setattr(Parser, "_do_parse", full)
    for number in range(10):
        assert query.parse(f"metrics.field_{number}")["type"] == "subexpression"


def test_a_missing_jmespath_says_how_to_get_it(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "jmespath", None)
    with pytest.raises(query.QueryError, match="pip install jmespath"):
        query.parse("m.a")


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("   ", "expected a JMESPath expression, found '   '"),
        ("m." + "a" * 999, "expected at most 1000 characters"),
        ("m.[", "not a JMESPath expression: 'm.[': .*[a-z]"),
        ("m..a", "not a JMESPath expression: 'm..a': .*token"),
        ("&m.a", "expref is not supported"),
        ("map(m.rows, m.a)", r"function map\(\) is not one of abs, avg"),
        ("length(m.a, m.b)", r"function length\(\) takes 1 argument\(s\), found 2"),
        ("`5`", "a literal is only allowed in a comparison"),
        ("[m.a, abs(`5`)]", "a literal is only allowed in a comparison"),
        ("contains('abc', 'b')", "reads nothing of the evidence"),
        ("@", "reads nothing of the evidence"),
    ],
)
def test_a_refused_query_says_what_is_wrong(expression, why):
    with pytest.raises(query.QueryError, match=why):
        query.parse(expression)


def test_a_query_of_an_element_must_read_something_too():
    with pytest.raises(query.QueryError, match="reads nothing"):
        query.parse("contains('abc', 'b')", element=True)
    assert query.parse("m." + "a" * 998)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("gone.a", "the evidence has no document 'gone'"),
        ("m.by.z", r"there is no 'z'; available: x, y"),
        ("m.nothing.z", r"there is no 'z'; available: nothing"),
        ("m.wide.z", r"there is no 'z'; available: a, b, c, d, e, f, g, h, i, j, k, l"),
        ("m.a == 'x'", '1 cannot be compared with the text "x"'),
        ("m.list[3]", r"\[3\] of a list of 3"),
    ],
)
def test_an_unanswered_query_says_what_is_not_there(expression, why):
    evidence = {"m": {**EVIDENCE["m"], "wide": dict.fromkeys("mlkjihgfedcba")}}
    with pytest.raises(query.UnansweredError, match=why):
        query.evaluate(query.parse(expression), evidence, set())


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("m.rows[*].util.count", "found null: 3 samples, expected at least 20$"),
        ("m.gpus.gpu.util.count", "found null: 3 samples, expected at least 20$"),
        ("m.bare.util.count", "found null$"),
        ("m.numbered.util.count", "found null$"),
        ("[m.gpus.gpu.util, m.list[0].count]", "found null$"),
    ],
)
def test_an_unanswered_query_says_why_the_document_left_the_field_null(expression, why):
    gpu = {"util": None, "why": "3 samples, expected at least 20"}
    others = {"bare": {"util": None}, "numbered": {"util": None, "why": 7}, "list": [None]}
    evidence = {"m": {"gpus": {"gpu": gpu}, "rows": [gpu], **others}}
    with pytest.raises(query.UnansweredError, match=why):
        query.evaluate(query.parse(expression), evidence, set())


def test_an_element_says_why_its_field_is_null():
    with pytest.raises(query.UnansweredError, match=r"found null: 3 samples$"):
        query.evaluate_element(query.parse("util.count", element=True), {"util": None, "why": "3 samples"})


def test_a_reason_without_end_is_cut_off():
    with pytest.raises(query.UnansweredError, match=r"found null: x+…$") as caught:
        query.evaluate_element(query.parse("util.count", element=True), {"util": None, "why": "x" * 1_000_000})
    assert len(str(caught.value)) < 10_000
