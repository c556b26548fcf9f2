from __future__ import annotations

import json
import os
import signal
import sys
import time

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import cli as beegfs_cli
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import run as beegfs_run
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import servers
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.cli import LIMITED
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.run import Result
from ansible_collections.mlops.hpc_validation.plugins.module_utils._probe import share as probe_share

from tests.unit.beegfs.told import Tool, answer, instead


def test_beegfs_ctl_is_asked_with_the_mounts_own_configuration_and_through_sudo():
    tool = Tool("healthy")
    told = tool.told("admin", config_file="/etc/beegfs/a.conf", sudo=True)
    assert told["problems"] == []
    assert all(argv[:3] == ["sudo", "-n", "beegfs-ctl"] for argv in tool.asked)
    assert all("--cfgFile=/etc/beegfs/a.conf" in argv for argv in tool.asked)
    (quota,) = [argv for argv in tool.asked if "--getquota" in argv]
    assert quota[3:7] == ["--getquota", "--uid", "admin", "--csv"]


def test_space_and_quota_are_asked_last_and_alone_with_limits_and_no_error_codes_of_targets():
    tool = Tool("healthy")
    tool.told()
    limited = [argv for argv in tool.asked if LIMITED in argv]
    assert limited == tool.asked[-3:]
    assert [argv for argv in tool.asked if "--spaceinfo" in argv or "--getquota" in argv] == limited
    assert not [argv for argv in tool.asked if "--listtargets" in argv and "--errorcodes" in argv]


def test_a_release_that_does_not_know_the_limit_is_asked_without_it_once():
    unknown = answer(LIMITED, err=f"Invalid argument: {LIMITED}\n", rc=1)
    tool = Tool("healthy", first=[unknown])
    cli = tool.cli()
    assert cli.call(("--getquota", "--uid", "0", "--csv"), 5, limited=True).rc == 0
    assert [LIMITED in argv for argv in tool.asked] == [True, False]
    assert cli.call(("--getquota", "--uid", "0", "--csv"), 5, limited=True).rc == 0
    assert [LIMITED in argv for argv in tool.asked] == [True, False, False]
    told = Tool("healthy", first=[unknown]).told()
    assert told["problems"] == []


def test_where_all_questions_meet_one_cause_it_is_told_once_and_no_more_is_asked():
    for state in ("wrong-secret", "mgmtd-killed", "auth-file-unreadable", "client-card-without-link"):
        tool = Tool(state)
        told = tool.told()
        assert len(told["problems"]) == 1
        assert told["targets"] is told["nodes"] is told["mirrors"] is told["quota"] is None
        assert not [argv for argv in tool.asked if "--spaceinfo" in argv or "--getquota" in argv]


def test_an_empty_table_is_an_answer_only_where_the_exit_code_says_so():
    """Other words than those for no metadata servers, or another exit code, leave the type unread."""
    table = "TargetID   Cap. Pool   NodeID\n========   =========   ======\n"
    for err, rc, problems in (
        (" [ERROR: No metadata servers found]\n", 3, []),
        (" [ERROR: No metadata servers found]\n", 1, ["[ERROR: No metadata servers found]"]),
        ("Something else\n", 3, ["Something else"]),
        ("", 3, ["exit code 3 without a message"]),
        ("", 0, []),
    ):
        first = answer("--pools", "--nodetype=meta", "--longnodes", "--listtargets", out=table, err=err, rc=rc)
        told = Tool("fresh-mgmtd-alone", first=[first]).told()
        found = [each["problem"] for each in told["problems"] if (each["part"], each["type"]) == ("targets", "meta")]
        assert found == problems


def test_a_tool_that_answers_nothing_is_given_up_after_the_first_questions():
    tool = Tool("hang")
    told = tool.told()
    assert [problem["cause"] for problem in told["problems"]] == ["silent"]
    assert not [argv for argv in tool.asked if "--state" in argv]
    tool = Tool("v8", "hang")
    assert len(tool.told()["problems"]) == 1


def test_states_that_are_kept_waiting_leave_what_the_management_daemon_says_alone():
    held = {**answer("--state", seconds=1201), "at_once": ""}
    told = Tool("both-mirrored-healthy", first=[held]).told()
    assert {(row["id"], row["pool"], row["reachability"]) for row in told["targets"]} == {
        (number, "normal", None) for number in (1, 2, 101, 102, 201, 202)
    }
    assert {problem["part"] for problem in told["problems"]} == {"states", "space"}
    assert len(told["mirrors"]) == 3


def test_the_mirrors_are_asked_for_in_the_older_way_where_the_newer_is_refused():
    refused = answer("--mirrorgroups", err="Invalid argument: --mirrorgroups\n", rc=1)
    tool = Tool("both-mirrored-healthy", first=[refused])
    told = tool.told()
    assert told["problems"] == []
    assert told["mirrors"] == Tool("both-mirrored-healthy").told()["mirrors"]


