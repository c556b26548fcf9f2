# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of the share's mount and its client: what is judged, under which name, where, and why."""

from __future__ import annotations

import copy
import json
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import judging
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import mount as share_mount

from tests.unit.conftest import ROOT

Json = dict[str, t.Any]
Change = t.Callable[[Json], t.Any]
MOUNT = json.loads((ROOT / "files/schemas/examples/share.json").read_text())["mount"]
CLIENT = ["type", "magic", "client", "config", "connections", "rdma", "fallback_route", "global_locks_set"]
SPACE = ["answers", "directory", "read_only", "free_space", "free_inodes"]
GIB = 1 << 30


def findings(
    change: Change | None = None, expect: Json | None = None, share_type: str = "beegfs", used: bool = True
) -> list[Json]:
    """The findings once `change` was made to the mount of the example."""
    mount = copy.deepcopy(MOUNT)
    if change:
        change(mount)
    judge = judging.judge(expect, share_type, {"node": "compute01"})
    return share_mount.findings(judge, mount, used=used)


def found(identity: str, change: Change | None = None, expect: Json | None = None, **more: t.Any) -> list[Json]:
    return [f for f in findings(change, expect, **more) if f["id"] == f"share.{identity}"]


def names(judged: list[Json]) -> list[str]:
    return [f["id"].removeprefix("share.") for f in judged]


def short(judged: list[Json]) -> list[tuple[t.Any, ...]]:
    """Verdict, place, value, bound and why of each."""
    return [(f["verdict"], f["where"].get("target"), f["value"], f["bound"], f["why"]) for f in judged]


def setting(**changed: t.Any) -> Change:
    return lambda mount: mount.update(changed)


def statfs(**changed: t.Any) -> Change:
    return lambda mount: mount["statfs"].update(changed)


# -- the mount


@pytest.mark.parametrize(
    ("changed", "verdict", "value", "why"),
    [
        ({"mounted": False, "problem": "not there"}, "fail", False, "false is not = true: not there"),
        ({"mounted": False}, "fail", False, "false is not = true"),
        ({"mounted": "yes"}, "undetermined", None, "it was not reported"),
        ({"mounted": None, "problem": "held"}, "undetermined", None, "held"),
    ],
)
def test_of_what_is_not_mounted_nothing_else_is_said(changed: Json, verdict: str, value: t.Any, why: str) -> None:
    judged = findings(setting(**changed))
    assert names(judged) == ["mounted"]
    assert short(judged) == [(verdict, None, value, "= true", why)]
    assert judged[0]["where"] == {"node": "compute01", "path": "/mnt/beegfs"}


def test_a_mount_of_beegfs_is_judged_whole() -> None:
    judged = findings(setting(problem="seen before"))
    order = ["mounted", "type", "magic", "config", "client", "connections", "fallback_route", *["rdma"] * 3]
    assert names(judged) == [*order, "targets_reachable", "targets_consistent", "global_locks_set", *SPACE]
    assert short(judged)[0] == ("pass", None, True, "= true", "true is = true")
    assert {
        f["verdict"] for f in judged if f["id"] not in ("share.config", "share.global_locks_set", "share.rdma")
    } == {"pass"}


def test_an_excused_mount_is_judged_on() -> None:
    judged = findings(expect={"not_applicable": {"share.mounted": "automounted"}})
    assert (judged[0]["verdict"], len(judged)) == ("not_applicable", 18)


def test_of_a_mount_of_another_type_neither_client_nor_servers_are_judged() -> None:
    judged = findings(setting(fstype="ext4"))
    assert names(judged) == ["mounted", "type", "magic", "config", *SPACE]
    unknown = findings(setting(fstype=None))
    assert names(unknown)[:5] == ["mounted", "type", "magic", "config", "client"]
    assert unknown[1]["verdict"] == "undetermined"
    assert names(findings(statfs(magic=1)))[:5] == ["mounted", "type", "magic", "config", "client"]


def test_a_simulated_share_has_a_client_and_no_mount_of_beegfs() -> None:
    judged = findings(share_type="simulated")
    assert [f["id"] for f in judged if f["verdict"] == "not_applicable"] == [
        "share.type",
        "share.magic",
        "share.config",
    ]
    assert names(judged)[4:6] == ["client", "connections"]
    assert judged[4]["source"] == "/proc/fs/beegfs"


