# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is judged of the servers, whatever the facts hold."""

from __future__ import annotations

import json

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import remedies as judge_remedies
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import verdicts as judge_verdicts
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import findings as share_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import servers as share_servers

from tests.unit.beegfs.told import instead, told
from tests.unit.conftest import ROOT

EXAMPLE = json.loads((ROOT / "files/schemas/examples/share.json").read_text())
SCENARIOS = ("healthy", "v8")
FAILED = instead("cli_8_documented/error_mgmtd_down", "quota")
NOT_ENABLED = instead("cli_8_documented/quota_list_usage_not_enabled", "quota")


def servers(facts, expect=None, **more):
    findings = share_findings.servers_findings(facts, expect, host="login", share_type="beegfs", **more)
    for finding in findings:
        assert schema.problems("finding", finding) == []
        assert finding["remedy"] or finding["verdict"] not in ("fail", "undetermined")
    return findings


def verdicts(findings):
    return {finding["id"]: finding["verdict"] for finding in findings}


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize(
    "changed",
    [
        {"targets": []},
        {"targets": None},
        {"targets": ["x"]},
        {"targets": [[]]},
        {"targets": "x"},
        {"problems": ["boom"]},
        {"problems": {"a": 1}},
        {"problems": False},
        {"nodes": ["x"]},
        {"nodes": 7},
    ],
    ids=str,
)
def test_servers_of_which_nothing_is_told_or_nothing_of_a_known_form_are_undetermined(scenario, changed):
    (finding,) = [f for f in servers({**told(scenario), **changed}) if f["id"] == "share.servers"]
    assert (finding["verdict"], bool(finding["remedy"])) == ("undetermined", True)
    assert finding["why"]


@pytest.mark.parametrize(
    ("part", "identity"),
    [
        ("targets", "share.servers"),
        ("nodes", "share.servers"),
        ("mirrors", "share.mirrors"),
        ("quota", "share.quota"),
        ("problems", "share.servers"),
    ],
)
def test_one_row_of_no_known_form_makes_its_part_undetermined(part, identity):
    facts = told("v8")
    facts[part] = [*(facts[part] or []), "x"]
    assert verdicts(servers(facts))[identity] == "undetermined"


@pytest.mark.parametrize("part", ["targets", "nodes", "mirrors", "quota", "problems"])
def test_a_part_that_is_missing_is_no_pass(part):
    facts = told("both-mirrored-healthy")
    assert judge_verdicts.overall(servers(facts)) == "pass"
    del facts[part]
    assert judge_verdicts.overall(servers(facts)) == "undetermined"


@pytest.mark.parametrize("kind", ["meta", "storage"])
@pytest.mark.parametrize("part", ["targets", "nodes"])
def test_a_type_of_which_nothing_is_listed_is_undetermined(kind, part):
    facts = told("both-mirrored-healthy")
    facts[part] = [row for row in facts[part] if row["type"] != kind]
    found = servers(facts)
    assert judge_verdicts.overall(found) == "undetermined"
    assert any(kind in str(finding["where"].get("target")) for finding in found if finding["verdict"] == "undetermined")


def test_a_boolean_is_no_number_of_inodes_and_no_limit_is_what_the_tool_says():
    facts = told("healthy")
    for target in facts["targets"]:
        target.update(inodes=False, inodes_free_least=None)
    assert verdicts(servers(facts))["share.target_free_inodes"] == "undetermined"
    for target in facts["targets"]:
        target.update(inodes=False, inodes_free_least=True, inodes_free_most=True)
    assert verdicts(servers(facts))["share.target_free_inodes"] == "undetermined"
    for limit in ({}, [], "x", True):
        facts = told("healthy")
        facts["quota"][0]["size_limit"] = limit
        assert verdicts(servers(facts))["share.quota"] == "undetermined"
    facts = told("healthy")
    del facts["quota"][0]["files_limit"]
    assert verdicts(servers(facts))["share.quota"] == "undetermined"


