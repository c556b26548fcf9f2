# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether targets have room: pool, space and inodes of one target beside one that is well."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import remedies
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import space as share_space
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.judging import judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.told import Told

GIB = 1 << 30
WELL = {
    "type": "storage",
    "id": 101,
    "node": "stor1",
    "reachability": "online",
    "consistency": "good",
    "pool": "normal",
    "total": 8 * GIB,
    "free": 7 * GIB,
    "free_least": 7 * GIB,
    "free_most": 7 * GIB,
    "inodes": 500_000,
    "inodes_free": 400_000,
    "inodes_free_least": 400_000,
    "inodes_free_most": 450_000,
    "space_told": True,
}
NONE = {"free": None, "free_least": None, "free_most": None, "total": None}
NO_INODES = {"inodes": None, "inodes_free": None, "inodes_free_least": None, "inodes_free_most": None}


def found(expect=None, problems=(), **changed):
    """The findings of a target with these changes that are no pass, by id, with the symptom of their remedy."""
    other = {**WELL, "id": 201, "node": "stor2", **changed}
    facts = {"tool": "beegfs-ctl", "targets": [WELL, other], "problems": list(problems)}
    findings = share_space.findings(judge(expect, "beegfs", {}), Told(facts))
    wanting = [each for each in findings if each["verdict"] != "pass"]
    assert {each["where"]["target"] for each in wanting} <= {"storage target 201 on stor2"}
    return {each["id"].removeprefix("share."): each for each in wanting}


def symptom(finding):
    names = [
        name
        for name, text in remedies.load().items()
        if text.replace("{target}", finding["where"]["target"]) == finding["remedy"]
    ]
    return names[0].removeprefix("share.")


def test_what_is_well_passes_and_is_counted():
    assert found() == {}
    facts = {"tool": "x", "targets": [WELL, {**WELL, "id": 2}], "problems": []}
    findings = share_space.findings(judge(None, "beegfs", {}), Told(facts))
    assert [(each["id"], each["value"], each["unit"]) for each in findings] == [
        ("share.capacity_pool", 2, "targets"),
        ("share.target_free_space", 2, "targets"),
        ("share.target_free_inodes", 2, "targets"),
    ]
    assert {each["source"] for each in findings} == {"x"}


@pytest.mark.parametrize("state", ["offline", "probably-offline", None])
def test_a_target_that_is_not_online_is_reported_as_that_alone(state):
    assert found(reachability=state, pool="emergency", **NONE, **NO_INODES) == {}
    facts = {"targets": [{**WELL, "reachability": state}], "problems": []}
    assert share_space.findings(judge(None, "beegfs", {}), Told(facts)) == []


@pytest.mark.parametrize(
    ("pool", "state", "expect", "verdict"),
    [
        ("emergency", "good", {}, "fail"),
        ("emergency", None, {}, "fail"),
        ("emergency", "bad", {}, "recorded"),
        ("emergency", "resyncing", {"capacity_pool": "normal"}, "recorded"),
        ("low", "good", {}, "recorded"),
        ("low", "good", {"capacity_pool": "low"}, "recorded"),
        ("low", "good", {"capacity_pool": "normal"}, "fail"),
        ("low", "bad", {"capacity_pool": "normal"}, "recorded"),
        ("unknown", "good", {}, "undetermined"),
        ("unknown", "bad", {}, "undetermined"),
        ("full", "good", {}, "undetermined"),
        (None, "good", {}, "undetermined"),
        (7, "good", {}, "undetermined"),
    ],
)
def test_a_capacity_pool(pool, state, expect, verdict):
    finding = found(expect, pool=pool, consistency=state)["capacity_pool"]
    assert finding["verdict"] == verdict
    assert finding["bound"] == '= "normal"'
    assert finding["value"] == (pool if pool in ("low", "emergency") else None)


def test_a_pool_that_is_normal_passes_whatever_the_state():
    assert "capacity_pool" not in found(consistency="bad")
    assert "capacity_pool" not in found({"capacity_pool": "normal"})


