# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the servers are asked, in which order, and how the answers are put together."""

from __future__ import annotations

import os

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import servers

from tests.unit.beegfs.told import Tool, answer

LIMITED = "--connMessagingTimeouts=3000,3000,3000"
TABLE = "--longnodes --pools"


def asked(tool):
    return [" ".join(argv[1:]) for argv in tool.asked]


def test_version_7_is_asked_in_three_stages():
    tool = Tool("both-mirrored-healthy")
    told = tool.told("0")
    questions = asked(tool)
    assert set(questions[:6]) == {
        f"{words[0]} --nodetype={kind} {words[1]}"
        for kind in ("meta", "storage")
        for words in (
            ("--listnodes", "--reachable --errorcodes"),
            ("--listtargets", TABLE),
            ("--listtargets", f"--mirrorgroups {TABLE}"),
        )
    }
    assert set(questions[6:8]) == {f"--listtargets --nodetype={kind} --state {TABLE}" for kind in ("meta", "storage")}
    assert set(questions[8:]) == {
        f"--getquota --uid 0 --csv {LIMITED}",
        *(f"--listtargets --nodetype={kind} --state {TABLE} --spaceinfo {LIMITED}" for kind in ("meta", "storage")),
    }
    assert len(questions) == 11
    assert told["tool"] == "beegfs-ctl"


def test_version_8_is_asked_for_json_lines_with_all_columns():
    tool = Tool("v8")
    told = tool.told(str(os.geteuid()))
    end = "--columns all --output ndjson"
    assert set(asked(tool)) == {
        f"target list --state --capacity --raw {end}",
        f"node list --reachability-check {end}",
        f"mirror list {end}",
        f"quota list-usage --raw {end} --uids current",
    }
    assert told["tool"] == "beegfs"


def test_the_striping_of_a_path_is_asked_by_either_tool():
    tool = Tool("healthy")
    servers.striping(tool.cli(), "/mnt/x")
    assert asked(tool) == [f"--getentryinfo /mnt/x {LIMITED}"]
    tool = Tool("v8")
    servers.striping(tool.cli(), "/mnt/x")
    assert asked(tool) == ["entry info /mnt/x --raw --columns all --output ndjson"]


def test_nobody_named_is_the_one_who_asks():
    tool = Tool("healthy")
    tool.told(None)
    assert [words for words in asked(tool) if f"--uid {os.geteuid()} " in words]


def test_rows_that_were_read_are_kept_though_there_is_a_problem():
    out = "stor1 [ID: 1]\n   Reachable: <yes>\nsome text\n"
    told = Tool("healthy", first=[answer("--listnodes", out=out)]).told()
    assert [row["name"] for row in told["nodes"]] == ["stor1", "stor1"]
    assert [problem["part"] for problem in told["problems"]] == ["nodes", "nodes"]
    assert {problem["cause"] for problem in told["problems"]} == {"foreign"}


SPACE = """TargetID Reachability Consistency Cap. Pool Total Free % ITotal IFree % NodeID
====
101 Offline Bad low 7.8GiB 7.8GiB 100% 0.5M 0.5M 100% beegfs-storage stor1 [ID: 1]
301 Online Good normal 7.8GiB 7.8GiB 100% 0.5M 0.5M 100% beegfs-storage stor3 [ID: 3]
"""


def test_states_that_come_with_space_are_older_and_do_not_count():
    told = Tool("healthy", first=[answer("--spaceinfo", "--nodetype=storage", out=SPACE)]).told()
    rows = {row["id"]: row for row in told["targets"]}
    assert (rows[101]["reachability"], rows[101]["consistency"], rows[101]["pool"]) == ("online", "good", "normal")
    assert rows[101]["space_told"] is True
    assert rows[102]["space_told"] is None
    assert (rows[301]["reachability"], rows[301]["node"]) == ("online", "stor3")


def test_what_a_later_listing_leaves_out_stays_as_an_earlier_one_said_it():
    out = "TargetID Reachability Consistency Cap. Pool NodeID\n====\n101 Offline Good beegfs-storage stor1 [ID: 1]\n"
    told = Tool("healthy", first=[answer("--state", "--nodetype=storage", "--pools", "--longnodes", out=out)]).told()
    row = next(row for row in told["targets"] if row["id"] == 101)
    assert (row["reachability"], row["pool"]) == ("offline", "normal")


@pytest.mark.parametrize(("state", "kinds"), [("no-meta-registered", {"storage"}), ("fresh-mgmtd-alone", set())])
def test_what_the_management_daemon_does_not_know_is_not_asked_for_states_and_space(state, kinds):
    tool = Tool(state)
    told = tool.told()
    assert {kind for kind in ("meta", "storage") for words in asked(tool) if f"={kind} --state" in words} == kinds
    assert told["problems"] == []
    assert {row["type"] for row in told["targets"]} == kinds


