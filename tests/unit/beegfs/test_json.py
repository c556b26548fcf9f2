# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON of beegfs 8.x, in the forms that its published source has; none of it was ever met."""

from __future__ import annotations

import json

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import json_v8


def lines(*items):
    return "".join(json.dumps(item) + "\n" for item in items)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, "client"),
        (2, "meta"),
        (3, "storage"),
        (4, "management"),
        (5, None),
        (True, None),
        ("m", "meta"),
        ("s", "storage"),
        ("c", "client"),
        ("metadata", "meta"),
        ("mgmtd", "management"),
        ("Storage", "storage"),
        ("-", None),
        (None, None),
    ],
)
def test_a_type_of_node(value, kind):
    assert json_v8.node_type(value) == kind


@pytest.mark.parametrize(
    ("value", "identity"),
    [
        ({"num_id": 101, "node_type": 3}, ("storage", 101)),
        ("s:101", ("storage", 101)),
        ("storage:101", ("storage", 101)),
        ("101", (None, 101)),
        (101, (None, 101)),
        ("s:x", ("storage", None)),
        ({}, (None, None)),
        (None, (None, None)),
        ("x", (None, None)),
    ],
)
def test_an_identity(value, identity):
    assert json_v8.identity(value) == identity


@pytest.mark.parametrize(
    ("value", "name"),
    [("a", "a"), ({"alias": "a"}, "a"), ("", None), (" ", None), ("<unmapped>", None), (7, None), ({"alias": 7}, None)],
)
def test_a_name(value, name):
    assert json_v8.name(value) == name


TARGET = {"id": "s:101", "type": 3, "alias": "a", "node": "n", "reachability": "Online", "consistency": "Good"}
TARGET.update(sync_state="Healthy", cap_pool="Low", space="9", space_free=5, inodes=8, inodes_free="7")


@pytest.mark.parametrize(
    ("changed", "kind"),
    [({}, "storage"), ({"type": None}, "storage"), ({"id": 101}, "storage"), ({"type": "meta"}, "meta")],
)
def test_a_target(changed, kind):
    parsed = json_v8.targets(lines({**TARGET, **changed}))
    assert parsed.problems == []
    (row,) = parsed.rows
    assert (row["type"], row["id"], row["name"], row["node"]) == (kind, 101, "a", "n")
    assert (row["reachability"], row["consistency"], row["sync_state"], row["pool"]) == (
        "online",
        "good",
        "healthy",
        "low",
    )
    assert (row["total"], row["free"], row["inodes"], row["inodes_free"]) == (9, 5, 8, 7)
    assert (row["free_least"], row["free_most"], row["inodes_free_least"]) == (5, 5, 7)


@pytest.mark.parametrize("changed", [{"id": None}, {"id": 101, "type": None}, {"type": 1}, {"id": "s:x"}])
def test_a_target_of_no_known_form_is_a_problem(changed):
    parsed = json_v8.targets(lines({**TARGET, **changed}, {**TARGET, "id": "s:102"}))
    assert [row["id"] for row in parsed.rows] == [102]
    assert ["unrecognised target" in problem for problem in parsed.problems] == [True]


def test_a_target_without_a_server_is_told_and_listed():
    parsed = json_v8.targets(lines({**TARGET, "node": "<unmapped>"}))
    assert parsed.rows[0]["node"] is None
    assert parsed.problems == ["storage target 101 belongs to no server"]


NODE = {"id": "s:1", "type": 3, "alias": "a", "nics": "ib0\neth0", "reachable": "yes\nno"}


@pytest.mark.parametrize(
    ("changed", "reachable", "silent"),
    [
        ({}, True, "eth0"),
        ({"reachable": "yes\nyes"}, True, None),
        ({"reachable": "no\nno"}, False, None),
        ({"reachable": "no\nyes"}, True, "ib0"),
        ({"nics": "ib0"}, True, "1 of 2 network cards"),
        ({"nics": 7}, True, "1 of 2 network cards"),
        ({"reachable": "?\nyes"}, None, None),
        ({"reachable": ""}, None, None),
        ({"reachable": None}, None, None),
        ({"reachable": True}, None, None),
    ],
)
def test_a_server(changed, reachable, silent):
    parsed = json_v8.nodes(lines({**NODE, **changed}))
    assert parsed.problems == []
    assert parsed.rows == [{"type": "storage", "name": "a", "id": 1, "reachable": reachable, "unreachable_by": silent}]


@pytest.mark.parametrize(
    ("changed", "kind"), [({"type": None}, "storage"), ({"id": 1}, "storage"), ({"type": 4}, "management")]
)
def test_the_type_of_a_server_stands_in_one_of_two_places(changed, kind):
    assert json_v8.nodes(lines({**NODE, **changed})).rows[0]["type"] == kind


