# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job's folder says of its cost, and what of it is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from kit.errors import KitError
from kit.files import write_json
from kit.pretraining import job_folder, price

from tests.unit.kit.pretraining_job import EIGHT, GPT, H100, METRICS, SETTINGS, rows, write


def without(document: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in names}


def test_the_files_of_a_finished_job(tmp_path: Path) -> None:
    found = job_folder.read(write(tmp_path, metrics=METRICS, found=rows([1.8] * 120)))
    assert found.model == GPT
    assert found.training == EIGHT
    assert found.price == price.Price(7.92, "node", "USD", (350.0, 2500.0))
    assert (found.sequences, found.every, found.nodes) == (512, 1000, 1)
    assert (found.gpu_name, found.device_bytes, found.epoch_tokens) == (H100, 80 << 30, 51_600_000_000)
    assert (found.blocking, found.restart) == (9.0, 90.0)
    assert found.mtbf_hours == (24.0, 168.0, 720.0)
    assert (found.history.rows, len(found.history.window)) == (120, 100)


def test_a_running_job_has_no_metrics_but_ranks(tmp_path: Path) -> None:
    write(tmp_path, found=rows([1.8] * 20))
    for rank in range(8):
        write_json(tmp_path / f"ranks/rank-{rank}.json", {"phase": "training", "node": f"gpu0{rank // 4}"})
    found = job_folder.read(tmp_path)
    assert found.nodes == 2
    assert (found.gpu_name, found.device_bytes, found.epoch_tokens) == (None, None, None)
    assert (found.blocking, found.restart) == (None, None)
    (tmp_path / "ranks/rank-7.json").unlink()
    assert job_folder.read(tmp_path).nodes is None


def test_a_job_that_has_only_begun(tmp_path: Path) -> None:
    found = job_folder.read(write(tmp_path))
    assert (found.nodes, found.history.rows) == (None, 0)


def test_what_a_person_states_counts(tmp_path: Path) -> None:
    given = job_folder.Given(
        price={"price_per_hour": 1, "price_of": "gpu"},
        gpu_name="NVIDIA H200",
        nodes=2,
        epoch_tokens=1000,
        blocking=1.0,
        restart=2.0,
        mtbf_hours=(3.0,),
    )
    found = job_folder.read(write(tmp_path, metrics=METRICS), given)
    assert found.price == price.Price(1.0, "gpu")
    assert (found.gpu_name, found.nodes, found.epoch_tokens) == ("NVIDIA H200", 2, 1000)
    assert (found.blocking, found.restart, found.mtbf_hours) == (1.0, 2.0, (3.0,))


@pytest.mark.parametrize(
    ("changed", "training"),
    [
        ({"precision": "fp32"}, {"value_bytes": 4}),
        ({"precision": "fp16"}, {"value_bytes": 2}),
        ({"zero": {"offload": "cpu"}}, {"offloaded": True}),
        ({"zero": {"offload": "none"}}, {}),
        ({"zero": {"checkpoint_activations": True}}, {"recomputed": True}),
        ({"zero": {"checkpoint_activations": False}}, {}),
    ],
)
def test_what_determines_the_memory(tmp_path: Path, changed: dict[str, Any], training: dict[str, Any]) -> None:
    found = job_folder.read(write(tmp_path, {**SETTINGS, **changed}))
    assert found.training == dataclasses.replace(EIGHT, **training)


def test_one_of_each_is_a_number(tmp_path: Path) -> None:
    batch = {"global": 1, "micro": 1, "ranks": 1}
    found = job_folder.read(write(tmp_path, {**SETTINGS, "batch": batch, "checkpoint": {"every": 1}}))
    assert (found.sequences, found.training.micro, found.training.ranks, found.every) == (1, 1, 1, 1)


def test_no_price_and_no_checkpoints(tmp_path: Path) -> None:
    found = job_folder.read(write(tmp_path, {**without(SETTINGS, "checkpoint"), "cost": None}))
    assert (found.price, found.every) == (None, None)


