# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What follows from a look at the edge hosts: wheels, findings, and whether a workload is held back."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.filter.edge_hosts import edge_hosts
from ansible_collections.mlops.hpc_validation.plugins.filter.edge_wheels import edge_wheels
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import requirements
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings.columns import Table
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import held_back

from tests.unit.plugins.plugin_utils._edge.made_edge import LOOK, PACKAGES

Json = dict[str, t.Any]
ONE, TWO = "PROFILE-EMBEDDED", "SITE-EDGE"


def looked(**changes: t.Any) -> Json:
    """What edge_host answers on a host where all is well."""
    look = {key: value for key, value in {**LOOK, **changes}.items() if key != "schema"}
    return {"look": look, "requirement": requirements.requirement(look), "problem": None, "changed": False}


def problem(identity: str, text: str, look: Json | None = None) -> Json:
    return {"look": look, "requirement": None, "problem": {"id": identity, "text": text}}


def wheelhouse(wheel: Json, **changes: t.Any) -> Json:
    """A result of the task's loop."""
    answer = {"folder": wheel["output"], "wheels": [{"file": "a.whl"}] * 5, "packages": PACKAGES, "changed": True}
    return {"item": wheel, "rc": 0, "stdout": json.dumps(answer), "stderr": "", **changes}


def concluded(told: Json, workloads: t.Sequence[str] = (ONE,), **more: t.Any) -> tuple[Json, list[Json]]:
    fetched = [wheelhouse(each, **more.get("results", {})) for each in edge_wheels(told, "/cache")]
    found = edge_hosts(told, fetched, list(workloads), more.get("limit", ""), more.get("failure"))
    assert [schema.problems("finding", each) for each in found["findings"]] == [[]] * len(found["findings"])
    return found["hosts"], found["findings"]


def brief(findings: list[Json]) -> list[tuple[str, str, Json]]:
    return [(each["id"], each["verdict"], each["where"]) for each in findings]


def held(findings: list[Json]) -> dict[str, str]:
    return held_back.reasons(Table(findings))


def test_each_kind_of_host_gets_its_wheels_once() -> None:
    told = {
        "a": looked(),
        "b": looked(python="3.11.9"),
        "c": looked(machine="aarch64", python="3.8.10", libc="glibc 2.31"),
        "d": problem("unreachable", "x"),
        "e": {},
    }
    assert edge_wheels(told, "/cache") == [
        {
            "key": "python311-3.11-x86_64-2.36",
            "lock": "python311",
            "python": "3.11",
            "machine": "x86_64",
            "libc": "2.36",
            "output": "/cache/python311-3.11-x86_64-2.36",
        },
        {
            "key": "python38-3.8-aarch64-2.31",
            "lock": "python38",
            "python": "3.8",
            "machine": "aarch64",
            "libc": "2.31",
            "output": "/cache/python38-3.8-aarch64-2.31",
        },
    ]


def test_where_all_is_well_three_findings_pass() -> None:
    hosts, findings = concluded({"edge01": looked()})
    assert brief(findings) == [
        (name, "pass", {"host": "edge01"}) for name in ("edge.reached", "edge.python", "edge.wheels")
    ]
    assert [each["why"] for each in findings] == ["x86_64 answers", "it is 3.11.2", "5 wheels for python311"]
    assert hosts["edge01"]["problem"] is None
    assert hosts["edge01"]["wheelhouse"]["packages"] == PACKAGES
    assert held(findings) == {}


def test_a_board_is_called_by_its_name() -> None:
    _hosts, findings = concluded({"edge01": looked(board="Raspberry Pi 5")})
    assert findings[0]["why"] == "Raspberry Pi 5 answers"


def test_a_host_with_a_problem_needs_no_wheels() -> None:
    assert edge_wheels({"edge01": {**looked(), "problem": {"id": "crashed", "text": "x"}}}, "/cache") == []