def test_a_management_daemon_that_was_just_started_is_asked_again_until_it_knows():
    tool = Tool("healthy")
    new = Tool("mgmtd-restarted-at-once").answers
    old = tool.answers

    class Starting(list):
        def __iter__(self):
            return iter(new if tool.clock.now < 7 else old)

    tool.answers = Starting()
    told = tool.told()
    assert {row["reachability"] for row in told["targets"]} == {"online"}
    assert 7 <= tool.clock.now <= servers.SETTLES_SECONDS
    silent = Tool("mgmtd-restarted-at-once")
    assert {row["reachability"] for row in silent.told()["targets"]} == {"probably-offline"}
    assert silent.clock.now == pytest.approx(servers.SETTLES_SECONDS)
    short = Tool("mgmtd-restarted-at-once")
    short.told(deadline=10.0)
    assert short.clock.now <= 5


def test_servers_that_do_not_answer_are_not_waited_for():
    dead = answer(
        "--listnodes",
        "--nodetype=storage",
        out="stor1 [ID: 1]\n   Reachable: <no>\nstor2 [ID: 2]\n   Reachable: <no>\n",
        rc=5,
    )
    tool = Tool("storage-mirrored-at-once", first=[dead, *Tool("healthy").answers[2:][:0]])
    tool.answers = [each for each in tool.answers if "--nodetype=meta" not in each["words"]] + Tool("healthy").answers
    tool.told()
    assert tool.clock.now == 0


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
    tool = Tool("v8")
    told = tool.told(user, sudo=sudo)
    (quota,) = [argv for argv in tool.asked if "quota" in argv]
    assert quota[quota.index("--uids") + 1] == asked_of
    assert told["problems"] == []


def test_the_quota_of_a_user_whom_nobody_knows_is_not_asked_for():
    tool = Tool("v8")
    told = tool.told("no-such-user")
    assert [argv for argv in tool.asked if "quota" in argv] == []
    assert told["quota"] is None
    (problem,) = told["problems"]
    assert (problem["part"], "user no-such-user does not exist" in problem["problem"]) == ("quota", True)


def test_version_8_says_on_the_error_stream_that_quota_is_not_enabled():
    told = Tool("v8", first=[instead("cli_8_documented/quota_list_usage_not_enabled", "quota")]).told(None)
    assert told["quota"] is None
    (problem,) = told["problems"]
    assert problem["problem"].startswith("quota is not enabled")
    noise = answer("quota", err="license: x\nWARNING: the clock is late\n")
    assert Tool("v8", first=[noise]).told(None)["problems"][0]["problem"] == "no quota was reported"


@pytest.mark.parametrize("tool", ["beegfs", "beegfs-ctl"])
def test_striping_by_the_tool(tool):
    words = ["v8"] if tool == "beegfs" else ["healthy"]
    told = servers.striping(Tool(*words).cli(), "/mnt/beegfs/models")
    assert told == {"pattern": "raid0", "chunk_kib": 512, "targets": 4, "source": tool, "error": None}
    failed = answer(err="Error: Path does not exist\n", rc=3)
    told = servers.striping(Tool(*words, first=[failed]).cli(), "/nope")
    assert told["error"] == "Error: Path does not exist"
    told = servers.striping(Tool(*words, first=[answer(rc=3)]).cli(), "/nope")
    assert "exit code 3" in told["error"]
    assert "not queried" in servers.striping(Tool(*words).cli(deadline=0.0), "/nope")["error"]


def test_a_command_runs_in_a_clean_environment(monkeypatch):
    monkeypatch.setenv("BEEGFS_MGMTD_ADDR", "elsewhere")
    code = "import os, sys; print(sorted(os.environ)); print(sys.stdin.read())"
    done = beegfs_run.run([sys.executable, "-c", code], 20, stdin=b"hello", environment={"PYTHONPATH": "/x"})
    assert done.rc == 0
    assert "BEEGFS" not in done.out
    assert "PYTHONPATH" in done.out
    assert "hello" in done.out
    assert "was not found" in beegfs_run.run(["no-such-tool"], 1).failure
    done = beegfs_run.run([sys.executable, "-c", "import sys; print(1); print(2, file=sys.stderr); sys.exit(3)"], 20)
    assert done == Result(3, "1\n", "2\n")


HOLDS = """
import signal, sys
def reset(number, frame): signal.signal(number, signal.SIG_DFL)
for number in {ignored}: signal.signal(number, reset)
print("a row", flush=True)
while True: signal.pause()
"""


@pytest.mark.parametrize("ignored", ["(signal.SIGTERM,)", "(signal.SIGTERM, signal.SIGHUP)"])
def test_what_was_printed_before_the_time_was_over_is_kept_and_the_command_ended(ignored):
    began = time.monotonic()
    held = beegfs_run.run([sys.executable, "-c", HOLDS.format(ignored=ignored)], 2)
    assert (held.rc, held.out, held.failure) == (None, "a row\n", f"{sys.executable} did not answer in 2 s")
    assert time.monotonic() - began < 9