@pytest.mark.parametrize(
    ("metrics", "field"),
    [
        ({"gpu_name": 7}, "gpu_name"),
        ({"gpu_name": ""}, "gpu_name"),
        ({"gpu_memory_total_bytes": "80 GB"}, "device_bytes"),
        ({"gpu_memory_total_bytes": True}, "device_bytes"),
        ({"gpu_memory_total_bytes": 0}, "device_bytes"),
        ({"gpu_memory_total_bytes": 10**400}, "device_bytes"),
        ({"data": {"tokens": 1.5}}, "epoch_tokens"),
        ({"data": 5}, "epoch_tokens"),
        ({"checkpoint": {"blocking_seconds": "NaN"}}, "blocking"),
        ({"checkpoint": {"blocking_seconds": -1}}, "blocking"),
        ({"checkpoint": {"restart_seconds": None}}, "restart"),
        ({"ranks": {"rank 0": {"node": "gpu01"}}}, "nodes"),
        ({"ranks": {str(rank): {"node": None if rank else "gpu01"} for rank in range(8)}}, "nodes"),
        ({"ranks": {str(rank): "gpu01" for rank in range(8)}}, "nodes"),
        ({"ranks": ["gpu01"] * 8}, "nodes"),
    ],
)
def test_a_value_that_is_none_is_not_known(tmp_path: Path, metrics: dict[str, Any], field: str) -> None:
    assert getattr(job_folder.read(write(tmp_path, metrics={**METRICS, **metrics})), field) is None


def test_a_checkpoint_may_take_no_time(tmp_path: Path) -> None:
    metrics = {"checkpoint": {"blocking_seconds": 0}}
    assert job_folder.read(write(tmp_path, metrics=metrics)).blocking == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ([], r"settings.json: expected an object, found list"),
        (without(SETTINGS, "model"), "model: expected an object"),
        (
            without(SETTINGS, "batch"),
            "settings.json: batch.ranks: expected a whole number from 1 to 1048576, found None",
        ),
        ({**SETTINGS, "batch": {"global": 0, "micro": 4, "ranks": 8}}, "batch.global: .* found 0"),
        ({**SETTINGS, "batch": {"global": 512, "micro": "4", "ranks": 8}}, "batch.micro: .* found '4'"),
        ({**SETTINGS, "batch": {"global": 10**400, "micro": 4, "ranks": 8}}, "batch.global: .* 1 to 1048576, found 1"),
        ({**SETTINGS, "precision": ["bf16"]}, r"precision: expected one of bf16, fp16, fp32, found \['bf16'\]"),
        ({**SETTINGS, "precision": "int8"}, "precision: expected one of bf16, fp16, fp32, found 'int8'"),
        ({**SETTINGS, "cost": {"price_per_hour": 7.92}}, "cost.price_of: expected node or gpu"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, settings: Any, said: str) -> None:
    with pytest.raises(KitError, match=said):
        job_folder.read(write(tmp_path, settings))


@pytest.mark.parametrize(
    "given",
    [
        {"nodes": 10**400},
        {"epoch_tokens": 10**400},
        {"blocking": 1e308},
        {"restart": 1e308},
        {"mtbf_hours": (24.0, 1e308)},
    ],
)
def test_what_a_person_cannot_mean_is_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(KitError, match=r"^--[a-z-]+: expected at most 1e\+18, found 1"):
        job_folder.read(write(tmp_path), job_folder.Given(**given))


def test_another_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        KitError, match=r"settings.json was not written: expected the output folder of a pretraining job"
    ):
        job_folder.read(tmp_path)


@pytest.mark.parametrize("name", ["settings.json", "metrics.json", "training_metrics.jsonl"])
def test_damaged_files_are_named(tmp_path: Path, name: str) -> None:
    write(tmp_path, metrics=METRICS)
    (tmp_path / name).write_text('{"a": \n')
    with pytest.raises(KitError, match=name):
        job_folder.read(tmp_path)


def test_metrics_that_are_a_dangling_link_are_damaged(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "metrics.json").symlink_to(tmp_path / "gone")
    with pytest.raises(KitError, match=r"metrics.json"):
        job_folder.read(tmp_path)


def test_metrics_that_are_no_object_say_nothing(tmp_path: Path) -> None:
    assert job_folder.read(write(tmp_path, metrics=[1])).gpu_name is None
