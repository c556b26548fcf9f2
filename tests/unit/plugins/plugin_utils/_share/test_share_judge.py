# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One fact of the share put to one test, several alike put to one, and what facts are read with."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import remedies
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Item, Judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.expect import ExpectError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import judging
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.facts import (
    are_rows,
    at,
    flat,
    rows,
    text,
    words,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.titles import TITLES

Json = dict[str, t.Any]


def judge(share_type: str = "beegfs", **expect: t.Any) -> Judge:
    return judging.judge(expect, share_type, {"node": "compute01"})


def test_each_check_has_a_title_and_a_remedy_and_no_remedy_is_left_over() -> None:
    named = {".".join(key.split(".")[:2]) for key in remedies.load() if key.startswith("share.")}
    assert named == set(TITLES)


def test_a_judge_knows_what_is_expected_and_where() -> None:
    assert judge(free_gib=3).expect["free_gib"] == 3
    assert (judge("other").expect["share_type"], judge().where) == ("other", {"node": "compute01"})
    with pytest.raises(ExpectError):
        judge(not_applicable={"share.flok": "no"})


# -- one fact


def test_a_fact_that_is_right_passes() -> None:
    assert judge().check("share.flock", "eq", "refused", "refused", source="use: flock", unit="x", path="/mnt\n") == {
        "id": "share.flock",
        "title": TITLES["share.flock"],
        "verdict": "pass",
        "value": "refused",
        "bound": '= "refused"',
        "unit": "x",
        "source": "use: flock",
        "why": '"refused" is = "refused"',
        "remedy": None,
        "bound_from": "manifest",
        "severity": "gate",
        "where": {"node": "compute01", "path": "/mnt "},
    }


def test_a_fact_that_is_wrong_or_missing_has_its_details_and_its_remedy() -> None:
    wrong = judge().check("share.flock", "eq", 1, 2, source="x", missing="not asked", detail="by hand")
    assert (wrong["verdict"], wrong["why"]) == ("fail", "2 is not = 1: by hand")
    assert wrong["remedy"] == remedies.remedy("share.flock", wrong["where"])
    unknown = judge().check("share.flock", "eq", 1, None, source="x", missing="not asked")
    assert (unknown["verdict"], unknown["value"], unknown["why"]) == ("undetermined", None, "not asked")
    recorded = judge().check("share.flock", "eq", 1, 2, source="x", record=True)
    assert (recorded["verdict"], recorded["severity"]) == ("recorded", "record")


def test_a_remedy_goes_by_its_symptom_and_names_the_number() -> None:
    asked: dict[str, t.Any] = {"source": "x", "symptom": "share.targets_consistent.bad.storage", "target": "it"}
    for number in (201, None):
        finding = judge().check("share.targets_consistent", "eq", "good", "bad", number=number, **asked)
        assert finding["where"] == {"node": "compute01", "target": "it"}
        assert finding["remedy"] == remedies.remedy(asked["symptom"], {**finding["where"], "number": number})
    assert "201" not in finding["remedy"]


def test_a_simulated_share_is_said_to_be_one() -> None:
    simulated = judge("simulated")
    assert simulated.check("share.flock", "eq", 1, 1, source="x")["why"] == "1 is = 1: simulated share"
    detailed = simulated.check("share.flock", "eq", 1, 1, source="x", detail="by hand")
    assert detailed["why"] == "1 is = 1: by hand; simulated share"


def test_what_the_inventory_excuses_is_not_judged() -> None:
    excusing = judge(not_applicable={"share.flock": "nobody\nlocks"})
    finding = excusing.check("share.flock", "eq", 1, 2, source="x", path="/mnt", record=True)
    assert finding["verdict"] == "not_applicable"
    assert finding["why"] == "the inventory says: nobody locks"
    assert (finding["title"], finding["source"]) == (TITLES["share.flock"], "x")
    assert finding["where"] == {"node": "compute01", "path": "/mnt"}
    assert excusing.check("share.fcntl_lock", "eq", 1, 2, source="x")["verdict"] == "fail"


def test_what_only_beegfs_has_does_not_apply_to_another_share() -> None:
    findings = judging.beegfs_only(judge("other"), ["share.rdma", "share.magic"], "/proc")
    assert [(f["id"], f["verdict"], f["why"], f["source"], f["where"], f["title"]) for f in findings] == [
        (
            identity,
            "not_applicable",
            "hpc_validation_share_type is other",
            "/proc",
            {"node": "compute01"},
            TITLES[identity],
        )
        for identity in ("share.rdma", "share.magic")
    ]


# -- several alike

GOOD = Item("good one", "eq", 1, 1)
WRONG = Item("wrong one", "eq", 1, 2, detail="twice", number=201)
UNKNOWN = Item("unknown one", "eq", 1, None)
IDLE = Item("idle one", "eq", 1, 2, record=True)


def each(*items: Item, **expect: t.Any) -> list[tuple[t.Any, ...]]:
    """Verdict, place, value, bound, unit and why of the findings on these."""
    findings = judge(**expect).each("share.connections", list(items), source="x", what="servers", unit="links")
    assert {finding["source"] for finding in findings} <= {"x"}
    assert {finding["id"] for finding in findings} <= {"share.connections"}
    return [(f["verdict"], f["where"].get("target"), f["value"], f["bound"], f["unit"], f["why"]) for f in findings]


ONE_GOOD = ("pass", None, 1, "= 1", "servers", "1 is = 1")
TOLD_WRONG = ("fail", "wrong one", 2, "= 1", "links", "2 is not = 1: twice")
TOLD_UNKNOWN = ("undetermined", "unknown one", None, "= 1", "links", "it was not reported")
TOLD_IDLE = ("recorded", "idle one", 2, "= 1", "links", "only recorded (would be fail): 2 is not = 1")


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([GOOD], [ONE_GOOD]),
        ([GOOD, GOOD], [("pass", None, 2, "= 2", "servers", "2 is = 2")]),
        ([GOOD, WRONG], [TOLD_WRONG]),
        ([WRONG, UNKNOWN], [TOLD_WRONG, TOLD_UNKNOWN]),
        ([GOOD, UNKNOWN], [TOLD_UNKNOWN]),
        ([GOOD, IDLE], [ONE_GOOD, TOLD_IDLE]),
        ([GOOD, IDLE, WRONG], [TOLD_IDLE, TOLD_WRONG]),
        ([IDLE], [TOLD_IDLE]),
        ([IDLE, IDLE], [TOLD_IDLE, TOLD_IDLE]),
        ([], [("undetermined", None, None, "= 0", "servers", "which servers there are was not reported")]),
    ],
)
def test_several_alike_are_one_finding_unless_one_is_wanting(items: list[Item], told: list[tuple[t.Any, ...]]) -> None:
    assert each(*items) == told


