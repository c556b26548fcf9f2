# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each rule at the edge of what it lets through. The profiles are changed in memory, without YAML and its lines."""

from __future__ import annotations

import pytest
from kit.profiles import arithmetic, document, rules
from kit.profiles.findings import dotted, errors
from kit.profiles.model import Profile, TransferLearning
from kit.trackers import mlflow

from tests.unit.kit.profiles import samples


def replaced(section, path, value):
    head, *rest = path
    return section.model_copy(update={head: replaced(getattr(section, head), rest, value) if rest else value})


def with_(profile, **changes):
    """The profile with what stands at these keys (training__epochs is training.epochs) replaced, unchecked."""
    for name, value in changes.items():
        profile = replaced(profile, name.split("__"), value)
    return profile


HPC = Profile.model_validate(document.parse(samples.HPC).value)  # 4200 steps, 42 in each of 100 epochs
EMBEDDED = Profile.model_validate(document.parse(samples.EMBEDDED).value)
LOCAL = with_(HPC, metadata__target="local", resources__gpu_type="other")
CLASSES = with_(
    HPC,
    model__task="classification",
    model__outputs=None,
    model__num_classes=4,
    training__loss__name="cross_entropy",
    validation__metrics=["loss", "accuracy", "f1"],
)
TRANSFER = with_(
    LOCAL,
    metadata__purpose="transfer",
    training__optimizer__lr=5e-5,
    training__begins_with="/models/source",
    transfer_learning=TransferLearning(freeze_layers=4, unfreeze_epochs=[2, 4, 6]),
)
BARE = with_(EMBEDDED, power_management=None, embedded_optimizations=None)
ONE_GPU = with_(HPC, distributed__enabled=False, distributed__world_size=1, resources__num_gpus=1)


def kinds(profile, key, requirement=None):
    """The severities of what is found at a key, and of what is found for a requirement there."""
    return [
        each.severity
        for each in rules.check(profile)
        if dotted(each.place) == key and requirement in (None, each.requirement)
    ]


def texts(profile, key):
    return [each.text for each in rules.check(profile) if dotted(each.place) == key]


@pytest.mark.parametrize("profile", [HPC, EMBEDDED, LOCAL, CLASSES, TRANSFER], ids=str)
def test_what_is_changed_here_is_good_before(profile):
    assert [str(each) for each in rules.check(profile) if "PROFILE-HPC" not in each.text] == []


def kind(name):
    return with_(HPC, resources__gpu_type=name)


RATE, BATCH, ACCUMULATION = (
    *("training.optimizer.lr", "training.batch_size"),
    "training.gradient_accumulation_steps",
)
SAVED = "training.checkpointing"


@pytest.mark.parametrize(
    ("profile", "key", "requirement", "low", "high"),
    [
        (kind("a100-80"), BATCH, "S4-13", 128, 256),
        (kind("a100-80"), ACCUMULATION, "S4-13", 2, 4),
        (kind("a100-40"), BATCH, "S4-14", 64, 128),
        (kind("a100-40"), ACCUMULATION, "S4-14", 4, 8),
        (kind("rtx4090"), BATCH, "S4-15", 32, 64),
        (kind("rtx4090"), ACCUMULATION, "S4-15", 8, 16),
        (EMBEDDED, BATCH, "S4-16", 8, 16),
        (EMBEDDED, ACCUMULATION, "S4-16", 16, 32),
        (HPC, f"{SAVED}.every_steps", "S4-20", 1000, 5000),
        (HPC, f"{SAVED}.keep", "S4-21", 3, 5),
        (with_(HPC, training__max_steps=700), f"{SAVED}.every_steps", "S4-20", 700, 5000),  # at its end
        (with_(HPC, data__train_samples=2047), f"{SAVED}.every_steps", "S4-20", 1, 5000),
    ],
)
def test_a_number_is_in_the_documents_range_the_ends_included(profile, key, requirement, low, high):
    name = key.replace(".", "__")
    found = {at: kinds(with_(profile, **{name: at}), key, requirement) for at in (low - 1, low, high, high + 1)}
    assert found == {low - 1: ["error"], low: [], high: [], high + 1: ["error"]}


