"""Plays against the local cluster named by HPC_VALIDATION_CLUSTER, as a user runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import typing as t
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import columns

from tests.integration import canaries

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = os.environ.get("HPC_VALIDATION_CLUSTER", "local")
CACHE = Path(
    os.environ.get("HPC_VALIDATION_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "hpc_validation")
)
# For tests of other things: another test may have the disk, and the CPU, at the same time.
ANY_SPEED = {
    "hpc_validation_share_expect": {"write_mib_s": 1, "read_mib_s": 1, "metadata_ops_s": 1, "coherence_seconds": 60}
}
ANY_TIME = {"S0-12": {"lt": 1800}, "S0-12.slurm": {"lt": 1800}}
# Tests look at tasks, which the checkout's own callback leaves out.
ANSI = {
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_FORCE_COLOR": "0",
    "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
}
BRIEF = {"ANSIBLE_STDOUT_CALLBACK": "mlops.hpc_validation.brief"}


@dataclass
class Played:
    """What a play left: its exit code, its screen, and the run's files."""

    code: int
    screen: str
    folder: Path | None

    @property
    def end(self) -> str:
        """What the screen shows from the verdict on, or its last lines."""
        _before, found, after = self.screen.rpartition("VERDICT: ")
        return found + after if found else "\n".join(self.screen.splitlines()[-50:])

    @property
    def verdict(self) -> dict[str, t.Any]:
        assert self.folder, f"the play left no run\n{self.screen}"
        return json.loads((self.folder / "verdict.json").read_text())

    @property
    def findings(self) -> list[dict[str, t.Any]]:
        """Every finding, those that passed too."""
        assert self.folder
        return list(columns.unpack((self.folder / self.verdict["sidecar"]["path"]).read_bytes()))

    @property
    def suites(self) -> ElementTree.Element:
        assert self.folder
        return ElementTree.parse(self.folder / "junit.xml").getroot()

    def criterion(self, identity: str) -> dict[str, t.Any]:
        found = [c for w in self.verdict["workloads"] for c in w["criteria"] if c["id"] == identity]
        assert len(found) == 1, f"{identity} was not judged\n{self.screen}"
        return found[0]


def cluster(host: str, *argv: str, user: str = "root", name: str = CLUSTER, check: bool = True) -> str:
    """Runs argv on a host of the cluster and returns what it printed."""
    command = [str(ROOT / "tests/cluster/cluster"), "exec", "--name", name, "--user", user, host, "--", *argv]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if check:
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def jobs(name: str = CLUSTER) -> list[str]:
    """Ids of the jobs that Slurm still has to do with."""
    return cluster("login", "squeue", "-h", "-o", "%i", user="admin", name=name).split()


def wait_for(condition: t.Callable[[], t.Any], seconds: float) -> None:
    """Returns as soon as the condition holds; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"the condition did not come about within {seconds} s"
        time.sleep(0.2)


def play_command(
    variables: dict[str, t.Any], playbook: str | Path = ROOT / "playbooks/validate_category1.yml"
) -> list[str]:
    """ansible-playbook of the checkout, with these extra variables."""
    return ["ansible-playbook", str(playbook), "-i", str(ROOT / "inventories/local"), "-e", json.dumps(variables)]


def started_play(
    variables: dict[str, t.Any],
    screen: Path,
    environment: dict[str, str] | None = None,
    playbook: Path = ROOT / "playbooks/validate_category1.yml",
) -> subprocess.Popen[bytes]:
    """A play in a process group of its own; its screen goes to a file."""
    with screen.open("wb") as stream:
        return subprocess.Popen(
            play_command(variables, playbook),
            cwd=ROOT,
            env={**os.environ, **ANSI, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )


@contextmanager
def running_play(
    variables: dict[str, t.Any], folder: Path, until: str = " canary: RUNNING for"
) -> t.Iterator[subprocess.Popen[bytes]]:
    """A play that got so far; its screen is in `folder`/screen. It is interrupted at the end, if nobody did before."""
    screen = folder / "screen"
    played = started_play(variables, screen)
    try:
        wait_for(lambda: until in screen.read_text() or played.poll() is not None, 240)
        assert until in screen.read_text(), screen.read_text()
        yield played
    finally:
        if played.poll() is None:
            os.killpg(played.pid, signal.SIGINT)
            played.wait(timeout=60)


@pytest.fixture
def play(tmp_path: Path) -> t.Callable[..., Played]:
    """(playbook, extra variables, arguments) → what it left; results go to a folder of the test's own."""

    def run(
        playbook: str | Path = ROOT / "playbooks/validate_category1.yml",
        *arguments: str,
        variables: dict[str, t.Any] | None = None,
        environment: dict[str, str] | None = None,
        timeout: int = 600,
        cwd: Path = ROOT,
    ) -> Played:
        results = tmp_path / "results"
        before = set(results.glob("*")) if results.is_dir() else set()
        extra = {"hpc_validation_results": str(results), **(variables or {})}
        done = subprocess.run(
            [*play_command(extra, playbook), *arguments],
            cwd=cwd,
            env={**os.environ, **ANSI, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        new = sorted(set(results.glob("*")) - before) if results.is_dir() else []
        return Played(done.returncode, done.stdout + done.stderr, new[-1] if new else None)

    return run


@pytest.fixture
def canary(tmp_path: Path) -> t.Callable[..., dict[str, t.Any]]:
    """(behaviour, changes of the manifest) → the variables that select such a canary."""

    def make(behaviour: str = "well", **changes: t.Any) -> dict[str, t.Any]:
        return {**canaries.select(tmp_path / "workloads", "canary", behaviour, **changes), **ANY_SPEED}

    return make