def test_a_host_that_cannot_be_reached_is_named_and_the_others_go_on() -> None:
    hosts, findings = concluded({"edge01": looked(), "edge02": problem("unreachable", "no route")})
    assert brief(findings)[3:] == [("edge.reached", "undetermined", {"host": "edge02"})]
    assert "edge02" in findings[3]["remedy"]
    assert hosts["edge02"]["problem"] == {"id": "unreachable", "text": "no route"}
    table = Table(findings)
    assert (held(findings), held_back.others(table)) == ({}, 0)  # nothing else depends on it


def test_a_device_with_two_names_counts_once() -> None:
    told = {
        "edge01": looked(device="jetson 5f0c-11"),
        "edge02": looked(device="jetson 5f0c-11"),
        "edge03": looked(device="jetson 77aa-02"),
        "edge04": looked(),
        "edge05": looked(),  # two that do not tell may be two
    }
    hosts, findings = concluded(told)
    assert [each for each in brief(findings) if each[1] != "pass"] == [
        ("edge.reached", "undetermined", {"host": "edge02"})
    ]
    (finding,) = [each for each in findings if each["where"]["host"] == "edge02"]
    assert "same device as edge01" in finding["why"]
    assert finding["remedy"].startswith("Leave one name of the device in the inventory's group edge")
    assert "edge02" in finding["remedy"]
    assert [name for name, each in hosts.items() if each["wheelhouse"] is None] == ["edge02"]


def test_of_a_device_with_two_names_the_one_that_can_be_measured_counts() -> None:
    told = {
        "edge01": problem("crashed", "exit code 1", {**LOOK, "device": "jetson 5f0c-11"}),
        "edge02": looked(device="jetson 5f0c-11"),
    }
    hosts, _findings = concluded(told)
    assert [name for name, each in hosts.items() if each["problem"]] == ["edge01"]


def test_if_none_can_be_reached_nothing_is_submitted() -> None:
    told = {"edge01": problem("unreachable", "no route"), "edge02": {"unreachable": True, "msg": "bad\nkey"}}
    _hosts, findings = concluded(told, (ONE, TWO))
    assert brief(findings) == [
        ("edge.reached", "undetermined", {"host": host, "workload": workload})
        for host in told
        for workload in (ONE, TWO)
    ]
    assert held(findings) == dict.fromkeys((ONE, TWO), "edge01: no route; edge02: bad key")


@pytest.mark.parametrize(
    ("told", "check", "value"),
    [
        (problem("python", "it is 3.7.3; expected 3.8 to 3.14", {**LOOK, "python": "3.7.3"}), "edge.python", "3.7.3"),
        (problem("python", "python3 cannot be run there"), "edge.python", None),
        (problem("wheels", "Linux on armv7l", {**LOOK, "machine": "armv7l"}), "edge.wheels", "armv7l"),
        (problem("wheels", "its C library is musl", LOOK), "edge.wheels", "x86_64"),
    ],
)
def test_a_host_that_nothing_is_locked_for_fails_and_holds_the_workload_back(
    told: Json, check: str, value: str | None
) -> None:
    hosts, findings = concluded({"edge01": looked(), "edge02": told})
    assert brief(findings)[3:] == [(check, "fail", {"host": "edge02", "workload": ONE})]
    assert (findings[3]["why"], findings[3]["value"]) == (told["problem"]["text"], value)
    assert findings[3]["remedy"]
    assert held(findings) == {ONE: f"edge02: {told['problem']['text']}"}
    assert held_back.others(Table(findings)) == 0
    assert hosts["edge02"]["wheelhouse"] is None


@pytest.mark.parametrize(
    "told",
    [
        problem("crashed", "exit code 1"),
        problem("result", "it answered 2 times"),
        {"msg": "become"},
        {"problem": "what"},
        {"problem": {"id": "crashed"}},
        {"problem": {"text": "exit code 1"}},
        {"failed": True},
        "what",
        [1],
    ],
)
def test_any_other_answer_is_as_none(told: t.Any) -> None:
    _hosts, findings = concluded({"edge01": looked(), "edge02": told})
    assert brief(findings)[3:] == [("edge.reached", "undetermined", {"host": "edge02"})]


@pytest.mark.parametrize(
    ("told", "why"), [({"failed": True}, "its look has no answer"), ({"msg": "become"}, "become"), ([1], "not looked")]
)
def test_why_there_is_no_answer_is_told(told: t.Any, why: str) -> None:
    _hosts, findings = concluded({"edge01": looked(), "edge02": told})
    assert why in findings[3]["why"]