@pytest.mark.parametrize(
    ("purpose", "rate", "expected"),
    [
        ("scratch", 4.9e-4, ["error"]),
        ("scratch", 5e-4, ["warning"]),
        ("scratch", 9e-4, ["warning"]),
        ("scratch", 1e-3, []),
        ("scratch", 2e-3, ["warning"]),
        ("scratch", 2.1e-3, ["error"]),
        ("fine_tune", 9.9e-5, ["error"]),
        ("fine_tune", 1e-4, []),
        ("fine_tune", 5e-4, []),
        ("fine_tune", 5.1e-4, ["error"]),
        ("transfer", 9.9e-6, ["error"]),
        ("transfer", 1e-5, []),
        ("transfer", 1e-4, []),
        ("transfer", 1.1e-4, ["error"]),
    ],
)
def test_the_learning_rate_is_that_of_the_purpose(purpose, rate, expected):
    assert kinds(with_(HPC, metadata__purpose=purpose, training__optimizer__lr=rate), RATE) == expected


def test_no_range_is_asked_of_other_gpus_and_none_at_all_of_a_local_profile():
    assert kinds(with_(HPC, resources__gpu_type="other", training__batch_size=1), BATCH) == []
    local = with_(kind("a100-80"), metadata__target="local", training__batch_size=1)
    local = with_(local, training__checkpointing__keep=9, training__checkpointing__every_steps=1)
    assert kinds(local, BATCH) == kinds(local, f"{SAVED}.keep") == kinds(local, f"{SAVED}.every_steps") == []


ERROR, WARNING = ["error"], ["warning"]
METRICS, MONITOR, MODE = "validation.metrics", "training.early_stopping.monitor", "training.early_stopping.mode"
PATIENCE, T_MAX, WARMUP = (
    "training.early_stopping.patience",
    *("training.scheduler.t_max", "training.scheduler.warmup_steps"),
)
SCALE, EXPORT, OPENING = (
    "training.mixed_precision.loss_scale",
    *("post_training.export", "transfer_learning.unfreeze_epochs"),
)
ADDRESS, ONLINE, KEY = "logging.mlflow.tracking_uri", "logging.wandb.mode", "logging.wandb.key_file"
CALIBRATION, FASTER = "post_training.quantization.calibration_data", "post_training.quantization.enabled"
BETTER = {"validation_loss": "min", "mae": "min", "rmse": "min", "accuracy": "max", "f1": "max"}
FOLDER = "/mnt/beegfs/datasets/training_windows"


def opening(freeze, *epochs, profile=TRANSFER):
    return with_(profile, transfer_learning=TransferLearning(freeze_layers=freeze, unfreeze_epochs=list(epochs)))


