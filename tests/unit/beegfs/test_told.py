# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the facts tell of the servers, and why the rest was not told."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.told import Told


def problem(part, kind, text, cause=None):
    return {"part": part, "type": kind, "source": "a command", "problem": text, "cause": cause}


def test_the_tool_has_a_name_in_any_case():
    assert Told({"tool": "beegfs-ctl"}).tool == "beegfs-ctl"
    assert Told({"tool": None}).tool == Told(None).tool == "beegfs"


def test_a_part_that_there_is_none_of_was_told_and_one_of_another_kind_was_not():
    told = Told({"targets": [], "nodes": None, "mirrors": ["x"], "quota": {"a": 1}})
    assert [told.has(part) for part in ("targets", "nodes", "mirrors", "quota", "problems")] == [True] + [False] * 4
    assert told.rows("mirrors") == told.rows("nodes") == []


@pytest.mark.parametrize(("targets", "knows"), [([], True), (None, False), ("x", False), ([{"id": 1}], False)])
def test_a_management_daemon_that_knows_nothing_has_said_so(targets, knows):
    assert Told({"targets": targets}).knows_nothing is knows


def test_why_a_part_was_not_told_goes_by_part_and_type():
    told = Told(
        {
            "problems": [
                problem("space", "meta", "a"),
                problem("space", "storage", "b"),
                problem("space", "storage", "b"),
                problem("states", None, "c"),
                problem("states", "meta", "d"),
            ]
        }
    )
    assert told.problem("space", "meta") == "a"
    assert told.problem("space", "storage") == "b"
    assert told.problem("space", None) == "a; b"
    assert told.problem("states", "storage") == "c"
    assert told.problem("states", "meta") == "c; d"
    assert told.problem("nodes", "meta") is None
    many = Told({"problems": [problem("quota", None, str(number)) for number in range(5)]})
    assert many.problem("quota", None) == "0; 1; 2"


def test_a_part_of_no_known_form_is_a_reason():
    assert Told({"mirrors": ["x"], "problems": []}).problem("mirrors", "meta") == "mirrors of no known form"
    assert Told({"mirrors": [], "problems": []}).problem("mirrors", "meta") is None
    assert Told({"problems": []}).problem("mirrors", "meta") is None


def test_what_keeps_the_servers_from_having_been_asked():
    told = Told(
        {
            "targets": [],
            "nodes": [],
            "problems": [
                *(problem(part, "meta", part) for part in ("states", "space", "mirrors", "quota")),
                problem("targets", "meta", "x", "foreign"),
                problem("nodes", "meta", "y", "silent"),
                problem(None, None, "z"),
            ],
        }
    )
    assert told.basic_problems() == [("a command: x", "foreign"), ("y", "silent"), ("z", None)]
    assert Told({"targets": [], "nodes": [], "problems": []}).basic_problems() == []
    assert Told({"targets": None, "problems": []}).basic_problems() == []
    assert Told({"targets": [], "nodes": []}).basic_problems() == [("what went wrong was not reported", None)]
    for part in ("targets", "nodes"):
        assert Told({part: ["x"], "problems": []}).basic_problems() == [(f"{part} of no known form", None)]


def started(states, answers, kind="storage"):
    return Told(
        {
            "targets": [
                *({"type": "storage", "reachability": state} for state in states),
                {"type": "meta", "reachability": "online"},
            ],
            "nodes": [
                *({"type": "storage", "reachable": answer} for answer in answers),
                {"type": "meta", "reachable": False},
            ],
        }
    ).was_just_started(kind)


NEW = "probably-offline"


@pytest.mark.parametrize(
    ("states", "answers", "expected"),
    [
        ([NEW, NEW], [True, True], True),
        ([NEW, "online"], [True, True], False),
        ([NEW, "offline"], [True, True], False),
        ([NEW], [True, False], False),
        ([NEW], [True, None], False),
        ([NEW], [1], False),
        ([NEW], [], False),
        ([], [True], False),
    ],
)
def test_a_management_daemon_was_just_started_where_all_answer_and_none_is_online(states, answers, expected):
    assert started(states, answers) is expected
    assert started(states, answers, "meta") is False


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({}, True),
        ({"reachable": False}, False),
        ({"reachable": None}, False),
        ({"reachable": 1}, False),
        ({"name": "stor2"}, False),
        ({"type": "meta"}, False),
    ],
)
def test_whether_the_server_of_a_target_answers(node, expected):
    told = Told({"nodes": [{"type": "storage", "name": "stor1", "reachable": True, **node}]})
    assert told.answers({"type": "storage", "node": "stor1"}) is expected


def test_a_target_is_named_with_its_server_where_that_is_known():
    told = Told(None)
    assert told.name({"type": "meta", "id": 2, "node": "meta2"}) == "meta target 2 on meta2"
    assert told.name({"type": "meta", "id": 2, "node": None}) == "meta target 2"
    assert told.unknown_to_management("meta target") == "the management daemon knows no meta target"