def test_clients_are_no_servers_and_others_of_no_known_form_are_a_problem():
    parsed = json_v8.nodes(lines({**NODE, "type": 1}, {**NODE, "id": None}, {**NODE, "id": 1, "type": None}))
    assert parsed.rows == []
    assert ["unrecognised node" in problem for problem in parsed.problems] == [True, True]


GROUP = {"id": "s:1", "type": 3, "primary_target": "s:101", "secondary_target": {"num_id": 201}}


@pytest.mark.parametrize(
    ("changed", "kind"), [({}, "storage"), ({"type": None}, "storage"), ({"id": 1}, "storage"), ({"type": 2}, "meta")]
)
def test_a_mirror_group(changed, kind):
    parsed = json_v8.mirrors(lines({**GROUP, **changed}))
    assert parsed.problems == []
    assert parsed.rows == [{"type": kind, "group": 1, "primary": 101, "secondary": 201}]


@pytest.mark.parametrize(
    "changed", [{"id": None}, {"type": 1}, {"primary_target": None}, {"secondary_target": "x"}, {"id": 1, "type": None}]
)
def test_a_mirror_group_of_no_known_form_is_a_problem(changed):
    parsed = json_v8.mirrors(lines({**GROUP, **changed}))
    assert parsed.rows == []
    assert ["unrecognised mirror group" in problem for problem in parsed.problems] == [True]


def test_no_mirror_group_and_no_word_that_there_are_none():
    assert json_v8.mirrors("").problems == ["neither mirror groups nor their absence was reported"]
    assert json_v8.mirrors("x").problems != []
    assert len(json_v8.mirrors("x").problems) == 1


QUOTA = {"name": "a", "id": 1, "type": "user", "pool": "p", "space": "5/9", "inode": "3/7"}


@pytest.mark.parametrize(
    ("changed", "limits"),
    [
        ({}, (9, 7)),
        ({"space": "5/unlimited"}, (None, 7)),
        ({"inode": "3/∞"}, (9, None)),
        ({"inode": "3/9223372036854775807"}, (9, None)),
        ({"type": "User", "pool": {"alias": "p"}}, (9, 7)),
    ],
)
def test_a_quota(changed, limits):
    parsed = json_v8.quota(lines({**QUOTA, **changed}))
    assert parsed.problems == []
    assert parsed.rows == [{"pool": "p", "size": 5, "size_limit": limits[0], "files": 3, "files_limit": limits[1]}]


@pytest.mark.parametrize(
    "changed", [{"space": "?/9"}, {"inode": "3/?"}, {"inode": "3"}, {"space": None}, {"type": "x"}, {"type": None}]
)
def test_a_quota_of_no_known_form_is_a_problem(changed):
    parsed = json_v8.quota(lines({**QUOTA, **changed}))
    assert parsed.rows == []
    assert "unrecognised row" in parsed.problems[0]


def test_quota_of_groups_is_none_of_the_users_and_a_warning_decides_only_where_nothing_is_told():
    warning = f"{json_v8.NO_QUOTA}\n"
    group = {**QUOTA, "type": "group", "space": "?/?"}
    assert json_v8.quota(lines(group)).problems == ["no quota was reported"]
    assert json_v8.quota(lines(group, QUOTA)).problems == []
    assert json_v8.quota(lines(QUOTA) + warning).problems == []
    assert json_v8.quota(warning).problems == ["quota is not enabled: the servers record none for this user"]
    bad = json_v8.quota(lines({**QUOTA, "space": "?"}) + warning).problems
    assert [problem.split(":")[0] for problem in bad] == ["unrecognised row", "no quota was reported"]


def test_what_is_no_object_or_no_json_is_a_problem_and_notes_are_none():
    parsed = json_v8.targets("INFO: a note\n" + json.dumps([TARGET, 7]) + "\nWARNING: another\n")
    assert [row["id"] for row in parsed.rows] == [101]
    assert parsed.problems == ["expected an object, found: 7"]
    parsed = json_v8.targets(lines(TARGET) + "{half a docum")
    assert [row["id"] for row in parsed.rows] == [101]
    assert parsed.problems == ["not JSON: {half a docum"]
    assert json_v8.targets(" \n \n").problems == []
    assert json_v8.targets(lines(TARGET).replace('"alias"', '"id": 7, "alias"')).problems  # a key that stands twice


def test_the_striping_of_an_entry():
    found = json_v8.striping(lines({"stripe_pattern": "RAID0 (4x512K)"}))
    assert found == {"pattern": "raid0", "chunk_kib": 512, "targets": 4, "source": "beegfs", "error": None}
    for text in ("RAID0 (4x0K)", "RAID0 (4xmany)", "RAID0", "", 7, None):
        assert json_v8.striping(lines({"stripe_pattern": text}))["error"].startswith("unrecognised stripe pattern")
    assert json_v8.striping(lines({}, {}))["error"] == "expected one entry, found 2"
    assert "not JSON" in json_v8.striping(lines({"stripe_pattern": "RAID0 (4x512K)"}) + "x")["error"]