CASES = [
    # shapes
    (with_(HPC, model__num_heads=7), "model.num_heads", ERROR),
    (with_(HPC, model__window=1024), "model.window", []),
    (with_(HPC, model__window=1025), "model.window", ERROR),
    *(
        (with_(HPC, **{f"data__normalization__{name}": [1.0] * 32}), f"data.normalization.{name}", [])
        for name in ("mean", "std")
    ),
    *(
        (with_(HPC, **{f"data__normalization__{name}": [1.0] * 31}), f"data.normalization.{name}", ERROR)
        for name in ("mean", "std")
    ),
    # tasks
    (with_(HPC, model__outputs=None), "model.outputs", ERROR),
    (with_(HPC, model__num_classes=4), "model.num_classes", ERROR),
    (with_(CLASSES, model__num_classes=None), "model.num_classes", ERROR),
    (with_(CLASSES, model__outputs=1), "model.outputs", ERROR),
    *((with_(HPC, training__loss__name=name), "training.loss.name", []) for name in ("mse", "mae")),
    (with_(HPC, training__loss__name="cross_entropy"), "training.loss.name", ERROR),
    (with_(CLASSES, training__loss__name="mse"), "training.loss.name", ERROR),
    *((with_(HPC, validation__metrics=["loss", name]), f"{METRICS}[1]", []) for name in ("mae", "rmse", "r2")),
    *((with_(HPC, validation__metrics=["loss", name]), f"{METRICS}[1]", ERROR) for name in ("accuracy", "f1")),
    *((with_(CLASSES, validation__metrics=[name]), f"{METRICS}[0]", []) for name in ("loss", "accuracy", "f1")),
    *((with_(CLASSES, validation__metrics=[name]), f"{METRICS}[0]", ERROR) for name in ("mae", "rmse", "r2")),
    (with_(HPC, validation__metrics=["loss"]), f"{METRICS}[0]", []),
    (with_(HPC, validation__metrics=["mae", "loss", "loss"]), METRICS, ERROR),
    # stopping
    (with_(HPC, validation__metrics=["mae"]), MONITOR, []),
    (with_(HPC, training__early_stopping__monitor="mae"), MONITOR, []),
    (with_(HPC, training__early_stopping__monitor="accuracy"), MONITOR, ERROR),
    *(
        (with_(HPC, training__early_stopping__monitor=name, training__early_stopping__mode=mode), MODE, expected)
        for name, better in BETTER.items()
        for mode, expected in ((better, []), ({"min": "max", "max": "min"}[better], ERROR))
    ),
    *(
        (with_(HPC, training__early_stopping__patience=number), PATIENCE, WARNING if number == 19 else [])
        for number in (18, 19)
    ),
    *(
        (
            with_(HPC, training__evaluation__every_steps=221, training__early_stopping__patience=number),
            PATIENCE,
            WARNING if number == 19 else [],
        )
        for number in (18, 19)  # 4199 is 19 times 221
    ),
    (with_(HPC, training__early_stopping__enabled=False, training__early_stopping__patience=99), PATIENCE, []),
    # rates
    (with_(HPC, training__scheduler__warmup_steps=0), WARMUP, ERROR),
    (with_(EMBEDDED, training__scheduler__warmup_steps=0), WARMUP, []),
    (with_(HPC, training__begins_with="/a"), "training.begins_with", ERROR),
    (with_(EMBEDDED, training__begins_with=None), "training.begins_with", ERROR),
    (with_(HPC, training__optimizer__name="adam"), "training.optimizer.name", ERROR),
    (
        with_(HPC, training__optimizer__name="adam", training__optimizer__weight_decay=0.0),
        "training.optimizer.name",
        [],
    ),
    (with_(HPC, training__scheduler__eta_min=1e-3), "training.scheduler.eta_min", []),
    (with_(HPC, training__scheduler__eta_min=1.1e-3), "training.scheduler.eta_min", ERROR),
    (with_(HPC, training__scheduler__t_max=1000), T_MAX, ["error", "warning"]),
    (with_(HPC, training__scheduler__t_max=1001), T_MAX, WARNING),
    (with_(HPC, training__scheduler__t_max=900, training__scheduler__name="constant"), T_MAX, []),
    # reachable
    (with_(HPC, data__train_samples=2047), "data.train_samples", ERROR),
    (with_(HPC, data__train_samples=2047), "training.evaluation.every_steps", []),
    (with_(HPC, data__train_samples=2048), "data.train_samples", []),
    *(
        (with_(LOCAL, **{key.replace(".", "__"): value}), key, ERROR if value > 4200 else [])
        for key in (
            *("training.evaluation.every_steps", "training.checkpointing.every_steps", "training.log_every_steps"),
            *("monitoring.gradient_norm_every_steps", "monitoring.weight_histogram_every_steps"),
        )
        for value in (4200, 4201)
    ),
    (with_(HPC, training__scheduler__warmup_steps=4199), WARMUP, []),
    (with_(HPC, training__scheduler__warmup_steps=4200), WARMUP, ERROR),
    (with_(HPC, training__scheduler__t_max=4199), T_MAX, WARNING),
    (with_(HPC, training__scheduler__t_max=4199, training__scheduler__name="constant"), T_MAX, []),
    (with_(HPC, training__scheduler__t_max=4201), T_MAX, WARNING),
    (with_(HPC, training__max_steps=4201), "training.max_steps", WARNING),
    (with_(HPC, training__max_steps=4199), "training.max_steps", []),
    (with_(HPC, validation__every_epochs=5), "validation.every_epochs", []),
    (with_(HPC, validation__every_epochs=4), "validation.every_epochs", ERROR),
    # memory
    *(
        (with_(kind(name), resources__gpu_memory_gb=most + more), "resources.gpu_memory_gb", ERROR if more else [])
        for name, most in (("a100-80", 80), ("a100-40", 40), ("rtx4090", 24), ("jetson", 64))
        for more in (0, 1)
    ),
    (with_(kind("other"), resources__gpu_memory_gb=4096), "resources.gpu_memory_gb", []),
    (with_(EMBEDDED, embedded_optimizations__max_memory_gb=32), "embedded_optimizations.max_memory_gb", WARNING),
    (
        with_(EMBEDDED, embedded_optimizations__max_memory_gb=33),
        "embedded_optimizations.max_memory_gb",
        ["error", "warning"],
    ),
    # precision
    (with_(HPC, training__mixed_precision__loss_scale=None), SCALE, ERROR),
    (with_(HPC, training__mixed_precision__loss_scale=None, training__mixed_precision__enabled=False), SCALE, []),
    (with_(HPC, training__mixed_precision__loss_scale=None, training__mixed_precision__dtype="bfloat16"), SCALE, []),
    (with_(HPC, training__mixed_precision__dtype="bfloat16"), SCALE, ERROR),
    # ranks
    (with_(EMBEDDED, resources__gpu_type="a100-80"), "resources.gpu_type", ERROR),
    (with_(EMBEDDED, resources__gpu_type="other"), "resources.gpu_type", []),
    (with_(HPC, resources__gpu_type="jetson"), "resources.gpu_type", ERROR),
    (with_(LOCAL, resources__gpu_type="jetson"), "resources.gpu_type", []),
    (with_(HPC, resources__num_gpus=1), "distributed.enabled", ERROR),
    (with_(HPC, resources__num_gpus=1), "distributed.world_size", []),
    (with_(HPC, distributed__world_size=2), "distributed.world_size", ERROR),
    (with_(HPC, resources__num_gpus=2, distributed__world_size=2), "distributed.world_size", []),
    (with_(ONE_GPU, resources__num_gpus=2), "distributed.enabled", ERROR),
    (ONE_GPU, "distributed.enabled", []),
    (ONE_GPU, "distributed.world_size", []),
    (with_(ONE_GPU, distributed__world_size=2), "distributed.world_size", ERROR),
    (with_(HPC, distributed__find_unused_parameters=True), "distributed.find_unused_parameters", ERROR),
    # reading
    (with_(HPC, data__num_workers=9), "data.num_workers", WARNING),
    (with_(HPC, data__num_workers=0), "data.prefetch_factor", ERROR),
    (with_(HPC, data__num_workers=0, data__prefetch_factor=None), "data.prefetch_factor", []),
    (with_(HPC, data__validation=f"/{FOLDER}/train/"), "data.validation", ERROR),
    (with_(HPC, data__test=f"{FOLDER}/train"), "data.test", ERROR),
    (with_(HPC, data__test=f"{FOLDER}/x/../validation"), "data.test", ERROR),
    # times
    (with_(HPC, metadata__created="2026-02-29"), "metadata.created", ERROR),
    (with_(HPC, metadata__created="2028-02-29"), "metadata.created", []),
    (with_(HPC, resources__time="0-00:00:00"), "resources.time", ERROR),
    (with_(HPC, resources__time="00:00:01"), "resources.time", []),
    (with_(HPC, fault_tolerance__resume=False), "fault_tolerance.resume", ERROR),
    (
        with_(HPC, fault_tolerance__resume=False, fault_tolerance__max_restarts=0),
        *("fault_tolerance.resume", []),
    ),
    # watching
    (with_(HPC, reproducibility__deterministic=True), "reproducibility.benchmark", ERROR),
    (
        with_(HPC, reproducibility__deterministic=True, reproducibility__benchmark=False),
        *("reproducibility.benchmark", []),
    ),
    (with_(HPC, debug__profiler=True), "debug.profiler", WARNING),
    (with_(HPC, debug__detect_anomaly=True), "debug.detect_anomaly", WARNING),
    (with_(HPC, debug__limit_batches=1), "debug.limit_batches", WARNING),
    (with_(HPC, monitoring__stall_seconds=300), "monitoring.stall_seconds", []),
    (with_(HPC, monitoring__stall_seconds=299), "monitoring.stall_seconds", ERROR),
    # exports
    (with_(HPC, post_training__export=["onnx", "onnx"]), f"{EXPORT}[1]", ERROR),
    (with_(HPC, post_training__export=["onnx", "executorch"]), f"{EXPORT}[1]", ERROR),
    (with_(HPC, post_training__export=["onnx", "torchscript"]), f"{EXPORT}[1]", WARNING),
    (with_(HPC, post_training__export=["onnx", "tensorrt"]), f"{EXPORT}[1]", ERROR),
    (with_(HPC, post_training__export=["onnx", "tensorrt"], environment__tensorrt="8"), f"{EXPORT}[1]", []),
    (with_(EMBEDDED, post_training__export=["tensorrt"]), EXPORT, ERROR),
    (with_(EMBEDDED, post_training__quantization__calibration_data=None), CALIBRATION, ERROR),
    (
        with_(
            EMBEDDED,
            post_training__quantization__calibration_data=None,
            post_training__quantization__method="dynamic",
        ),
        *(CALIBRATION, WARNING),
    ),
    (with_(EMBEDDED, post_training__quantization__method="dynamic"), CALIBRATION, []),
    (with_(EMBEDDED, post_training__quantization__enabled=False), FASTER, WARNING),
    (with_(EMBEDDED, post_training__pruning__enabled=False), "post_training.pruning.enabled", WARNING),
    (with_(HPC, post_training__pruning__enabled=False), "post_training.pruning.enabled", []),
    (HPC, CALIBRATION, []),
    (with_(HPC, model__hidden_size=64), FASTER, []),
    (with_(EMBEDDED, model__hidden_size=128), FASTER, []),
    (with_(EMBEDDED, model__hidden_size=127), FASTER, WARNING),
    # device
    (BARE, "power_management", ERROR),
    (BARE, "embedded_optimizations", ERROR),
    (BARE, "power_management.max_power_w", []),
    (with_(HPC, power_management=EMBEDDED.power_management), "power_management", ERROR),
    (with_(LOCAL, power_management=EMBEDDED.power_management), "power_management", []),
    (with_(EMBEDDED, model__attention="math"), "model.attention", ERROR),
    (
        with_(EMBEDDED, model__attention="math", embedded_optimizations__memory_efficient_attention=False),
        *("model.attention", []),
    ),
    (with_(HPC, model__attention="math"), "model.attention", []),
    *(
        (with_(EMBEDDED, **{f"monitoring__{name}": False}), f"monitoring.{name}", ERROR)
        for name in ("temperature", "power")
    ),
    (with_(HPC, monitoring__power=False), "monitoring.power", []),
    *(
        (with_(EMBEDDED, **{f"post_training__{name}": None}), f"post_training.{name}", ERROR)
        for name in ("max_latency_ms", "max_size_mb")
    ),
    (with_(EMBEDDED, power_management__max_power_w=None), "power_management.max_power_w", ERROR),
    (with_(EMBEDDED, resources__num_gpus=2), "resources.num_gpus", ERROR),
    (with_(EMBEDDED, embedded_optimizations__max_memory_gb=13), "embedded_optimizations.max_memory_gb", WARNING),
    # validated
    *((profile, key, []) for profile in (HPC, LOCAL) for key in ("monitoring.throughput", "model.num_layers")),
    *(
        (with_(profile, **changes), key, found)
        for key, changes in {
            "model.task": {"model__task": "classification", "model__num_classes": 10},
            "monitoring.throughput": {"monitoring__throughput": False},
            "model.num_layers": {"model__num_layers": 1},
            METRICS: {"validation__metrics": ["loss"]},
            "metadata.purpose": {"metadata__purpose": "fine_tune"},
            "training.mixed_precision": {"training__mixed_precision__enabled": False},
            f"{SAVED}.every_steps": {"training__checkpointing__every_steps": 4200},
        }.items()
        for profile, found in ((HPC, WARNING), (LOCAL, []))
    ),
    (with_(HPC, model__num_layers=2), "model.num_layers", []),
    (with_(CLASSES, validation__metrics=["f1"]), METRICS, []),
    (with_(HPC, metadata__purpose="transfer"), "metadata.purpose", WARNING),
    (with_(HPC, training__mixed_precision__dtype="bfloat16"), "training.mixed_precision", WARNING),
    (with_(HPC, training__checkpointing__every_steps=4199), f"{SAVED}.every_steps", []),
    (with_(HPC, training__checkpointing__every_steps=4201), f"{SAVED}.every_steps", ERROR),
    # transfers
    (with_(TRANSFER, transfer_learning=None), "transfer_learning", ERROR),
    (with_(TRANSFER, metadata__purpose="fine_tune"), "transfer_learning", ERROR),
    (opening(11, 2), "transfer_learning.freeze_layers", []),
    (opening(12, 2), "transfer_learning.freeze_layers", ERROR),
    (opening(4, 4, 2), OPENING, ERROR),
    (opening(4, 2, 2), OPENING, ERROR),
    (opening(4, 2, 100), OPENING, []),
    (opening(4, 2, 101), OPENING, ERROR),
    (opening(4, 100, profile=with_(TRANSFER, training__max_steps=4159)), OPENING, []),  # 99 epochs and one step
    (opening(4, 100, profile=with_(TRANSFER, training__max_steps=4158)), OPENING, ERROR),
    (opening(4, 100, profile=with_(TRANSFER, data__train_samples=2048)), OPENING, []),  # one step each
    (opening(4), OPENING, WARNING),
    (opening(0), OPENING, []),
    (opening(4, 1), OPENING, WARNING),
    (opening(4, 2), OPENING, []),
    (opening(4, 1, 2), OPENING, []),
    (opening(4, 1, 2, 3, 4), OPENING, []),
    (opening(4, 1, 2, 3, 4, 5), OPENING, ERROR),
    # trackers
    (with_(HPC, logging__wandb__mode="online"), ONLINE, ERROR),
    (with_(HPC, logging__wandb__mode="online", logging__wandb__enabled=False), ONLINE, []),
    (with_(HPC, logging__wandb__mode="online", logging__wandb__key_file="/k"), ONLINE, []),
    (with_(HPC, logging__mlflow__token_file="/k", logging__mlflow__tracking_uri="http://h"), ADDRESS, ERROR),
    (with_(HPC, logging__mlflow__token_file="/k", logging__mlflow__tracking_uri="https://h"), ADDRESS, []),
    (with_(HPC, logging__mlflow__token_file="/k"), ADDRESS, []),
    (with_(HPC, logging__mlflow__tracking_uri="http://h"), ADDRESS, []),
    *(
        (with_(HPC, logging__mlflow__token_file="/k", logging__mlflow__tracking_uri=f"http://{host}:5000"), ADDRESS, [])
        for host in ("localhost", "127.0.0.1", "[::1]")
    ),
    *(
        (with_(HPC, **{f"logging__mlflow__{name}": "/k", **changes}), f"logging.mlflow.{name}", expected)
        for name in ("token_file", "ca_file")
        for changes, expected in (
            ({"logging__mlflow__tracking_uri": None}, WARNING),
            ({"logging__mlflow__tracking_uri": None, "logging__mlflow__enabled": False}, []),
            ({"logging__mlflow__tracking_uri": "https://h"}, []),
        )
    ),
    (with_(HPC, logging__wandb__mode="offline", logging__wandb__key_file="/k"), KEY, WARNING),
    (with_(HPC, logging__wandb__mode="offline", logging__wandb__key_file="/k", logging__wandb__enabled=False), KEY, []),
    (with_(HPC, logging__wandb__mode="online", logging__wandb__key_file="/k"), KEY, []),
]


