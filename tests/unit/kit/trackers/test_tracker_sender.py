# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import signal
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
DEEP = b"[" * 50_000


@pytest.fixture
def mlflow() -> t.Iterator[FakeMlflow]:
    server = FakeMlflow()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def training(tmp_path: Path) -> Training:
    (tmp_path / "profile.json").write_text(json.dumps({"model": {"hidden_size": 64}, "notes": "x" * 900}))
    return Training(tmp_path, "experiment of ours", "job-12")


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
    assert ours.follow(lambda: True, 30, lambda: "FINISHED")
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


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"experiment": {"experiment_id": 7}}', DEEP])
def test_what_is_no_answer_of_mlflows_is_tried_again(mlflow, training, body):
    write(training, 1, 3)
    mlflow.bodies = [body]
    assert sender(mlflow, training).follow(lambda: True, 30)
    assert losses(mlflow) == [1, 2, 3]


def test_what_something_before_the_server_answers_is_tried_again(mlflow, training):
    write(training, 1, 3)
    mlflow.faults, mlflow.bodies = [404, 403, 302, 400], [b"not found", b"<html>", b"", DEEP]
    ours = sender(mlflow, training)
    assert ours.follow(lambda: True, 30)
    assert (losses(mlflow), ours.state.refused) == ([1, 2, 3], 4)


@pytest.mark.parametrize("status", [403, 503])
def test_what_the_server_says_commands_no_terminal(mlflow, training, status):
    write(training, 1, 3)
    said = {"error_code": "TOLD_SO", "message": "no\x1b[2J\nkit: all rows were sent"}
    mlflow.faults, mlflow.bodies = [status], [json.dumps(said).encode()]
    with pytest.raises((RefusedError, UnavailableError)) as refused:
        Server(mlflow.address).experiment("x")
    assert str(refused.value).endswith(f"{status} no\\x1b[2J\\nkit: all rows were sent")


def test_the_name_of_an_experiment_that_is_deleted_commands_no_terminal(mlflow):
    mlflow.experiments, mlflow.deleted = {"x": "\x1b[2J"}, {"x"}
    with pytest.raises(RefusedError, match="restore") as refused:
        Server(mlflow.address).experiment("x")
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("drips", ["answer", "body"])
@pytest.mark.parametrize("faults", [[], [403]])
def test_an_answer_that_comes_byte_by_byte_is_not_waited_for(mlflow, monkeypatch, drips, faults):
    monkeypatch.setattr("kit.trackers.mlflow.WHOLE_ANSWER", 0.1)
    mlflow.experiments, mlflow.drips, mlflow.faults = {"x": "1" * 50}, drips, faults
    with pytest.raises(UnavailableError):
        Server(mlflow.address).experiment("x")


def test_a_server_that_has_forgotten_the_run_has_everything_in_the_end(mlflow, training):
    write(training, 1, 3)
    assert sender(mlflow, training).follow(lambda: True, 30)
    mlflow.runs.clear()
    mlflow.experiments.clear()
    mlflow.points.clear()
    write(training, 4, 5)
    ours = sender(mlflow, training)
    assert ours.follow(lambda: True, 30, lambda: "FINISHED")
    assert losses(mlflow) == [1, 2, 3, 4, 5]
    assert (len(mlflow.runs), ours.state.points) == (1, 10)


def test_another_server_has_everything_too(mlflow, training):
    write(training, 1, 3)
    assert sender(mlflow, training).follow(lambda: True, 30)
    other = FakeMlflow()
    try:
        assert sender(other, training).follow(lambda: True, 30)
        assert losses(other) == losses(mlflow) == [1, 2, 3]
    finally:
        other.shutdown()
        other.server_close()


def test_two_trainings_in_folders_of_one_name_are_two_runs(mlflow, training, tmp_path):
    other = tmp_path / "again"
    other.mkdir()
    write(training, 1, 2)
    assert sender(mlflow, training).follow(lambda: True, 30)
    second = Training(other, training.experiment, training.name)
    write(second, 1, 2)
    assert sender(mlflow, second).follow(lambda: True, 30)
    assert len(mlflow.runs) == 2