def test_a_type_whose_targets_could_not_be_read_is_asked_for_its_states_all_the_same():
    first = {"words": ["--listtargets", "--nodetype=meta", "--longnodes", "--pools"], "out": "x\n", "err": "", "rc": 0}
    tool = Tool("healthy", first=[first])
    told = tool.told()
    assert [words for words in asked(tool) if "=meta --state" in words]
    assert {row["id"] for row in told["targets"] if row["type"] == "meta"} == {1, 2}
    assert {(problem["part"], problem["type"]) for problem in told["problems"]} == {("targets", "meta")}


def test_the_mirrors_of_a_type_alone_are_asked_for_in_the_older_way_where_they_were_not_read():
    tool = Tool("both-mirrored-healthy")
    tool.told()
    assert not [words for words in asked(tool) if "--listmirrorgroups" in words]
    refused = answer("--mirrorgroups", "--nodetype=storage", err="no\n", rc=1)
    tool = Tool("both-mirrored-healthy", first=[refused])
    tool.told()
    assert [words for words in asked(tool) if "--listmirrorgroups" in words] == [
        "--listmirrorgroups --nodetype=storage"
    ]
    silent = answer("--mirrorgroups", "--nodetype=storage", seconds=3600)
    tool = Tool("both-mirrored-healthy", first=[silent])
    told = tool.told()
    assert not [words for words in asked(tool) if "--listmirrorgroups" in words]
    assert [(problem["part"], problem["type"], problem["cause"]) for problem in told["problems"]] == [
        ("mirrors", "storage", "silent")
    ]
    both = [refused, answer("--listmirrorgroups", "--nodetype=storage", err="nor this\n", rc=1)]
    told = Tool("both-mirrored-healthy", first=both).told()
    assert [problem["problem"] for problem in told["problems"]] == ["no"]


def test_one_question_that_meets_a_general_cause_hides_nothing_of_the_others():
    lost = answer("--listnodes", "--nodetype=meta", err="Management node communication failed: x\n", rc=3)
    tool = Tool("healthy", first=[lost])
    told = tool.told()
    assert [problem["cause"] for problem in told["problems"]] == ["management"]
    assert len(told["targets"]) == 6
    assert len(asked(tool)) == 11


def test_of_a_silent_tool_the_first_question_is_told():
    (problem,) = Tool("hang").told()["problems"]
    assert (problem["part"], problem["type"], problem["cause"]) == ("nodes", "meta", "silent")
    assert problem["source"] == "beegfs-ctl --listnodes --nodetype=meta --reachable --errorcodes"


def test_one_silent_question_does_not_stand_for_others_that_were_refused():
    silent = answer("--listnodes", "--nodetype=storage", seconds=3600)
    refused = [answer(mode, err="no\n", rc=1) for mode in ("--listnodes", "--listtargets", "--listmirrorgroups")]
    tool = Tool("healthy", first=[silent, *refused])
    problems = tool.told()["problems"]
    assert [words for words in asked(tool) if "--state" in words]
    assert {"silent", None} <= {problem["cause"] for problem in problems}


@pytest.mark.parametrize(
    ("rows", "problems"),
    [
        ("", ["why"]),
        ("x\n", ["why"]),
        ("101 Online Good normal beegfs-storage stor1 [ID: 1]\n", ["why"]),
        (
            "101 Online Good normal beegfs-storage stor1 [ID: 1]\nx\n",
            ["why", "unrecognised row: x"],
        ),
    ],
)
def test_a_failure_goes_before_what_could_not_be_read(rows, problems):
    out = f"TargetID Reachability Consistency Cap. Pool NodeID\n====\n{rows}"
    first = answer("--state", "--nodetype=storage", "--pools", "--longnodes", out=out, err="why\n", rc=3)
    found = Tool("healthy", first=[first]).told()["problems"]
    assert [each["problem"] for each in found if each["part"] == "states"] == problems


def test_a_failure_of_version_8_keeps_the_rows_there_are():
    target = '{"id": "s:101", "type": 3}\n'
    for out, problems in (
        (target, ["Error: why"]),
        (target + "x\n", ["Error: why", "not JSON: x"]),
        ("x\n", ["Error: why"]),
    ):
        told = Tool("v8", first=[answer("target", "list", out=out, err="Error: why\n", rc=1)]).told()
        assert [each["problem"] for each in told["problems"]] == problems
    told = Tool("v8", first=[answer("target", "list", rc=4)]).told()
    assert told["problems"][0]["problem"] == "exit code 4 without a message"
    told = Tool("v8", first=[answer("mirror", "list", err="license: no mirrors configured\n", rc=1)]).told()
    assert (told["mirrors"], told["problems"]) == ([], [])
    told = Tool("v8", first=[answer("mirror", "list", err="Error: other\nno mirrors configured\n", rc=1)]).told()
    assert told["mirrors"] is None


def test_a_general_cause_of_version_8_is_told_once():
    tool = Tool("v8", "mgmtd-dead")
    (problem,) = tool.told()["problems"]
    assert (problem["cause"], len(tool.asked)) == ("management", 3)


