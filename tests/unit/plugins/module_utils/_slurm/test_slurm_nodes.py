# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes and partitions as recorded, and the question whether a job can ever start."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import cluster
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import nodes as slurm_nodes
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import Result
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.nodes import Needs, why_blocked

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures"
RELEASES = sorted(path.name for path in FIXTURES.glob("slurm-*") if (path / "node.txt").exists())


def node(name: str = "n1", state: str = "IDLE", gres: str = "gpu:2", partitions: str = "gpu") -> dict:
    (parsed,) = slurm_nodes.parse_nodes(f"NodeName={name} Gres={gres} State={state} Partitions={partitions}")
    return parsed


def needs(nodes: int = 1, required: tuple = (), excluded: tuple = (), gres: dict | None = None) -> Needs:
    return Needs(("gpu",), nodes, required, excluded, gres or {})


@pytest.mark.parametrize("release", RELEASES)
def test_recorded_nodes(release: str) -> None:
    nodes = slurm_nodes.parse_nodes((FIXTURES / release / "node.txt").read_text())
    assert [each["name"] for each in nodes] == ["compute01", "compute02"]
    assert all(each["gres"] == {"gpu": 2} and each["cpus"] == 16 and each["memory_mb"] == 131072 for each in nodes)
    assert all(each["state"] in ("idle", "mixed") and each["partitions"] == ["gpu"] for each in nodes)


@pytest.mark.parametrize("release", RELEASES)
def test_recorded_partitions(release: str) -> None:
    (gpu,) = slurm_nodes.parse_partitions((FIXTURES / release / "partition.txt").read_text())
    assert gpu == {
        "name": "gpu",
        "state": "up",
        "default": True,
        "max_time_seconds": 172800,
        "nodes": ["compute01", "compute02"],
    }


@pytest.mark.parametrize("release", RELEASES)
def test_recorded_needs(release: str) -> None:
    lines = (FIXTURES / release / "job.txt").read_text().splitlines()
    running = next(line for line in lines if "JobName=running" in line)
    assert slurm_nodes.parse_needs(running) == Needs(("gpu",), 2, (), (), {})


def test_a_name_cannot_change_what_a_job_needs() -> None:
    line = (
        "JobId=1 JobName=x UserId=z Partition=evil NumNodes=9 UserId=admin(1) Partition=gpu NumNodes=1 ReqNodeList=n1"
    )
    assert slurm_nodes.parse_needs(line) == Needs(("gpu",), 1, ("n1",), (), {})
    assert slurm_nodes.parse_needs("slurm_load_jobs error: Invalid job id specified") is None


@pytest.mark.parametrize(
    ("state", "out"),
    [
        ("IDLE", False),
        ("ALLOCATED", False),
        ("MIXED+PLANNED", False),
        ("IDLE+DRAIN", True),
        ("MIXED+DRAIN", True),
        ("DOWN", True),
        ("DOWN*", True),
        ("DOWN*+DRAIN", True),
        ("IDLE+FAIL", True),
        ("IDLE*", False),
        ("IDLE+MAINTENANCE", False),
        ("IDLE+CLOUD+POWERED_DOWN", False),
        ("DOWN+CLOUD+POWERED_DOWN", False),
        ("DOWN+REBOOT_ISSUED", False),
        ("IDLE~", False),
    ],
)
def test_which_nodes_are_out(state: str, out: bool) -> None:
    assert slurm_nodes.is_out(node(state=state)) is out


