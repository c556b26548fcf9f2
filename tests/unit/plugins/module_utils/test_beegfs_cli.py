from __future__ import annotations

import json
import os
import sys

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _beegfs_check, _beegfs_cli
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs_cli import Cli, Result

from tests.unit.plugins.module_utils.beegfs_fake import runner


def test_beegfs_ctl_is_asked_with_the_mounts_own_configuration_and_through_sudo():
    asked: list[list[str]] = []
    told = _beegfs_cli.servers(
        Cli("beegfs-ctl", runner("beegfs-ctl", asked=asked), "/etc/beegfs/a.conf", sudo=True), "admin"
    )
    assert told["problems"] == told["quota_problems"] == []
    assert len(asked) == 7
    assert all(argv[:3] == ["sudo", "-n", "beegfs-ctl"] for argv in asked)
    assert all(argv[-1] == "--cfgFile=/etc/beegfs/a.conf" for argv in asked)
    assert asked[-1][3:7] == ["--getquota", "--uid", "admin", "--csv"]


@pytest.mark.parametrize(
    ("user", "sudo", "asked_of"),
    [
        (None, False, "current"),
        (None, True, "1234"),  # current would be root
        ("1234", False, "current"),  # a number is for root alone
        ("1234", True, "1234"),
        ("77", False, "77"),
        ("root", False, "0"),
        ("root", True, "0"),
    ],
)
def test_version_8_is_asked_for_the_quota_of_a_number(monkeypatch, user, sudo, asked_of):
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    asked: list[list[str]] = []
    told = _beegfs_cli.servers(Cli("beegfs", runner("beegfs", asked=asked), sudo=sudo), user)
    (quota,) = [argv for argv in asked if "quota" in argv]
    assert quota[quota.index("--uids") + 1] == asked_of
    assert told["quota_problems"] == []


def test_the_quota_of_a_user_whom_nobody_knows_is_not_asked_for():
    asked: list[list[str]] = []
    told = _beegfs_cli.servers(Cli("beegfs", runner("beegfs", asked=asked)), "no-such-user")
    assert [argv for argv in asked if "quota" in argv] == []
    assert told["quota"] is None
    assert "knows no user no-such-user" in told["quota_problems"][0]["problem"]
    assert told["problems"] == []


def test_version_8_says_on_the_error_stream_that_quota_is_not_enabled():
    changed = {"quota_list-usage": "cli_8_documented/quota_list_usage_not_enabled"}
    told = _beegfs_cli.servers(Cli("beegfs", runner("beegfs", changed)), None)
    assert told["quota"] is None
    (problem,) = told["quota_problems"]
    assert problem["problem"].startswith("quota is not enabled")
    assert told["problems"] == []
    noise = Result(0, "", "license: x\nWARNING: the clock is late\n")
    told = _beegfs_cli.servers(Cli("beegfs", runner("beegfs", {"quota_list-usage": noise})), None)
    assert told["quota_problems"][0]["problem"] == "no quota is told"


def test_the_exit_codes_that_the_rows_tell_too_are_no_problem():
    changed = {"listtargets_storage": "ctl_7.4.7/listtargets_storage_state_needs_resync"}  # exit code 7
    told = _beegfs_cli.servers(Cli("beegfs-ctl", runner("beegfs-ctl", changed)), "admin")
    assert told["problems"] == []


def test_one_that_does_not_answer_is_asked_once():
    asked: list[list[str]] = []
    changed = {"any": Result(None, "", "beegfs did not answer in 3 s")}
    cli = Cli("beegfs", runner("beegfs", changed, asked))
    told = _beegfs_cli.servers(cli, None)
    assert len(asked) == 1
    assert told["targets"] is told["nodes"] is told["mirrors"] is told["quota"] is None
    assert "did not answer" in _beegfs_cli.striping(cli, "/mnt/beegfs")["error"]


