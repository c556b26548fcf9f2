# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of servers, targets, mirror groups and quota: what is judged, under which name, why, and what is to be done."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import remedies
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import findings as share_findings

from tests.unit.beegfs.told import told

Json = dict[str, t.Any]
STARTED = "share.targets_reachable.started"


@pytest.fixture
def facts() -> Json:
    """A healthy system with mirrors: metadata servers meta1 and meta2, storage servers stor1 and stor2."""
    return told("both-mirrored-healthy")


def found(facts: Json, identity: str, expect: Json | None = None, **more: t.Any) -> list[Json]:
    """The findings of one check."""
    findings = share_findings.servers_findings(facts, expect, host="login", share_type="beegfs", **more)
    return [finding for finding in findings if finding["id"] == identity]


def short(findings: list[Json]) -> list[tuple[t.Any, ...]]:
    """Verdict, place, value, bound and why of each."""
    return [(f["verdict"], f["where"].get("target"), f["value"], f["bound"], f["why"]) for f in findings]


def remedy(symptom: str, finding: Json, **fill: t.Any) -> str:
    return remedies.remedy(symptom, {**finding["where"], **fill})


def target(facts: Json, number: int) -> Json:
    return next(row for row in facts["targets"] if row["id"] == number)


def node(facts: Json, name: str) -> Json:
    return next(row for row in facts["nodes"] if row["name"] == name)


# -- whether they could be asked


def test_a_reason_goes_before_the_daemon_that_knows_nothing():
    problems = [{"part": "targets", "problem": "refused"}]
    empty = {"tool": "beegfs-ctl", "targets": [], "nodes": [], "mirrors": [], "quota": [], "problems": problems}
    assert short(found(empty, "share.servers")) == [("undetermined", None, None, "= 0", "refused")]
    problems.append({"part": "nodes", "problem": "refused too"})
    assert short(found(empty, "share.servers")) == [("undetermined", None, None, "= 0", "refused (and 1 more)")]


# -- servers


def test_a_server_that_does_not_answer_at_all_is_said_once(facts):
    node(facts, "stor2").update(reachable=False, unreachable_by="rdma:ib0")
    (finding,) = found(facts, "share.nodes_reachable")
    assert short([finding]) == [("fail", "storage server stor2", False, "= true", "false is not = true")]
    assert finding["remedy"] == remedy("share.nodes_reachable", finding)


def test_a_card_by_which_a_server_does_not_answer_is_recorded(facts):
    node(facts, "stor2")["unreachable_by"] = "rdma:ib0"
    whole, card = found(facts, "share.nodes_reachable")
    assert (whole["verdict"], whole["value"], whole["unit"]) == ("pass", 4, "servers")
    assert short([card])[0][:4] == ("recorded", "storage server stor2", False, "= true")


@pytest.mark.parametrize("kind", ["meta", "storage"])
def test_a_type_without_servers_is_said_with_the_reason_there_is(facts, kind):
    facts["nodes"] = [row for row in facts["nodes"] if row["type"] != kind]
    (finding,) = found(facts, "share.nodes_reachable")
    why = f"the management daemon knows no {kind} server"
    assert short([finding]) == [("undetermined", f"any {kind} server", None, "= true", why)]
    assert finding["remedy"] == remedy("share.servers.forgot", finding)
    facts["problems"] = [{"part": "nodes", "type": kind, "problem": "refused"}]
    (finding,) = found(facts, "share.nodes_reachable")
    assert short([finding]) == [("undetermined", f"any {kind} server", None, "= true", "refused")]
    assert finding["remedy"] == remedy("share.nodes_reachable", finding)


# -- targets


def test_a_server_of_both_types_that_lost_the_targets_of_one(facts):
    node(facts, "meta1")["name"] = "stor1"
    (finding,) = found(facts, "share.targets_reachable")
    assert finding["where"]["target"] == "any target of meta server stor1"
    assert short([finding])[0][2:] == (None, '= "online"', "none is listed")


def test_servers_that_the_targets_do_not_name_are_not_missed(facts):
    facts["targets"] = [row for row in facts["targets"] if row["node"] != "stor2"]
    for row in facts["targets"]:
        row["node"] = f"host-of-{row['node']}"
    assert [finding["verdict"] for finding in found(facts, "share.targets_reachable")] == ["pass"]


def test_where_a_target_does_not_name_its_server_none_is_missed(facts):
    facts["targets"] = [row for row in facts["targets"] if row["node"] != "stor2"]
    assert [finding["verdict"] for finding in found(facts, "share.targets_reachable")] == ["undetermined"]
    target(facts, 101)["node"] = None
    assert [finding["verdict"] for finding in found(facts, "share.targets_reachable")] == ["pass"]


