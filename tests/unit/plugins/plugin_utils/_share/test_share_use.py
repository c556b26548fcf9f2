# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of the share's use, speed and striping: what is judged, under which name, where, and why."""

from __future__ import annotations

import copy
import json
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import judging
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import use as share_use

from tests.unit.conftest import ROOT

Json = dict[str, t.Any]
EXAMPLE = json.loads((ROOT / "files/schemas/examples/share.json").read_text())
FOLDER = EXAMPLE["use"]["folder"]["path"]
RIGHT = {
    "rename": 'content "new", source_left false',
    "append": 'content "first second third"',
    "hard_link": 'links 2, content "linked"',
    "symbolic_link": 'target "target", content "pointed at"',
    "flock": 'while_held "refused", after_release "granted"',
    "fcntl_lock": 'while_held "refused", after_release "granted"',
    "permissions": 'file "0640", folder "0755", setgid_folder "2755"',
    "sparse": 'size 67108867, hole_is_zeros true, end "end"',
    "large_file": "size 5368713216, read_back true, start_is_zeros true",
    "many_files": "listed 200, stat 200, right 200, left 0",
    "unlink_open": 'name_left false, content "before after"',
    "mmap_read": "same true",
    "mmap_write": 'content "by a map"',
    "directory_fsync": 'fsync "done"',
    "utime": "mtime 1000000000",
    "execute": "exit_code 7",
}


def judge(share_type: str = "beegfs", **expect: t.Any) -> Judge:
    return judging.judge(expect, share_type, {"node": "compute01"})


def short(findings: list[Json]) -> list[tuple[t.Any, ...]]:
    """Verdict, value, bound, unit, why and path of each."""
    return [(f["verdict"], f["value"], f["bound"], f["unit"], f["why"], f["where"].get("path")) for f in findings]


# -- use


def use(identity: str, change: t.Callable[[Json], t.Any] | None = None) -> list[Json]:
    """The findings of one check, once `change` was made to what was seen."""
    told = copy.deepcopy(EXAMPLE["use"])
    if change:
        change(told)
    return [f for f in share_use.use_findings(judge(), told) if f["id"] == identity]


def test_each_check_that_came_out_right_passes() -> None:
    findings = share_use.use_findings(judge(), EXAMPLE["use"])
    assert [f["id"] for f in findings] == [
        "share.use",
        "share.fsync_read_back",
        *(f"share.{name}" for name in RIGHT),
        "share.private_folder",
    ]
    for name, bound in RIGHT.items():
        (finding,) = (f for f in findings if f["id"] == f"share.{name}")
        recorded = name in ("mmap_write", "directory_fsync")
        assert (finding["verdict"], finding["value"]) == ("recorded" if recorded else "pass", bound)
        assert finding["source"] == f"use: {name}"
        assert finding["where"] == {"node": "compute01", "path": FOLDER}
    (read,) = (f for f in findings if f["id"] == "share.fsync_read_back")
    assert (read["verdict"], read["value"]) == ("pass", EXAMPLE["use"]["checks"]["fsync_read_back"]["seen"]["read"])


def test_how_many_checks_were_carried_out_is_judged() -> None:
    assert short(use("share.use")) == [("pass", 17, "= 17", "checks", "17 is = 17", FOLDER)]

    def one_less(told: Json) -> None:
        told["checks"]["utime"] = None

    assert short(use("share.use", one_less)) == [("fail", 16, "= 17", "checks", "16 is not = 17", FOLDER)]
    assert use("share.utime", one_less) == []


def test_checks_that_ended_with_an_error_are_undetermined() -> None:
    findings = use("share.use", lambda told: told.update(error="killed"))
    assert short(findings) == [("undetermined", None, "= 17", "checks", "killed", FOLDER)]
    assert [f["verdict"] for f in use("share.utime", lambda told: told.update(error="killed"))] == ["pass"]


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (None, "no check was carried out"),
        ({"checks": {}}, "no check was carried out"),
        ({"checks": {"other": {}}, "folder": {"path": 7, "removed": True}}, "no check was carried out"),
        ({"checks": None, "error": "no folder could be made"}, "no folder could be made"),
    ],
)
def test_where_nothing_was_tried_nothing_else_is_said(told: t.Any, why: str) -> None:
    findings = share_use.use_findings(judge(), told)
    assert [f["id"] for f in findings] == ["share.use"]
    assert short(findings) == [("undetermined", None, "= 17", "checks", why, "")]