def test_another_share_has_neither() -> None:
    judged = findings(share_type="other")
    assert names(judged) == ["mounted", *CLIENT, *SPACE]
    assert names([f for f in judged if f["verdict"] == "not_applicable"]) == CLIENT
    judged = findings(expect={"fstype": ["nfs4"]}, share_type="other")
    assert names(judged) == ["mounted", *CLIENT, *SPACE]
    assert names([f for f in judged if f["verdict"] == "not_applicable"]) == CLIENT[1:]
    assert short(judged)[1] == ("fail", None, "beegfs", '= "nfs4"', '"beegfs" is not = "nfs4"')


@pytest.mark.parametrize(
    ("fstype", "expected", "verdict", "bound"),
    [
        ("beegfs", None, "pass", "beegfs"),
        ("beegfs_hpc", None, "pass", "beegfs_hpc"),
        ("ext4", None, "fail", "beegfs"),
        (None, None, "undetermined", "beegfs"),
        ("nfs", ["nfs4", "nfs"], "pass", "nfs"),
        ("beegfs", ["nfs4", "nfs"], "fail", "nfs4"),
        ("beegfs", ["nfs4"], "fail", "nfs4"),
        (None, ["nfs4", "nfs"], "undetermined", "nfs4"),
    ],
)
def test_the_type_of_the_mount(fstype: str | None, expected: list[str] | None, verdict: str, bound: str) -> None:
    (finding,) = found("type", setting(fstype=fstype), {"fstype": expected})
    assert (finding["verdict"], finding["value"], finding["bound"]) == (verdict, fstype, f'= "{bound}"')
    assert finding["where"]["path"] == "/mnt/beegfs"


@pytest.mark.parametrize(
    ("magic", "verdict", "value"),
    [
        (0x19830326, "pass", "0x19830326"),
        (0x6969, "fail", "0x6969"),
        (True, "undetermined", None),
        (1.5, "undetermined", None),
        ("0x19830326", "undetermined", None),
        (None, "undetermined", None),
    ],
)
def test_the_magic_of_the_file_system(magic: t.Any, verdict: str, value: str | None) -> None:
    (finding,) = found("magic", statfs(magic=magic))
    assert (finding["verdict"], finding["value"], finding["bound"]) == (verdict, value, '= "0x19830326"')
    if value is None:
        assert finding["why"] == "it was not reported"
        (finding,) = found("magic", lambda mount: mount.update(problem="held", statfs=None))
        assert finding["why"] == "held"


@pytest.mark.parametrize(
    ("wanted", "used", "verdict", "bound"),
    [
        (None, "/etc/a", "recorded", '= ""'),
        ("/etc/a", "/etc/a", "pass", '= "/etc/a"'),
        ("/etc/b", "/etc/a", "fail", '= "/etc/b"'),
        ("/etc/b", None, "undetermined", '= "/etc/b"'),
    ],
)
def test_the_configuration_of_the_mount(wanted: str | None, used: str | None, verdict: str, bound: str) -> None:
    (finding,) = found("config", setting(config_file=used), {"config_file": wanted})
    assert (finding["verdict"], finding["value"], finding["bound"]) == (verdict, used, bound)
    assert finding["where"]["path"] == (used or "")
    if used is None:
        assert finding["why"] == "the mount names no cfgFile"


def test_a_mount_without_client() -> None:
    (finding,) = found("client")
    assert short([finding]) == [("pass", None, 1, "= 1", "1 is = 1")]
    assert (finding["unit"], finding["source"]) == ("clients", "/proc/fs/beegfs")
    for problem, why in ((None, "it was not reported"), ("two clients", "two clients")):
        judged = findings(setting(client=None, problem=problem))
        assert names(judged) == ["mounted", "type", "magic", "config", "client", *SPACE]
        assert short(judged)[4] == ("undetermined", None, None, "= 1", why)


# -- connections


def links(kind: str, *told: t.Any, **server: t.Any) -> Change:
    """Give the servers of a kind these connections, in turn."""

    def change(mount: Json) -> None:
        for each, connections in zip(mount["client"]["nodes"][kind], told):
            each.update(connections=connections, **server)

    return change