def test_a_file_system_without_a_fixed_number_of_inodes_is_not_asked_for_them():
    facts = told("healthy")
    for target in facts["targets"]:
        target.update(inodes=0, inodes_free=0, inodes_free_least=0, inodes_free_most=50_000)
    found = servers(facts)
    assert "share.target_free_inodes" not in verdicts(found)
    assert judge_verdicts.overall(found) == "pass"


@pytest.mark.parametrize(
    ("least", "most", "bound", "verdict"),
    [
        (100, 200, 100, "pass"),
        (100, 200, 101, "undetermined"),
        (100, 200, 200, "undetermined"),
        (100, 200, 201, "fail"),
        (100, 100, 100, "pass"),
        (99, 99, 100, "fail"),
    ],
)
def test_a_bound_is_judged_by_the_end_of_the_interval_that_is_against_the_machine(least, most, bound, verdict):
    facts = told("healthy")
    for target in facts["targets"]:
        target.update(inodes_free_least=least, inodes_free_most=most)
    assert verdicts(servers(facts, {"target_free_inodes": bound}))["share.target_free_inodes"] == verdict


def test_what_is_expected_of_room_may_differ_by_type():
    facts = told("healthy")
    for expect, verdict in (
        ({"target_free_inodes": {"meta": 300_000}}, "fail"),
        ({"target_free_inodes": {"storage": 300_000}}, "pass"),
        ({"target_free_inodes": {"storage": 3_000_000}}, "fail"),
        ({"target_free_gib": {"meta": 2}}, "fail"),
        ({"target_free_gib": {"storage": 2}}, "pass"),
        ({"target_free_gib": 2}, "fail"),
    ):
        assert judge_verdicts.overall(servers(facts, expect)) == verdict


@pytest.mark.parametrize(
    ("expect", "limits", "client", "management", "verdict"),
    [
        ({}, False, None, None, "recorded"),
        ({"quota": False}, False, None, None, "recorded"),
        ({"quota": True}, False, None, None, "undetermined"),
        ({"quota": True}, False, True, None, "undetermined"),
        ({"quota": True}, False, None, True, "undetermined"),
        ({"quota": True}, False, True, True, "pass"),
        ({"quota": True}, False, False, True, "fail"),
        ({"quota": True}, False, True, False, "fail"),
        ({"quota": True}, True, None, None, "pass"),
        ({}, True, None, None, "pass"),
    ],
)
def test_no_limit_says_nothing_of_whether_quota_is_enforced(expect, limits, client, management, verdict):
    facts = told("healthy" if limits else "healthy-no-mirrors")
    facts["quota_enforcement"] = {"client": client, "management": management}
    found = [f["verdict"] for f in servers(facts, expect) if f["id"] == "share.quota"]
    assert found[-1] == verdict
    assert "pass" not in found[:-1]


def test_what_the_mounts_client_is_set_to_goes_before_the_file():
    facts = told("healthy-no-mirrors")
    facts["quota_enforcement"] = {"client": True, "management": True}
    mounted = {"config": {"quotaEnabled": "false"}}
    found = [f for f in servers(facts, {"quota": True}, client=mounted) if f["id"] == "share.quota"]
    assert (found[-1]["verdict"], found[-1]["value"]) == ("fail", "quotaEnabled is false")


def test_quota_that_is_not_enabled_is_recorded_only_where_none_is_expected():
    facts = told("v8", first=[NOT_ENABLED])
    for expect, verdict in (({}, "undetermined"), ({"quota": True}, "undetermined"), ({"quota": False}, "recorded")):
        (finding,) = [f for f in servers(facts, expect) if f["id"] == "share.quota"]
        assert finding["verdict"] == verdict
        assert "quota is not enabled" in finding["why"]
    (finding,) = [f for f in servers(facts) if f["id"] == "share.quota"]
    assert "{quota: false}" in finding["remedy"]


def test_the_network_cards_by_which_a_server_does_not_answer_are_recorded():
    facts = told("v8")
    facts["nodes"][1]["unreachable_by"] = "rdma:ib0 (10.98.0.2:8005)"
    found = [f for f in servers(facts) if f["id"] == "share.nodes_reachable"]
    assert [f["verdict"] for f in found] == ["pass", "recorded"]
    assert "not on rdma:ib0 (10.98.0.2:8005)" in found[1]["why"]
    assert judge_verdicts.overall(servers(facts)) == "pass"