def test_parameters_that_are_refused_keep_no_figures_back(mlflow, training):
    write(training, 1, 3)
    mlflow.parameters["model.hidden_size"] = "32"
    ours = sender(mlflow, training)
    assert ours.follow(lambda: True, 30)
    assert (losses(mlflow), ours.state.refused) == ([1, 2, 3], 1)


def test_a_deleted_experiment_is_named_with_what_brings_it_back(mlflow, training):
    write(training, 1, 3)
    mlflow.experiments[training.experiment], mlflow.deleted = "4", {training.experiment}
    ours = sender(mlflow, training)
    assert not ours.follow(lambda: True, 30)
    assert "mlflow experiments restore -x 4" in str(ours.state.gap)


def test_rows_that_are_cut_off_come_again_to_the_same_run(mlflow, training):
    write(training, 1, 6)
    ours = sender(mlflow, training)
    assert ours.follow(lambda: True, 30, lambda: "FAILED")
    path = training.folder / "progress.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    with pytest.raises(KitError, match="the file of another training"):
        sender(mlflow, training).step()
    outbox.rewind(training.folder)
    write(training, 5, 8)
    ours = sender(mlflow, training)
    ours.reopen()
    assert mlflow.runs["run1"]["status"] == "RUNNING"
    assert ours.follow(lambda: True, 30, lambda: "FINISHED")
    assert losses(mlflow) == list(range(1, 9))
    assert (len(mlflow.runs), mlflow.runs["run1"]["status"]) == (1, "FINISHED")
    assert ours.state.points == outbox.count(path) == 16


def test_by_hand_patience_begins_again_with_each_success(mlflow, training):
    write(training, 1, 3000)
    assert not sender(mlflow, training).follow(lambda: True, -1)
    assert outbox.read_state(training.folder).gap == "there was no time for the rest"
    assert sender(mlflow, training).follow(lambda: True, 5, renews=True)
    assert losses(mlflow) == list(range(1, 3001))


def test_a_dead_server_is_asked_less_and_less_and_nothing_is_written_each_time(training, monkeypatch):
    write(training, 1, 3)
    rested, written = [], []
    monkeypatch.setattr(outbox, "write_state", lambda *given: written.append(given))
    gone = Sender(Server("http://127.0.0.1:9"), training, pause=rested.append)
    looks = iter([False] * 130)
    assert not gone.follow(lambda: next(looks, True), 0.0)
    assert gone.state.refused < 20
    assert len(written) <= 3
    assert max(rested) <= 1.0  # so that the training's end is seen at once


def test_values_that_are_not_finite_are_counted(mlflow, training):
    write(training, 1, 2, grad_norm="NaN", best=True, text="words")
    ours = sender(mlflow, training)
    assert ours.follow(lambda: True, 30)
    assert (ours.state.not_finite, ours.state.points) == (2, 4)


@pytest.mark.parametrize("row", ["no JSON", "[]", '{"time": 1}', '{"step": "x", "time": 1}', "7"])
def test_what_is_no_row_is_counted_and_keeps_no_other_back(mlflow, training, row):
    (training.folder / "progress.jsonl").write_text(row + "\n")
    write(training, 1, 2)
    ours = sender(mlflow, training)
    assert ours.follow(lambda: True, 30)
    assert (losses(mlflow), ours.state.unreadable) == ([1, 2], 1)


def test_a_long_row_is_read_whole_and_one_without_end_is_refused(mlflow, training):
    write(training, 1, 2, text="x" * 100_000)
    assert sender(mlflow, training).follow(lambda: True, 30)
    assert losses(mlflow) == [1, 2]
    with (training.folder / "progress.jsonl").open("a") as stream:
        stream.write("x" * 2_000_000)
    with pytest.raises(KitError, match="a row has more than"):
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
    assert "told so" in str(refused.value)
    assert "hush" not in str(refused.value)


def test_a_token_does_not_cross_the_network_in_the_clear(tmp_path):
    token = tmp_path / "token"
    token.write_text("hush-hush\n")
    token.chmod(0o600)
    with pytest.raises(KitError, match="https:// only"):
        Server("http://mlflow:5000", token)


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