@pytest.mark.parametrize(
    ("job", "nodes", "blocked"),
    [
        (needs(), [node(state="DOWN")], True),
        (needs(), [node(state="DOWN"), node("n2", "ALLOCATED")], False),
        (needs(), [node(state="ALLOCATED")], False),
        (needs(2), [node(state="DOWN"), node("n2")], True),
        (needs(required=("n1",)), [node(state="IDLE+DRAIN"), node("n2")], True),
        (needs(required=("n2",)), [node(state="IDLE+DRAIN"), node("n2")], False),
        (needs(excluded=("n2",)), [node(state="DOWN"), node("n2")], True),
        (needs(gres={"gpu": 2}), [node(state="DOWN"), node("n2", gres="gpu:1")], True),
        (needs(gres={"gpu": 1}), [node(state="DOWN"), node("n2", gres="gpu:1")], False),
        (needs(), [node(state="DOWN"), node("n2", partitions="other")], True),
        (needs(gres={"gpu": 1}), [node(state="DOWN"), node("n2", gres="(null)")], True),
        (needs(gres={"gpu": 1}), [node(state="DOWN", gres="(null)")], False),
        (needs(), [], False),
        (needs(), [node(partitions="other")], False),
    ],
)
def test_when_a_job_can_never_start(job: Needs, nodes: list[dict], blocked: bool) -> None:
    assert (why_blocked(job, nodes) is not None) is blocked


# -- the whole cluster


def recorded(release: str, **changes: Result) -> dict:
    folder = FIXTURES / release
    texts = {
        "--version": "version",
        "ping": "ping",
        "config": "config",
        "node": "node",
        "partition": "partition",
    }

    def run(argv: list[str], **_options: object) -> Result:
        if argv[-1] in changes:
            return changes[argv[-1]]
        return Result(0, (folder / f"{texts[argv[-1]]}.txt").read_bytes()) if argv[-1] in texts else Result(0)

    return cluster.cluster_info(run, "admin")


@pytest.mark.parametrize("release", RELEASES)
def test_a_recorded_cluster(release: str) -> None:
    info = recorded(release)
    assert info["version"] == release.removeprefix("slurm-")
    assert info["controllers"] == [{"host": "login", "role": "primary", "up": True}]
    assert info["accounting"] is True
    assert info["min_job_age_seconds"] == 300
    assert info["problems"] == []


def test_what_does_not_answer_is_a_problem_and_not_a_value() -> None:
    down = Result(1, b"Slurmctld(primary) at login is DOWN\n", "")
    dead = Result(1, b"", "Unable to contact slurm controller (connect failure)")
    info = recorded("slurm-24.11.5", ping=down, config=dead, node=dead, partition=dead)
    assert info["controllers"][0]["up"] is False
    assert (info["nodes"], info["partitions"], info["cluster_name"]) == ([], [], None)
    assert len(info["problems"]) == 4


def test_accounting_that_is_off_is_not_accounting_that_is_silent() -> None:
    last = cluster.ACCOUNTING_ARGV[-1]
    off = Result(1, b"", "Slurm accounting storage is disabled")
    silent = Result(1, b"", "Problem talking to the database: Connection refused")
    assert recorded("slurm-24.11.5", **{last: off})["accounting"] is False
    assert recorded("slurm-24.11.5", **{last: silent})["accounting"] is None


def test_empty_answers_are_problems() -> None:
    info = recorded("slurm-24.11.5", node=Result(0, b"\n"), partition=Result(0, b""), ping=Result(0, b"hm"))
    assert {each["source"] for each in info["problems"]} == {
        "scontrol show node",
        "scontrol show partition",
        "scontrol ping",
    }


# -- every field, and what cannot be read

LINE = (
    "NodeName=n1 CPUTot=16 AvailableFeatures=ib,h200 Gres=gpu:h200:8(S:0-1),shard:4 State=MIXED*+DRAIN+CLOUD "
    "RealMemory=131072 Partitions=gpu,all Version=24.11.5 AllocTRES=cpu=4,gres/gpu=2,gres/gpu:h200=2,mem=8G,gres/x=y "
    "Reason=bad DIMM [root@2026-11-24T01:02:03] Comment=State=IDLE"
)
NODE = {
    "name": "n1",
    "state": "mixed",
    "flags": ["drain", "cloud", "not_responding"],
    "reason": "bad DIMM",
    "gres": {"gpu": 8, "shard": 4},
    "gres_types": ["h200"],
    "gres_allocated": {"gpu": 2},
    "cpus": 16,
    "memory_mb": 131072,
    "features": ["ib", "h200"],
    "partitions": ["gpu", "all"],
    "version": "24.11.5",
}


def test_every_field_of_a_node_is_read() -> None:
    assert slurm_nodes.parse_nodes(LINE) == [NODE]