@pytest.mark.parametrize(("profile", "key", "expected"), CASES, ids=range(len(CASES)))
def test_what_is_found_at_a_key(profile, key, expected):
    assert kinds(profile, key) == expected, [str(each) for each in rules.check(profile)]


@pytest.mark.parametrize(
    ("profile", "key", "said"),
    [
        (
            with_(HPC, validation__metrics=["mae", "loss", "rmse", "mae"]),
            *(METRICS, "mae is there 2 times; expected once"),
        ),
        (opening(12, 2), "transfer_learning.freeze_layers", "12 of 12 layers; expected at most 11"),
        (opening(4, 4, 2), OPENING, "4, 2; expected each once, ascending"),
        (
            with_(HPC, fault_tolerance__resume=False),
            "fault_tolerance.resume",
            f"false with max_restarts {HPC.fault_tolerance.max_restarts}: an attempt refuses the checkpoints of the "
            "one before; expected true, or max_restarts 0",
        ),
        (
            with_(HPC, training__mixed_precision__enabled=False),
            "training.mixed_precision",
            "computes in float32: PROFILE-HPC cannot pass, which expects float16",
        ),
    ],
)
def test_what_is_found_is_told_with_its_value_and_what_is_expected(profile, key, said):
    assert texts(profile, key) == [said]