def both(*changes: Change) -> Change:
    def change(mount: Json) -> None:
        for each in changes:
            each(mount)

    return change


def link(count: t.Any = 1, protocol: str = "RDMA", **more: t.Any) -> Json:
    return {"protocol": protocol, "count": count, "peer": "10.0.0.1", "fallback": False, **more}


STOR2 = "storage server stor2"
IDLE = (
    "recorded",
    STOR2,
    0,
    "> 0",
    "only recorded (would be fail): 0 is not > 0: idle, and reported online",
)
UNCONNECTED = ("fail", STOR2, 0, "> 0", "0 is not > 0")


def test_all_servers_are_connected() -> None:
    (finding,) = found("connections")
    assert short([finding]) == [("pass", None, 4, "= 4", "4 is = 4")]
    (finding,) = found("fallback_route")
    assert (finding["verdict"], finding["value"], finding["unit"]) == ("pass", 4, "connected servers")
    whole = found("connections", links("meta", [link(1)]))
    assert short(whole) == [("pass", None, 4, "= 4", "4 is = 4")]


@pytest.mark.parametrize("kind", ["management", "meta", "storage"])
def test_a_kind_without_servers_is_undetermined(kind: str) -> None:
    name = {"management": "management", "meta": "metadata", "storage": "storage"}[kind]
    judged = found("connections", lambda mount: mount["client"]["nodes"].update({kind: []}))
    assert ("undetermined", f"any {name} server", None, "> 0", f"no {name} server is listed") in short(judged)


@pytest.mark.parametrize("told", [None, "x", {}, [link("x")], [link(None)], [link(), "x"], [link(), link(None)]])
def test_connections_that_were_not_told_are_undetermined(told: t.Any) -> None:
    change = links("storage", [link()], told)
    for used in (True, False):
        judged = found("connections", change, used=used)
        assert short(judged) == [("undetermined", STOR2, None, "> 0", "its connections were not reported")]
    assert found("fallback_route", change)[0]["value"] == 3


def test_a_server_that_is_idle_is_recorded() -> None:
    judged = found("connections", links("storage", [link()], []))
    assert short(judged) == [("pass", None, 3, "= 3", "3 is = 3"), IDLE]
    assert found("fallback_route", links("storage", [link()], []))[0]["value"] == 3


def test_after_use_some_server_of_its_kind_must_be_connected() -> None:
    change = links("storage", [], [])
    stor1 = ("fail", "storage server stor1", *UNCONNECTED[2:])
    assert short(found("connections", change)) == [stor1, UNCONNECTED]
    assert [f["verdict"] for f in found("connections", change, used=False)] == ["pass", "recorded", "recorded"]


def second_manager(*told: t.Any) -> Change:
    def change(mount: Json) -> None:
        managers = mount["client"]["nodes"]["management"]
        managers.append(copy.deepcopy(managers[0]))
        for manager, name, connections in zip(managers, ("bee1", "bee2"), told):
            manager.update(name=name, connections=connections)

    return change


def test_a_server_may_be_idle_only_while_a_management_server_is_connected() -> None:
    idle = links("storage", [link()], [])
    assert short(found("connections", both(idle, links("management", [])))) == [
        ("fail", "management server bee1", *UNCONNECTED[2:]),
        UNCONNECTED,
    ]
    assert IDLE in short(found("connections", both(idle, second_manager([], [link()]))))


@pytest.mark.parametrize("used", [True, False])
def test_a_management_server_is_never_idle(used: bool) -> None:
    def known(mount: Json) -> None:
        mount["client"]["targets"]["management"] = [{"target": 1, "node": "bee2", "reachability": "online"}]

    judged = found("connections", both(second_manager([link()], []), known), used=used)
    assert short(judged) == [("fail", "management server bee2", *UNCONNECTED[2:])]