@pytest.mark.parametrize("end", ["\u2028", "\x85", "\f", "\v", "\r", "\x1c"])
def test_nothing_but_a_line_feed_ends_a_node(end: str) -> None:
    line = LINE.replace("bad DIMM", f"bad{end}NodeName=n9 State=IDLE DIMM")
    (found,) = slurm_nodes.parse_nodes(line)
    assert (found["name"], found["state"], found["flags"]) == ("n1", "mixed", NODE["flags"])
    assert [each["name"] for each in slurm_nodes.parse_nodes(f"{line}\nNodeName=n2 State=IDLE")] == ["n1", "n2"]
    partition = f"PartitionName=a State=UP Nodes=n1{end}PartitionName=b State=DOWN"
    assert [each["name"] for each in slurm_nodes.parse_partitions(partition)] == ["a"]
    assert cluster.parse_config(f"ClusterName = a{end}ClusterName = b\nX = y") == {
        "ClusterName": f"a{end}ClusterName = b",
        "X": "y",
    }


@pytest.mark.parametrize("line", ["", "NodeName=n1", "State=IDLE", "NodeName= State=IDLE", "NodeName=n1 State=", "x"])
def test_a_line_without_a_name_and_a_state_is_no_node(line: str) -> None:
    assert slurm_nodes.parse_nodes(line) == []
    assert slurm_nodes.parse_partitions(line.replace("NodeName", "PartitionName")) == []


@pytest.mark.parametrize(
    ("word", "state", "flags"),
    [
        ("IDLE", "idle", []),
        ("IDLE*", "idle", ["not_responding"]),
        ("IDLE~", "idle", ["powered_down"]),
        ("IDLE#", "idle", ["powering_up"]),
        ("IDLE%", "idle", ["powering_down"]),
        ("IDLE$", "idle", ["maintenance"]),
        ("IDLE@", "idle", []),
        ("IDLE^", "idle", []),
        ("IDLE!", "idle", []),
        ("IDLE-", "idle", []),
        ("DOWN*+DRAIN*+MAINTENANCE$", "down", ["drain", "maintenance", "not_responding"]),
        (" Idle+NOT_RESPONDING* ", "idle", ["not_responding"]),
    ],
)
def test_a_nodes_state_and_marks(word: str, state: str, flags: list[str]) -> None:
    assert slurm_nodes.node_state(word) == (state, flags)


@pytest.mark.parametrize(
    "flag", ["powered_down", "powering_down", "powering_up", "power_up", "power_down", "reboot_issued"]
)
def test_nodes_that_come_back_by_themselves_are_not_out(flag: str) -> None:
    assert not slurm_nodes.is_out(node(state=f"DOWN+DRAIN+{flag.upper()}"))


@pytest.mark.parametrize("state", ["DOWN", "ERROR", "FAIL", "IDLE+DRAIN", "MIXED+FAIL"])
def test_nodes_that_somebody_must_repair_are_out(state: str) -> None:
    assert slurm_nodes.is_out(node(state=state))


def test_every_field_of_a_partition_is_read() -> None:
    text = "PartitionName=a Default=YES MaxTime=1-00:00:00 State=UP Nodes=n[1-2]\nPartitionName=b Default=NO State=DOWN"
    assert slurm_nodes.parse_partitions(text) == [
        {"name": "a", "state": "up", "default": True, "max_time_seconds": 86400, "nodes": ["n1", "n2"]},
        {"name": "b", "state": "down", "default": False, "max_time_seconds": None, "nodes": []},
    ]


def test_every_field_of_what_a_job_needs_is_read() -> None:
    line = (
        "JobId=1 JobName=x UserId=a(1) Partition=gpu,all NumNodes=2-4 ReqNodeList=n[1-2] ExcNodeList=n3 "
        "TresPerNode=gres:gpu:2"
    )
    assert slurm_nodes.parse_needs(line) == Needs(("gpu", "all"), 2, ("n1", "n2"), ("n3",), {"gpu": 2})
    assert slurm_nodes.parse_needs("JobId=1 UserId=a(1) Partition=gpu") == Needs(("gpu",), 1, (), (), {})
    assert slurm_nodes.parse_needs("JobId=1 UserId=a(1) NumNodes=1") is None
    assert slurm_nodes.job_argv("7") == ["scontrol", "--local", "--oneliner", "show", "job", "7"]


