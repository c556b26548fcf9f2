# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of the share on one node, between two, and on all of them: what is judged, where, and why."""

from __future__ import annotations

import copy
import json
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import findings as share_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.coherence import coherence_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.guard import guard_finding
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.likeness import likeness, same_everywhere

from tests.unit.conftest import ROOT

Json = dict[str, t.Any]
EXAMPLE = json.loads((ROOT / "files/schemas/examples/share.json").read_text())


def compared(facts: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Compare the share facts of nodes."""
    return same_everywhere({node: likeness(each) for node, each in facts.items()})


def short(findings: list[Json]) -> list[tuple[t.Any, ...]]:
    """Id, verdict, value, bound and why of each."""
    return [(f["id"].removeprefix("share."), f["verdict"], f["value"], f["bound"], f["why"]) for f in findings]


# -- one node


def node(facts: t.Any, expect: Json | None = None, share_type: str = "beegfs", **more: t.Any) -> list[Json]:
    return share_findings.findings(facts, expect, node="compute01", share_type=share_type, **more)


def parts(findings: list[Json]) -> list[str]:
    """Which parts of the facts findings are of."""
    marks = {"share.mounted": "mount", "share.use": "use", "share.striping": "striping", "share.million_files": "speed"}
    return [marks[f["id"]] for f in findings if f["id"] in marks]


def changed(**parts_of: t.Any) -> Json:
    """The example with other things in its parts."""
    facts = copy.deepcopy(EXAMPLE)
    for part, other in parts_of.items():
        facts[part] = {**facts[part], **other} if isinstance(other, dict) and facts[part] else other
    return t.cast(Json, facts)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (None, "its facts were not reported"),
        ([], "expected share facts"),
        ("x", "expected share facts"),
        ({}, "the facts are from another type of share"),
        ({**EXAMPLE, "type": "other"}, "the facts are from another type of share"),
        ({**EXAMPLE, "schema": 2}, "the facts are from another type of share"),
        ({**EXAMPLE, "schema": None, "error": "timed out"}, "timed out"),
        ({"error": "timed out"}, "timed out"),
    ],
)
def test_what_are_no_facts_of_the_share_says_why(facts: t.Any, why: str) -> None:
    findings = node(facts)
    assert short(findings) == [("mounted", "undetermined", None, "= true", why)]
    assert (findings[0]["source"], findings[0]["where"]) == ("python -m kit share", {"node": "compute01"})
    assert node(facts, part="host")[0]["where"] == {"host": "compute01"}


def test_facts_are_judged_in_full_where_nothing_else_is_asked() -> None:
    assert parts(node(EXAMPLE)) == ["mount", "use", "striping", "speed"]
    slow = changed(speed={"write_buffered_mib_s": 1})
    (rate,) = (f for f in node(slow) if f["id"] == "share.write_throughput")
    assert rate["verdict"] == "fail"
    (rate,) = (f for f in node(slow, gate_speed=False) if f["id"] == "share.write_throughput")
    assert rate["verdict"] == "recorded"


@pytest.mark.parametrize(
    ("checks", "striping", "judged"),
    [
        (["mount"], None, ["mount"]),
        (["mount"], EXAMPLE["striping"], ["mount", "striping"]),
        (["use"], None, ["mount", "use", "striping"]),
        (["use"], EXAMPLE["striping"], ["mount", "use", "striping"]),
        (["speed"], None, ["mount", "speed"]),
    ],
)
def test_only_what_is_asked_is_judged(checks: list[str], striping: Json | None, judged: list[str]) -> None:
    assert parts(node({**EXAMPLE, "striping": striping}, {"chunk_kib": 512}, checks=checks)) == judged


@pytest.mark.parametrize("mounted", [False, None])
def test_what_is_not_mounted_is_not_used(mounted: bool | None) -> None:
    findings = node(changed(mount={"mounted": mounted}))
    assert [f["id"] for f in findings] == ["share.mounted"]


def test_a_mount_that_is_excused_is_used_all_the_same() -> None:
    assert parts(node(EXAMPLE, {"not_applicable": {"share.mounted": "automounted"}})) == [
        "mount",
        "use",
        "striping",
        "speed",
    ]


@pytest.mark.parametrize(
    ("use", "checks", "verdict"),
    [
        ({}, ["use"], "fail"),
        ({}, ["speed"], "recorded"),
        ({"error": "killed"}, ["use"], "recorded"),
        ({"checks": {}}, ["use"], "recorded"),
        ({"checks": None}, ["use"], "recorded"),
    ],
)
def test_servers_must_be_connected_only_if_the_share_was_used(use: Json, checks: list[str], verdict: str) -> None:
    facts = changed(use=use)
    facts["mount"]["client"]["nodes"]["meta"][0]["connections"] = []
    told = [f["verdict"] for f in node(facts, checks=checks) if f["where"].get("target") == "metadata server bee1"]
    assert told == [verdict]


# -- the guard


@pytest.mark.parametrize(
    ("code", "identity", "value", "meaning"),
    [
        (80, "mounted", False, "it is not mounted, has another type, or does not exist"),
        (
            81,
            "connections",
            False,
            "the mount has no connection to its servers, or they are offline; it was not touched",
        ),
        (82, "same_files", False, "the login node's token was not found there: another file system, or a stale one"),
        (83, "writable", False, "the write test was refused"),
        (84, "answers", None, "it did not answer in time and was not touched again"),
        (85, "guard", None, "the kernel's facts about it could not be read"),
        *((code, "guard", None, f"the guard ended with {code}") for code in (0, 1, 86, True, None, 80.0, [])),
    ],
)
def test_what_the_guard_says_by_its_exit_code(code: t.Any, identity: str, value: t.Any, meaning: str) -> None:
    for messages, why in (("", meaning), (" \n", meaning), (" guard: why\n", f"{meaning}; guard: why")):
        finding = guard_finding(code, messages, {"node": "compute02"})
        told = ("fail", f"false is not = true: {why}") if value is False else ("undetermined", why)
        assert short([finding]) == [(identity, told[0], value, "= true", told[1])]
        assert (finding["source"], finding["where"]) == ("guard", {"node": "compute02"})


def test_of_what_the_guard_wrote_the_end_is_told() -> None:
    finding = guard_finding(84, "a" * 400 + "b" * 499 + "\n", {})
    assert finding["why"] == f"it did not answer in time and was not touched again; a{'b' * 499}"


# -- two nodes

SEEN = {"seen": True, "seconds": 0.4}
NEVER = {"seen": False, "seconds": None}
LOCK = {"while_held": "refused", "after_release": "granted"}
STEPS = {
    "create": "coherence",
    "overwrite": "coherence_overwrite",
    "rename": "coherence_rename",
    "unlink": "coherence_unlink",
}


def direction(writer: str, reader: str, **changed_steps: t.Any) -> Json:
    return {
        "writer": writer,
        "reader": reader,
        "steps": {**dict.fromkeys(STEPS, SEEN), **changed_steps},
        "locks": {"flock": dict(LOCK), "fcntl": dict(LOCK)},
    }


def document(*directions: Json, **changed_parts: t.Any) -> Json:
    """What nodes a and b saw of each other's files; both directions are good unless another is given."""
    told = {(each["writer"], each["reader"]): each for each in (direction("a", "b"), direction("b", "a"), *directions)}
    return {"nodes": ["b", "a"], "directions": list(told.values()), "error": None, "wait": 30, **changed_parts}


def between(told: t.Any, nodes: tuple[str, ...] = ("a", "b"), **expect: t.Any) -> list[Json]:
    return coherence_findings(told, expect, nodes=list(nodes))


def test_two_nodes_that_see_the_same_pass_in_both_directions() -> None:
    findings = between(document())
    assert [(f["id"].removeprefix("share."), f["where"]["node"], f["verdict"]) for f in findings] == [
        (identity, reader, "pass")
        for reader in ("b", "a")
        for identity in (*STEPS.values(), "locks_across_nodes", "locks_across_nodes")
    ]
    assert short(findings)[0][1:4] == ("pass", 0.4, "<= 5")
    assert findings[0]["why"].endswith("written on a, awaited on b")
    assert (findings[0]["unit"], findings[0]["source"]) == ("s", "python -m kit coherence")
    assert [f["source"] for f in findings[4:6]] == [f"python -m kit coherence: {kind}" for kind in ("flock", "fcntl")]
    assert findings[-1]["why"].endswith("held on b, tried on a")


@pytest.mark.parametrize(
    ("told", "nodes", "why"),
    [
        (None, ("a", "b"), "expected a run on a and b, found None"),
        ({"error": "task 1 hangs"}, ("a", "b"), "task 1 hangs"),
        (document(error="task 1 hangs"), ("a", "b"), "task 1 hangs"),
        (document(nodes="ab"), ("a", "b"), "expected a run on a and b, found ab"),
        (document(nodes=["a", "c"]), ("a", "b"), "expected a run on a and b, found ['a', 'c']"),
        (document(nodes=["a"]), ("a", "b"), "expected a run on a and b, found ['a']"),
        (document(nodes=["a", "a"]), ("a", "a"), "expected a run on a and a, found ['a', 'a']"),
        (
            document(nodes=["a", "b", "c"]),
            ("a", "b", "c"),
            "expected a run on a and b and c, found ['a', 'b', 'c']",
        ),
    ],
)
def test_where_nothing_was_compared_one_finding_says_so(told: t.Any, nodes: tuple[str, ...], why: str) -> None:
    findings = between(told, nodes)
    assert short(findings) == [("coherence", "undetermined", None, "= true", why)]
    assert findings[0]["source"] == "python -m kit coherence"


@pytest.mark.parametrize(
    "directions",
    [
        None,
        "x",
        {},
        [],
        ["x", None],
        [direction("a", "c"), direction("c", "b"), direction("b", "b"), direction("a", "a")],
    ],
)
def test_a_direction_that_was_not_told_is_undetermined(directions: t.Any) -> None:
    findings = between(document(directions=directions))
    assert {(f["verdict"], f["value"]) for f in findings} == {("undetermined", None)}
    assert len(findings) == 12
    assert short(findings)[0][3:] == ("<= 5", "it was not reported: written on a, awaited on b")
    assert short(findings)[4][3:] == (
        '= "refused while held, granted after"',
        "it was not reported: held on a, tried on b",
    )


@pytest.mark.parametrize(
    ("seen", "wait", "verdict", "value", "bound", "why"),
    [
        ({"seen": True, "seconds": 5}, 30, "pass", 5, "<= 5", "5 is <= 5"),
        ({"seen": True, "seconds": 5.5}, 30, "fail", 5.5, "<= 5", "5.5 is not <= 5"),
        ({"seen": True, "seconds": 1}, 3, "pass", 1, "<= 5", "1 is <= 5"),
        (NEVER, 30, "fail", "not seen", '= "seen within 5 s"', '"not seen" is not = "seen within 5 s"'),
        (NEVER, 5, "fail", "not seen", '= "seen within 5 s"', '"not seen" is not = "seen within 5 s"'),
        (NEVER, None, "fail", "not seen", '= "seen within 5 s"', '"not seen" is not = "seen within 5 s"'),
        ({"seen": False, "seconds": 1}, 3, "undetermined", None, "<= 5", "it was awaited for only 3 s"),
        ({"seen": "yes", "seconds": 1}, 30, "undetermined", None, "<= 5", "it was not reported"),
        ({"seen": None, "seconds": 1}, 3, "undetermined", None, "<= 5", "it was not reported"),
        (None, 30, "undetermined", None, "<= 5", "it was not reported"),
    ],
)
@pytest.mark.parametrize("step", STEPS)
def test_what_is_seen_late_or_never(
    step: str, seen: t.Any, wait: t.Any, verdict: str, value: t.Any, bound: str, why: str
) -> None:
    findings = between(document(direction("b", "a", **{step: seen}), wait=wait))
    (finding,) = (f for f in findings if f["id"] == f"share.{STEPS[step]}" and f["where"] == {"node": "a"})
    told = (STEPS[step], verdict, value, bound, f"{why}: written on b, awaited on a")
    assert short([finding]) == [told]
    assert finding["unit"] == (None if value == "not seen" else "s")
    assert {f["verdict"] for f in findings if f is not finding} == {"pass"}


@pytest.mark.parametrize("kind", ["flock", "fcntl"])
@pytest.mark.parametrize(
    ("lock", "verdict", "value"),
    [
        ({"while_held": "granted", "after_release": "granted"}, "fail", "granted while held, granted after"),
        ({"while_held": "refused", "after_release": "refused"}, "fail", "refused while held, refused after"),
        ({"while_held": "refused"}, "undetermined", None),
        ({"after_release": "granted"}, "undetermined", None),
        (None, "undetermined", None),
    ],
)
def test_a_lock_must_be_refused_while_it_is_held_and_granted_after(
    kind: str, lock: t.Any, verdict: str, value: str | None
) -> None:
    told = direction("a", "b")
    told["locks"][kind] = lock
    (finding,) = (f for f in between(document(told)) if f["verdict"] != "pass")
    assert short([finding])[0][:3] == ("locks_across_nodes", verdict, value)
    assert (finding["source"], finding["where"]) == (f"python -m kit coherence: {kind}", {"node": "b"})
    findings = between(document(told), global_locks=False)
    assert {f["verdict"] for f in findings if f["id"] == "share.locks_across_nodes"} == {"recorded"}


# -- all nodes

LIKE = "same_on_every_node"


def mounted(client: Json | None = None, **mount: t.Any) -> Json:
    """The example with another mount; `client` changes its client."""
    facts = changed(mount=mount)
    if client:
        facts["mount"]["client"].update(client)
    return facts


def alike(**facts: t.Any) -> list[Json]:
    return compared(facts)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({}, "0 of 0 nodes reported their mount"),
        ({"a": EXAMPLE}, "1 of 1 nodes reported their mount"),
        ({"a": EXAMPLE, "b": None}, "1 of 2 nodes reported their mount"),
        *(
            ({"a": EXAMPLE, "b": mounted(**{key: value}), "c": "x"}, "1 of 3 nodes reported their mount")
            for key, value in (
                ("mounted", False),
                ("mounted", "yes"),
                ("mount_point", None),
                ("mount_point", ["/mnt"]),
                ("fstype", None),
                ("fstype", ""),
                ("options", None),
                ("options", "rw"),
            )
        ),
    ],
)
def test_of_fewer_than_two_mounts_none_is_compared(facts: Json, why: str) -> None:
    findings = alike(**facts)
    assert short(findings) == [(LIKE, "undetermined", None, f"= {len(facts)}", why)]
    assert findings[0]["source"] == "/proc/mounts, /proc/fs, statfs"


