# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""slurm_job on the local cluster: real Slurm, over ssh, interrupted the way people and pipelines interrupt it."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = os.environ.get("HPC_VALIDATION_CLUSTER", "local")
SCHEMA = json.loads((ROOT / "files/schemas/job.json").read_text())
FOLDER = "/mnt/beegfs/jobs/test-slurm-job"
SCRIPT = "#!/bin/bash\n#SBATCH --mem=50M\n"
MARKED = (
    SCRIPT
    + f"""m={FOLDER}/$SLURM_JOB_ID
row() {{ printf '{{"job_id": "%s", "attempt": %d, "host": "%s", "exit_code": 0, "time": %s}}' \\
    "$SLURM_JOB_ID" "${{SLURM_RESTART_COUNT:-0}}" "$(hostname)" "$(date +%s)" > $m.tmp; mv $m.tmp $m.$1.json; }}
row begin
sleep ${{SECONDS_TO_RUN:-3}}
row end
"""
)
MARKERS = {"begin_marker": f"{FOLDER}/%j.begin.json", "end_marker": f"{FOLDER}/%j.end.json"}
QUERIES = re.compile(
    r"(REQUEST_(?:JOB_INFO\w*|JOB_USER_INFO|JOB_STATE|NODE_INFO\w*|PARTITION_INFO|FED_INFO))\s.*count:(\d+)"
)


def node(*argv: str, host: str = "login", user: str = "root", check: bool = True) -> str:
    """Run a command on a node of the cluster and return what it printed."""
    command = [str(ROOT / "tests/cluster/cluster"), "exec", "--name", CLUSTER, "--user", user, host, "--", *argv]
    return subprocess.run(command, check=check, capture_output=True, text=True, timeout=60).stdout


def live() -> dict[str, str]:
    """Live jobs of the submitting user: state by id."""
    lines = node("squeue", "--noheader", "--user=admin", "--format=%i %T").splitlines()
    return dict(line.split() for line in lines)


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            pytest.fail(f"within {seconds} s: {what}")
        time.sleep(0.2)
    return value


class Controller:
    """Writes a play of slurm_job tasks and runs it with ansible-playbook."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.screen = ""

    def command(self, *tasks: dict[str, Any], **common: Any) -> list[str]:
        """Return the command; each task's result is written to <number>.json."""
        cache = os.environ.get("HPC_VALIDATION_CACHE") or os.path.expanduser("~/.cache/hpc_validation")
        state = f"{cache}/clusters/{CLUSTER}"
        steps: list[dict[str, Any]] = []
        for number, args in enumerate(tasks):
            keywords = {
                key: args[key] for key in ("environment", "check_mode", "diff", "async", "timeout") if key in args
            }
            given = {key: value for key, value in args.items() if key not in keywords}
            module = {"chdir": FOLDER, "share": "/mnt/beegfs", **common, **given}
            if given.get("state") == "absent" or "job_id" in given:
                module.pop("chdir")
            content = "{{ result | to_json }}"
            steps += [
                {"mlops.hpc_validation.slurm_job": module, "register": "result", "ignore_errors": True, **keywords},
                {
                    "ansible.builtin.copy": {
                        "content": content,
                        "dest": str(self.folder / f"{number}.json"),
                        "mode": "0600",
                    },
                    "delegate_to": "localhost",
                    "check_mode": False,
                },
            ]
        play = [{"hosts": "login", "gather_facts": False, "tasks": steps}]
        inventory = {
            "all": {
                "hosts": {
                    "login": {
                        "ansible_ssh_common_args": f"-F {state}/ssh_config",
                        "ansible_control_path": f"{state}/%%h.ssh",
                        "ansible_python_interpreter": "/usr/bin/python3",
                    }
                }
            }
        }
        (self.folder / "play.yml").write_text(yaml.safe_dump(play, sort_keys=False))
        (self.folder / "inventory.yml").write_text(yaml.safe_dump(inventory))
        return ["ansible-playbook", "-i", str(self.folder / "inventory.yml"), str(self.folder / "play.yml")]

    def start(self, *tasks: dict[str, Any], **common: Any) -> subprocess.Popen[str]:
        """Start the play in the background; its screen goes to a file."""
        stream = open(self.folder / "screen", "w")  # noqa: SIM115
        env = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
        command = self.command(*tasks, **common)
        return subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL, text=True
        )

    def finish(self, process: subprocess.Popen[str], count: int, seconds: float = 180) -> list[dict[str, Any]]:
        """Wait for the play and return its tasks' results."""
        try:
            process.wait(timeout=seconds)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            self.screen = (self.folder / "screen").read_text()
        return [json.loads((self.folder / f"{number}.json").read_text()) for number in range(count)]

    def run(self, *tasks: dict[str, Any], seconds: float = 180, **common: Any) -> list[dict[str, Any]]:
        """Run tasks and return their results, every job checked against the schema."""
        results = self.finish(self.start(*tasks, **common), len(tasks), seconds)
        for result in results:
            for job in result.get("jobs") or []:
                jsonschema.validate(job, SCHEMA)
        return results

    def told(self, words: str) -> None:
        """Wait until the screen of the play that runs has the words."""
        until(lambda: words in (self.folder / "screen").read_text(), 120, f"it is told: {words}")

    def job(self, **args: Any) -> dict[str, Any]:
        """Run one task and return its result."""
        return self.run(args)[0]