@pytest.mark.parametrize("items", [[], [GOOD], [WRONG, GOOD]])
def test_several_alike_that_are_excused_are_one_finding(items: list[Item]) -> None:
    excused = {"not_applicable": {"share.connections": "none is"}}
    assert each(*items, **excused) == [("not_applicable", None, None, "-", None, "the inventory says: none is")]


def test_the_remedy_of_one_of_several_is_its_own() -> None:
    item = Item("it", "eq", "good", "bad", symptom="share.targets_consistent.bad.storage", number=201)
    (finding,) = judge().each("share.targets_consistent", [item], source="x", what="targets")
    assert finding["where"] == {"node": "compute01", "target": "it"}
    assert finding["remedy"] == remedies.remedy(str(item.symptom), {**finding["where"], "number": 201})


# -- what facts are read with


@pytest.mark.parametrize("document", [None, [], "x", {}, {"a": None}, {"a": "b"}, {"a": ["b"]}, {"a": {}}])
def test_what_is_not_there_is_none(document: t.Any) -> None:
    assert at(document, "a", "b") is None


def test_what_is_there_is_found() -> None:
    assert at({"a": {"b": 0}}, "a", "b") == 0
    assert at("x") == "x"


@pytest.mark.parametrize("value", [None, "", "ab", 7, {}, {"a": {}}, [7], [{"a": 1}, "x"], ({},)])
def test_what_is_no_list_of_objects_has_no_rows(value: t.Any) -> None:
    assert rows(value) == flat(value) == []
    assert not are_rows(value)


def test_rows_are_the_objects_of_a_list() -> None:
    found = [{"a": [1]}, {"b": 2.5, "c": "x", "d": True, "e": {}, "f": None, "g": 0}]
    assert rows(found) == found
    assert are_rows(found)
    assert are_rows([])
    assert flat(found) == [{"a": None}, {"b": 2.5, "c": "x", "d": True, "e": None, "f": None, "g": 0}]


@pytest.mark.parametrize(("value", "said"), [("x", "x"), ("", None), (7, None), (["x"], None), (None, None)])
def test_a_text_says_something(value: t.Any, said: str | None) -> None:
    assert text(value) == said


@pytest.mark.parametrize(
    ("seen", "keys", "said"),
    [
        ({"a": 1, "b": "x"}, ("b", "a"), 'b "x", a 1'),
        ({"a": None, "b": True, "c": 3}, ("a", "b"), "a null, b true"),
        ({"a": 1}, ("a",), "a 1"),
        ({"a": 1}, ("a", "b"), None),
        ({"c": 1}, ("a", "b"), None),
        (["a"], ("a",), None),
        ("a", ("a",), None),
        ("a", (), None),
        (None, (), None),
        ({}, (), ""),
    ],
)
def test_chosen_values_are_one_line(seen: t.Any, keys: tuple[str, ...], said: str | None) -> None:
    assert words(seen, keys) == said