def test_why_it_can_never_start_names_nodes_with_their_reasons_eight_at_the_most() -> None:
    one = slurm_nodes.parse_nodes("NodeName=n1 State=DOWN+DRAIN Partitions=gpu Reason=bad DIMM [root@x]")
    assert (
        why_blocked(needs(), one) == "it needs 1 node(s), 0 of the 1 that fit can be used: n1 is down+drain (bad DIMM)"
    )
    for count, more in ((8, ""), (9, "; and 1 more")):
        many = [node(f"n{number}", "DOWN") for number in range(count)]
        shown = "; ".join(f"n{number} is down" for number in range(8))
        assert why_blocked(needs(), many) == (
            f"it needs 1 node(s), 0 of the {count} that fit can be used: {shown}{more}"
        )
    required = [node(state="IDLE+DRAIN"), node("n2")]
    assert why_blocked(needs(1, ("n1",)), required) == (
        "it needs 1 node(s), 0 of the 1 that fit can be used: n1 is idle+drain"
    )
    both = [node(state="IDLE+DRAIN"), node("n2"), node("n3")]
    assert why_blocked(needs(2, ("n1",)), both) == (
        "it needs 2 node(s), 2 of the 3 that fit can be used: n1 is idle+drain"
    )


def test_of_what_is_out_only_that_is_named_which_holds_the_job() -> None:
    drained = [node(state="IDLE+DRAIN"), node("n2", "IDLE+DRAIN"), node("n3"), node("n4")]
    assert why_blocked(needs(2, ("n1",)), drained) == (
        "it needs 2 node(s), 2 of the 4 that fit can be used: n1 is idle+drain"
    )
    assert why_blocked(needs(2), [node(state="DOWN"), node("n2")]) == (
        "it needs 2 node(s), 1 of the 2 that fit can be used: n1 is down"
    )


@pytest.mark.parametrize(("told", "words"), [("(null)", []), ("", []), ("ib,,h200,", ["ib", "h200"])])
def test_features_and_partitions_that_are_none(told: str, words: list[str]) -> None:
    (found,) = slurm_nodes.parse_nodes(f"NodeName=n1 State=IDLE AvailableFeatures={told} Partitions={told} Reason=x")
    assert (found["features"], found["partitions"]) == (words, words)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("bad DIMM", "bad DIMM"),
        ("bad DIMM [root@2026-11-24T01:02:03]", "bad DIMM"),
        ("bad [slot 3] DIMM [root@now]", "bad [slot 3] DIMM"),
        ("bad DIMM [slot 3]", "bad DIMM [slot 3]"),
        ("[root@now]", ""),
        ("", ""),
    ],
)
def test_a_reason_without_who_gave_it(told: str, reason: str) -> None:
    (found,) = slurm_nodes.parse_nodes(f"NodeName=n1 State=DOWN Reason={told}")
    assert found["reason"] == reason


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("slurm 24.11.5\n", "24.11.5"),
        ("slurm-wlm 22.05.8", "22.05.8"),
        ("slurm 26.05-0rc1", "26.05-0rc1"),
        ("slurm 24.11.5 x", None),
        ("slurm", None),
        ("", None),
    ],
)
def test_versions(text: str, version: str | None) -> None:
    assert cluster.parse_version(text) == version


def test_every_controller_is_told_of() -> None:
    text = "Slurmctld(primary) at a.example is DOWN\nSlurmctld(backup) at b is UP\nSlurmctld at c is UP\n"
    assert cluster.parse_ping(text) == [
        {"host": "a.example", "role": "primary", "up": False},
        {"host": "b", "role": "backup", "up": True},
    ]
    down = Result(1, text.encode())
    problems = recorded("slurm-24.11.5", ping=down)["problems"]
    assert problems == [{"source": "scontrol ping", "problem": "slurmctld on a.example is down"}]
    silent = recorded("slurm-24.11.5", ping=Result(1, b"", "no"))
    assert (silent["controllers"], silent["problems"]) == ([], [{"source": "scontrol ping", "problem": "no"}])