@pytest.fixture(autouse=True)
def quiet_cluster() -> Iterator[None]:
    """Every test begins and ends without jobs, and with the cluster as it was."""
    node("mkdir", "-p", FOLDER, user="admin")
    node("scancel", "--user=admin")
    until(lambda: not live(), 120, "the cluster has no jobs")
    yield
    node("scancel", "--user=admin")
    node("rm", "-rf", FOLDER, user="admin")


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    return Controller(tmp_path)


@pytest.fixture
def drained() -> Iterator[None]:
    """All compute nodes drained, by somebody."""
    node("scontrol", "update", "NodeName=ALL", "State=DRAIN", "Reason=test bench; fan")
    yield
    node("scontrol", "update", "NodeName=ALL", "State=RESUME")


# Runs until the test says so: whoever looks at it while it runs is not raced by it.
WAITS = SCRIPT + f"until [ -e {FOLDER}/go ]; do sleep 0.1; done\n"


def go() -> None:
    """Let the jobs of WAITS end."""
    node("touch", f"{FOLDER}/go", user="admin")


# slurmctld then knows of no exit code, and squeue leaves out the column.
WITHOUT_EXIT_CODE = """
import ctypes, glob, subprocess
said = lambda *argv: subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
job = said("sbatch", "--parsable", "--hold", "--mem=50M", "--output=/dev/null", "--wrap=true")
said("scancel", job)
slurm = ctypes.CDLL(glob.glob("/usr/lib/*/slurm-wlm/libslurmfull.so")[0], mode=ctypes.RTLD_GLOBAL)
slurm.slurm_init(None)
slurm.slurm_complete_job(ctypes.c_uint32(int(job)), ctypes.c_uint32(0xFFFFFFFE))
print(said("squeue", "--noheader", "--states=all", "--jobs", job, "--Format=State:10,exit_code:10,DerivedEC:10"))
"""


def query_count() -> int:
    """Query RPCs that slurmctld has answered since the last reset."""
    return sum(int(count) for _name, count in QUERIES.findall(node("sdiag")))


# -- a job's life


def test_a_job_is_submitted_waited_for_and_reported(controller: Controller) -> None:
    node("sdiag", "--reset")
    begun = time.monotonic()
    script = MARKED.replace("sleep ${SECONDS_TO_RUN:-3}", f"until [ -e {FOLDER}/go ]; do sleep 0.1; done")
    options = {"gres": "gpu:1", "job-name": 'it\'s a; "name" $(x)'}
    process = controller.start({"script": script, "options": options, **MARKERS})
    controller.told("RUNNING")
    go()
    (result,) = controller.finish(process, 1)
    job = result["job"]
    jsonschema.validate(job, SCHEMA)
    assert (job["state"], job["exit_code"], job["gpus"], job["source"]) == ("COMPLETED", 0, 1, "squeue")
    assert job["name"] == 'it\'s a; "name" $(x)'
    assert job["steps"]
    assert job["nodes"]
    assert job["comment"].startswith("hpc_validation:")
    assert (result["changed"], result["attached"]) == (True, False)
    assert f"job {job['job_id']}" in controller.screen
    assert query_count() <= 7 + (time.monotonic() - begun) / 3  # tests/unit has the exact times


