# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One row on the live cluster: a play of its canary, or of a preflight, the fault at its moment, and the repair.

A step is a line; its first word says what is done:
  gpu|beegfs|share|slurm|clock|edge …  a fault of tests/cluster/cluster (see its README)
  root|admin HOST ARGV…           a command in a node
  here ARGV…                      a command on this machine
  service HOST start|stop NAME    a daemon of a node
  resume NODES                    back into service, if they are out of it
  screen REGEX                    waits until it stands on the play's screen
  file PATH                       waits until this row's is on the share and not empty (PATH as jobs see it)
  state WORD                      waits until Slurm says so of the canary's job; GONE: Slurm no longer knows it
  signal INT|TERM|KILL            to the play's process group
  crash                           SIGKILL to the play and all its children, as when the controller loses its power
  again [JSON]                    waits for the play's end and plays the same again, with these variables besides;
                                  `canary` is another behaviour, `manifest` changes of the row's
  beside                          plays the same at the same time
  report NODE WORD                damages what the node has reported, once it is whole (reports.py has the words)
  emulator                        puts the emulator of Google Cloud Storage on the share
  mlflow start|broken|stop|kill|end  a server on the login node; `broken` answers 500, `stop` makes it hang
In a step and in the settings %i is the cluster's name: all clusters have the record of an image in one folder.
In a step %j is the canary's job id, %o the folder of its output, %s the share, %w the folder of the play's workloads,
%p the folder of the newest play's run while it goes on, and %r the same when it has ended, which it waits for.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import typing as t
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults import reports
from tests.faults.rows import Row
from tests.faults.slurm import at_rest, submissions
from tests.integration.canaries import label, select
from tests.integration.conftest import CACHE, CLUSTER, ROOT, cluster, started_play, wait_for
from tests.integration.environments import fake_gcs_server
from tests.mlflow import server

PATIENCE = 240.0  # seconds for a play or a condition of a step
SECOND_PRESS = 20.0  # seconds
DROPPED = "Exception ignored in"  # what Python says of an interrupt that it drops
SHARE = "/mnt/beegfs"
# How a moment shows on the screen; LABEL is the canary's.
SHOWN = {
    "preflight": r"slurm_job: jobs? .*preflight-\S+: submitted|slurm_job: jobs .* submitted: preflight-",
    "staging": r"TASK \[.*Plan the workloads' environments",
    "deploying": r"TASK \[.*Deploy with its job script",
    "submitted": r"slurm_job: job (\d+) LABEL: (?:submitted|attached)",
    "pending": r"slurm_job: job \d+ LABEL: PENDING",
    "running": r"slurm_job: job \d+ LABEL: RUNNING for",
    "judging": r"TASK \[.*Judge TEST-\d\]",
    "reporting": r"PLAY \[Report\]",
}


def on_cluster(*words: str) -> str:
    """Run a command of tests/cluster/cluster; fails where that does."""
    verb, *rest = words
    argv = [str(ROOT / "tests/cluster/cluster"), verb, "--name", CLUSTER, *rest]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass
class Play:
    """One ansible-playbook of a canary, running or ended."""

    folder: Path
    process: subprocess.Popen[bytes]
    ended: float | None = None

    @property
    def screen(self) -> str:
        """What it has shown so far."""
        return (self.folder / "screen").read_text(encoding="utf-8", errors="replace")

    @property
    def runs(self) -> list[Path]:
        """The folders of the runs that it has left."""
        return sorted((self.folder / "results").glob("*/verdict.json"))

    @property
    def verdict(self) -> dict[str, t.Any]:
        """Its verdict.json; fails where it has left none, or two."""
        assert len(self.runs) == 1, f"{len(self.runs)} runs\n{self.screen}"
        return dict(json.loads(self.runs[0].read_text(encoding="utf-8")))

    def signal(self, number: int) -> None:
        """Signal the play and its workers, as a terminal does; a person whose Ctrl-C does nothing presses it again.

        Python drops the interrupt where it comes while a hook of a fork runs.
        """
        os.killpg(self.process.pid, number)
        until = time.monotonic() + SECOND_PRESS
        while self.process.poll() is None and DROPPED not in self.screen and time.monotonic() < until:
            time.sleep(0.1)
        if self.process.poll() is None and number == signal.SIGINT:
            os.killpg(self.process.pid, number)

    def finish(self) -> int:
        """Wait for its end; its exit code."""
        code = self.process.wait(timeout=PATIENCE)
        self.ended = self.ended or time.monotonic()
        return code


