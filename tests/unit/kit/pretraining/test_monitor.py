# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a training loop reports goes everywhere, and nothing but its records can stop it."""

from __future__ import annotations

import json
import math
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from kit.errors import KitError
from kit.job import Job
from kit.pretraining.monitor import Monitor

JOB = Job("12", 0)
FIGURES: dict[str, Any] = {
    "loss": 3.25,
    "learning_rate": 3e-4,
    "grad_norm": 0.5,
    "steps_per_second": 0.5,
    "tokens_per_second": 1000.0,
    "skipped_steps": 0,
}
SECONDS = {
    "data_seconds": 0.1,
    "forward_seconds": 0.2,
    "backward_seconds": 0.3,
    "optimizer_seconds": 0.4,
    "step_seconds": 1.0,
}


@pytest.fixture
def begin(tmp_path):
    (tmp_path / "metrics").mkdir()

    def run(**watch: Any) -> Monitor:
        given = {"textfile": str(tmp_path / "metrics"), **watch}
        return Monitor(tmp_path / "output", JOB, 40, given, checkpoint_every=10, nodes=["a", "b"])

    return run


def exported(folder: Path) -> dict[str, str]:
    lines = (folder / "metrics/hpc_pretraining-12.prom").read_text().splitlines()
    return dict(line.removeprefix("hpc_pretraining_").rsplit(" ", 1) for line in lines if line[0] != "#")


def log(folder: Path) -> list[str]:
    return [line.partition("] ")[2] for line in (folder / "output/training.log").read_text().splitlines()]


OF_ALL = '{job_id="12",run="gpt-pretraining"}'


def test_figures_are_recorded_and_exported(tmp_path, begin):
    with begin() as monitor:
        monitor.step(1, **FIGURES, validation_loss=3.5, loss_scale=2.0, memory_bytes=7)
        monitor.performance(1, **SECONDS, mfu=0.4, solo_seconds=[0.1, 0.2])
        monitor.checkpoint(1, 1800000000.0)
        monitor.step(2, **{**FIGURES, "loss": math.nan, "skipped_steps": 1})
        monitor.performance(2, **SECONDS, mfu=0.3)
    shown = exported(tmp_path)
    assert shown.pop(f"step_timestamp_seconds{OF_ALL}")
    assert shown == {
        f"active{OF_ALL}": "0",
        f"steps{OF_ALL}": "40",
        f"step{OF_ALL}": "2",
        f"loss{OF_ALL}": "NaN",
        f"validation_loss{OF_ALL}": "3.5",
        f"learning_rate{OF_ALL}": "0.0003",
        f"gradient_norm{OF_ALL}": "0.5",
        f"finite{OF_ALL}": "0",
        f"not_finite_steps_total{OF_ALL}": "1",
        f"skipped_steps_total{OF_ALL}": "1",
        f"steps_per_second{OF_ALL}": "0.5",
        f"tokens_per_second{OF_ALL}": "1000.0",
        f"mfu_ratio{OF_ALL}": "0.3",
        f"checkpoint_step{OF_ALL}": "1",
        f"checkpoint_timestamp_seconds{OF_ALL}": "1800000000.0",
        f"checkpoint_every_steps{OF_ALL}": "10",
        'solo_seconds{job_id="12",run="gpt-pretraining",node="a",rank="0"}': "0.1",
        'solo_seconds{job_id="12",run="gpt-pretraining",node="b",rank="1"}': "0.2",
    }
    rows = [json.loads(line) for line in (tmp_path / "output/training_metrics.jsonl").read_text().splitlines()]
    assert [(row["step"], row["loss"], row["checkpoint_step"]) for row in rows] == [(1, 3.25, 0), (2, "NaN", 1)]
    rows = [json.loads(line) for line in (tmp_path / "output/performance_metrics.jsonl").read_text().splitlines()]
    assert [(row["step"], row["mfu"], row.get("solo_seconds")) for row in rows] == [
        (1, 0.4, [0.1, 0.2]),
        (2, 0.3, None),
    ]


