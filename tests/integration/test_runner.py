"""The play through ansible-runner, as pipelines and controllers drive it: events, status, artifacts, cancel."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import typing as t
from pathlib import Path

import ansible_runner
import pytest

from tests.integration.conftest import BRIEF, ROOT, cluster, jobs, wait_for

PLAYBOOK = "mlops.hpc_validation.validate_category1"
EXAMPLE = ROOT / "docs/examples/validate_with_runner.py"
ENVIRONMENT = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}


class Pipeline:
    """A private data folder, what its runs reported, and what they left."""

    def __init__(self, folder: Path, variables: dict[str, t.Any]) -> None:
        self.folder = folder
        self.environment = dict(ENVIRONMENT)
        self.statuses: list[str] = []
        self.events: list[dict[str, t.Any]] = []
        (folder / "env").mkdir(parents=True)
        (folder / "env/extravars").write_text(json.dumps(variables))
        shutil.copytree(ROOT / "inventories/local", folder / "inventory")

    def run(self, cancel: t.Callable[[], bool] | None = None) -> ansible_runner.Runner:
        """As a controller does: handlers, and results among the run's own artifacts."""
        return ansible_runner.run(
            private_data_dir=str(self.folder),
            playbook=PLAYBOOK,
            ident="one",
            envvars=self.environment,
            extravars={"hpc_validation_results": str(self.results)},
            suppress_env_files=True,
            quiet=True,
            event_handler=self._event,
            status_handler=lambda data, **_: self.statuses.append(data["status"]),
            cancel_callback=cancel,
        )

    def _event(self, event: dict[str, t.Any]) -> bool:
        self.events.append(event)
        return True

    @property
    def results(self) -> Path:
        return self.folder / "artifacts/one/results"

    @property
    def verdict(self) -> dict[str, t.Any]:
        (path,) = self.results.glob("*/verdict.json")
        return json.loads(path.read_text())

    def screen(self) -> str:
        return (self.folder / "artifacts/one/stdout").read_text()

    def of_task(self, kind: str, task: str) -> list[dict[str, t.Any]]:
        """What events of this kind told of a task by a module of the collection; an include may bear its name too."""
        told = [event["event_data"] for event in self.events if event["event"] == kind]
        return [d["res"] for d in told if d["task"] == task and d["task_action"].startswith("mlops.hpc_validation.")]


@pytest.fixture
def pipeline(tmp_path: Path, canary: t.Callable[..., dict[str, t.Any]]) -> t.Callable[..., Pipeline]:
    """(behaviour of the canary, settings) → a pipeline that runs it."""
    return lambda behaviour="well", **settings: Pipeline(tmp_path / "private", {**canary(behaviour), **settings})


def job_in(name: str, states: str) -> bool:
    """Whether Slurm has a job of this name in one of the states."""
    listed = cluster("login", "squeue", "-h", "-n", name, "-t", states, "-o", "%i", user="admin")
    return bool(listed.split())