def test_why_a_pool_is_not_normal():
    why = found(pool="emergency")["capacity_pool"]["why"]
    assert why.endswith("88 % of its space free, 80 % of its inodes free")
    why = found(pool="emergency", consistency="bad", **NO_INODES)["capacity_pool"]["why"]
    assert why.endswith("follows from its being bad; 88 % of its space free")
    why = found(pool="emergency", **NONE, **NO_INODES)["capacity_pool"]["why"]
    assert why == '"emergency" is not = "normal"'
    assert found(pool="unknown")["capacity_pool"]["why"].startswith("the management daemon has not assigned one yet")
    assert found(pool="full")["capacity_pool"]["why"].startswith("it is full")
    assert found(pool=None)["capacity_pool"]["why"].startswith("it was not reported")
    states = {"part": "states", "type": "storage", "problem": "held"}
    assert found(problems=[states], pool=None)["capacity_pool"]["why"].startswith("held")
    states["type"] = "meta"
    assert found(problems=[states], pool=None)["capacity_pool"]["why"].startswith("it was not reported")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "report"),
        ({"free_least": 4 * GIB}, "report"),
        ({"free_least": 4 * GIB - 1}, "space"),
        ({"inodes_free_least": 249_999}, "inodes"),
        ({"inodes_free_least": 250_000}, "report"),
        ({"free_least": 2 * GIB, "inodes_free_least": 200_000}, "space"),
        ({"free_least": 3 * GIB, "inodes_free_least": 100_000}, "inodes"),
        ({**NO_INODES, "free_least": 0}, "space"),
        ({**NONE, "inodes_free_least": 0}, "inodes"),
        ({**NONE, **NO_INODES}, "unknown"),
        ({**NO_INODES, "total": 0}, "unknown"),
        ({**NO_INODES, "total": True}, "unknown"),
        ({**NO_INODES, "total": "8"}, "unknown"),
        ({**NO_INODES, "free_least": "7"}, "unknown"),
        ({"pool": "unknown", "free_least": 0}, "report"),
    ],
)
def test_what_to_do_about_a_pool(changed, expected):
    assert symptom(found(**{"pool": "emergency", **changed})["capacity_pool"]) == f"capacity_pool.{expected}"


@pytest.mark.parametrize(
    ("least", "most", "verdict", "value"),
    [
        (1 * GIB, 2 * GIB, None, None),
        (1 * GIB - 1, 1 * GIB, "undetermined", None),
        (0, 1 * GIB - 1, "fail", 1 - 2**-30),
        (0, 0, "fail", 0),
        (None, 2 * GIB, "undetermined", None),
        (2 * GIB, None, "undetermined", None),
        (True, True, "undetermined", None),
    ],
)
def test_free_space_in_gib(least, most, verdict, value):
    result = found(free_least=least, free_most=most)
    assert ("target_free_space" in result) == (verdict is not None)
    if verdict:
        finding = result["target_free_space"]
        assert (finding["verdict"], finding["value"], finding["bound"], finding["unit"]) == (
            verdict,
            value,
            ">= 1",
            "GiB",
        )


def test_an_interval_around_the_bound_is_told_with_its_ends():
    finding = found(inodes_free_least=186_250, inodes_free_most=250_000)["target_free_inodes"]
    assert finding["why"].startswith("it is between 186,250 and 250,000, as printed")
    assert symptom(finding) == "target_free_space.rounded"
    finding = found(free_least=0.96875 * GIB, free_most=1.05 * GIB)["target_free_space"]
    assert finding["why"].startswith("it is between 0.96875 and 1.05, as printed")


def test_too_little_has_the_remedy_of_its_check():
    assert symptom(found(free_least=0, free_most=0)["target_free_space"]) == "target_free_space"
    few = found(inodes_free_least=0, inodes_free_most=2_750)["target_free_inodes"]
    assert (symptom(few), few["value"], isinstance(few["value"], int)) == ("target_free_inodes", 2_750, True)


def space(kind):
    return {"part": "space", "type": kind, "problem": "held for 14 s"}


@pytest.mark.parametrize(
    ("changed", "problems", "why", "expected"),
    [
        ({"space_told": False, "space_why": "refused"}, [], "refused", "target_free_space.unanswered"),
        ({"space_told": False}, [], "it was not reported", "target_free_space.unanswered"),
        ({"space_told": None}, [space("storage")], "held for 14 s", "target_free_space.unanswered"),
        ({"space_told": None}, [space(None)], "held for 14 s", "target_free_space.unanswered"),
        ({"space_told": None}, [space("meta")], "it was not reported", "target_free_space"),
        ({"space_told": None}, [], "it was not reported", "target_free_space"),
        ({"space_told": None, "pool": "unknown"}, [], "its space is reported once", "capacity_pool.report"),
    ],
)
def test_why_space_was_not_told(changed, problems, why, expected):
    finding = found(problems=problems, **{**NONE, **changed})["target_free_space"]
    assert finding["why"].startswith(why)
    assert (finding["verdict"], symptom(finding)) == ("undetermined", expected)


@pytest.mark.parametrize(("inodes", "asked"), [(0, False), (0.0, False), (None, True), (False, True), (5, True)])
def test_inodes_are_wanted_where_there_is_a_number_of_them(inodes, asked):
    result = found(inodes=inodes, inodes_free_least=None, inodes_free_most=None)
    assert ("target_free_inodes" in result) is asked


def test_inodes_of_no_target_are_not_judged():
    facts = {"targets": [{**WELL, "inodes": 0}], "problems": []}
    findings = share_space.findings(judge(None, "beegfs", {}), Told(facts))
    assert [each["id"] for each in findings] == ["share.capacity_pool", "share.target_free_space"]