def target(kind: str, *told: tuple[t.Any, t.Any, t.Any]) -> Change:
    """Let the client know these targets of a kind alone: number, server and state."""

    def change(mount: Json) -> None:
        mount["client"]["targets"][kind] = [
            {"target": number, "node": node, "reachability": state, "consistency": "good"}
            for number, node, state in told
        ]

    return change


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        ([(201, "stor2", "online")], "recorded"),
        ([(201, "beegfs-storage stor2 [ID: 2]", "online")], "recorded"),
        ([(201, "stor2 [ID: 2]", "online"), (202, "stor2", "online")], "recorded"),
        ([(201, "stor2", "online"), (202, "stor2", "offline")], "fail"),
        ([(201, "stor22", "online")], "fail"),
        ([(201, "my stor2 too", "online")], "fail"),
        ([(2, "stor1", "online")], "fail"),
        ([(201, None, "online")], "fail"),
        ([], "fail"),
    ],
)
def test_a_storage_server_is_idle_if_all_its_targets_are_online(
    told: list[tuple[t.Any, t.Any, t.Any]], verdict: str
) -> None:
    judged = found("connections", both(links("storage", [link()], []), target("storage", *told)))
    assert [f["verdict"] for f in judged if f["where"].get("target") == STOR2] == [verdict]


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        ([(1, "elsewhere", "online")], "recorded"),
        ([(7, "bee1", "online")], "recorded"),
        ([(7, "elsewhere", "online")], "fail"),
        ([(1, "elsewhere", "offline"), (7, "elsewhere", "online")], "fail"),
    ],
)
def test_a_metadata_server_is_idle_if_the_target_of_its_number_or_name_is_online(
    told: list[tuple[t.Any, t.Any, t.Any]], verdict: str
) -> None:
    judged = found("connections", both(links("meta", []), target("meta", *told)), used=False)
    assert [f["verdict"] for f in judged if f["where"].get("target")] == [verdict]


def test_a_server_without_name_is_not_idle() -> None:
    judged = found("connections", links("storage", [link()], [], name=None))
    assert ("fail", "storage server None", *UNCONNECTED[2:]) in short(judged)


@pytest.mark.parametrize("fallback", [True, None, "no"])
def test_a_connection_that_may_be_by_a_fallback_route_fails(fallback: t.Any) -> None:
    told = [link(), link(peer="10.0.0.2", fallback=fallback), link(peer="10.0.0.3", fallback=fallback)]
    judged = found("fallback_route", links("storage", [link()], told))
    assert short(judged) == [("fail", STOR2, 2, "= 0", "2 is not = 0: by 10.0.0.2, 10.0.0.3")]
    assert judged[0]["unit"] == "fallback routes"


def test_by_which_protocol_servers_are_connected() -> None:
    change = links("storage", [link()], [link(), link(protocol="TCP")])
    (finding,) = found("rdma", change, {"rdma": True})
    assert short([finding]) == [("fail", STOR2, "RDMA+TCP", '= "RDMA"', '"RDMA+TCP" is not = "RDMA"')]
    recorded = found("rdma", change)
    assert [(f["verdict"], f["where"]["target"], f["value"]) for f in recorded] == [
        ("recorded", "metadata server bee1", "RDMA"),
        ("recorded", "storage server stor1", "RDMA"),
        ("recorded", STOR2, "RDMA+TCP"),
    ]
    (finding,) = found("rdma", None, {"rdma": True})
    assert (finding["verdict"], finding["value"], finding["unit"]) == ("pass", 3, "connected servers")


def test_without_a_connection_its_protocol_is_not_known() -> None:
    change = both(links("meta", []), links("storage", [], []))
    (finding,) = found("rdma", change, {"rdma": True}, used=False)
    why = "no metadata or storage server is connected"
    assert short([finding]) == [("undetermined", None, None, '= "RDMA"', why)]
    (finding,) = found("rdma", change, used=False)
    assert (finding["verdict"], finding["value"]) == ("recorded", None)


# -- targets and locks