@pytest.mark.parametrize("tool", ["beegfs", "beegfs-ctl"])
def test_striping_by_the_tool(tool):
    told = _beegfs_cli.striping(Cli(tool, runner(tool)), "/mnt/beegfs/models")
    assert told == {"pattern": "raid0", "chunk_kib": 512, "targets": 4, "source": tool, "error": None}
    failed = {"any": Result(3, "", "Error: Path does not exist\n")}
    assert "exit code 3: Error: Path" in _beegfs_cli.striping(Cli(tool, runner(tool, failed)), "/nope")["error"]


def test_a_command_runs_in_a_clean_environment_and_is_left_after_its_time(monkeypatch):
    monkeypatch.setenv("BEEGFS_MGMTD_ADDR", "elsewhere")
    code = "import os, sys; print(sorted(os.environ)); print(sys.stdin.read())"
    done = _beegfs_cli.run([sys.executable, "-c", code], 20, stdin=b"hello", environment={"PYTHONPATH": "/x"})
    assert done.rc == 0
    assert "BEEGFS" not in done.out
    assert "PYTHONPATH" in done.out
    assert "hello" in done.out
    slow = _beegfs_cli.run([sys.executable, "-c", "import signal; signal.pause()"], 0.2)
    assert (slow.rc, slow.err) == (None, f"{sys.executable} did not answer in 0.2 s")
    assert "was not found" in _beegfs_cli.run(["no-such-tool"], 1).err


def test_the_newer_tool_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(_beegfs_cli, "search_path", lambda: str(tmp_path))
    assert _beegfs_cli.installed("auto") is None
    for name in ("beegfs-ctl", "beegfs"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        assert _beegfs_cli.installed("auto") == name
    assert _beegfs_cli.installed("beegfs-ctl") == "beegfs-ctl"


OPTIONS = {
    "path": "/mnt/beegfs",
    "share_type": "beegfs",
    "kit": None,
    "python": "python3",
    "checks": ["mount", "use", "speed"],
    "folder": "jobs",
    "directories": ["models"],
    "size": 8,
    "reserve": 1.0,
    "deadline": 5.0,
    "tool": "auto",
    "access": "user",
    "cli": "auto",
    "config_file": None,
    "user": None,
}
MOUNT = {"path": "/mnt/beegfs", "mounted": True, "config_file": "/etc/beegfs/c.conf", "problem": None}


@pytest.fixture
def collect(monkeypatch):
    """(options, answers by the word before) → facts and the commands that ran."""
    monkeypatch.setattr(_beegfs_cli, "installed", lambda _cli: "beegfs-ctl")
    tool = runner("beegfs-ctl")

    def run(answers, **changed):
        asked = []

        def execute(argv, _seconds, **given):
            asked.append((argv, given))
            if argv[0] == "beegfs-ctl":
                return tool(argv)
            return answers["facts" if argv[1] == "-" else "share"]

        return _beegfs_check.collect({**OPTIONS, **changed}, b"source", execute), asked

    return run


def test_the_mount_is_looked_at_first_and_from_stdin_then_the_kit_then_the_servers(collect, example):
    share = example("share")
    share["striping"]["models"]["error"] = "Inappropriate ioctl for device"
    facts, asked = collect({"facts": Result(0, json.dumps(MOUNT)), "share": Result(0, json.dumps(share))})
    assert asked[0][0][:3] == ["python3", "-", "facts"]
    assert asked[0][1]["stdin"] == b"source"
    assert asked[1][0][:4] == ["python3", "-m", "kit", "share"]
    assert asked[1][1]["environment"] == {"PYTHONPATH": "/mnt/beegfs/scripts", "PYTHONDONTWRITEBYTECODE": "1"}
    assert facts["servers"]["problems"] == []
    assert facts["striping"]["models"]["source"] == "beegfs-ctl"
    assert facts["striping"]["models"]["targets"] == 4
    assert asked[2][0][-1] == "--cfgFile=/etc/beegfs/beegfs-client.conf"


def test_the_striping_of_the_folder_that_is_used_is_asked_where_none_is_named(collect, example):
    share = {**example("share"), "striping": {"jobs": {"error": "Inappropriate ioctl for device"}}}
    answers = {"facts": Result(0, json.dumps(MOUNT)), "share": Result(0, json.dumps(share))}
    facts, asked = collect(answers, directories=[])
    assert asked[1][0][-2:] == ["--directories", "jobs"]
    assert facts["striping"]["jobs"]["targets"] == 4
    facts, asked = collect(answers, directories=[], checks=["mount"])
    assert facts["striping"] is None
    assert not any("--getentryinfo" in argv for argv, _other in asked)


def test_a_mount_with_a_problem_is_not_touched_and_the_kit_on_it_not_run(collect):
    from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import _schema

    dead = {**MOUNT, "problem": "all storage targets are offline: it was not touched"}
    facts, asked = collect({"facts": Result(0, json.dumps(dead))})
    assert [argv[0] for argv, _other in asked].count("python3") == 1
    assert facts["use"]["error"] == facts["speed"]["error"] == dead["problem"]
    assert "striping" in facts
    problems = _schema.problems("share", facts)
    assert all(line.startswith("mount: ") for line in problems), problems  # the stand-in's is not whole


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Result(None, "", "python3 did not answer in 80 s"), "did not answer"),
        (Result(1, "", "Traceback: boom"), "boom"),
        (Result(0, "half a docum", ""), "half a docum"),
        (Result(0, "[1]", ""), "gave no facts"),
    ],
)
def test_a_kit_that_gives_no_facts_is_said_so(collect, answer, words):
    facts, _other = collect({"facts": answer}, access="none")
    assert words in facts["error"]
    assert facts["servers"] is None
    facts, _other = collect({"facts": Result(0, json.dumps(MOUNT)), "share": answer}, access="none")
    assert words in facts["use"]["error"]