@pytest.mark.parametrize(
    "address",
    [
        "file:///tmp/x",
        "mlflow.invalid",
        "http://user:word@host",
        "http://:word@host",
        "http://word@host",
        "http://host?x=1",
        "http://host:port",
        "http://[x",
        "",
    ],
)
def test_an_address_that_cannot_be_meant_is_refused_without_being_shown(address):
    with pytest.raises(KitError) as refused:
        Server(address)
    assert "word" not in str(refused.value)


def command(mlflow: FakeMlflow, training: Training, *words: str, said: str = "") -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "kit", "tracker", *words, str(training.folder), "--address", mlflow.address]
    return subprocess.run(argv, env={"PYTHONPATH": str(FILES)}, capture_output=True, text=True, check=False, input=said)


@pytest.mark.parametrize(
    ("action", "said", "metrics", "status"),
    [
        (["follow"], "well\n", False, "FINISHED"),
        (["follow"], "", False, "FAILED"),
        (["follow"], "wel", False, "FAILED"),
        (["send"], "", True, "FINISHED"),
        (["send"], "", False, "RUNNING"),
        (["send", "--failed"], "", True, "FAILED"),
    ],
)
def test_the_command_sends_everything_and_how_it_ended(mlflow, training, action, said, metrics, status):
    write(training, 1, 3)
    if metrics:
        (training.folder / "metrics.json").write_text("{}")
    done = command(mlflow, training, *action, said=said)
    assert done.returncode == 0, done.stderr
    assert losses(mlflow) == [1, 2, 3]
    assert [run["status"] for run in mlflow.runs.values()] == [status]


def test_the_end_is_seen_though_another_process_holds_the_pipe_open(mlflow, training):
    write(training, 1, 3)
    argv = [sys.executable, "-m", "kit", "tracker", "follow", str(training.folder), "--address", mlflow.address]
    reading, writing = os.pipe()
    process = subprocess.Popen(argv, env={"PYTHONPATH": str(FILES)}, stdin=reading, stdout=subprocess.PIPE, text=True)
    os.write(writing, b"well\n")
    out, _err = process.communicate(timeout=60)
    os.close(writing)
    os.close(reading)
    assert process.returncode == 0
    assert "6 points are on" in out


def test_the_run_is_called_as_the_profile_says(mlflow, training):
    profile = {"logging": {"mlflow": {"experiment": "of the profile"}}, "metadata": {"name": "hpc-a100x4"}}
    (training.folder / "profile.json").write_text(json.dumps(profile))
    write(training, 1, 3)
    assert command(mlflow, training, "send").returncode == 0
    assert list(mlflow.experiments) == ["of the profile"]
    assert [run["name"] for run in mlflow.runs.values()] == ["hpc-a100x4"]


def test_the_command_says_what_could_not_be_sent(mlflow, training):
    write(training, 1, 3)
    mlflow.faults = [403]
    done = command(mlflow, training, "send")
    assert done.returncode == 3
    assert "403" in done.stderr


def test_by_hand_it_says_at_once_what_it_waits_for_and_can_be_interrupted(training):
    write(training, 1, 3)
    argv = [sys.executable, "-m", "kit", "tracker", "send", str(training.folder), "--address", "http://127.0.0.1:9"]
    with subprocess.Popen(argv, env={"PYTHONPATH": str(FILES)}, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = process.stderr.readline()
        assert "127.0.0.1:9" in told
        assert "trying again for 10 minutes" in told
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 3
    assert "not all rows were sent to http://127.0.0.1:9" in rest
    assert "Traceback" not in rest
    assert outbox.read_state(training.folder).offset == 0


def test_a_failure_is_told_once_until_a_request_succeeds(mlflow, training):
    write(training, 1, 3)
    mlflow.faults = [503, 503]
    told: list[str] = []
    ours = Sender(Server(mlflow.address), training, pause=lambda _seconds: None, tell=told.append)
    assert ours.follow(lambda: True, 30)
    assert ours.state.refused == 2
    assert len(told) == 1
    assert "503" in told[0]


def test_a_folder_without_rows_is_refused(mlflow, training):
    done = command(mlflow, training, "send")
    assert done.returncode == 1
    assert "progress.jsonl" in done.stderr