def test_finite_is_of_the_last_step_and_the_counter_of_all(tmp_path, begin):
    monitor = begin()
    monitor.step(1, **{**FIGURES, "grad_norm": math.inf})
    monitor.step(2, **FIGURES)
    monitor.checkpoint(2)
    monitor.close(in_order=False)
    monitor.close()
    shown = exported(tmp_path)
    assert (shown[f"finite{OF_ALL}"], shown[f"not_finite_steps_total{OF_ALL}"]) == ("1", "1")
    assert shown[f"active{OF_ALL}"] == "1"
    assert float(shown[f"checkpoint_timestamp_seconds{OF_ALL}"]) > 1.7e9


def test_gradients_that_overflow_in_half_precision_are_not_counted(tmp_path, begin):
    with begin() as monitor:
        monitor.step(1, **{**FIGURES, "grad_norm": math.inf, "loss_scale": 65536.0})
    shown = exported(tmp_path)
    assert (shown[f"finite{OF_ALL}"], shown[f"not_finite_steps_total{OF_ALL}"]) == ("1", "0")
    assert shown[f"gradient_norm{OF_ALL}"] == "+Inf"


def test_a_training_that_fails_stays_active_for_the_alerts(tmp_path, begin):
    def failing() -> None:
        with begin() as monitor:
            monitor.step(1, **FIGURES)
            raise RuntimeError("a rank was lost")

    with pytest.raises(RuntimeError):
        failing()
    assert exported(tmp_path)[f"active{OF_ALL}"] == "1"


def test_where_a_training_was_resumed_is_its_last_checkpoint(tmp_path):
    monitor = Monitor(tmp_path / "output", JOB, 40, {}, checkpoint_every=10, began_at=20)
    monitor.step(21, **FIGURES)
    monitor.close()
    (row,) = (tmp_path / "output/training_metrics.jsonl").read_text().splitlines()
    assert json.loads(row)["checkpoint_step"] == 20


def test_the_log_says_what_was_resumed_and_saved(tmp_path):
    monitor = Monitor(tmp_path / "output", JOB, 40, {}, checkpoint_every=10, began_at=20)
    monitor.step(21, **FIGURES)
    monitor.checkpoint(21)
    monitor.close()
    assert log(tmp_path) == ["resumed from a checkpoint of step 20", "saved a checkpoint of step 21"]


def test_nothing_is_written_elsewhere_unless_it_is_asked_for(tmp_path):
    Monitor(tmp_path / "output", JOB, 40, {"textfile": None, "http_port": 0}, checkpoint_every=10).close()
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "performance_metrics.jsonl",
        "training.log",
        "training_metrics.jsonl",
    ]
    assert log(tmp_path) == []


def test_what_cannot_be_served_is_a_line_in_the_log_and_the_training_goes_on(tmp_path, begin, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with begin(textfile=str(tmp_path / "nowhere"), http_port=port) as monitor:
            monitor.step(1, **FIGURES)
            monitor.step(2, **FIGURES)
    no_file, no_server, *others = log(tmp_path)
    assert no_file.startswith(f"no metrics for Prometheus: {tmp_path}/nowhere (watch.textfile) is not a folder")
    assert no_server.startswith(f"no metrics at 127.0.0.1:{port} (watch.http_port): ")
    assert len(others) == 1
    assert others[0].startswith("step 1 of 40")
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    begin(textfile=None, http_port=port).close()
    assert "prometheus_client" in log(tmp_path)[-1]


def test_trackers_that_cannot_start_are_a_line_in_the_log(tmp_path, begin, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    begin(wandb=True).close()
    (line,) = log(tmp_path)
    assert line.startswith("W&B and TensorBoard are not started: ")


def test_rows_go_to_the_trackers(tmp_path, begin, monkeypatch, root):
    (tmp_path / "wandb.py").write_text("raise SystemExit(3)")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{root / 'files'}")
    with begin(wandb=True) as monitor:
        monitor.step(1, **FIGURES)
    assert log(tmp_path)[-1].startswith("W&B has failed, and the training goes on without it: it said nothing")


def test_a_name_that_is_none_is_refused_before_the_training(tmp_path):
    for changed in ({"run": "a b"}, {"nodes": ["a b"]}):
        with pytest.raises(KitError, match="label"):
            Monitor(tmp_path / "output", JOB, 40, {}, checkpoint_every=10, **changed)
    assert not (tmp_path / "output").exists()


def test_records_that_cannot_be_written_stop_the_training(tmp_path):
    (tmp_path / "output").write_text("a file")
    with pytest.raises(OSError, match="exists"):
        Monitor(tmp_path / "output", JOB, 40, {}, checkpoint_every=10)