def test_version_8_says_that_it_was_never_met_and_version_7_does_not():
    (finding,) = [f for f in servers(told("v8")) if f["id"] == "share.servers_tool"]
    assert (finding["verdict"], "never met" in finding["value"]) == ("recorded", True)
    assert "share.servers_tool" not in verdicts(servers(told("healthy")))


def test_no_way_to_ask_the_servers_makes_their_checks_not_applicable():
    findings = share_findings.servers_findings(None, {}, host="login", share_type="beegfs", access="none")
    assert {f["id"] for f in findings} == set(share_servers.CHECKS)
    assert {f["verdict"] for f in findings} == {"not_applicable"}


def test_low_is_recorded_and_quota_can_be():
    low = told("v8", "low", first=[FAILED])
    findings = servers(low, {"quota": False})
    assert judge_verdicts.overall(findings) == "pass"
    assert [f["verdict"] for f in findings if f["id"] == "share.capacity_pool"] == ["pass", "recorded"]
    assert [f["verdict"] for f in findings if f["id"] == "share.quota"] == ["recorded"]


@pytest.mark.parametrize("pool", ["low", "emergency"])
def test_the_pool_of_a_target_that_is_not_good_follows_from_that(pool):
    facts = told("healthy")
    facts["targets"][5].update(pool=pool, consistency="bad")
    found = servers(facts, {"capacity_pool": "normal"})
    assert {f["verdict"] for f in found if f["id"] == "share.capacity_pool"} == {"pass", "recorded"}
    assert verdicts(found)["share.targets_consistent"] == "fail"


def symptom_of_pool(**changed):
    facts = told("healthy")
    facts["targets"][5].update(pool="emergency", **changed)
    (finding,) = [f for f in servers(facts) if f["id"] == "share.capacity_pool" and f["verdict"] == "fail"]
    return next(
        name
        for name, text in judge_remedies.load().items()
        if text.replace("{target}", finding["where"]["target"]) == finding["remedy"]
    )


@pytest.mark.parametrize(
    ("changed", "symptom"),
    [
        ({}, "report"),
        ({"free_least": 4 << 30}, "report"),
        ({"free_least": 3 << 30}, "space"),
        ({"inodes_free_least": 200_000}, "inodes"),
        ({"inodes_free_least": 200_000, "free_least": 1 << 30}, "space"),
        ({"inodes": 0, "free_least": 1 << 30}, "space"),
        ({"inodes": None, "inodes_free_least": None}, "report"),
        ({"inodes_free_least": None, "free_least": None}, "unknown"),
    ],
)
def test_what_to_do_about_a_pool_goes_by_what_is_short(changed, symptom):
    assert symptom_of_pool(total=8 << 30, **changed) == f"share.capacity_pool.{symptom}"


def test_a_list_that_lost_whole_lines_is_told_from_what_else_is_known():
    facts = told("healthy")
    of_stor2 = [row["id"] for row in facts["targets"] if row["node"] == "stor2"]
    facts["targets"] = [row for row in facts["targets"] if row["id"] not in of_stor2]
    (finding,) = [f for f in servers(facts) if f["verdict"] == "undetermined"]
    assert finding["where"]["target"] == "any target of storage server stor2"
    facts = told("healthy")
    facts["targets"] = [row for row in facts["targets"] if row["id"] != 102]
    (finding,) = [f for f in servers(facts, client=EXAMPLE["mount"]["client"]) if f["verdict"] == "undetermined"]
    assert finding["where"]["target"] == "storage target 102"


CHECKS = [
    "share.servers",
    "share.node_count",
    "share.nodes_reachable",
    "share.target_count",
    "share.targets_reachable",
    "share.targets_consistent",
    "share.capacity_pool",
    "share.target_free_space",
    "share.target_free_inodes",
    "share.mirror_count",
    "share.mirrors",
    "share.quota",
]