def test_where_a_token_may_go_without_tls_is_where_the_client_sends_it():
    assert rules.LOOPBACK == mlflow.LOOPBACK


@pytest.mark.parametrize(("share", "expected"), [(0.999, ERROR), (1.0, WARNING), (1.05, WARNING), (1.2, [])])
def test_a_training_has_the_memory_of_a_gpu_and_something_to_spare(share, expected):
    there = arithmetic.memory_bytes(LOCAL) / (1 << 30) * share
    assert kinds(with_(LOCAL, resources__gpu_memory_gb=there), BATCH) == expected


@pytest.mark.parametrize("key", ["resources__gpu_memory_gb", "embedded_optimizations__max_memory_gb"])
@pytest.mark.parametrize(("share", "expected"), [(0.999, ERROR), (1.2, [])])
def test_on_a_device_it_has_the_lesser_of_the_boards_and_what_it_is_given(key, share, expected):
    there = arithmetic.memory_bytes(EMBEDDED) / (1 << 30) * share
    assert kinds(with_(EMBEDDED, **{key: there}), BATCH) == expected


@pytest.mark.parametrize(
    ("monitor", "delta", "expected"),
    [
        *((name, at, ERROR if at >= 1 else []) for name in ("accuracy", "f1") for at in (0.5, 1.0, 1.5)),
        *((name, at, []) for name in ("mae", "validation_loss") for at in (0.5, 1.0, 1.5)),
    ],
)
def test_a_share_cannot_improve_by_more_than_all_of_it(monitor, delta, expected):
    of = {"monitor": monitor, "mode": BETTER[monitor], "min_delta": delta}
    profile = with_(CLASSES, **{f"training__early_stopping__{name}": value for name, value in of.items()})
    assert kinds(profile, "training.early_stopping.min_delta") == expected