def test_many_jobs_are_waited_for_in_one_task(controller: Controller) -> None:
    node("sdiag", "--reset")
    jobs = [{"options": {"job-name": f"many{number}", "gres": "gpu:1"}} for number in range(12)]
    result = controller.job(script=MARKED, jobs=jobs, **MARKERS)
    assert [job["name"] for job in result["jobs"]] == [f"many{number}" for number in range(12)]
    assert {job["state"] for job in result["jobs"]} == {"COMPLETED"}
    assert query_count() <= 22


def test_a_failure_says_what_happened_and_what_to_type(controller: Controller) -> None:
    result = controller.job(script=SCRIPT + "printf 'it \\033[31mbroke\\033[0m\\n' >&2; exit 3\n")
    job = result["job"]
    assert result["failed"]
    assert (job["state"], job["exit_code"], job["tail"]) == ("FAILED", 3, ["it broke"])
    assert "exit code 3" in result["msg"]
    assert f"scontrol show job {job['job_id']}" in result["msg"]
    assert job["stderr"] in result["msg"]


def test_states_may_be_returned_for_the_caller_to_judge(controller: Controller) -> None:
    result = controller.job(script=SCRIPT + "kill -9 $$\n", fail_on_state=False)
    assert result["failed"] is False
    assert (result["job"]["state"], result["job"]["signal"]) == ("FAILED", 9)


def test_a_failed_step_shows(controller: Controller) -> None:
    job = controller.job(script=SCRIPT + "srun bash -c 'exit 7'; true\n")["job"]
    assert (job["state"], job["derived_exit_code"]) == ("COMPLETED", 7)
    assert {"id": "0", "state": "FAILED", "exit_code": 7, "signal": 0} in job["steps"]


def test_variables_of_the_user_change_nothing(controller: Controller) -> None:
    environment = {
        "SBATCH_PARTITION": "nope",
        "SBATCH_TIMELIMIT": "99-0",
        "SQUEUE_FORMAT": "%i",
        "SQUEUE_STATES": "PD",
        "SQUEUE_PARTITION": "nope",
        "SLURM_TIME_FORMAT": "%H",
        "SACCT_FORMAT": "jobid",
        "SLURM_JWT": "nonsense",
        "SLURM_CLUSTERS": "other",
        "TZ": "Asia/Tokyo",
        "LC_ALL": "C.UTF-8",
    }
    job = controller.job(script=SCRIPT, environment=environment)["job"]
    assert (job["state"], job["source"]) == ("COMPLETED", "squeue")
    assert abs(job["submitted"] - time.time()) < 60


# -- what cannot work is refused, or given up at once


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"script": ""}, "is empty"),
        ({"script": "true\n"}, "does not begin with #!"),
        ({"script": "#!/bin/bash\r\ntrue\r\n"}, "DOS line ends"),
        ({"path": "/mnt/beegfs/no such; script.sh"}, "does not exist"),
        ({"path": "/etc/shadow"}, "cannot be read"),
        ({"script": SCRIPT, "options": {"partition": "nope; true"}}, "sinfo --summarize"),
        ({"script": SCRIPT, "options": {"gres": "gpu:64"}}, "Do this:"),
        ({"script": SCRIPT, "options": {"time": 600}}, "in quotes"),
        ({"script": SCRIPT, "chdir": "/nowhere"}, "is not a directory"),
        ({"script": SCRIPT, "journal": "/proc/journal"}, "cannot be written"),
        ({"script": SCRIPT, "path": "/x"}, "exactly one of"),
        ({"script": SCRIPT, "environment": {"PATH": "/nowhere"}}, "was not found on"),
        ({"script": SCRIPT, "async": 60}, "cannot run with async"),
        ({"jobs": []}, "empty list"),
    ],
)
def test_bad_input_is_refused_before_anything_is_submitted(controller: Controller, args: dict, words: str) -> None:
    result = controller.job(**args)
    assert result["failed"] is True
    assert words in result["msg"]
    assert live() == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"time": "3-00:00:00"}, "longer than its partition allows"),
        ({"priority": "0"}, "is held by"),
        ({"nodelist": "compute01", "nodes": "2", "exclude": "compute02"}, ""),
    ],
)
def test_a_job_that_can_never_start_is_given_up_at_once(controller: Controller, options: dict, words: str) -> None:
    if "priority" in options:
        node("scontrol", "update", "PartitionName=gpu", "State=DOWN")
        words = "its partition is down"
        options = {}
    try:
        result = controller.job(script=SCRIPT, options=options, queue_timeout=3600)  # far beyond what run() waits
    finally:
        node("scontrol", "update", "PartitionName=gpu", "State=UP")
    assert result["failed"] is True
    assert words in result["msg"]
    assert "Next:" in result["msg"] or "Do this:" in result["msg"]
    assert live() == {}


