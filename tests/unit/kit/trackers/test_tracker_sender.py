# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.trackers import outbox
from kit.trackers.mlflow import RefusedError, Server, UnavailableError
from kit.trackers.sender import Sender, Training

from tests.unit.kit.trackers.fake_mlflow import FakeMlflow

FILES = Path(__file__).resolve().parents[4] / "files"


@pytest.fixture
def mlflow() -> t.Iterator[FakeMlflow]:
    server = FakeMlflow()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def training(tmp_path: Path) -> Training:
    (tmp_path / "profile.json").write_text(json.dumps({"model": {"hidden_size": 64}, "notes": "x" * 900}))
    return Training(tmp_path, "experiment of ours", "job-12", "/share/job-12")


def write(training: Training, first: int, last: int, **others: object) -> None:
    with (training.folder / "progress.jsonl").open("a") as stream:
        for step in range(first, last + 1):
            row = {
                "job_id": "12",
                "attempt": 0,
                "time": 100.5 + step,
                "step": step,
                "steps": 99,
                "loss": 1 / step,
                "lr": 0.1,
            }
            stream.write(json.dumps({**row, **others}) + "\n")


def sender(mlflow: FakeMlflow, training: Training) -> Sender:
    return Sender(Server(mlflow.address), training, pause=lambda _seconds: None)


def losses(mlflow: FakeMlflow) -> list[int]:
    return sorted(step for _run, name, _value, step, _moment in mlflow.points if name == "loss")


def test_all_rows_are_sent_once_with_parameters_and_the_end(mlflow, training):
    write(training, 1, 1500)
    ours = sender(mlflow, training)
    assert ours.follow(lambda: True, 30)
    ours.finish(failed=False)
    assert losses(mlflow) == list(range(1, 1501))
    assert {name for _run, name, _value, _step, _moment in mlflow.points} == {"loss", "lr"}
    assert ("run1", "loss", 0.5, 2, 102500) in mlflow.points
    assert mlflow.parameters["model.hidden_size"] == "64"
    assert len(mlflow.parameters["notes"]) == 500
    assert mlflow.runs["run1"]["status"] == "FINISHED"
    assert (ours.state.points, ours.state.gap, ours.state.ended) == (3000, None, True)


def test_rows_are_sent_as_they_come_and_a_half_written_one_waits(mlflow, training):
    write(training, 1, 2)
    ours = sender(mlflow, training)
    assert ours.step()
    with (training.folder / "progress.jsonl").open("a") as stream:
        stream.write('{"step": 3, "time": 1, "lo')
    assert not ours.step()
    with (training.folder / "progress.jsonl").open("a") as stream:
        stream.write('ss": 7}\n')
    assert ours.step()
    assert losses(mlflow) == [1, 2, 3]


def test_a_server_that_fails_for_a_while_has_everything_in_the_end(mlflow, training):
    write(training, 1, 5)
    mlflow.faults = [500, 503, 429]
    ours = sender(mlflow, training)
    assert ours.follow(lambda: True, 30)
    assert losses(mlflow) == [1, 2, 3, 4, 5]
    assert (ours.state.refused, ours.state.gap) == (3, None)


def test_an_answer_that_is_lost_makes_no_second_run_and_no_second_point(mlflow, training):
    write(training, 1, 5)
    ours = sender(mlflow, training)
    for lost in range(1, 8):
        mlflow.hang_up = 1
        if lost % 2:
            ours = sender(mlflow, training)  # killed, and started again
        ours.follow(lambda: True, 30)
    assert len(mlflow.runs) == 1
    assert losses(mlflow) == [1, 2, 3, 4, 5]


def test_a_sender_that_is_started_again_goes_on(mlflow, training):
    write(training, 1, 3)
    sender(mlflow, training).follow(lambda: True, 30)
    asked = len(mlflow.asked)
    write(training, 4, 6)
    assert sender(mlflow, training).follow(lambda: True, 30)
    assert mlflow.asked[asked:] == ["runs/log-batch"]
    assert losses(mlflow) == [1, 2, 3, 4, 5, 6]


def test_without_a_server_nothing_is_lost_and_the_reason_is_told(mlflow, training):
    write(training, 1, 3)
    gone = Sender(Server("http://127.0.0.1:9"), training, pause=lambda _seconds: None)
    assert not gone.follow(lambda: True, 0.05)
    assert "127.0.0.1:9" in str(outbox.read_state(training.folder).gap)
    assert outbox.read_state(training.folder).refused > 0
    assert sender(mlflow, training).follow(lambda: True, 30)
    assert losses(mlflow) == [1, 2, 3]


