# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""W&B and TensorBoard, of which a training must not depend: here stand-ins that work, fail, hang and do not keep up."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from kit.errors import KitError
from kit.trackers import sinks
from kit.trackers.sinks import read_key, start, values

from tests.unit.kit.training_rows import BEGAN, step_row

WANDB = """
import json, os, sys

class Settings(dict):
    def __init__(self, **given):
        super().__init__(given)

class Run:
    def __init__(self, given):
        self.told = open(os.path.join(given["dir"], "told.jsonl"), "w")
        names = ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_ERROR_REPORTING")
        self.tell({"init": given, "environment": {name: os.environ.get(name) for name in names}, "argv": sys.argv})

    def tell(self, what):
        self.told.write(json.dumps(what) + "\\n")
        self.told.flush()

    def log(self, row, step):
        self.tell({"step": step, "row": row})

    def finish(self):
        self.tell({"finished": True})

def init(**given):
    return Run(given)
"""
TENSORBOARD = {
    "tensorboard/__init__.py": "",
    "tensorboard/compat/__init__.py": "",
    "tensorboard/compat/proto/__init__.py": "",
    "tensorboard/compat/proto/event_pb2.py": "def Event(**given):\n    return given\n",
    "tensorboard/compat/proto/summary_pb2.py": (
        "class Summary(dict):\n    Value = dict\n\n"
        "    def __init__(self, value):\n        super().__init__(value=value)\n"
    ),
    "tensorboard/summary/__init__.py": "",
    "tensorboard/summary/writer/__init__.py": "",
    "tensorboard/summary/writer/event_file_writer.py": """
import json, os

class EventFileWriter:
    def __init__(self, folder):
        os.makedirs(folder)
        self.told = open(os.path.join(folder, "events"), "w")

    def add_event(self, event):
        self.told.write(json.dumps(event) + "\\n")

    def close(self):
        self.told.close()
""",
}


@pytest.fixture
def library(tmp_path, monkeypatch, root):
    """Put a module where the process of a tracker finds it."""
    folder = tmp_path / "libraries"

    def add(name: str, source: str) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)

    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{root / 'files'}")
    return add


def output(tmp_path: Path) -> Path:
    (tmp_path / "job-12").mkdir()
    return tmp_path / "job-12"


def told(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "told.jsonl").read_text().splitlines()]


def test_wandb_stays_offline_and_is_told_nothing_but_figures_and_the_models_settings(tmp_path, library):
    library("wandb.py", WANDB)
    folder, said = output(tmp_path), []
    settings = {"model": {"n_embd": 128}, "steps": 40, "data": {"credentials": "/a/key"}, "watch": {"wandb_key": "/k"}}
    (folder / "settings.json").write_text(json.dumps(settings))
    (tracker,) = start(
        folder, "gpt", {"wandb": True, "wandb_key": None, "tensorboard": False}, said.append, "gpt-pretraining"
    )
    tracker.send(step_row(1, BEGAN, loss=float("nan"), validation_loss=3.5))
    tracker.send(step_row(2, BEGAN))
    sinks.close([tracker], 60)
    assert said == []
    begin, first, second, end = told(folder)
    assert begin["init"]["mode"] == "offline"
    assert begin["init"]["config"] == {"model": {"n_embd": 128}, "steps": 40}
    assert begin["init"]["settings"]["api_key"] is None
    assert begin["environment"] == {
        "WANDB_DIR": str(folder),
        "WANDB_CACHE_DIR": str(folder),
        "WANDB_CONFIG_DIR": str(folder),
        "WANDB_ERROR_REPORTING": "false",
    }
    assert (first["step"], second["step"], end) == (1, 2, {"finished": True})
    assert str(first["row"].pop("loss")) == "nan"
    assert first["row"] == {
        "learning_rate": 3e-4,
        "grad_norm": 0.5,
        "steps_per_second": 0.5,
        "tokens_per_second": 1000.0,
        "skipped_steps": 0.0,
        "checkpoint_step": 0.0,
        "validation_loss": 3.5,
    }


def test_a_key_makes_it_online_and_is_on_no_command_line(tmp_path, library):
    library("wandb.py", WANDB)
    folder, key = output(tmp_path), tmp_path / "key"
    key.write_text("abcdef0123456789\n")
    key.chmod(0o600)
    sinks.close(start(folder, "gpt", {"wandb": True, "wandb_key": str(key)}, pytest.fail, "gpt-pretraining"), 60)
    begin = told(folder)[0]
    assert (begin["init"]["mode"], begin["init"]["settings"]["api_key"]) == ("online", "abcdef0123456789")
    assert begin["init"]["config"] == {}
    assert "abcdef" not in str(begin["argv"])


def test_names_may_begin_with_a_hyphen(tmp_path, library):
    library("wandb.py", WANDB)
    folder = output(tmp_path)
    sinks.close(start(folder, "-hpc", {"wandb": True}, pytest.fail, "--mine"), 60)
    begin = told(folder)[0]
    assert (begin["init"]["name"], begin["init"]["project"]) == ("-hpc", "--mine")