def test_an_impossible_dependency_is_given_up_at_once(controller: Controller) -> None:
    failed, result = controller.run(
        {"script": SCRIPT + "exit 1\n"}, {"script": SCRIPT, "options": {"dependency": "afterok:1"}}
    )
    assert failed["job"]["state"] == "FAILED"
    dependency = {"dependency": f"afterok:{failed['job']['job_id']}"}
    result = controller.job(script=SCRIPT + "true\n", options=dependency, queue_timeout=3600)
    assert result["failed"] is True
    assert "did not end as required" in result["msg"] or "ependency" in result["msg"]
    assert live() == {}


@pytest.mark.usefixtures("drained")
def test_drained_nodes_are_told_at_once(controller: Controller) -> None:
    result = controller.job(script=SCRIPT, options={"gres": "gpu:1"}, queue_timeout=3600)  # far beyond what run() waits
    assert result["outcomes"][result["job"]["job_id"]]["outcome"] == "never_starts"
    assert "compute01 is idle+drain (test bench; fan)" in result["msg"]
    assert "sinfo -R" in result["msg"]
    assert live() == {}


def test_busy_nodes_are_waited_for(controller: Controller) -> None:
    blocker = ["sbatch", "--parsable", "--mem=50M", "--gres=gpu:2", "--chdir=/tmp", "--wrap=sleep 600"]
    blockers = [node(*blocker, user="admin").strip() for _each in range(2)]
    process = controller.start({"script": SCRIPT, "options": {"gres": "gpu:2"}, "progress_interval": 5})
    controller.told("PENDING")
    node("scancel", *blockers)
    (result,) = controller.finish(process, 1)
    assert result["job"]["state"] == "COMPLETED"


def test_the_two_clocks(controller: Controller) -> None:
    queue, run = controller.run(
        {"script": SCRIPT, "options": {"begin": "now+1hour"}, "queue_timeout": 4},
        {"script": SCRIPT + "sleep 100\n", "run_timeout": 4},
    )
    assert queue["outcomes"][queue["job"]["job_id"]]["outcome"] == "queue_timeout"
    assert "was not started" in queue["msg"]
    assert run["outcomes"][run["job"]["job_id"]]["outcome"] == "run_timeout"
    assert (queue["job"]["state"], run["job"]["state"]) == ("CANCELLED", "CANCELLED")
    assert live() == {}


# -- never twice


def test_a_second_task_attaches(controller: Controller) -> None:
    process = controller.start({"script": WAITS, "wait": False}, {"script": WAITS})
    controller.told("attached to")
    go()
    first, second = controller.finish(process, 2)
    assert first["job"]["job_id"] == second["job"]["job_id"]
    assert (first["changed"], second["changed"], second["attached"]) == (True, False, True)
    assert second["job"]["state"] == "COMPLETED"


def test_of_two_tasks_at_the_same_time_one_submits(tmp_path: Path) -> None:
    controllers = [Controller(tmp_path / name) for name in ("a", "b", "c")]
    for each in controllers:
        each.folder.mkdir()
    started = [each.start({"script": WAITS, "wait": False}) for each in controllers]
    results = [each.finish(process, 1)[0] for each, process in zip(controllers, started, strict=True)]
    assert len({result["job"]["job_id"] for result in results}) == 1
    assert sorted(result["attached"] for result in results) == [False, True, True]
    assert len(live()) == 1