NEW = "TargetID Reachability Consistency Cap. Pool NodeID\n====\n{rows}"


@pytest.mark.parametrize(
    ("rows", "again"),
    [
        ("101 Probably-offline Good low 1\n102 Probably-offline Good low 1\n", True),
        ("101 Probably-offline Good low 1\n102 Online Good low 1\n", False),
        ("101 Online Good unknown 1\n102 Online Good low 1\n", True),
        ("101 Offline Good low 1\n", False),
        ("", False),
    ],
)
def test_what_a_management_daemon_that_was_just_started_says_is_asked_again(rows, again):
    first = answer(
        "--listtargets", "--state", "--nodetype=storage", "--pools", "--longnodes", out=NEW.format(rows=rows)
    )
    first["words"].remove("...")
    tool = Tool("healthy", first=[first])
    tool.told()
    found = [words for words in asked(tool) if words == f"--listtargets --nodetype=storage --state {TABLE}"]
    assert (len(found) > 1) is again
    assert len([words for words in asked(tool) if words == f"--listtargets --nodetype=meta --state {TABLE}"]) == 1
    if again:
        assert len(found) == 7
        assert tool.clock.now == pytest.approx(12)


def test_each_further_look_has_half_of_what_is_left():
    rows = "101 Probably-offline Good low 1\n"
    first = answer(
        "--listtargets", "--state", "--nodetype=storage", "--pools", "--longnodes", out=NEW.format(rows=rows)
    )
    first["words"].remove("...")
    tool, given = Tool("healthy", first=[first]), []

    def recorded(argv, seconds, **options):
        if argv[1:] == f"--listtargets --nodetype=storage --state {TABLE}".split():
            given.append((tool.clock.now, seconds))
        return tool(argv, seconds, **options)

    cli = tool.cli()
    cli.runner = recorded
    servers.servers(cli, "1000")
    assert given == [(now, pytest.approx((30 - now) / 2)) for now in (0, 2, 4, 6, 8, 10, 12)]


@pytest.mark.parametrize(
    ("reachable", "again"),
    [("<no>\nstor2 [ID: 2]\n   Reachable: <no>", False), ("<no>\nstor2 [ID: 2]\n   Reachable: <yes>", True)],
)
def test_servers_of_which_none_answers_are_not_waited_for(reachable, again):
    rows = "101 Probably-offline Good low 1\n"
    first = answer(
        "--listtargets", "--state", "--nodetype=storage", "--pools", "--longnodes", out=NEW.format(rows=rows)
    )
    first["words"].remove("...")
    nodes = answer("--listnodes", "--nodetype=storage", out=f"stor1 [ID: 1]\n   Reachable: {reachable}\n", rc=5)
    tool = Tool("healthy", first=[first, nodes])
    tool.told()
    assert (tool.clock.now > 0) is again


def test_the_first_questions_have_half_of_the_time_and_no_less_than_a_dead_server_takes():
    for deadline, seconds in ((30.0, 15), (6.0, 4), (2.0, 2)):
        (problem,) = Tool("hang").told(deadline=deadline)["problems"]
        assert problem["problem"] == f"beegfs-ctl did not answer in {seconds} s"
        (problem,) = Tool("v8", "hang").told(deadline=deadline)["problems"]
        assert problem["problem"] == f"beegfs did not answer in {seconds} s"


@pytest.mark.parametrize(
    "nodes",
    [
        answer("--listnodes", "--nodetype=meta", out="meta1 [ID: 1]\n   Reachable: <no>\n", rc=5),
        answer("--listnodes", "--nodetype=storage", err="not told\n", rc=3),
    ],
)
def test_other_servers_that_do_not_answer_and_servers_not_told_do_not_matter_for_that(nodes):
    rows = "101 Probably-offline Good low 1\n"
    first = answer(
        "--listtargets", "--state", "--nodetype=storage", "--pools", "--longnodes", out=NEW.format(rows=rows)
    )
    first["words"].remove("...")
    tool = Tool("healthy", first=[first, nodes])
    tool.told()
    assert tool.clock.now > 0


def test_each_stage_has_half_of_what_is_left_and_the_last_all():
    held = {**answer("--state", seconds=3600), "at_once": ""}
    found = Tool("healthy", first=[held]).told()["problems"]
    assert {each["problem"] for each in found if each["part"] == "states"} == {"beegfs-ctl did not answer in 15 s"}
    assert {each["problem"] for each in found if each["part"] == "space"} == {"beegfs-ctl did not answer in 30 s"}
    first = [
        answer("--mirrorgroups", err="no\n", rc=1),
        answer("--listmirrorgroups", out="BuddyGroupID PrimaryNodeID SecondaryNodeID\n1 1 2\n", seconds=16),
    ]
    found = Tool("healthy", first=first).told()["problems"]
    assert {each["problem"] for each in found} == {"no"}
    first[1] = {**first[1], "seconds": 14}
    assert Tool("healthy", first=first).told()["problems"] == []
