"""The controller's half: refuse, have the host look, judge, print."""

from __future__ import annotations

import base64
import copy
from unittest import mock

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible_collections.mlops.hpc_validation.plugins.action.beegfs_check import MOUNTS, ActionModule
from ansible_collections.mlops.hpc_validation.plugins.module_utils._probe import share
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema

NODES = [("meta", "meta1", 1), ("storage", "stor1", 1), ("storage", "stor2", 2)]
TARGETS = [("meta", 1, "meta1"), ("storage", 101, "stor1"), ("storage", 201, "stor2")]
ROOM = {"total": 8 << 30, "free": 7 << 30, "free_least": 7 << 30, "free_most": 7 << 30, "inodes": 5 * 10**5}
SERVERS = {
    "tool": "beegfs-ctl",
    "nodes": [{"type": kind, "name": name, "id": number, "reachable": True} for kind, name, number in NODES],
    "targets": [
        {"type": kind, "id": number, "node": node, "reachability": "online", "consistency": "good", "pool": "normal"}
        | ROOM
        | {"inodes_free": 4 * 10**5, "inodes_free_least": 4 * 10**5, "inodes_free_most": 4 * 10**5}
        for kind, number, node in TARGETS
    ],
    "mirrors": [],
    "quota": [{"pool": "Default", "size": 5, "size_limit": 10, "files": 1, "files_limit": 7}],
    "problems": [],
}


@pytest.fixture
def run():
    def run(answer, *, check_mode=False, **arguments):
        task = mock.MagicMock(
            args={"path": "/mnt/beegfs", **arguments}, async_val=0, check_mode=check_mode, no_log=False
        )
        action = ActionModule(task, mock.MagicMock(), mock.MagicMock(), None, None, None)
        action._display = mock.MagicMock()
        action._execute_module = mock.MagicMock(side_effect=answer if isinstance(answer, Exception) else [answer])
        result = action.run(task_vars={"inventory_hostname": "login"})
        result["sent"] = action._execute_module.call_args.kwargs["module_args"]
        assert [problem for entry in result["findings"] for problem in schema.problems("finding", entry)] == []
        return result

    return run


@pytest.fixture
def healthy(example):
    facts = example("share")
    facts["mount"]["client"]["targets"] = {
        kind: [each for each in rows if each["target"] in (1, 101, 201)]
        for kind, rows in example("share")["mount"]["client"]["targets"].items()
    }
    return {"facts": {**facts, "servers": copy.deepcopy(SERVERS)}}


def test_a_healthy_share_passes_and_the_host_is_named(run, healthy):
    result = run(healthy, expect={"rdma": True})
    assert (result["verdict"], result["failed"], result["changed"]) == ("pass", False, False)
    assert result["facts"] == healthy["facts"]
    assert {entry["where"]["host"] for entry in result["findings"]} == {"login"}
    assert "beegfs_check on login: PASS" in result["table"]


def test_a_fault_fails_the_task_and_names_host_target_check_value_bound_and_remedy(run, healthy):
    healthy["facts"]["servers"]["targets"][2]["reachability"] = "offline"
    healthy["facts"]["servers"]["nodes"][2]["reachable"] = False
    result = run(healthy)
    assert (result["verdict"], result["failed"]) == ("fail", True)
    for text in (result["msg"], result["table"]):
        for part in ("login", "storage target 201", "share.targets_reachable", "offline", '= "online"'):
            assert part in text
    assert "systemctl status beegfs-storage" in " ".join(result["table"].split())


def test_fail_false_returns_the_verdict_and_nothing_more(run, healthy):
    healthy["facts"]["mount"]["mounted"] = False
    result = run(healthy, fail=False)
    assert (result["verdict"], result["failed"], "msg" in result) == ("fail", False, False)


def test_what_is_for_the_controller_is_not_sent_and_the_guard_is(run, healthy):
    result = run(healthy, expect={"free_gib": 1}, node="head", directories=["models"])
    assert not set(result["sent"]) & set(share.CONTROLLER_ONLY)
    assert base64.b64decode(result["sent"]["_mounts"]) == MOUNTS.read_bytes()
    assert result["sent"]["directories"] == ["models"]
    assert {entry["where"]["host"] for entry in result["findings"]} == {"head"}


def test_check_mode_judges_the_mount_and_the_servers_alone(run, healthy):
    healthy["facts"].update(use=None, speed=None, striping=None, checks=["mount"])
    result = run(healthy, check_mode=True)
    assert result["verdict"] == "pass"
    assert {"share.mounted", "share.servers"} <= {entry["id"] for entry in result["findings"]}
    assert "share.use" not in {entry["id"] for entry in result["findings"]}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (AnsibleConnectionFailure("timed out"), "cannot be reached"),
        (AnsibleError("no python"), "could not be asked"),
        ({"failed": True, "msg": "MODULE FAILURE", "module_stderr": "boom"}, "boom"),
        ({"facts": [1]}, "no answer"),
        ({"unreachable": True, "msg": "gone"}, "gone"),
    ],
)
def test_a_host_that_told_nothing_is_undetermined(run, answer, words):
    result = run(answer)
    assert (result["verdict"], result["failed"]) == ("undetermined", True)
    assert words in result["findings"][0]["why"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"expect": {"rmda": True}}, "did you mean 'rdma'"),
        ({"folder": "/etc"}, "expected a folder below"),
        ({"path": "mnt"}, "absolute path"),
    ],
)
def test_what_is_malformed_is_refused_before_anything_is_looked_at(run, healthy, arguments, words):
    with pytest.raises(AnsibleActionFail, match=words):
        run(healthy, **arguments)


def test_no_way_to_ask_and_another_share_leave_checks_out(run, healthy):
    healthy["facts"]["servers"] = None
    assert run(healthy, access="none")["verdict"] == "pass"
    assert run(healthy)["verdict"] == "undetermined"


def test_servers_alone_are_judged_without_a_mount(run, healthy):
    result = run({"facts": {"servers": healthy["facts"]["servers"]}}, checks=["servers"], path=None)
    assert result["verdict"] == "pass"
    assert {entry["id"] for entry in result["findings"]} >= {"share.servers", "share.targets_reachable"}
    assert "share.mounted" not in {entry["id"] for entry in result["findings"]}
    result = run({"facts": {"servers": healthy["facts"]["servers"]}}, checks=["servers"], path=None, check_mode=True)
    assert result["verdict"] == "pass"
    assert result["sent"]["checks"] == ["servers"]


def test_servers_alone_of_a_host_that_cannot_be_reached_are_undetermined_by_that(run):
    result = run(AnsibleConnectionFailure("timed out"), checks=["servers"], path=None)
    (finding,) = result["findings"]
    assert (finding["id"], finding["verdict"]) == ("share.servers", "undetermined")
    assert "cannot be reached" in finding["why"]


def test_a_path_is_needed_where_more_than_the_servers_is_looked_at(run, healthy):
    with pytest.raises(AnsibleActionFail, match="path: expected"):
        run(healthy, path=None)