@pytest.mark.parametrize(
    ("folder", "verdict", "value", "why"),
    [
        ({"removed": True}, "pass", True, "true is = true"),
        ({"removed": False, "error": "busy"}, "fail", False, "false is not = true: busy"),
        ({"removed": "yes"}, "undetermined", None, "it was not reported"),
        ({}, "undetermined", None, "it was not reported"),
    ],
)
def test_the_checks_own_folder_must_be_gone(folder: Json, verdict: str, value: t.Any, why: str) -> None:
    findings = use("share.private_folder", lambda told: told.update(folder={"path": "/mnt/x", **folder}))
    assert short(findings) == [(verdict, value, "= true", None, why, "/mnt/x")]


@pytest.mark.parametrize(
    ("outcome", "verdict", "value", "bound", "why"),
    [
        ({"seen": {"written": "a", "read": "a"}}, "pass", "a", '= "a"', '"a" is = "a"'),
        ({"seen": {"written": "a", "read": "b"}}, "fail", "b", '= "a"', '"b" is not = "a"'),
        ({"seen": {"written": "a"}}, "undetermined", None, '= "a"', "what it saw was not reported"),
        (
            {"seen": {"read": "a"}, "missing": "no O_DIRECT"},
            "undetermined",
            None,
            '= "read back the same"',
            "no O_DIRECT",
        ),
        ({"seen": {"read": "read back the same"}}, "undetermined", None, '= "read back the same"', None),
        ({"error": "EIO"}, "fail", "refused: EIO", '= "read back the same"', None),
        ({"seen": {"written": "a", "read": "a"}, "error": "EIO"}, "fail", "refused: EIO", '= "a"', None),
    ],
)
def test_what_was_written_must_be_read_back(
    outcome: Json, verdict: str, value: t.Any, bound: str, why: str | None
) -> None:
    (finding,) = use("share.fsync_read_back", lambda told: told["checks"].update(fsync_read_back=outcome))
    assert (finding["verdict"], finding["value"], finding["bound"]) == (verdict, value, bound)
    assert why in (None, finding["why"])


@pytest.mark.parametrize(
    ("outcome", "verdict", "value", "why"),
    [
        ({"seen": {"links": 1, "content": "linked"}}, "fail", 'links 1, content "linked"', None),
        ({"seen": {"links": 2, "content": "linked"}, "error": "EPERM"}, "fail", "refused: EPERM", None),
        ({"seen": {"links": 2}}, "undetermined", None, "what it saw was not reported"),
        ({"missing": "no time left"}, "undetermined", None, "no time left"),
    ],
)
def test_a_check_that_came_out_wrong_or_not_at_all(outcome: Json, verdict: str, value: t.Any, why: str | None) -> None:
    (finding,) = use("share.hard_link", lambda told: told["checks"].update(hard_link=outcome))
    assert (finding["verdict"], finding["value"], finding["bound"][:3]) == (verdict, value, '= "')
    assert why in (None, finding["why"])


# -- speed


def speed(identity: str, expect: Json | None = None, **changed: t.Any) -> list[Json]:
    told = {**copy.deepcopy(EXAMPLE["speed"]), **changed}
    findings = share_use.speed_findings(judge(**expect or {}), told)
    return [f for f in findings if f["id"] == identity]