def test_check_mode_submits_nothing_and_shows_the_script(controller: Controller) -> None:
    result = controller.job(script=SCRIPT, check_mode=True, diff=True)
    assert result["changed"] is True
    assert "would submit" in result["submitted"][0]["plan"]
    assert result["diff"][0]["after"] == SCRIPT
    assert live() == {}
    assert "to start at" in controller.screen


# -- cancelling


def test_absent_cancels_what_is_named_and_what_the_journal_names(controller: Controller) -> None:
    stranger = node("sbatch", "--parsable", "--mem=50M", "--chdir=/tmp", "--wrap=sleep 100", user="admin").strip()
    journal = f"{FOLDER}/journal"
    submit = {"script": SCRIPT + "sleep 100\n", "wait": False, "journal": journal}
    submitted, absent, again = controller.run(
        submit, {"state": "absent", "journal": journal}, {"state": "absent", "journal": journal}
    )
    assert absent["cancelled"] == [submitted["job"]["job_id"]]
    assert (absent["changed"], again["changed"]) == (True, False)
    assert list(live()) == [stranger]
    assert controller.job(state="absent", job_id=stranger)["cancelled"] == [stranger]
    assert live() == {}


# -- interruption


def interrupt(
    controller: Controller, number: signal.Signals, whole_group: bool, said: bytes = b"cancelled: ", **args: Any
) -> str:
    """Start a play on a terminal of its own, interrupt it while its job runs; return the screen once it said so."""
    master, slave = pty.openpty()
    env = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    command = controller.command({"script": SCRIPT + "sleep 300\n", **args})
    process = subprocess.Popen(
        command, cwd=ROOT, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    screen, sent = b"", False
    end = time.monotonic() + 180
    while time.monotonic() < end:
        ready, _other, _other = select.select([master], [], [], 0.2)
        try:
            chunk = os.read(master, 65536) if ready else b""
        except OSError:
            break
        screen += chunk
        if not sent and b"RUNNING" in screen:
            (os.killpg if whole_group else os.kill)(process.pid, number)
            sent = True
        if sent and said in screen and process.poll() is not None:
            break
    os.close(master)
    if process.poll() is None:
        process.kill()
    process.wait()
    assert sent, screen.decode()
    return screen.decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("number", "whole_group"),
    [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGKILL, False)],
    ids=["Ctrl-C", "SIGTERM", "killed"],
)
def test_an_interrupted_wait_leaves_no_job(controller: Controller, number: signal.Signals, whole_group: bool) -> None:
    screen = interrupt(controller, number, whole_group)
    until(lambda: not live(), 60, f"the job is gone\n{screen}")
    pattern = str(controller.folder / "play.yml")
    until(lambda: not running(pattern), 60, "no process of the play is left")


def running(pattern: str) -> list[str]:
    """Processes whose command line holds the pattern."""
    lines = subprocess.run(["ps", "-eo", "pid,args"], check=True, capture_output=True, text=True).stdout.splitlines()
    return [line for line in lines if pattern in line]


def test_ctrl_c_says_what_it_did(controller: Controller) -> None:
    screen = interrupt(controller, signal.SIGINT, True)
    # Ansible hands its workers SIGINT and then SIGTERM; under load they may see the second first.
    assert re.search(r"interrupted \(SIG(INT|TERM)\); cancelling the jobs", screen)
    assert re.search(r"interrupted \(SIG(INT|TERM)\); cancelled: \d", screen)


def test_on_interrupt_leave_says_how_to_attach_and_the_next_run_does(controller: Controller) -> None:
    screen = interrupt(controller, signal.SIGINT, True, b"Run the same task again", on_interrupt="leave")
    assert "Run the same task again to attach" in screen
    (job_id,) = live()
    node("scancel", "--user=admin", "--name=none")
    result = controller.job(script=SCRIPT + "sleep 300\n", wait=False)
    assert (result["attached"], result["job"]["job_id"]) == (True, job_id)


