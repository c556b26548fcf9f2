# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folding: what passed is one entry per check, and equal faults are one line."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import fold, groups, places
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings.columns import VERDICTS, Table
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import findings_table
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.plugins.plugin_utils._findings.made import finding

Json = dict[str, t.Any]


def test_what_passed_is_one_entry_with_its_extremes() -> None:
    temperatures = {"n001": 40, "n002": 61, "n003": 39}
    table = Table(finding("gpu.temperature", node=node, value=value) for node, value in temperatures.items())
    (entry,) = fold.folded(table)
    assert (entry["count"], entry["where"], entry["value"]) == (3, "n[001-003]", None)
    assert (entry["minimum"], entry["median"]) == ({"value": 39, "where": "n003"}, 40)
    assert entry["maximum"] == {"value": 61, "where": "n002"}
    assert fold.whole(table) == []


def test_texts_that_differ_are_told_with_their_nodes() -> None:
    drivers = ["550"] * 3 + ["535"]
    table = Table(finding("gpu.driver", "recorded", node=f"n{n}", value=value) for n, value in enumerate(drivers))
    (entry,) = fold.folded(table)
    assert entry["values"] == [
        {"value": "550", "count": 3, "where": "n[0-2]"},
        {"value": "535", "count": 1, "where": "n3"},
    ]
    assert entry["minimum"] is None


def test_a_value_that_all_have_is_told_once() -> None:
    (entry,) = fold.folded(Table(finding(node=f"n{n}") for n in range(9)))
    assert (entry["value"], entry["why"], entry["minimum"]["value"]) == (0, "0 is = 0", 0)


@pytest.mark.parametrize(("bounds", "entries"), [(8, 8), (9, 1)])
def test_many_bounds_of_one_check_are_folded_too(bounds: int, entries: int) -> None:
    folded = fold.folded(Table(finding(node=f"n{n}", bound=f"< {n}") for n in range(bounds)))
    assert len(folded) == entries
    assert sum(entry["count"] for entry in folded) == bounds
    assert (folded[0]["bound"] == "varies") is (entries == 1)


@given(st.lists(st.tuples(st.sampled_from(VERDICTS), st.sampled_from(["gpu.ecc", "node.job"]), st.integers(1, 3))))
def test_every_finding_is_counted_once(drawn: list[tuple[str, str, int]]) -> None:
    table = Table(finding(identity, verdict, node=f"n{node}") for verdict, identity, node in drawn)
    entries = fold.folded(table)
    assert len(fold.whole(table)) + sum(entry["count"] for entry in entries) == len(drawn)
    assert not {entry["verdict"] for entry in entries} & set(fold.WHOLE)
    assert {each["verdict"] for each in fold.whole(table)} <= set(fold.WHOLE)


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ([{}], ""),
        ([{"host": "login", "path": "/x"}], "login, /x"),
        ([{"node": "n1", "gpu": "GPU 1"}], "n1, GPU 1"),
        ([{"node": "n1"}, {"node": "n2"}], "n[1-2]"),
        (
            [{"node": "n042", "gpu": "GPU 1"}, {"node": "n007", "gpu": "GPU 0"}, {"node": "n007", "gpu": "GPU 1"}],
            "n[007,042], 3 GPUs",
        ),
        ([{"node": "n1", "gpu": "GPU 0"}, {"node": "n1", "gpu": "GPU 1"}], "n1, 2 GPUs"),
        ([{"host": "login", "target": "101"}, {"host": "login", "target": "102"}], "login, 2 targets"),
    ],
)
def test_places_in_words(at: list[Json], words: str) -> None:
    assert places.parts(at) == words


def test_an_equal_fault_of_many_is_one_with_one_remedy() -> None:
    bad = [finding(verdict="fail", node=f"n{n}", value=n, why=f"{n} is not = 0") for n in (1, 2, 3)]
    (group,) = groups.grouped(bad)
    assert (group["at"], group["count"], group["value"]) == ("n[1-3]: ", 3, "1 to 3")
    assert group["remedy"] == "look at n1 (and likewise for 2 more)"


def test_faults_that_differ_stay_apart_and_the_worst_come_first() -> None:
    found = groups.grouped(
        [
            finding(verdict="waived"),
            finding(verdict="undetermined"),
            finding(verdict="undetermined", node="n2"),
            finding(verdict="undetermined", remedy="reset it"),
            finding(verdict="fail"),
            finding("gpu.xid", "fail", node="n1"),
            finding("gpu.xid", "fail", node="n2"),
        ]
    )
    assert [(each["id"], each["verdict"], each["count"]) for each in found] == [
        ("gpu.xid", "fail", 2),
        ("gpu.ecc", "fail", 1),
        ("gpu.ecc", "undetermined", 2),
        ("gpu.ecc", "undetermined", 1),
        ("gpu.ecc", "waived", 1),
    ]