@pytest.mark.parametrize(
    ("check", "figure", "key"),
    [
        ("write_throughput", "write_buffered", "write_mib_s"),
        ("write_throughput_direct", "write_direct", "write_mib_s"),
        ("read_throughput", "read_buffered", "read_mib_s"),
        ("read_throughput_direct", "read_direct", "read_mib_s"),
    ],
)
def test_a_rate_is_judged_by_what_is_expected(check: str, figure: str, key: str) -> None:
    for rate, verdict, why in ((3, "pass", "3 is >= 3"), (2, "fail", "2 is not >= 3")):
        (finding,) = speed(f"share.{check}", {key: 3}, **{f"{figure}_mib_s": rate})
        assert short([finding]) == [(verdict, rate, ">= 3", "MiB/s", why, FOLDER)]
        assert finding["source"] == "own code, 32 MiB in blocks of 1 MiB"
    (finding,) = speed(f"share.{check}", tool="fio", **{f"{figure}_mib_s": None}, problems={figure: "no O_DIRECT"})
    assert short([finding]) == [("undetermined", None, ">= 50", "MiB/s", "no O_DIRECT", FOLDER)]
    assert finding["source"] == "fio, 32 MiB in blocks of 1 MiB"


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (None, "nothing was measured"),
        ({"tool": None}, "nothing was measured"),
        ({"tool": None, "problems": {"tool": "no fio"}}, "no fio"),
        ({"tool": None, "problems": {"tool": "no fio"}, "error": "killed"}, "killed"),
        ({**EXAMPLE["speed"], "error": "killed", "folder": None}, "killed"),
    ],
)
def test_a_speed_that_was_not_measured_is_undetermined(told: t.Any, why: str) -> None:
    findings = share_use.speed_findings(judge(), told)
    assert [f["id"] for f in findings] == ["share.speed"]
    assert short(findings) == [("undetermined", None, "= true", None, why, "")]
    (finding,) = share_use.speed_findings(judge(), {"folder": {"path": "/mnt/x"}})
    assert finding["where"]["path"] == "/mnt/x"


def test_rates_are_gated_unless_they_are_only_to_be_recorded() -> None:
    gated = share_use.speed_findings(judge(), EXAMPLE["speed"])
    assert [f["verdict"] for f in gated] == ["pass"] * 5 + ["recorded"]
    recorded = share_use.speed_findings(judge(), EXAMPLE["speed"], gate=False)
    assert [f["verdict"] for f in recorded] == ["recorded"] * 6
    assert [f["where"]["path"] for f in recorded] == [FOLDER] * 6
    assert "path" in recorded[0]["where"]
    assert [f["where"]["path"] for f in share_use.speed_findings(judge(), {"tool": "own"})] == [""] * 6


def test_rates_of_small_files() -> None:
    metadata = {**EXAMPLE["speed"]["metadata"], "operations_per_s": 99.9612, "creates_per_s": 1.26, "stats_per_s": "x"}
    metadata["million_files"] = {"seconds": 416.7}
    why = "100.0 is >= 100: 1.3 creates/s, None stats/s, 6000.0 unlinks/s"
    (finding,) = speed("share.metadata_rate", metadata=metadata)
    assert short([finding]) == [("pass", 100.0, ">= 100", "operations/s", finding["why"], FOLDER)]
    assert finding["why"].partition(": ")[2] == why.partition(": ")[2]
    assert finding["source"] == "own code, 500 files by one process in one folder"
    (million,) = speed("share.million_files", metadata=metadata)
    assert short([million]) == [("recorded", 417, "> 0", "s", million["why"], FOLDER)]
    assert million["why"].endswith("extrapolated from 500 files to 1,000,000 created, looked up and removed")
    problems = {"metadata": "no inode left"}
    (finding,) = speed("share.metadata_rate", metadata=None, problems=problems)
    assert (finding["verdict"], finding["value"]) == ("undetermined", None)
    assert finding["why"].startswith("no inode left: ")
    (million,) = speed("share.million_files", metadata={"million_files": {"seconds": "x"}}, problems=problems)
    assert (million["verdict"], million["value"]) == ("recorded", None)
    assert "would be undetermined): no inode left" in million["why"]


# -- striping

STRIPED = {"pattern": "raid0", "chunk_kib": 512, "targets": 3, "source": "ioctl", "error": None}