def test_what_is_refused_is_not_tried_again(mlflow, training):
    write(training, 1, 3)
    mlflow.faults = [403]
    ours = sender(mlflow, training)
    assert not ours.follow(lambda: True, 30)
    assert mlflow.asked == ["experiments/get-by-name"]
    assert "403" in str(ours.state.gap)


def test_values_that_are_not_finite_are_counted(mlflow, training):
    write(training, 1, 2, grad_norm="NaN", best=True, text="words")
    ours = sender(mlflow, training)
    assert ours.follow(lambda: True, 30)
    assert (ours.state.not_finite, ours.state.points) == (2, 4)


@pytest.mark.parametrize("row", ["no JSON", "[]", '{"time": 1}', '{"step": "x", "time": 1}'])
def test_what_is_no_row_is_an_error_that_names_the_file(mlflow, training, row):
    (training.folder / "progress.jsonl").write_text(row + "\n")
    with pytest.raises(KitError, match=r"progress\.jsonl"):
        sender(mlflow, training).step()


def test_a_state_that_is_damaged_is_refused(mlflow, training):
    (training.folder / "tracker.json").write_text("{")
    with pytest.raises(KitError, match=r"remove it"):
        sender(mlflow, training)


def test_the_end_of_a_training_is_waited_for(mlflow, training):
    looks = iter([False, False, True])

    def ended() -> bool:
        over = next(looks, True)
        if not over:
            write(training, len(losses(mlflow)) + 1, len(losses(mlflow)) + 1)
        return over

    assert sender(mlflow, training).follow(ended, 30)
    assert losses(mlflow) == [1, 2]


def test_an_experiment_that_somebody_else_makes_meanwhile_is_found(mlflow):
    server = Server(mlflow.address)
    found, looks = server._found_experiment, iter([None])
    server._found_experiment = lambda name: next(looks, found(name))  # type: ignore[method-assign]
    mlflow.experiments["x"] = "7"
    assert server.experiment("x") == "7"


def test_a_token_is_sent_and_never_shown(mlflow, tmp_path):
    token = tmp_path / "token"
    token.write_text("hush-hush\n")
    token.chmod(0o600)
    server = Server(mlflow.address, token)
    mlflow.faults = [403]
    with pytest.raises(RefusedError) as refused:
        server.experiment("x")
    assert mlflow.tokens == {"Bearer hush-hush"}
    assert "hush" not in str(refused.value)


def test_a_redirection_is_not_followed(mlflow):
    mlflow.faults = [302]
    with pytest.raises((RefusedError, UnavailableError), match="302"):
        Server(mlflow.address).experiment("x")
    assert len(mlflow.asked) == 1


@pytest.mark.parametrize(
    ("mode", "content", "why"), [(0o644, "x", "mode 0644"), (0o600, "", "no token"), (0o600, "a b", "no token")]
)
def test_a_token_that_others_can_read_or_that_is_none_is_refused(tmp_path, mode, content, why):
    token = tmp_path / "token"
    token.write_text(content)
    token.chmod(mode)
    with pytest.raises(KitError, match=why):
        Server("https://mlflow.invalid", token)


@pytest.mark.parametrize("address", ["file:///tmp/x", "mlflow.invalid", "http://user:word@host", "http://host?x=1", ""])
def test_an_address_that_cannot_be_meant_is_refused_without_being_shown(address):
    with pytest.raises(KitError) as refused:
        Server(address)
    assert "word" not in str(refused.value)


def command(mlflow: FakeMlflow, training: Training, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "kit", "tracker", *words, str(training.folder), "--address", mlflow.address]
    return subprocess.run(
        argv, env={"PYTHONPATH": str(FILES)}, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


@pytest.mark.parametrize("action", ["send", "follow"])
def test_the_command_sends_everything(mlflow, training, action):
    write(training, 1, 3)
    done = command(mlflow, training, action)
    assert done.returncode == 0, done.stderr
    assert losses(mlflow) == [1, 2, 3]
    assert [run["status"] for run in mlflow.runs.values()] == ["FINISHED"]


def test_the_command_says_what_could_not_be_sent(mlflow, training):
    write(training, 1, 3)
    mlflow.faults = [403]
    done = command(mlflow, training, "send")
    assert done.returncode == 3
    assert "403" in done.stderr


def test_a_folder_without_rows_is_refused(mlflow, training):
    done = command(mlflow, training, "send")
    assert done.returncode == 1
    assert "progress.jsonl" in done.stderr