@dataclass
class Scene:
    """A row being played in a folder of its own."""

    row: Row
    folder: Path
    variables: dict[str, t.Any]
    playbook: Path = ROOT / "playbooks/validate_category1.yml"
    counted: str | None = None  # the job that is counted, if it is not the canary's
    plays: list[Play] = field(default_factory=list)
    struck: float = 0.0
    undone: bool = False
    began: float = field(default_factory=time.time)

    def run(self) -> float:
        """Play the row to its end; the seconds from the fault to the verdict."""
        self.steps(self.row.before)
        if self.row.when == "before":
            self.struck = time.monotonic()
            self.steps(self.row.do)
            self.plays.append(self.start())
        else:
            self.plays.append(self.start())
            self.await_moment()
            self.struck = time.monotonic()
            self.steps(self.row.do)
        for play in self.plays:
            play.finish()
        return max(play.ended or 0 for play in self.plays) - self.struck

    @property
    def label(self) -> str:
        """What Slurm calls the canary."""
        return label(self.row.workload)

    def start(self, besides: dict[str, t.Any] | None = None) -> Play:
        """Start a play of the canary; its screen and results go to a folder of its own."""
        folder = self.folder / f"play{len(self.plays) + 1}"
        folder.mkdir()
        results = {"hpc_validation_results": str(folder / "results")}
        settings = json.loads(json.dumps(self.row.settings).replace("%i", CLUSTER))
        extra = {**results, **self.variables, **settings, **(besides or {})}
        # Otherwise a task's name is shown only with its result.
        environment = {"ANSIBLE_DISPLAY_SKIPPED_HOSTS": "1"}
        process = started_play(extra, folder / "screen", environment, self.playbook)
        return Play(folder, process)

    def await_moment(self) -> None:
        """Wait until the play has come to the row's moment."""
        if self.row.when == "completing":
            self.state("COMPLETING")
        elif self.row.when == "training":
            self.step("file %o/rank-1.pid")
        else:
            self.shown(self.shows(self.row.when))

    def shows(self, moment: str) -> str:
        """The pattern by which the moment shows on the screen."""
        return SHOWN[moment].replace("LABEL", self.label)

    def shown(self, pattern: str) -> None:
        """Wait until the pattern stands on the newest play's screen; fails where that has ended without it."""
        play = self.plays[-1]

        def there() -> bool:
            over = play.process.poll() is not None
            found = re.search(pattern, play.screen) is not None
            assert found or not over, f"the play ended before {pattern!r} was shown\n{play.screen}"
            return found

        wait_for(there, PATIENCE)

    @property
    def job(self) -> str:
        """The canary's job id, once it is submitted."""
        self.shown(self.shows("submitted"))
        return str(re.findall(self.shows("submitted"), self.plays[-1].screen)[-1])

    @property
    def left(self) -> Path:
        """The folder of the run that the newest play has left, once it has ended."""
        self.plays[-1].finish()
        (verdict,) = self.plays[-1].runs
        return verdict.parent

    @property
    def going(self) -> Path:
        """The folder of the newest play's run, which still goes on."""
        (plan,) = (self.plays[-1].folder / "results").glob("*/plan.json")
        return plan.parent

    def state(self, word: str) -> None:
        """Wait until squeue says so of the canary's job."""
        argv = ("squeue", "--noheader", f"--jobs={self.job}", "--states=all", "--format=%T")
        wait_for(lambda: (cluster("login", *argv, check=False).strip() or "GONE") == word, PATIENCE)

    def file(self, path: str) -> None:
        """Wait until the file is on the share, which is looked at from outside: that is quick."""
        there = CACHE / "clusters" / CLUSTER / "share" / Path(path).relative_to(SHARE)

        def written() -> bool:
            # Rows in which Slurm loses its state let it count its jobs anew: an earlier job had the same id.
            return there.exists() and there.stat().st_size > 0 and there.stat().st_mtime > self.began

        wait_for(written, PATIENCE)

    def report(self, node: str, word: str) -> None:
        """Damage a node's report as soon as it and another are whole."""
        folder = CACHE / "clusters" / CLUSTER / "share/jobs/.preflight"
        wait_for(lambda: node in reports.whole(folder) and len(reports.whole(folder)) > 1, PATIENCE)
        found = reports.whole(folder)
        other = next(path for name, path in found.items() if name != node)
        reports.DAMAGES[word](found[node], other)

    def steps(self, lines: list[str]) -> None:
        """Carry out steps."""
        for line in lines:
            self.step(line)

    def step(self, line: str) -> None:
        """Carry out one step; see the module's text."""
        verb, _, rest = line.partition(" ")
        if "%j" in rest or "%o" in rest:
            rest = rest.replace("%o", f"{SHARE}/models/{self.label}/job-%j").replace("%j", self.job)
        if "%r" in rest:
            rest = rest.replace("%r", str(self.left))
        if "%p" in rest:
            rest = rest.replace("%p", str(self.going))
        rest = rest.replace("%w", str(self.folder / "workloads"))
        words = shlex.split(rest.replace("%s", SHARE).replace("%i", CLUSTER)) if verb not in ("screen", "again") else []
        if verb in ("gpu", "beegfs", "share", "slurm", "clock", "edge"):
            on_cluster(verb, *words)
        elif verb in ("root", "admin"):
            cluster(words[0], *words[1:], user=verb)
        elif verb == "here":
            subprocess.run(words, check=True, timeout=60)
        elif verb == "service":
            cluster(words[0], "node-service.sh", *words[1:])
        elif verb == "resume":
            # Refused where they are in service; repair() looks whether they are.
            cluster("login", "scontrol", "update", f"NodeName={words[0]}", "State=RESUME", check=False)
        elif verb == "screen":
            self.shown(rest)
        elif verb == "file":
            self.file(words[0])
        elif verb == "state":
            self.state(words[0])
        elif verb == "signal":
            self.plays[-1].signal(getattr(signal, f"SIG{words[0]}"))
        elif verb == "crash":
            for process in [self.plays[-1].process.pid, *descendants(self.plays[-1].process.pid)]:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        elif verb == "again":
            self.plays[-1].finish()
            besides = json.loads(rest or "{}")
            canary, changes = besides.pop("canary", None), besides.pop("manifest", {})
            if canary or changes:
                folder = self.folder / f"workloads{len(self.plays)}"
                manifest = {**self.row.manifest, **changes}
                besides.update(select(folder, self.row.workload, canary or self.row.canary, **manifest))
            self.plays.append(self.start(besides))
        elif verb == "report":
            self.report(*words)
        elif verb == "emulator":
            shutil.copy(fake_gcs_server(), CACHE / "clusters" / CLUSTER / "share/fake-gcs-server")
        elif verb == "mlflow":
            server.ACTS[words[0]]()
        elif verb == "beside":
            self.plays.append(self.start())
        else:
            raise AssertionError(f"{self.row.id}: no step begins with {verb!r}")

    def repair(self) -> None:
        """Undo the fault and wait until the cluster is as it was."""
        undo, self.undone = ([] if self.undone else self.row.undo), True
        self.steps(undo)
        wait_for(at_rest, 90)

    def jobs(self, expected: int) -> int:
        """How many jobs of the canary Slurm saw since the row began."""
        return submissions(self.counted or self.label, self.began, expected)

    def abandon(self) -> None:
        """End what still runs and repair what was not: the row did not come to an end."""
        for play in self.plays:
            if play.process.poll() is None:
                os.killpg(play.process.pid, signal.SIGKILL)
                play.process.wait()
        if not self.undone:
            self.repair()


def descendants(process: int) -> list[int]:
    """The processes below this one; Ansible's workers are in sessions of their own."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    children: dict[int, list[int]] = {}
    for line in table.splitlines():
        child, parent = map(int, line.split())
        children.setdefault(parent, []).append(child)
    below = list(children.get(process, []))
    for child in below:
        below += children.get(child, [])
    return below