@pytest.mark.parametrize("kind", ["accounting_storage/none", "(null)", "none"])
def test_accounting_that_is_configured_off_is_not_asked(kind: str) -> None:
    config = Result(0, f"AccountingStorageType = {kind}\nMinJobAge = 300 sec\n".encode())
    silent = {cluster.ACCOUNTING_ARGV[-1]: Result(1, b"", "no")}
    info = recorded("slurm-24.11.5", config=config, **silent)
    assert (info["accounting"], info["problems"], info["min_job_age_seconds"]) == (False, [], 300)


def test_accounting_that_is_silent_is_a_problem() -> None:
    silent = {cluster.ACCOUNTING_ARGV[-1]: Result(1, b"", "Connection refused")}
    assert recorded("slurm-24.11.5", **silent)["problems"] == [{"source": "sacct", "problem": "Connection refused"}]


@pytest.mark.parametrize("age", ["none", "", "3x"])
def test_an_age_that_is_no_number_is_not_known(age: str) -> None:
    config = Result(0, f"MinJobAge = {age}\n".encode())
    assert recorded("slurm-24.11.5", config=config)["min_job_age_seconds"] is None


def test_what_is_no_setting_is_left_out_of_the_configuration() -> None:
    text = "Configuration data as of now\nClusterName = a\n\nSlurmctld(primary) at login is UP\nX = b=c\n"
    assert cluster.parse_config(text) == {"ClusterName": "a", "X": "b=c"}


def test_a_cluster_that_says_nothing_of_its_nodes_says_so_once() -> None:
    info = recorded("slurm-24.11.5", node=Result(1, b"", "no"), partition=Result(0, b""))
    assert info["problems"] == [
        {"source": "scontrol --oneliner show node", "problem": "no"},
        {"source": "scontrol show partition", "problem": "no partitions were reported"},
    ]
    assert info["user"] == "admin"


@pytest.mark.parametrize(
    ("state", "reason", "why"),
    [
        ("IDLE*", "", "n042 is not responding"),
        ("DOWN*", "Not responding", "n042 is not responding"),
        ("DOWN*", "fan", "n042 is not responding (fan)"),
        ("DOWN", "fan", "n042 is down (fan)"),
        ("IDLE+DRAIN", "", "n042 is drained"),
        ("ALLOCATED", "", None),
        ("IDLE", "", None),
        ("DOWN*+POWERING_UP", "Not responding", None),
        ("IDLE*+REBOOT_ISSUED", "", None),
    ],
)
def test_why_a_job_waits_for_its_node(state: str, reason: str, why: str | None) -> None:
    nodes = slurm_nodes.parse_nodes(f"NodeName=n042 State={state} Reason={reason}\nNodeName=n043 State=DOWN")
    assert slurm_nodes.why_stuck({"state": "PENDING", "attempt": 0}, ["n042"], nodes) == why


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"state": "RUNNING", "attempt": 0}, "n[042-043] was given the job and has not begun it"),
        ({"state": "RUNNING", "attempt": 1}, "could not start the job, and Slurm has put it back"),
        ({"state": "PENDING", "attempt": 1}, "could not start the job, and Slurm has put it back"),
    ],
)
def test_why_a_job_has_not_begun_on_nodes_that_look_well(job: dict, words: str) -> None:
    nodes = slurm_nodes.parse_nodes("NodeName=n042 State=MIXED\nNodeName=n043 State=MIXED")
    assert words in (slurm_nodes.why_stuck(job, ["n042", "n043"], nodes) or "")


def test_of_many_nodes_a_few_are_named() -> None:
    names = [f"n{number}" for number in range(9)]
    nodes = slurm_nodes.parse_nodes("\n".join(f"NodeName={name} State=DOWN" for name in names))
    why = slurm_nodes.why_stuck({"state": "PENDING", "attempt": 0}, names, nodes) or ""
    assert why.endswith("n3 is down; and 5 more")


def test_nodes_are_asked_about_together() -> None:
    assert slurm_nodes.node_argv(["n003", "n001", "n002"])[-1] == "n[001-003]"