@pytest.mark.parametrize(
    ("begins_with", "expected"),
    [
        ("/mine/checkpoint_step_10", ERROR),
        ("//mine/./checkpoint_step_10/", ERROR),
        ("/mine", []),
        ("/mine/other/checkpoint_step_10", []),
    ],
)
def test_a_training_does_not_begin_with_a_checkpoint_of_its_own_folder(begins_with, expected):
    profile = with_(TRANSFER, training__begins_with=begins_with, training__checkpointing__directory="/mine")
    assert kinds(profile, f"{SAVED}.directory") == expected
    assert kinds(with_(HPC, training__checkpointing__directory="/mine"), f"{SAVED}.directory") == []


@pytest.mark.parametrize(("folder", "expected"), [("test/", ERROR), ("tests", []), ("train", [])])
def test_a_model_is_not_calibrated_with_what_it_is_tested_on(folder, expected):
    profile = with_(
        EMBEDDED, data__test=f"{FOLDER}/test", post_training__quantization__calibration_data=f"{FOLDER}/{folder}"
    )
    assert kinds(profile, CALIBRATION) == expected


@pytest.mark.parametrize("name", ["temperature", "power"])
@pytest.mark.parametrize(("gpu", "there", "expected"), [(False, True, WARNING), (False, False, []), (True, True, [])])
def test_who_wants_a_sensor_has_the_gpu_sampled(name, gpu, there, expected):
    profile = with_(HPC, monitoring__gpu=gpu, **{f"monitoring__{name}": there})
    assert kinds(profile, f"monitoring.{name}") == expected