def test_a_command_that_prints_without_end_is_ended_and_little_of_it_kept(monkeypatch):
    monkeypatch.setattr(beegfs_run, "OUTPUT_BYTES", 100_000)
    held = beegfs_run.run([sys.executable, "-c", "while True: print('y' * 1000)"], 60)
    assert held.rc is None
    assert "printed more than 100000 bytes" in held.failure
    assert len(held.out) == 100_000


def test_a_child_that_keeps_the_streams_is_not_waited_for():
    code = "import subprocess; print('done', flush=True); subprocess.Popen(['sleep', '60'])"
    began = time.monotonic()
    done = beegfs_run.run([sys.executable, "-c", code], 40)
    assert (done.rc, done.out) == (0, "done\n")
    assert time.monotonic() - began < 30


def test_no_command_outlives_an_interruption(monkeypatch, tmp_path):
    pid = tmp_path / "pid"
    code = f"import os, signal; open({str(pid)!r}, 'w').write(str(os.getpid())); signal.pause()"

    def interrupted(*_arguments):
        while not (pid.exists() and pid.read_text()):
            time.sleep(0.01)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(beegfs_run._Streams, "read_until", interrupted)
    with pytest.raises(KeyboardInterrupt):
        beegfs_run.run([sys.executable, "-c", code], 60)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), signal.SIGCONT)


def test_the_newer_tool_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(beegfs_cli, "search_path", lambda: str(tmp_path))
    assert beegfs_cli.installed("auto") is None
    for name in ("beegfs-ctl", "beegfs"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        assert beegfs_cli.installed("auto") == name
    assert beegfs_cli.installed("beegfs-ctl") == "beegfs-ctl"


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
    monkeypatch.setattr(beegfs_cli, "installed", lambda _cli: "beegfs-ctl")
    tool = Tool("healthy")

    def run(answers, **changed):
        asked = []

        def execute(argv, _seconds, **given):
            asked.append((argv, given))
            if argv[0] == "beegfs-ctl":
                return tool(argv, _seconds)
            return answers["facts" if argv[1] == "-" else "share"]

        return probe_share.collect({**OPTIONS, **changed}, b"source", execute), asked

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
    assert "--cfgFile=/etc/beegfs/beegfs-client.conf" in asked[2][0]


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
    from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema

    dead = {**MOUNT, "problem": "all storage targets are offline: it was not touched"}
    facts, asked = collect({"facts": Result(0, json.dumps(dead))})
    assert [argv[0] for argv, _other in asked].count("python3") == 1
    assert facts["use"]["error"] == facts["speed"]["error"] == dead["problem"]
    assert "striping" in facts
    problems = schema.problems("share", facts)
    assert all(line.startswith("mount: ") for line in problems), problems  # the stand-in's is not whole


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Result(None, failure="python3 did not answer in 80 s"), "did not answer"),
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
    monkeypatch.setattr(beegfs_cli, "installed", lambda _cli: None)
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
        ("path", None),
    ],
)
def test_options_that_cannot_be_meant_are_named(option, value):
    assert probe_share.problems(OPTIONS) == []
    assert len(probe_share.problems({**OPTIONS, option: value})) == 1


def test_servers_alone_need_no_path_but_a_way_to_ask(collect):
    alone = {**OPTIONS, "checks": ["servers"], "path": None}
    assert probe_share.problems(alone) == []
    assert len(probe_share.problems({**alone, "access": "none"})) == 1
    facts, asked = collect({}, checks=["servers"], path=None, config_file="/etc/beegfs/b.conf")
    assert set(facts) == {"servers"}
    assert {argv[0] for argv, _other in asked} == {"beegfs-ctl"}
    assert all("--cfgFile=/etc/beegfs/b.conf" in argv for argv, _other in asked)


def test_the_real_kit_is_run(root):
    """On this machine's own memory file system, as a share of another kind."""
    from pathlib import Path

    share = Path("/dev/shm") / f"hpcval-{os.getpid()}"
    (share / "jobs").mkdir(parents=True)
    try:
        options = {**OPTIONS, "path": str(share), "share_type": "other", "kit": str(root / "files"), "size": 1}
        options.update(python=sys.executable, reserve=0.0, directories=[])
        source = (root / "files/kit/share/mounts.py").read_bytes()
        facts = probe_share.collect(options, source, beegfs_run.run)
        assert facts["use"]["error"] is None
        assert facts["speed"]["problems"].keys() <= {"write_direct", "read_direct"}
        assert list((share / "jobs").iterdir()) == []
    finally:
        (share / "jobs").rmdir()
        share.rmdir()