def test_targets_as_the_client_knows_them() -> None:
    for check in ("targets_reachable", "targets_consistent"):
        (finding,) = found(check)
        assert (finding["verdict"], finding["value"], finding["unit"]) == ("pass", 4, "targets")

    def change(mount: Json) -> None:
        targets = mount["client"]["targets"]
        targets["meta"][0].update(reachability="offline", consistency="bad")
        targets["storage"][2].update(reachability=None, consistency=7)

    meta, storage = "meta target 1 on bee1", "storage target 201 on stor2"
    for check, value, good in (("targets_reachable", "offline", "online"), ("targets_consistent", "bad", "good")):
        assert short(found(check, change)) == [
            ("fail", meta, value, f'= "{good}"', f'"{value}" is not = "{good}"'),
            ("undetermined", storage, None, f'= "{good}"', "it was not reported"),
        ]


@pytest.mark.parametrize("kind", ["meta", "storage"])
def test_a_kind_without_targets_is_undetermined(kind: str) -> None:
    assert short(found("targets_reachable", target(kind))) == [
        ("undetermined", f"any {kind} target", None, '= "online"', f"no {kind} target is listed")
    ]


@pytest.mark.parametrize(
    ("told", "value", "would"),
    [("1", True, "pass"), ("True", True, "pass"), ("false", False, "fail"), (None, None, "undetermined")],
)
def test_whether_the_client_locks_across_nodes_is_recorded(told: t.Any, value: t.Any, would: str) -> None:
    (finding,) = found("global_locks_set", lambda mount: mount["client"]["config"].update(tuneUseGlobalFileLocks=told))
    assert (finding["verdict"], finding["value"], finding["bound"]) == ("recorded", value, "= true")
    assert f"would be {would})" in finding["why"]


# -- space


@pytest.mark.parametrize(("problem", "why"), [(None, "it was not reported"), ("it hangs", "it hangs")])
def test_of_a_share_that_does_not_answer_nothing_else_is_said(problem: str | None, why: str) -> None:
    judged = findings(setting(statfs=None, problem=problem))
    assert names(judged)[-1] == "answers"
    assert short(judged)[-1] == ("undetermined", None, None, "= true", why)
    assert not set(names(judged)) & set(SPACE[1:])


def test_a_share_that_answers_is_a_folder_with_room() -> None:
    judged = findings(statfs(free=int(12.3456 * GIB)))[-5:]
    assert [(name, f["verdict"], f["value"], f["bound"], f["unit"]) for name, f in zip(names(judged), judged)] == [
        ("answers", "pass", True, "= true", None),
        ("directory", "pass", True, "= true", None),
        ("read_only", "pass", False, "= false", None),
        ("free_space", "pass", 12.35, ">= 10", "GiB"),
        ("free_inodes", "pass", 32212256, ">= 100000", "inodes"),
    ]
    assert {f["where"]["path"] for f in judged} == {"/mnt/beegfs"}


@pytest.mark.parametrize(
    ("check", "changed", "verdict", "value"),
    [
        ("directory", {"directory": False}, "fail", False),
        ("directory", {"directory": 1}, "undetermined", None),
        ("read_only", {"read_only": True}, "fail", True),
        ("read_only", {"read_only": "no"}, "undetermined", None),
        ("free_space", {"free": 9 * GIB}, "fail", 9.0),
        ("free_space", {"free": "x"}, "undetermined", None),
        ("free_inodes", {"inodes_free": 99_999}, "fail", 99_999.0),
        ("free_inodes", {"inodes_free": None}, "undetermined", None),
        ("free_inodes", {"inodes_free": 0, "inodes": 1}, "fail", 0.0),
        ("free_inodes", {"inodes_free": 0, "inodes": None}, "fail", 0.0),
    ],
)
def test_what_the_share_lacks(check: str, changed: Json, verdict: str, value: t.Any) -> None:
    (finding,) = found(check, statfs(**changed))
    assert (finding["verdict"], finding["value"]) == (verdict, value)
    assert "fixed number" not in finding["why"]
    if value is None:
        assert finding["why"] == "it was not reported"


def test_a_file_system_without_a_fixed_number_of_inodes_is_recorded() -> None:
    (finding,) = found("free_inodes", statfs(inodes=0, inodes_free=0))
    assert (finding["verdict"], finding["value"]) == ("recorded", 0)
    assert finding["why"].endswith("the file system has no fixed number of inodes")


def test_a_share_that_is_to_be_read_only_may_be() -> None:
    assert found("read_only", None, {"read_only": True}) == []
    assert len(found("read_only", None, {"read_only": False})) == 1