def striping(told: t.Any, share_type: str = "beegfs", **expect: t.Any) -> list[Json]:
    findings = share_use.striping_findings(judge(share_type, **expect), told)
    assert {f["id"] for f in findings} <= {"share.striping"}
    return findings


@pytest.mark.parametrize("told", [None, {}])
def test_striping_that_nobody_expects_and_nobody_told_is_nothing(told: t.Any) -> None:
    assert striping(told) == []


@pytest.mark.parametrize(
    ("told", "expect", "bound"),
    [
        ([], {}, '= "striping of folders"'),
        (["x"], {}, '= "striping of folders"'),
        ("", {}, '= "striping of folders"'),
        (0, {"chunk_kib": 512}, '= "chunk_kib 512"'),
        (None, {"chunk_kib": 512}, '= "chunk_kib 512"'),
        ({}, {"stripe_targets": 4}, '= "stripe_targets 4"'),
        (["x"], {"chunk_kib": 512, "stripe_targets": 4}, '= "chunk_kib 512, stripe_targets 4"'),
    ],
)
def test_striping_that_was_to_be_told_and_was_not_is_undetermined(told: t.Any, expect: Json, bound: str) -> None:
    (finding,) = striping(told, **expect)
    assert short([finding]) == [("undetermined", None, bound, None, "it was not reported", None)]
    assert finding["source"] == "ioctl"


@pytest.mark.parametrize("told", [None, {"jobs": STRIPED}])
def test_only_beegfs_has_striping(told: t.Any) -> None:
    (finding,) = striping(told, "other", chunk_kib=512)
    assert (finding["verdict"], finding["source"]) == ("not_applicable", "ioctl")


def test_chunks_and_targets_are_judged_where_they_are_expected() -> None:
    chunk = ("pass", 512, "= 512", "KiB chunks", "512 is = 512", "jobs")
    targets = ("fail", 3, ">= 4", "targets", "3 is not >= 4", "jobs")
    assert short(striping({"jobs": STRIPED}, chunk_kib=512)) == [chunk]
    assert short(striping({"jobs": STRIPED}, stripe_targets=4)) == [targets]
    assert short(striping({"jobs": STRIPED}, chunk_kib=512, stripe_targets=4)) == [chunk, targets]
    assert [f["verdict"] for f in striping({"jobs": STRIPED}, stripe_targets=2)] == ["pass"]


def test_striping_that_nobody_expects_is_recorded() -> None:
    (finding,) = striping({"jobs": {**STRIPED, "source": "beegfs-ctl"}})
    assert (finding["verdict"], finding["bound"], finding["where"]["path"]) == ("recorded", '= ""', "jobs")
    assert (finding["value"], finding["source"]) == ('pattern "raid0", chunk_kib 512, targets 3', "beegfs-ctl")
    (finding,) = striping({"jobs": {**STRIPED, "source": None, "error": "held"}})
    assert (finding["verdict"], finding["value"], finding["source"]) == ("recorded", None, "ioctl")
    assert "held" in finding["why"]


def test_what_is_told_beside_an_error_is_not_believed() -> None:
    findings = striping({"jobs": {**STRIPED, "error": "held"}}, chunk_kib=512, stripe_targets=2)
    assert [(f["verdict"], f["value"], f["why"]) for f in findings] == [("undetermined", None, "held")] * 2


@pytest.mark.parametrize(
    ("share_type", "changed", "verdict"),
    [
        ("simulated", {"error": "held"}, "not_applicable"),
        ("simulated", {"error": "held", "source": None}, "not_applicable"),
        ("simulated", {"error": "held", "source": "beegfs-ctl"}, "undetermined"),
        ("simulated", {}, "pass"),
        ("beegfs", {"error": "held"}, "undetermined"),
        ("beegfs", {"source": "beegfs-ctl"}, "pass"),
    ],
)
def test_only_the_kernel_of_a_simulated_share_is_excused(share_type: str, changed: Json, verdict: str) -> None:
    (finding,) = striping({"jobs": {**STRIPED, **changed}}, share_type, chunk_kib=512)
    assert (finding["verdict"], finding["where"]) == (verdict, {"node": "compute01", "path": "jobs"})