def test_mounts_that_are_alike_are_one_finding() -> None:
    assert short(alike(a=EXAMPLE, b=EXAMPLE)) == [(LIKE, "pass", 2, "= 2", "2 is = 2")]
    findings = alike(a=EXAMPLE, b=EXAMPLE, c=EXAMPLE, d=None)
    assert short(findings) == [(LIKE, "pass", 3, "= 3", "3 is = 3")]
    assert (findings[0]["unit"], findings[0]["where"]) == ("nodes alike", {})


@pytest.mark.parametrize(
    ("facts", "facet", "value", "bound"),
    [
        (mounted(mount_point="/beegfs"), "mount point", "/beegfs", '= "/mnt/beegfs"'),
        (mounted(fstype="beegfs_hpc"), "file system type", "beegfs_hpc", '= "beegfs"'),
        (mounted(options=["rw", "noexec"]), "mount options", '["noexec", "rw"]', '= "["relatime", "rw"]"'),
        (mounted(config_file="/etc/b"), "client configuration", "/etc/b", '= "/etc/beegfs/beegfs-client.conf"'),
        (mounted({"fs_uuid": "u1"}), "file system UUID", "u1", '= "null"'),
        (mounted(statfs={"id": "1"}), "file system id", "1", '= "0000000000000000"'),
        (
            mounted({"nodes": {"management": [{"name": "b"}, {"name": "a"}]}}),
            "management servers",
            '["a", "b"]',
            '= "["bee1"]"',
        ),
        (mounted({"nodes": None}), "management servers", "null", '= "["bee1"]"'),
    ],
)
def test_the_mount_that_differs_is_named(facts: Json, facet: str, value: str, bound: str) -> None:
    findings = alike(a=EXAMPLE, z=facts, c=EXAMPLE)
    assert short(findings) == [
        (LIKE, "fail", value, bound, f'"{value}" is not {bound}: {facet}; a,c have {bound[3:-1]}')
    ]
    assert findings[0]["where"] == {"node": "z"}