def test_a_host_outside_of_the_limit_is_told_so() -> None:
    hosts, findings = concluded({"edge01": looked(), "edge02": {}}, limit="login,edge01")
    assert findings[3]["why"] == "left out by --limit login,edge01"
    assert hosts["edge02"]["problem"]["id"] == "left_out"
    for limit in ("", None):
        _hosts, findings = concluded({"edge02": {}}, limit=limit)
        assert findings[0]["why"] == "it was not looked at"


def test_wheels_that_cannot_be_fetched_name_the_command() -> None:
    cmd = ["python", "-m", "kit", "environment", "--", "python", "-m", "kit", "wheelhouse", "--lock", "my lock"]
    failed = {"rc": 1, "stdout": "", "stderr": "kit wheelhouse: no index\n", "cmd": cmd}
    hosts, findings = concluded({"edge01": looked()}, results=failed)
    assert brief(findings) == [("edge.wheels", "fail", {"host": "edge01", "workload": ONE})]
    assert "kit wheelhouse: no index: from python -m kit wheelhouse --lock 'my lock'" in findings[0]["why"]
    assert "hpc_validation_edge_wheelhouse" in findings[0]["remedy"]
    assert "environment" not in findings[0]["why"]
    assert held(findings)[ONE].startswith(
        "edge01: onnxruntime for Python 3.11 on x86_64 (glibc 2.36): kit wheelhouse: no"
    )
    assert hosts["edge01"]["problem"]["id"] == "wheels"


@pytest.mark.parametrize("stdout", ["", "{", "[]", '{"folder": "x"}', "[" * 100_000])
@pytest.mark.parametrize("rc", [0, 2, -9, None])
def test_a_command_that_came_to_no_end_leaves_it_open(stdout: str, rc: int | None) -> None:
    _hosts, findings = concluded({"edge01": looked()}, results={"stdout": stdout, "rc": rc})
    assert brief(findings) == [("edge.wheels", "undetermined", {"host": "edge01", "workload": ONE})]
    assert findings[0]["why"].startswith("onnxruntime for Python 3.11 on x86_64 (glibc 2.36): it said nothing")


ANSWER: Json = {"folder": "/cache/a", "wheels": [{"file": "a.whl"}] * 5, "packages": PACKAGES}


def test_an_answer_with_folder_wheels_and_packages_is_enough() -> None:
    _hosts, findings = concluded({"edge01": looked()}, results={"stdout": json.dumps(ANSWER)})
    assert [each["verdict"] for each in findings] == ["pass"] * 3


@pytest.mark.parametrize("missing", ANSWER)
def test_an_answer_that_is_not_whole_is_none(missing: str) -> None:
    stdout = json.dumps({key: value for key, value in ANSWER.items() if key != missing})
    _hosts, findings = concluded({"edge01": looked()}, results={"stdout": stdout})
    assert brief(findings) == [("edge.wheels", "undetermined", {"host": "edge01", "workload": ONE})]
    assert "it said nothing" in findings[0]["why"]


def test_the_answer_of_a_command_that_failed_is_none() -> None:
    failed = {"rc": 2, "msg": "MODULE FAILURE"}
    _hosts, findings = concluded({"edge01": looked()}, results=failed)
    assert brief(findings) == [("edge.wheels", "undetermined", {"host": "edge01", "workload": ONE})]
    assert "(glibc 2.36): MODULE FAILURE: from kit wheelhouse" in findings[0]["why"]


def test_if_nothing_was_fetched_the_reason_is_that_of_all() -> None:
    found = edge_hosts({"edge01": looked()}, [], [ONE], "", "Timed out after 3600 second(s).")
    assert brief(found["findings"]) == [("edge.wheels", "undetermined", {"host": "edge01", "workload": ONE})]
    assert found["findings"][0]["why"] == "Timed out after 3600 second(s)."
    assert edge_hosts({"edge01": looked()}, [], [ONE])["findings"][0]["why"] == "they were not fetched"