def test_servers_are_asked_only_where_there_are_some(collect, monkeypatch):
    facts, _other = collect({"facts": Result(0, json.dumps(MOUNT))}, checks=["mount"], share_type="other")
    assert facts["servers"] is None
    monkeypatch.setattr(_beegfs_cli, "installed", lambda _cli: None)
    facts, _other = collect({"facts": Result(0, json.dumps(MOUNT))}, checks=["mount"], directories=[])
    assert "beegfs or beegfs-ctl was not found" in facts["servers"]["problems"][0]["problem"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("path", "mnt"),
        ("kit", "kit"),
        ("config_file", "x"),
        ("folder", "../etc"),
        ("folder", "/etc"),
        ("directories", ["a,b"]),
        ("size", 0),
        ("deadline", 0.0),
        ("reserve", -1.0),
        ("checks", []),
        ("user", "a b"),
        ("user", "-u"),
    ],
)
def test_options_that_cannot_be_meant_are_named(option, value):
    assert _beegfs_check.problems(OPTIONS) == []
    assert len(_beegfs_check.problems({**OPTIONS, option: value})) == 1


def test_the_real_kit_is_run(root):
    """On this machine's own memory file system, as a share of another kind."""
    from pathlib import Path

    share = Path("/dev/shm") / f"hpcval-{os.getpid()}"
    (share / "jobs").mkdir(parents=True)
    try:
        options = {**OPTIONS, "path": str(share), "share_type": "other", "kit": str(root / "files"), "size": 1}
        options.update(python=sys.executable, reserve=0.0, directories=[])
        source = (root / "files/kit/share/mounts.py").read_bytes()
        facts = _beegfs_check.collect(options, source, _beegfs_cli.run)
        assert facts["use"]["error"] is None
        assert facts["speed"]["problems"].keys() <= {"write_direct", "read_direct"}
        assert list((share / "jobs").iterdir()) == []
    finally:
        (share / "jobs").rmdir()
        share.rmdir()
