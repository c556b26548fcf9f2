# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people read of a chain, and which of its jobs is watched."""

from __future__ import annotations

from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import chain_words
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.chain import Looked


def link(number: int, slurm: str, said: dict[str, Any] | None = None, reason: str = "") -> dict[str, Any]:
    job_id = None if slurm == "UNKNOWN" else str(100 + number)
    return {"number": number, "job_id": job_id, "slurm": slurm, "reason": reason, "said": said or {}}


def looked(links: list[dict[str, Any]], state: str = "going", **more: Any) -> Looked:
    record = {"name": "x", "user": "admin", "state": state, "links": links}
    return Looked(record, links, more.pop("complete", None), more.pop("checkpoint", None), **more)


CUT = link(1, "TIMEOUT", {"from_step": 0, "outcome": "running"}, reason="the time limit was reached")
ENDED = link(2, "COMPLETED", {"from_step": 40, "last_step": 70, "outcome": "the job's time limit comes"})
RUNS = link(3, "RUNNING", {"from_step": 70, "outcome": "running"})
WAITS = link(4, "PENDING", reason="waiting for the job it depends on")


def test_each_link_says_where_it_began_and_how_it_ended() -> None:
    found = looked(
        [CUT, ENDED, RUNS, WAITS, link(5, "PENDING")], checkpoint="checkpoint_step_80", notes=["there is room for one"]
    )
    assert chain_words.lines(found) == [
        "chain x of admin: going; 5 links, 1 running, 2 waiting",
        "    1  job 101  TIMEOUT: from step 0, cut off",
        "    2  job 102  COMPLETED: from step 40 to 70, the job's time limit comes",
        "    3  job 103  RUNNING: from step 70",
        "    4  job 104  PENDING (waiting for the job it depends on)",
        "    5  job 105  PENDING",
        "last checkpoint: checkpoint_step_80",
        "note: there is room for one",
    ]


def test_one_that_had_nothing_to_do_says_why() -> None:
    idle = link(5, "COMPLETED", {"from_step": 90, "outcome": "idle", "why": "the training is \x1b[2Jcomplete"})
    unknown = link(6, "UNKNOWN")
    complete = {"step": 90, "export": "/share/hf_model"}
    lines = chain_words.lines(looked([idle, unknown], complete=complete))
    assert lines[0] == "chain x of admin: complete at step 90; 2 links, 0 running, 0 waiting"
    assert lines[1] == "    5  job 105  COMPLETED: had nothing to do, the training is complete"
    assert lines[2] == "    6  not known whether it was submitted  UNKNOWN"
    assert lines[3:] == ["last checkpoint: none yet", "exported to /share/hf_model"]


def test_one_that_went_back_says_why() -> None:
    facts = {"from_step": 10, "outcome": "running", "why": "its SHA-256 differs"}
    links = [link(1, "TIMEOUT", facts), link(2, "RUNNING", facts), link(3, "COMPLETED", {**facts, "last_step": 30})]
    assert chain_words.lines(looked(links))[1:4] == [
        "    1  job 101  TIMEOUT: from step 10, cut off; its SHA-256 differs",
        "    2  job 102  RUNNING: from step 10; its SHA-256 differs",
        "    3  job 103  COMPLETED: from step 10 to 30, running; its SHA-256 differs",
    ]


def test_what_did_not_come_into_the_bucket_is_told() -> None:
    complete = {"step": 90, "export": "/x", "not_uploaded": "final_checkpoint_step_90: not done after 120 s"}
    assert chain_words.lines(looked([ENDED], complete=complete))[-1] == (
        "not in the bucket: final_checkpoint_step_90: not done after 120 s. Once that is repaired, upload it with: "
        "-e go_on=true"
    )
    for said in ({"not_uploaded": "none"}, {}):
        assert chain_words.lines(looked([ENDED], complete={"step": 90, "export": "/x", **said}))[-1] == "exported to /x"


def test_the_state_of_the_chain() -> None:
    states = {
        ("going", "RUNNING"): "going",
        ("going", "FAILED"): "no link of it waits or runs",
        ("stopped", "RUNNING"): "stopping",
        ("stopped", "COMPLETED"): "stopped",
    }
    for (state, slurm), expected in states.items():
        assert chain_words.lines(looked([link(1, slurm)], state))[0].startswith(f"chain x of admin: {expected};")


def test_of_many_links_the_last_are_shown() -> None:
    lines = chain_words.lines(looked([link(number, "COMPLETED") for number in range(1, 21)]))
    assert lines[1:3] == ["  … 8 earlier", "    9  job 109  COMPLETED"]
    assert len(lines) == 1 + 1 + 12 + 1


def test_the_link_that_runs_is_watched_else_the_last_that_trained() -> None:
    idle = link(5, "COMPLETED", {"outcome": "idle"})
    assert chain_words.current(looked([CUT, ENDED, RUNS, WAITS])) == "103"
    assert chain_words.current(looked([CUT, ENDED, link(3, "RUNNING"), idle])) == "102"
    assert chain_words.current(looked([WAITS])) is None
    assert chain_words.current(looked([])) is None