def test_why_so_few_steps_happen_is_told():
    few = {"training__evaluation__every_steps": 4201}
    key = "training.evaluation.every_steps"
    assert texts(with_(HPC, **few), key) == ["4201, but only 4200 steps happen (max_steps 4200)"]
    epochs = "4201, but only 4200 steps happen (87000 samples / 2048 x 100 epochs)"
    assert texts(with_(HPC, **few, training__max_steps=5000), key) == [epochs]


@pytest.mark.parametrize(
    ("form", "said"), [("executorch", "executorch is not offered; "), ("pickle", "an unknown form; ")]
)
def test_a_form_that_is_not_offered_is_told(form, said):
    (text,) = texts(with_(HPC, post_training__export=["onnx", form]), f"{EXPORT}[1]")
    assert text == f"{said}expected some of onnx, torchscript, tensorrt"


@pytest.mark.parametrize(("gpu", "severities"), [("jetson", ["warning"]), ("other", ["warning"]), ("a100-80", [])])
def test_bfloat16_is_doubtful_where_a_gpu_may_lack_it(gpu, severities):
    half = {"training__mixed_precision__dtype": "bfloat16", "training__mixed_precision__loss_scale": None}
    key = "training.mixed_precision.dtype"
    assert kinds(with_(kind(gpu), **half), key, "S4-3") == severities
    assert kinds(with_(kind(gpu), **half, training__mixed_precision__enabled=False), key) == []
    assert kinds(with_(kind(gpu), **half, metadata__target="local"), key) == []  # a CPU has it
    assert kinds(kind(gpu), key) == []