@pytest.mark.parametrize("kind", ["meta", "storage"])
def test_a_type_without_targets_is_said_with_the_reason_there_is(facts, kind):
    facts["targets"] = [row for row in facts["targets"] if row["type"] != kind]
    (finding,) = found(facts, "share.targets_reachable")
    why = f"the management daemon knows no {kind} target"
    assert short([finding]) == [("undetermined", f"any {kind} target", None, '= "online"', why)]
    assert finding["remedy"] == remedy("share.servers.forgot", finding)
    facts["problems"] = [{"part": "targets", "type": kind, "problem": "refused"}]
    (finding,) = found(facts, "share.targets_reachable")
    assert short([finding]) == [("undetermined", f"any {kind} target", None, '= "online"', "refused")]
    assert finding["remedy"] == remedy("share.targets_reachable", finding)


def test_targets_of_a_daemon_that_was_just_started_are_one_finding(facts):
    for row in facts["targets"]:
        if row["type"] == "storage":
            row["reachability"] = "probably-offline"
    (finding,) = found(facts, "share.targets_reachable")
    why = "all 4 are reported probably-offline, though every server answers"
    assert short([finding]) == [("undetermined", "every storage target", None, '= "online"', why)]
    assert finding["remedy"] == remedy(STARTED, finding)
    node(facts, "stor2")["reachable"] = False
    assert [(f["verdict"], f["where"]["target"]) for f in found(facts, "share.targets_reachable")] == [
        ("fail", f"storage target {number} on {name}")
        for number, name in ((101, "stor1"), (102, "stor1"), (201, "stor2"), (202, "stor2"))
    ]


def test_what_to_do_about_a_target_goes_by_whether_its_server_answers(facts):
    target(facts, 201)["reachability"] = "offline"
    (finding,) = found(facts, "share.targets_reachable")
    assert short([finding]) == [
        ("fail", "storage target 201 on stor2", "offline", '= "online"', '"offline" is not = "online"')
    ]
    assert finding["remedy"] == remedy("share.targets_reachable.returned", finding)
    node(facts, "stor2")["reachable"] = False
    (finding,) = found(facts, "share.targets_reachable")
    assert finding["remedy"] == remedy("share.targets_reachable", finding)


@pytest.mark.parametrize(
    ("part", "identity", "bound"),
    [
        ("reachability", "share.targets_reachable", '= "online"'),
        ("consistency", "share.targets_consistent", '= "good"'),
    ],
)
def test_a_state_that_was_not_told_is_undetermined_with_the_reason_there_is(facts, part, identity, bound):
    target(facts, 201)[part] = None
    place = "storage target 201 on stor2"
    assert short(found(facts, identity)) == [("undetermined", place, None, bound, "it was not reported")]
    facts["problems"] = [{"part": "states", "type": "meta", "problem": "of others"}]
    assert short(found(facts, identity)) == [("undetermined", place, None, bound, "it was not reported")]
    facts["problems"].append({"part": "states", "type": "storage", "problem": "held"})
    assert short(found(facts, identity)) == [("undetermined", place, None, bound, "held")]


@pytest.mark.parametrize(
    ("number", "value", "symptom"),
    [
        (201, "bad", "bad.storage"),
        (201, "needs-resync", "resync.storage"),
        (2, "bad", "bad.meta"),
        (2, "resyncing", "resync.meta"),
    ],
)
def test_what_to_do_about_a_target_that_is_not_good(facts, number, value, symptom):
    target(facts, number).update(consistency=value, sync_state="running")
    (finding,) = found(facts, "share.targets_consistent")
    assert (finding["verdict"], finding["value"]) == ("fail", value)
    assert finding["why"].endswith("resync: running")
    assert finding["remedy"] == remedy(f"share.targets_consistent.{symptom}", finding, number=number)
    target(facts, number)["sync_state"] = "healthy"
    assert "resync:" not in found(facts, "share.targets_consistent")[0]["why"]
    target(facts, number)["id"] = "x"
    (finding,) = found(facts, "share.targets_consistent")
    assert finding["remedy"] == remedy(f"share.targets_consistent.{symptom}", finding)


def test_a_target_of_another_type_has_the_remedy_of_all(facts):
    facts["targets"].append({**target(facts, 201), "type": "other", "consistency": "bad"})
    assert [finding["verdict"] for finding in found(facts, "share.targets_consistent")] == ["pass"]
    facts["mirrors"].append({"type": "other", "group": 9, "primary": 201, "secondary": 201})
    findings = found(facts, "share.mirrors")
    assert len(findings) == 2
    for finding in findings:
        assert finding["where"]["target"].startswith("other mirror group 9, ")
        assert finding["remedy"] == remedy("share.mirrors", finding)


# -- room (test_room.py has more)