def test_an_attached_job_survives_an_interruption(controller: Controller) -> None:
    first = controller.job(script=SCRIPT + "sleep 300\n", wait=False)
    interrupt(controller, signal.SIGINT, True)
    assert list(live()) == [first["job"]["job_id"]]


def test_a_tasks_timeout_cancels_too(controller: Controller) -> None:
    result = controller.job(script=SCRIPT + "sleep 300\n", timeout=8)
    assert result["failed"] is True
    until(lambda: not live(), 60, "the job is gone")


# -- Slurm in trouble


def service(action: str, name: str) -> None:
    """Start or stop a daemon on the login node."""
    node("node-service.sh", action, name)


def test_a_restart_of_slurmctld_is_survived(controller: Controller) -> None:
    process = controller.start({"script": SCRIPT + "sleep 15\n"})
    until(lambda: "RUNNING" in live().values(), 120, "the job runs")
    service("stop", "slurmctld")
    try:
        screen = controller.folder / "screen"
        until(lambda: "Slurm does not answer" in screen.read_text(), 60, "the outage is told")
    finally:
        service("start", "slurmctld")
    (result,) = controller.finish(process, 1)
    assert result["job"]["state"] == "COMPLETED", controller.screen
    assert "answers again" in controller.screen or "COMPLETED" in controller.screen


def test_a_slurmctld_that_stays_away_leaves_the_state_unknown(controller: Controller) -> None:
    process = controller.start({"script": SCRIPT + "sleep 60\n", "controller_timeout": 10})
    until(lambda: "RUNNING" in live().values(), 120, "the job runs")
    service("stop", "slurmctld")
    try:
        (result,) = controller.finish(process, 1)
    finally:
        service("start", "slurmctld")
        until(lambda: "UP" in node("scontrol", "ping", check=False), 60, "slurmctld is back")
    assert result["failed"] is True
    assert (result["job"]["state"], result["job"]["exit_code"]) == ("UNKNOWN", None)
    assert "did not answer" in result["msg"]


def test_without_slurmdbd_jobs_are_waited_for_all_the_same(controller: Controller) -> None:
    service("stop", "slurmdbd")
    try:
        job = controller.job(script=SCRIPT)["job"]
    finally:
        service("start", "slurmdbd")
    assert (job["state"], job["steps"]) == ("COMPLETED", None)


def test_a_requeued_job_is_waited_for(controller: Controller) -> None:
    script = SCRIPT + '#SBATCH --requeue\n[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || sleep 300\n'
    process = controller.start({"script": script})
    (job_id,) = until(lambda: [key for key, state in live().items() if state == "RUNNING"], 120, "the job runs")
    node("scontrol", "requeue", job_id)
    until(lambda: live().get(job_id) == "PENDING", 120, "it is pending again")
    # not at once: a slurmd refuses a job's credential made in the second in which it revoked that job's last one
    node("scontrol", "update", f"JobId={job_id}", "StartTime=now+2")
    (result,) = controller.finish(process, 1)
    assert (result["job"]["state"], result["job"]["attempt"]) == ("COMPLETED", 1), controller.screen


def test_a_job_cancelled_by_somebody_is_reported_as_such(controller: Controller) -> None:
    process = controller.start({"script": SCRIPT + "sleep 300\n"})
    (job_id,) = until(lambda: [key for key, state in live().items() if state == "RUNNING"], 120, "the job runs")
    node("scancel", job_id)
    (result,) = controller.finish(process, 1)
    assert result["job"]["state"] == "CANCELLED"
    assert result["cancelled"] == []
    assert "who cancelled it" in result["msg"]


def test_a_job_without_an_exit_code_does_not_hide_the_others(controller: Controller) -> None:
    """Of an ended job whose end is reported once more, slurmctld may have no exit code, and squeue shows nothing."""
    assert node("python3", "-c", WITHOUT_EXIT_CODE, user="admin").split() == ["CANCELLED", "0:0"]
    job = controller.job(script=SCRIPT + "true\n")["job"]
    assert (job["state"], job["exit_code"]) == ("COMPLETED", 0), controller.screen
    assert "does not answer" not in controller.screen