def test_tensorboard_gets_each_row(tmp_path, library):
    for name, source in TENSORBOARD.items():
        library(name, source)
    folder = output(tmp_path)
    (tracker,) = start(folder, "gpt", {"tensorboard": True}, pytest.fail, "gpt-pretraining")
    tracker.send(step_row(7, BEGAN))
    sinks.close([tracker], 60)
    (event,) = [json.loads(line) for line in (folder / "tensorboard/events").read_text().splitlines()]
    assert (event["step"], event["wall_time"]) == (7, BEGAN)
    assert {"tag": "loss", "simple_value": 3.0} in event["summary"]["value"]


def test_nothing_is_started_that_is_not_asked_for(tmp_path):
    assert start(tmp_path, "gpt", {}, pytest.fail, "gpt-pretraining") == []
    assert (
        start(tmp_path, "gpt", {"wandb": False, "wandb_key": "/k", "tensorboard": None}, pytest.fail, "gpt-pretraining")
        == []
    )
    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_told_once_with_its_reason_and_each_is_by_itself(tmp_path, library):
    library("wandb.py", "raise RuntimeError('no room')")
    for name, source in TENSORBOARD.items():
        library(name, source)
    folder, said = output(tmp_path), []
    both = start(folder, "gpt", {"wandb": True, "tensorboard": True}, said.append, "gpt-pretraining")
    for process in [tracker._process for tracker in both][:1]:
        process.wait(60)
    for step in (1, 2, 3):
        for tracker in both:
            tracker.send(step_row(step, BEGAN))
    sinks.close(both, 60)
    log = folder / "wandb.log"
    assert said == [f"W&B has failed, and the training goes on without it: RuntimeError: no room ({log})"]
    assert len((folder / "tensorboard/events").read_text().splitlines()) == 3


def test_a_key_that_others_can_read_is_refused_by_its_process(tmp_path, library):
    library("wandb.py", WANDB)
    folder, key, said = output(tmp_path), tmp_path / "key", []
    key.write_text("abcdef0123456789")
    key.chmod(0o640)
    sinks.close(start(folder, "gpt", {"wandb": True, "wandb_key": str(key)}, said.append, "gpt-pretraining"), 60)
    (text,) = said
    assert f"{key} (the key of W&B) has mode 0640, expected 0600: chmod 600 {key}" in text
    assert "abcdef" not in text
    assert not (folder / "told.jsonl").exists()


def test_what_hangs_is_killed_and_what_does_not_keep_up_loses_rows(tmp_path, library):
    library("wandb.py", "import threading\nthreading.Event().wait()")
    folder, said = output(tmp_path), []
    (tracker,) = start(folder, "gpt", {"wandb": True}, said.append, "gpt-pretraining")
    row, began = step_row(1, BEGAN), time.monotonic()
    for _each in range(400):  # more than a pipe holds
        tracker.send(row)
    assert time.monotonic() - began < 30
    sinks.close([tracker], 0.0)
    assert tracker._process.poll() is not None
    assert said[0] == "W&B does not keep up; rows that it does not take at once are left out"
    assert said[1] == "W&B did not end in time and was killed"
    assert said[2].endswith(" rows were left out of W&B")
    assert len(said) == 3


def test_a_row_that_is_too_long_is_left_out(tmp_path, library):
    library("wandb.py", WANDB)
    folder, said = output(tmp_path), []
    (tracker,) = start(folder, "gpt", {"wandb": True}, said.append, "gpt-pretraining")
    tracker.send(step_row(1, BEGAN, text="x" * 5000))
    sinks.close([tracker], 60)
    assert len(said) == 1
    assert "is too long for W&B" in said[0]


def test_a_row_that_is_none_ends_the_process_only(tmp_path, library):
    library("wandb.py", WANDB)
    folder, said = output(tmp_path), []
    (tracker,) = start(folder, "gpt", {"wandb": True}, said.append, "gpt-pretraining")
    tracker.send({"time": 1})
    sinks.close([tracker], 60)
    assert said == [f"W&B has failed, and the training goes on without it: KeyError: 'step' ({folder / 'wandb.log'})"]


def test_values_are_numbers_and_what_is_not_finite():
    row = {"step": 1, "attempt": 0, "loss": "NaN", "a": "-Infinity", "b": True, "c": None, "d": "x", "e": 2}
    found = values(row)
    assert str(found.pop("loss")) == "nan"
    assert found == {"a": float("-inf"), "e": 2.0}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "holds no key"),
        ("two words", "holds no key"),
        ("ä", "cannot be read: UnicodeDecodeError"),
        ("a\nb", "no key"),
    ],
)
def test_a_file_without_a_key_is_refused_and_not_quoted(tmp_path, content, problem):
    path = tmp_path / "key"
    path.write_text(content, encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(KitError, match=problem) as refused:
        read_key(path)
    assert "words" not in str(refused.value)


def test_a_key_that_is_missing_or_no_file_is_refused(tmp_path):
    with pytest.raises(KitError, match="cannot be read: FileNotFoundError"):
        read_key(tmp_path / "none")
    tmp_path.chmod(0o700)
    with pytest.raises(KitError, match="has mode 0700"):
        read_key(tmp_path)
