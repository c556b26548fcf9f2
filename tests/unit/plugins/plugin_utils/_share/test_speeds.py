# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node on which the share is far slower than on most."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.expect import ExpectError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.speeds import FIGURES, Speeds

Json = dict[str, t.Any]
WELL = (1000.0, 900.0, 2000.0, 3000.0)


def facts(*figures: t.Any) -> Json:
    return {"speed": dict(zip(FIGURES, figures))}


def judged(nodes: dict[str, t.Any], expect: Json | None = None) -> dict[str, Json]:
    speeds = Speeds()
    for node, told in nodes.items():
        speeds.add(node, told)
    return {finding["where"]["node"]: finding for finding in speeds.findings(expect or {}, "beegfs")}


def fleet(**others: t.Any) -> dict[str, t.Any]:
    return {**{f"n{number}": facts(*WELL) for number in range(1, 5)}, **others}


def test_nodes_alike_pass() -> None:
    found = judged(fleet())
    assert {(finding["verdict"], finding["value"]) for finding in found.values()} == {("pass", 1.0)}
    assert len(found) == 4


def test_a_node_that_is_slow_in_all_is_named_with_its_figures() -> None:
    finding = judged(fleet(slow=facts(50, 40, 100, 200)))["slow"]
    assert (finding["verdict"], finding["value"]) == ("fail", 0.067)
    assert "50 of 1000, 40 of 900, 100 of 2000, 200 of 3000" in finding["why"]
    assert "ibstat" in finding["remedy"]


@pytest.mark.parametrize("at", range(4))
def test_a_node_that_is_slow_in_some_passes_since_others_may_have_been_in_its_way(at: int) -> None:
    figures = [value / 100 for value in WELL]
    figures[at] = WELL[at] / 10
    finding = judged(fleet(busy=facts(*figures)))["busy"]
    assert (finding["verdict"], finding["value"]) == ("pass", 0.1)


def test_the_bound_can_be_set_and_must_be_a_number() -> None:
    half = fleet(slow=facts(*(value / 2.5 for value in WELL)))
    assert judged(half)["slow"]["verdict"] == "pass"
    assert judged(half, {"node_speed_ratio": 0.5})["slow"]["verdict"] == "fail"
    with pytest.raises(ExpectError):
        judged(half, {"node_speed_ratio": "half"})


def test_fewer_than_four_are_not_compared() -> None:
    three = dict(list(fleet().items())[:3])
    assert judged(three) == {}
    assert judged({**three, "n4": facts(*WELL)}) != {}


@pytest.mark.parametrize("told", [None, {}, {"speed": None}, facts(1, 2, 3), facts(1, 2, 3, None), facts(1, 2, 3, "4")])
def test_a_node_without_all_figures_is_left_to_its_own_findings(told: t.Any) -> None:
    assert "n9" not in judged(fleet(n9=told))


def test_speeds_below_one_count_as_well() -> None:
    found = judged({f"n{number}": facts(0.5, 0, 0, 0) for number in range(4)})
    assert {(finding["verdict"], finding["value"]) for finding in found.values()} == {("pass", 1.0)}


def test_where_most_have_no_speed_at_all_nothing_is_known() -> None:
    found = judged({f"n{number}": facts(0, 0, 0, 0) for number in range(4)})
    assert {(finding["verdict"], finding["value"]) for finding in found.values()} == {("undetermined", None)}