def test_a_pool_and_a_space_that_were_not_told_are_undetermined_with_the_reason_there_is(facts):
    told_nothing = dict.fromkeys(("pool", "free_least", "free_most", "inodes_free_least", "space_told", "space_why"))
    target(facts, 201).update(told_nothing)
    place = "storage target 201 on stor2"
    for reason in ("it was not reported", "held"):
        assert short(found(facts, "share.capacity_pool")) == [("undetermined", place, None, '= "normal"', reason)]
        assert short(found(facts, "share.target_free_space")) == [("undetermined", place, None, ">= 1", reason)]
        facts["problems"] = [{"part": part, "type": "storage", "problem": "held"} for part in ("states", "space")]


def test_no_more_than_all_is_free(facts):
    target(facts, 201).update(pool="emergency", free_least=2 << 30, total=1 << 30)
    (finding,) = found(facts, "share.capacity_pool")
    assert "100 % of its space free" in finding["why"]


# -- mirror groups


def test_members_of_mirror_groups(facts):
    groups = {(row["type"], row["group"]): row for row in facts["mirrors"]}
    (whole,) = found(facts, "share.mirrors")
    assert (whole["verdict"], whole["value"], whole["unit"]) == ("pass", 2 * len(groups), "members")
    (group,) = [row for row in facts["mirrors"] if 201 in (row["primary"], row["secondary"])]
    role = "primary" if group["primary"] == 201 else "secondary"
    place = f"storage mirror group {group['group']}, {role} target 201"
    target(facts, 201)["consistency"] = "needs-resync"
    (finding,) = found(facts, "share.mirrors")
    assert short([finding]) == [
        (
            "fail",
            place,
            "online, needs-resync",
            '= "online, good"',
            '"online, needs-resync" is not = "online, good"',
        )
    ]
    assert finding["remedy"] == remedy("share.mirrors.storage", finding, number=201)
    target(facts, 201)["consistency"] = None
    assert short(found(facts, "share.mirrors")) == [
        ("undetermined", place, None, '= "online, good"', "its state was not reported")
    ]
    target(facts, 201).update(consistency="good", reachability=None)
    assert short(found(facts, "share.mirrors")) == [
        ("undetermined", place, None, '= "online, good"', "its state was not reported")
    ]
    facts["problems"] = [{"part": "states", "type": "storage", "problem": "held"}]
    assert short(found(facts, "share.mirrors")) == [("undetermined", place, None, '= "online, good"', "held")]
    facts["problems"] = []
    facts["targets"].remove(target(facts, 201))
    assert short(found(facts, "share.mirrors")) == [
        ("undetermined", place, None, '= "online, good"', "the target is not listed")
    ]


@pytest.mark.parametrize("number", [None, True, "x"])
def test_a_member_that_is_no_number_is_undetermined(facts, number):
    assert facts["mirrors"][0] == {"type": "meta", "group": 1, "primary": 1, "secondary": 2}
    facts["mirrors"][0]["primary"] = number
    (finding,) = found(facts, "share.mirrors")
    assert (finding["verdict"], finding["why"]) == ("undetermined", "the target is not listed")
    assert str(number) in finding["where"]["target"]
    if number != 1:  # as true is
        assert finding["remedy"] == remedy("share.mirrors.meta", finding)


def test_members_that_are_good_are_unknown_while_the_daemon_was_just_started(facts):
    for row in facts["targets"]:
        if row["type"] == "meta":
            row["reachability"] = "probably-offline"
    findings = found(facts, "share.mirrors")
    assert {(f["verdict"], f["why"]) for f in findings} == {("undetermined", "its state was not reported")}
    assert len(findings) == 2
    assert {f["remedy"] for f in findings} == {remedy(STARTED, findings[0])}
    target(facts, 2)["consistency"] = "bad"
    assert [f["verdict"] for f in found(facts, "share.mirrors")].count("fail") == 1


@pytest.mark.parametrize("kind", ["meta", "storage"])
def test_mirror_groups_that_could_not_be_read_are_undetermined_by_type(facts, kind):
    facts["mirrors"] = [row for row in facts["mirrors"] if row["type"] != kind]
    facts["problems"] = [{"part": "mirrors", "type": kind, "problem": "refused"}]
    assert short(found(facts, "share.mirrors")) == [
        ("undetermined", f"any {kind} mirror group", None, '= "online, good"', "refused")
    ]
    facts.update(mirrors=None, problems=[])
    assert [(f["where"]["target"], f["why"]) for f in found(facts, "share.mirrors")] == [
        (f"any {each} mirror group", "the mirror groups were not reported") for each in ("meta", "storage")
    ]


def test_no_mirror_groups_are_recorded(facts):
    facts["mirrors"] = []
    (finding,) = found(facts, "share.mirrors")
    assert (finding["verdict"], finding["value"], finding["bound"]) == ("recorded", 0, "= 0")
    assert (finding["unit"], "none is defined" in finding["why"]) == ("mirror groups", True)