def test_one_fault_is_told_as_it_is() -> None:
    one = finding(verdict="fail", value=[1], node="n1", gpu="GPU 1")
    (group,) = groups.grouped([one])
    assert group == {**one, "at": "n1, GPU 1: ", "count": 1}


def test_what_a_verdict_lists_whole_is_what_did_not_pass() -> None:
    assert fold.WHOLE == findings_table.AMISS == ("fail", "undetermined", "waived")


def test_many_bounds_of_one_verdict_do_not_fold_into_another() -> None:
    found = [finding(node=f"n{n}", bound=f"< {n}", title=f"title {n}") for n in range(9)]
    varied, other = fold.folded(Table([*found, finding("gpu.ecc", "recorded")]))
    assert (varied["title"], varied["bound"], varied["count"]) == ("varies", "varies", 9)
    assert (other["verdict"], other["title"], other["bound"]) == ("recorded", "ECC errors", "= 0")


def test_no_more_than_a_few_texts_are_told() -> None:
    table = Table(finding(node=f"n{n}", value=f"driver {n}") for n in range(9))
    (entry,) = fold.folded(table)
    assert [each["count"] for each in entry["values"]] == [1] * 5


@pytest.mark.parametrize("values", [[None, None], ["a", "a"], [True, True], [["x"], ["x"]]])
def test_a_value_that_all_have_and_that_is_no_number_has_no_extremes(values: list[t.Any]) -> None:
    (entry,) = fold.folded(Table(finding(node=f"n{n}", value=value) for n, value in enumerate(values)))
    assert [entry[key] for key in ("minimum", "median", "maximum", "values")] == [None, None, None, []]
    assert entry["value"] == values[0]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([True, True, False], {"true": "n[0-1]", "false": "n2"}),
        (["a", None, ["x"], "a"], {"a": "n[0,3]", "null": "n1", '["x"]': "n2"}),
        ([None, 7], {"null": "n0"}),
        ([None], {}),
        ([1, True], {"true": "n1"}),
    ],
)
def test_a_value_that_is_no_number_is_told_if_it_differs(values: list[t.Any], told: dict[str, str]) -> None:
    (entry,) = fold.folded(Table(finding(node=f"n{n}", value=value) for n, value in enumerate(values)))
    assert {each["value"]: each["where"] for each in entry["values"]} == told


def test_numbers_have_extremes_beside_a_value_that_is_missing() -> None:
    (entry,) = fold.folded(Table(finding(node=f"n{n}", value=value) for n, value in enumerate([40, None, 61, 39])))
    assert (entry["minimum"], entry["median"]) == ({"value": 39, "where": "n3"}, 40)
    assert entry["maximum"] == {"value": 61, "where": "n2"}
    assert entry["values"] == [{"value": "null", "count": 1, "where": "n1"}]


def test_texts_that_look_alike_are_counted_together() -> None:
    (entry,) = fold.folded(Table(finding(node=f"n{n}", title=f"ECC {chr(n)}") for n in (1, 2, 3)))
    assert (entry["count"], entry["where"]) == (3, "n[1-3]")


@pytest.mark.parametrize("key", ["node", "host", "workload", "step", "target", "path"])
def test_every_kind_of_place_folds(key: str) -> None:
    assert places.fold([{key: "x2"}, {key: "x1"}]) == "x[1-2]"


def test_a_single_part_among_nodes_is_not_counted() -> None:
    assert places.parts([{"node": "n1"}, {"node": "n2", "gpu": "GPU 0"}]) == "n[1-2]"


def test_the_order_is_by_verdict_and_only_then_by_number() -> None:
    many = [finding(verdict="waived", node=f"n{n}") for n in range(3)]
    found = groups.grouped([*many, finding(verdict="undetermined"), finding(verdict="fail")])
    assert [each["verdict"] for each in found] == ["fail", "undetermined", "waived"]


def test_a_name_within_another_does_not_make_two_faults() -> None:
    one = finding(verdict="fail", node="n1", gpu="n1x", remedy="reset n1x")
    other = finding(verdict="fail", node="n2", gpu="n1y", remedy="reset n1y")
    assert len(groups.grouped([one, other])) == 1


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1, "a"], "1 (and 1 other value)"),
        (["a", "b", "b"], '"b" (and 1 other value)'),
        (["a", "b", "c", "c"], '"c" (and 2 other values)'),
        ([2, 2], 2),
    ],
)
def test_values_that_differ_are_told_by_the_most_frequent(values: list[t.Any], shown: t.Any) -> None:
    found = [finding(verdict="fail", node=f"n{n}", value=value) for n, value in enumerate(values)]
    (group,) = groups.grouped(found)
    assert group["value"] == shown