def processes(word: str) -> list[str]:
    """Ids of the processes of this machine whose command line holds the word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes() and path.parent.name != str(os.getpid()):
                found.append(path.parent.name)
        except OSError:  # it ended meanwhile
            continue
    return found


def test_a_pass_in_events_status_and_artifacts_and_a_short_screen(pipeline):
    piped = pipeline()
    piped.environment.update(BRIEF)
    ran = piped.run()
    assert (ran.status, ran.rc) == ("successful", 0), piped.screen()
    assert piped.statuses == ["starting", "running", "successful"]
    assert piped.verdict["verdict"] == "pass"
    (made,) = piped.of_task("runner_on_ok", "Make the verdict")
    assert made["verdict"] == "pass"
    assert made["msg"].startswith("VERDICT: PASS")
    assert len(made["msg"].splitlines()) <= 20
    assert made["folder"] == str(next(piped.results.iterdir()))
    assert ran.stats["failures"] == {}
    assert list(ran.stats["processed"]) == ["login"]
    artifacts = piped.folder / "artifacts/one"
    assert (artifacts / "rc").read_text() == "0"
    assert (artifacts / "status").read_text() == "successful"
    assert "VERDICT: PASS" in piped.screen()
    assert len(piped.screen().splitlines()) <= 40, piped.screen()
    assert len(list((artifacts / "job_events").glob("*.json"))) == len(piped.events)
    assert jobs() == []


@pytest.mark.slow
def test_a_failure_in_events_status_and_artifacts(pipeline):
    piped = pipeline("low")
    ran = piped.run()
    assert (ran.status, ran.rc) == ("failed", 2)
    assert piped.statuses[-1] == "failed"
    assert piped.verdict["verdict"] == "fail"
    (made,) = piped.of_task("runner_on_failed", "Make the verdict")
    assert "T-2" in made["msg"]
    assert ran.stats["failures"] == {"login": 1}
    assert jobs() == []


@pytest.fixture
def blocked() -> t.Iterator[str]:
    """A job of somebody's that has all GPUs of compute01: the preflight's job there waits for as long as it lasts."""
    submit = ["sbatch", "--parsable", "--nodelist=compute01", "--gres=gpu:2", "--mem=50M", "--wrap=sleep 3600"]
    job = cluster("login", *submit, "--output=/dev/null", user="admin").strip()
    wait_for(lambda: job_in("wrap", "RUNNING"), 60)
    yield job
    cluster("login", "scancel", job, user="admin")
    wait_for(lambda: jobs() == [], 60)


def check_cancelled(piped: Pipeline, job: str, state: str, others: list[str]) -> None:
    """Cancel is SIGKILL to the process group; a worker with a session of its own lives on and must cancel its job."""
    asked = threading.Event()

    def cancel() -> bool:
        """Once true it stays so: the runner asks again while the play ends, and takes the last answer."""
        if job_in(job, state):
            asked.set()
        return asked.is_set()

    ran = piped.run(cancel=cancel)
    assert ran.status == "canceled", piped.screen()
    assert ran.rc != 0
    wait_for(lambda: jobs() == others, 60)
    assert piped.statuses[-1] == "canceled"
    assert piped.verdict["verdict"] == "undetermined"
    assert "did not finish" in piped.verdict["why"]
    assert piped.of_task("runner_on_ok", "Make the verdict") == []
    wait_for(lambda: processes(str(piped.results)) == [], 60)


def test_cancel_leaves_no_job_no_process_and_an_honest_verdict(pipeline):
    check_cancelled(pipeline("sleep"), "canary", "RUNNING", [])


@pytest.mark.slow
def test_cancel_in_the_preflight_leaves_no_job_either(pipeline, blocked):
    piped = pipeline(hpc_validation_preflight_queue_timeout=600)
    check_cancelled(piped, "preflight-compute01", "PENDING", [blocked])


def example(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(EXAMPLE), str(folder), *arguments],
        env={**os.environ, **ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.slow
def test_the_example_ends_0_for_a_pass(pipeline):
    started = example(pipeline().folder)
    screen, _ = started.communicate(timeout=600)
    assert started.returncode == 0, screen
    assert "ansible: successful, exit code 0\nverdict: pass" in screen


@pytest.mark.slow
def test_the_example_does_not_end_0_for_a_failure(pipeline):
    started = example(pipeline("low").folder)
    screen, _ = started.communicate(timeout=600)
    assert started.returncode == 1
    assert "ansible: failed, exit code 2\nverdict: fail" in screen


def test_the_example_does_not_end_0_where_ansible_did_but_nothing_ran(pipeline):
    piped = pipeline()
    (piped.folder / "env/cmdline").write_text("--skip-tags always")
    started = example(piped.folder)
    screen, _ = started.communicate(timeout=180)
    assert "ansible: successful, exit code 0\nverdict: undetermined: 0 verdicts" in screen
    assert started.returncode == 1


@pytest.mark.slow
def test_the_example_when_terminated_cleans_up(pipeline):
    started = example(pipeline("sleep").folder, "--cleanup")
    try:
        wait_for(lambda: job_in("canary", "RUNNING"), 300)
        started.send_signal(signal.SIGTERM)
        screen, _ = started.communicate(timeout=180)
    finally:
        started.terminate()  # a kill would leave the play running
    assert started.returncode == 1
    assert "cleanup: successful" in screen
    assert "ansible: canceled" in screen
    assert "verdict: undetermined" in screen
    assert jobs() == []