# -- quota


def quota(facts: Json, **row: t.Any) -> Json:
    facts["quota"] = [{"pool": 1, "size": 5, "size_limit": 10, "files": 3, "files_limit": 4, **row}]
    return facts


@pytest.mark.parametrize(
    ("row", "verdict", "place", "value", "bound", "why"),
    [
        ({"size": 10}, "fail", "bytes", 10, "< 10", "10 is not < 10"),
        ({"files": 4}, "fail", "files", 4, "< 4", "4 is not < 4"),
        ({"files": None}, "undetermined", "files", None, "< 4", "not every disk counts them"),
        ({"files": None, "files_at_least": 3}, "undetermined", "files", None, "< 4", "not every disk counts them"),
        ({"files": None, "files_at_least": 4}, "fail", "files", 4, "< 4", "4 is not < 4"),
        ({"files": None, "files_at_least": "x"}, "undetermined", "files", None, "< 4", "not every disk counts them"),
        ({"files": 3, "files_at_least": 9}, "pass", None, 2, "= 2", "2 is = 2"),
        ({"size_limit": "x"}, "undetermined", "bytes", None, "< 0", "not every disk counts them"),
        ({"size": "x"}, "undetermined", "bytes", None, "< 10", "not every disk counts them"),
        ({}, "pass", None, 2, "= 2", "2 is = 2"),
    ],
)
def test_a_limit_that_is_told_is_judged(facts, row, verdict, place, value, bound, why):
    (finding,) = found(quota(facts, **row), "share.quota")
    place = f"storage pool 1, {place}" if place else None
    assert short([finding]) == [(verdict, place, value, bound, why)]
    assert finding["unit"] in (None, "quotas")
    findings = found(quota(facts, **row), "share.quota", {"quota": False})
    assert {finding["verdict"] for finding in findings} == {"recorded"}


def test_a_limit_that_the_row_lacks_was_not_told(facts):
    quota(facts)
    del facts["quota"][0]["size_limit"]
    assert short(found(facts, "share.quota")) == [
        ("undetermined", "storage pool 1, bytes", None, "< 0", "it was not reported")
    ]


@pytest.mark.parametrize(("used", "shown"), [(5, 5), (0, 0), (None, 0), ("x", 0)])
def test_without_a_limit_what_is_used_is_recorded(facts, used, shown):
    findings = found(quota(facts, size=used, size_limit=None, files=used, files_limit=None), "share.quota")
    assert [(f["verdict"], f["value"], f["bound"]) for f in findings] == [("recorded", shown, ">= 0")] * 2
    assert all("no limit is reported" in f["why"] for f in findings)
    whole, _recorded = found(quota(facts, size=used, size_limit=None), "share.quota")
    assert (whole["verdict"], whole["value"]) == ("pass", 1)


def test_quota_that_was_not_told_is_undetermined_with_the_reason_there_is(facts):
    facts["quota"] = []
    (finding,) = found(facts, "share.quota")
    assert short([finding]) == [("undetermined", None, None, "< 0", "quota was not reported")]
    assert finding["remedy"] == remedy("share.quota.unanswered", finding)
    quota(facts)
    facts["problems"] = [{"part": "quota", "type": None, "problem": "held"}]
    assert short(found(facts, "share.quota")) == [("undetermined", None, None, "< 0", "held")]
    assert [f["verdict"] for f in found(facts, "share.quota", {"quota": False})] == ["recorded"]


@pytest.mark.parametrize(
    ("mounted", "enforcement", "verdict", "value"),
    [
        ("true", {"client": False, "management": True}, "pass", "enforced"),
        ("TRUE", {"management": True}, "pass", "enforced"),
        ("1", {"management": True}, "pass", "enforced"),
        ("false", {"client": True, "management": True}, "fail", "quotaEnabled is false"),
        ("true", {"management": False}, "fail", "quotaEnableEnforcement is false"),
        ("true", {"management": None}, "undetermined", None),
        (None, {"client": None, "management": True}, "undetermined", None),
        (None, {"client": True, "management": True}, "pass", "enforced"),
        ("true", None, "undetermined", None),
    ],
)
def test_quota_that_is_expected_needs_proof_where_no_limit_is_told(facts, mounted, enforcement, verdict, value):
    quota(facts, size_limit=None, files_limit=None)
    facts["quota_enforcement"] = enforcement
    client = {"config": {"quotaEnabled": mounted}}
    finding = found(facts, "share.quota", {"quota": True}, client=client)[-1]
    assert (finding["verdict"], finding["value"], finding["bound"]) == (verdict, value, '= "enforced"')
    if verdict == "undetermined":
        assert finding["why"] == "no limit is reported, as when quota is not enabled"
    assert "enforced" not in str(found(facts, "share.quota", client=client)[-1]["value"])