@pytest.mark.parametrize(("share_type", "access"), [("other", "user"), ("other", "none"), ("beegfs", "none")])
def test_what_does_not_apply_is_each_check_of_the_servers(share_type, access):
    findings = share_findings.servers_findings(told("healthy"), {}, host="login", share_type=share_type, access=access)
    assert [finding["id"] for finding in findings] == CHECKS
    assert {finding["verdict"] for finding in findings} == {"not_applicable"}
    reason = "hpc_validation_share_type is other" if share_type == "other" else "hpc_validation_beegfs_access is none"
    assert {finding["why"] for finding in findings} == {reason}


@pytest.mark.parametrize(
    "cause",
    [
        "tool",
        "secret",
        "permission",
        "configuration",
        "name",
        "network",
        "management",
        "silent",
        "foreign",
        None,
        "other",
    ],
)
def test_each_cause_has_a_remedy_of_its_own(cause):
    problem = {"part": None, "type": None, "source": "a command", "problem": "words", "cause": cause}
    (finding,) = servers({"tool": "beegfs-ctl", "targets": None, "problems": [problem]})
    remedies = judge_remedies.load()
    symptom = "share.servers" if cause in (None, "other") else f"share.servers.{cause}"
    assert finding["remedy"] == remedies[symptom].replace("{host}", "login")
    assert finding["why"] == ("a command: words" if cause == "foreign" else "words")
    assert (finding["id"], finding["source"], finding["bound"]) == ("share.servers", "beegfs-ctl", "= 0")
    assert list(remedies.values()).count(remedies[symptom]) == 1


def test_more_than_one_reason_is_counted():
    problems = [{"part": "nodes", "problem": text} for text in ("a", "b", "a", "c")]
    (finding,) = servers({"tool": "beegfs-ctl", "targets": None, "problems": problems})
    assert finding["why"] == "a (and 2 more)"
    (finding,) = servers({"tool": "beegfs-ctl", "targets": None, "problems": problems[:1]})
    assert finding["why"] == "a"


def test_of_no_facts_at_all_the_reason_is_the_one_given():
    (finding,) = servers(None, missing="the node cannot be reached")
    assert (finding["verdict"], finding["why"]) == ("undetermined", "the node cannot be reached")
    (finding,) = servers(None)
    assert finding["why"] == "nothing about them was reported"


def test_a_management_daemon_that_knows_nothing_is_one_finding_and_what_was_expected_fails():
    facts = {"tool": "beegfs-ctl", "targets": [], "nodes": [], "mirrors": [], "quota": [], "problems": []}
    (finding,) = servers(facts)
    assert (finding["id"], finding["why"]) == ("share.servers", "the management daemon knows no storage target")
    assert "systemctl restart beegfs-storage" in finding["remedy"]
    expect = {"nodes": {"meta": 1}, "targets": {"storage": 2}, "mirrors": {"meta": 3}, "quota": True}
    found = servers(facts, expect)[1:]
    assert [(f["id"], f["verdict"], f["value"], f["bound"], f["unit"]) for f in found] == [
        ("share.node_count", "fail", 0, "= 1", "meta servers"),
        ("share.target_count", "fail", 0, "= 2", "storage targets"),
        ("share.mirror_count", "fail", 0, "= 3", "meta mirror groups"),
        ("share.quota", "fail", "the management daemon knows no limit and no target", '= "enforced"', None),
    ]
    nothing = {**facts, "targets": None}
    assert [f["id"] for f in servers(nothing, expect)] == ["share.servers"]


def test_what_was_not_told_is_not_counted():
    facts = told("both-mirrored-healthy")
    facts["problems"] = [{"part": "mirrors", "type": "meta", "problem": "refused"}]
    found = servers(facts, {"mirrors": {"meta": 1, "storage": 2}})
    counts = [(f["verdict"], f["value"], f["why"]) for f in found if f["id"] == "share.mirror_count"]
    assert counts == [("undetermined", None, "refused"), ("pass", 2, "2 is = 2")]
    facts["mirrors"] = None
    found = servers({**facts, "problems": []}, {"mirrors": {"storage": 2}})
    counts = [(f["verdict"], f["why"]) for f in found if f["id"] == "share.mirror_count"]
    assert counts == [("undetermined", "storage mirror groups were not reported")]