@pytest.mark.parametrize(
    "key",
    [
        "sysMgmtdHost",
        "connMgmtdPort",
        "connUseRDMA",
        "tuneFileCacheType",
        "tuneUseGlobalFileLocks",
        "tuneUseGlobalAppendLocks",
        "tuneRemoteFSync",
        "sysXAttrsEnabled",
        "sysACLsEnabled",
        "quotaEnabled",
    ],
)
def test_a_setting_of_the_client_that_differs_is_named(key: str) -> None:
    config = EXAMPLE["mount"]["client"]["config"]
    most, other = mounted({"config": {**config, key: "most"}}), mounted({"config": {**config, key: "other"}})
    told = f"client setting {key}; a,b have most"
    assert short(alike(a=most, b=most, c=other)) == [
        (LIKE, "fail", "other", '= "most"', f'"other" is not = "most": {told}')
    ]
    lacking = mounted({"config": {name: value for name, value in config.items() if name != key}})
    assert short(alike(a=most, b=most, c=lacking))[0][2] == "nothing"


def test_a_client_whose_settings_were_not_told_differs() -> None:
    told = short(alike(a=EXAMPLE, b=EXAMPLE, c=mounted({"config": None})))
    assert {each[1:3] for each in told} == {("fail", "nothing")}
    assert short(alike(a=mounted({"config": None}), b=mounted({"config": None})))[0][1] == "pass"


def test_settings_that_are_each_clients_own_do_not_make_mounts_differ() -> None:
    config = EXAMPLE["mount"]["client"]["config"]
    assert short(alike(a=EXAMPLE, b=mounted({"config": {**config, "logLevel": "5"}})))[0][1] == "pass"


@pytest.mark.parametrize(
    "option",
    [
        "clientaddr",
        "addr",
        "mountaddr",
        "mountport",
        "port",
        "rsize",
        "wsize",
        "seclabel",
        "logLevel",
        "logErrFile",
        "logStdFile",
        "logType",
        "connInterfacesFile",
        "connClientPort",
        "connClientPortUDP",
        "cfgFile",
    ],
)
def test_options_that_are_each_clients_own_do_not_make_mounts_differ(option: str) -> None:
    one, another = mounted(options=[f"{option}=1", "rw"]), mounted(options=["rw", f"{option}=2", option])
    assert [f["verdict"] for f in alike(a=one, b=another)] == ["pass"]