@pytest.mark.parametrize(
    "address", ["http:///x", "https://:5000", "https://a:99999999", "https://a:x", "http://[x", "http://a:0"]
)
def test_an_address_has_a_host_and_a_port_that_is_one(address):
    said = texts(with_(HPC, logging__mlflow__tracking_uri=address), ADDRESS)
    assert said == ["no host, or a port that is none; expected https://HOST or https://HOST:PORT"]


@pytest.mark.parametrize("address", [None, "http://h", "https://h:65535/path", "http://[::1]:5000"])
def test_an_address_with_a_host_is_one(address):
    assert kinds(with_(HPC, logging__mlflow__tracking_uri=address), ADDRESS) == []


def test_without_a_step_no_evaluation_comes_before_the_last():
    (said,) = texts(with_(HPC, data__train_samples=100), "training.early_stopping.patience")
    assert " and 0 come before the last step" in said


def test_what_is_there_twice_is_shown_in_one_line():
    said = texts(with_(HPC, post_training__export=["onnx", "x\n", "x\n"]), "post_training.export[2]")
    assert said[0] == "'x\\n' is there twice"


THERE = {"power_management": EMBEDDED.power_management, "embedded_optimizations": EMBEDDED.embedded_optimizations}
LIMITED = with_(
    ONE_GPU, metadata__target="local", resources__gpu_type="other", **THERE, post_training__max_latency_ms=5.0
)
LIMITED = with_(LIMITED, post_training__max_size_mb=50.0, embedded_optimizations__max_memory_gb=80)


def on_devices(profile):
    """What is found only where the model is measured on devices."""
    before = {str(each) for each in rules.check(profile)}
    return [each for each in rules.check(profile, on_devices=True) if str(each) not in before]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({}, None),
        ({"power_management": None}, "power_management"),
        ({"embedded_optimizations": None}, "embedded_optimizations"),
        ({"post_training__max_latency_ms": None}, "post_training.max_latency_ms"),
        ({"post_training__max_size_mb": None}, "post_training.max_size_mb"),
        ({"power_management__max_power_w": None}, "power_management.max_power_w"),
        ({"validation__metrics": ["loss", "rmse"]}, "validation.metrics"),
        ({"model__task": "classification"}, "model.task"),
    ],
)
def test_a_model_that_is_measured_on_devices_can_be_judged_there(changes, key):
    found = errors(on_devices(with_(LIMITED, **changes)))
    assert [dotted(each.place) for each in found] == ([key] if key else [])


STEPS = {"post_training__pruning__enabled": True, "post_training__quantization__enabled": True}


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({}, []),
        ({"post_training__pruning__enabled": False}, ["post_training.pruning.enabled"]),
        ({"post_training__quantization__enabled": False}, [FASTER]),
        (
            {
                "post_training__quantization__method": "dynamic",
                "post_training__quantization__calibration_data": None,
            },
            [CALIBRATION],
        ),
    ],
)
def test_a_model_that_leaves_out_what_is_judged_on_devices_is_warned_of(changes, keys):
    whole = with_(LIMITED, **STEPS, post_training__quantization__calibration_data="/calibration")
    found = on_devices(with_(whole, **changes))
    assert [(dotted(each.place), each.severity) for each in found] == [(key, "warning") for key in keys]


def test_what_an_embedded_profile_lacks_anyway_is_told_once():
    assert on_devices(BARE) == []
    assert kinds(BARE, "power_management") == ERROR
