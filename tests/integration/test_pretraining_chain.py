# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole training as a chain of jobs on the real cluster: cut off by time limits, found again, stopped."""

from __future__ import annotations

import json
import re
import typing as t
import uuid
from pathlib import Path

import pytest

from tests.integration.conftest import ANY_SPEED, CACHE, CLUSTER, ROOT, Played, cluster, wait_for

JOBS = CACHE / "clusters" / CLUSTER / "share/models/gpt-pretraining"
STEPS = 400  # more than two jobs of two minutes can do, of which one is for beginning and ending
LONG = 20000  # more than the other test takes time for
TIME_LIMIT = "the job's time limit comes"

Json = dict[str, t.Any]


class Chain:
    """A chain of a name that no other test has, on the small model."""

    def __init__(self, play: t.Callable[..., Played], **changes: t.Any) -> None:
        self.name = f"test-{uuid.uuid4().hex[:8]}"
        self.folder = JOBS / f"chain-{self.name}"
        self._play = play
        self.chain: Json = {"name": self.name, "links": 2, "time": "00:02:00", **changes}

    def play(self, name: str = "pretrain.yml", *arguments: str, steps: int = STEPS, cwd: Path = ROOT) -> Played:
        """Run one of the playbooks."""
        training = {"steps": steps, "checkpoint": {"every": 25}}
        variables = {
            "hpc_validation_chain": self.chain,
            "hpc_validation_pretraining": {"training": training},
            **ANY_SPEED,
        }
        environment = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
        return self._play(ROOT / "playbooks" / name, *arguments, variables=variables, environment=environment, cwd=cwd)

    def links(self) -> list[Json]:
        """What the jobs said of themselves, in order."""
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob("links/*.json"), key=_number)]

    def record(self) -> Json:
        """The chain's record."""
        return t.cast("Json", json.loads((self.folder / "chain.json").read_text()))

    def states(self) -> list[str]:
        """The states of its jobs that are in the queue."""
        return cluster("login", "squeue", "-h", "-o", "%T", "-n", f"chain-{self.name}", user="admin").split()


def _number(path: Path) -> int:
    return int(path.stem)


def rows(job_id: str) -> list[Json]:
    """The steps that a job recorded."""
    return [json.loads(line) for line in (JOBS / f"job-{job_id}/training_metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def chain(play: t.Callable[..., Played]) -> t.Iterator[t.Callable[..., Chain]]:
    """(changes of hpc_validation_chain) → a chain, none of whose jobs is left behind."""
    made: list[Chain] = []

    def make(**changes: t.Any) -> Chain:
        made.append(Chain(play, **changes))
        return made[-1]

    yield make
    for each in made:
        cluster("login", "scancel", "-n", f"chain-{each.name}", user="admin")
        wait_for(lambda each=each: not each.states(), 60)


@pytest.mark.slow
def test_a_training_that_is_cut_off_twice_comes_to_its_end(chain: t.Callable[..., Chain]) -> None:
    ours = chain()
    began = ours.play()
    assert began.code == 0, began.screen
    wait_for(lambda: [link["outcome"] for link in ours.links()] == [TIME_LIMIT] * 2, 420)
    # The next call adds two, of which one has time enough, and the other has nothing to do.
    ours.chain["time"] = "00:30:00"
    added = ours.play()
    assert added.code == 0, added.screen
    wait_for((ours.folder / "complete.json").exists, 1200)
    assert json.loads((ours.folder / "complete.json").read_text())["step"] == STEPS
    wait_for(lambda: not ours.states(), 120)

    *trained, idle = ours.links()
    assert [link["outcome"] for link in trained] == [TIME_LIMIT, TIME_LIMIT, "complete"]
    assert (idle["outcome"], idle["why"]) == ("idle", "the training is complete")
    # Every step once, each link going on where the one before it ended.
    told = [row for link in trained for row in rows(link["job_id"])]
    assert [row["step"] for row in told] == list(range(1, STEPS + 1))
    assert [link["from_step"] for link in trained] == [0, *(link["last_step"] for link in trained[:-1])]
    assert told[-1]["loss"] < told[0]["loss"] - 1
    for link in (*trained, idle):
        state = cluster("login", "sacct", "-nPX", "-j", link["job_id"], "-o", "State,ExitCode", user="admin").strip()
        assert state == "COMPLETED|0:0", link

    assert (ours.folder / "hf_model/model.safetensors").stat().st_size > 4_000_000
    assert [path.name for path in ours.folder.glob("checkpoints/final_*")] == [f"final_checkpoint_step_{STEPS}"]
    shown = ours.play("pretrain_status.yml")
    assert shown.code == 0, shown.screen
    assert f"complete at step {STEPS}" in shown.screen
    after = ours.play()
    assert "the training is complete: nothing was submitted" in re.sub(r"\s+", " ", after.screen)


@pytest.mark.slow
def test_it_is_found_again_and_left_alone_and_stopped_with_a_checkpoint(chain: t.Callable[..., Chain]) -> None:
    ours = chain(time="01:00:00")
    began = ours.play(steps=LONG)
    assert began.code == 0, began.screen
    links = ours.record()["links"]
    assert len(links) == 2

    # Run again, from another folder: it is found, and nothing is submitted.
    again = ours.play(steps=LONG, cwd=Path("/"))
    assert again.code == 0, again.screen
    assert "submitted now: nothing" in again.screen
    assert ours.record()["links"] == links

    # The clean-up leaves it alone.
    cleaned = ours.play("cleanup.yml")
    assert cleaned.code == 0, cleaned.screen
    assert len(ours.states()) == 2

    wait_for(lambda: ours.links() and rows_of(ours), 120)
    stopped = ours.play("pretrain_stop.yml")
    assert stopped.code == 0, stopped.screen
    assert ours.states() == []
    (link,) = ours.links()
    assert link["outcome"] == "it was asked to stop"
    assert f"checkpoints/checkpoint_step_{link['last_step']}" in stopped.screen
    assert (ours.folder / f"checkpoints/checkpoint_step_{link['last_step']}/manifest.json").exists()

    left = ours.play(steps=LONG)
    assert "it was stopped: nothing was submitted" in left.screen
    other = ours.play(steps=STEPS)
    assert other.code != 0
    assert "is another training" in other.screen
    # Less is left to do, so that it comes to its end soon.
    soon = 25 * (link["last_step"] // 25 + 1)
    on = ours.play("pretrain.yml", "-e", "go_on=true", steps=soon)
    assert on.code == 0, on.screen
    wait_for((ours.folder / "complete.json").exists, 300)
    assert ours.links()[1]["from_step"] == link["last_step"]
    assert ours.record()["round"] == 2


def rows_of(ours: Chain) -> bool:
    """Whether its first job has recorded a step."""
    path = JOBS / f"job-{ours.links()[0]['job_id']}/training_metrics.jsonl"
    return path.exists() and path.stat().st_size > 0
