# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest
from kit.profiles import document
from kit.profiles.check import check, judged
from kit.profiles.findings import WARNING, Finding, dotted, errors

from tests.unit.kit.profiles.samples import EMBEDDED, HPC, changed, line_of

LOCAL = changed(HPC, metadata__target="local", resources__gpu_type="other")
TRANSFER = (
    changed(
        LOCAL, metadata__purpose="transfer", training__optimizer__lr="5.0e-5", training__begins_with="/models/source"
    )
    + "transfer_learning:\n  freeze_layers: 4\n  unfreeze_epochs: [2, 4, 6]\n"
)
CLASSES = changed(
    HPC,
    model__task="classification",
    model__outputs="null",
    model__num_classes="4",
    training__loss__name="cross_entropy",
    validation__metrics="[loss, accuracy, f1]",
)


def found(text: str) -> list[tuple[str, str, str, int]]:
    """(severity, key, requirement, line) of all findings."""
    return [
        (each.severity, dotted(each.place), each.requirement, each.line)
        for each in judged(document.parse(text)).findings
    ]


def keys(text: str, severity: str = "error") -> list[str]:
    return [key for kind, key, _requirement, _line in found(text) if kind == severity]


def test_rails_of_different_names_are_taken():
    text = changed(EMBEDDED, power_management__power_rails="[VDD_IN, VDD_SOC]")
    assert keys(text) == []


def test_a_rail_that_is_named_twice_is_named_in_the_refusal():
    text = changed(EMBEDDED, power_management__power_rails="[VDD_IN, VDD_SOC, VDD_IN]")
    told = [each.text for each in judged(document.parse(text)).findings if each.severity == "error"]
    assert told == ["a list; expected different names, found VDD_IN twice"]


GOOD = {
    "hpc": HPC,
    "embedded": EMBEDDED,
    "local": LOCAL,
    "transfer": TRANSFER,
    "classification": CLASSES,
    "1e-3": changed(HPC, training__optimizer__lr="1e-3"),
    "whole numbers where numbers are": changed(
        HPC, data__normalization__std="1", training__gradient_clipping__max_norm="1"
    ),
    "one mean for each feature": changed(HPC, data__normalization__mean=f"[{', '.join(['0.1'] * 32)}]"),
    "largest batch": changed(HPC, training__batch_size="256", training__gradient_accumulation_steps="2"),
    "smallest batch": changed(
        HPC, training__batch_size="128", training__gradient_accumulation_steps="2", training__max_steps="8500"
    ),
    "A100 of 40 GB": changed(
        HPC,
        resources__gpu_type="a100-40",
        resources__gpu_memory_gb="40",
        training__batch_size="64",
        training__gradient_accumulation_steps="8",
    ),
    "RTX 4090": changed(
        HPC,
        resources__gpu_type="rtx4090",
        resources__gpu_memory_gb="24",
        training__batch_size="32",
        training__gradient_accumulation_steps="16",
    ),
    "least checkpoints": changed(HPC, training__checkpointing__keep="3"),
    "rarest checkpoints": changed(HPC, training__checkpointing__every_steps="4200"),
    "bfloat16": changed(HPC, training__mixed_precision__dtype="bfloat16", training__mixed_precision__loss_scale="null"),
    "fixed scale": changed(HPC, training__mixed_precision__loss_scale="1024.0"),
    "full precision, activations computed again": changed(
        HPC, training__mixed_precision__enabled="false", training__activation_checkpointing="true"
    ),
    "one GPU": changed(
        HPC,
        distributed__enabled="false",
        distributed__world_size="1",
        resources__num_gpus="1",
        training__max_steps="17000",
    ),
    "gloo": changed(HPC, distributed__backend="gloo"),
    "adam without decay": changed(HPC, training__optimizer__name="adam", training__optimizer__weight_decay="0"),
    "constant rate": changed(HPC, training__scheduler__name="constant"),
    "lowest rate of fine-tuning": changed(EMBEDDED, training__optimizer__lr="1.0e-4"),
    "highest rate of a transfer": TRANSFER.replace("lr: 5.0e-5", "lr: 1.0e-4"),
    "nothing frozen": TRANSFER.replace("freeze_layers: 4", "freeze_layers: 0").replace("[2, 4, 6]", "[]"),
    "no workers": changed(HPC, data__num_workers="0", data__prefetch_factor="null"),
    "deterministic": changed(HPC, reproducibility__deterministic="true", reproducibility__benchmark="false"),
    "without early stopping": changed(
        HPC, training__early_stopping__enabled="false", training__early_stopping__patience="9999"
    ),
    "stops by a metric": changed(HPC, training__early_stopping__monitor="rmse"),
    "validation by epochs that agree": changed(HPC, validation__every_epochs="5"),
    "dynamic INT8 without calibration": changed(
        EMBEDDED, post_training__quantization__method="dynamic", post_training__quantization__calibration_data="null"
    ),
    "quoted time with days": changed(HPC, resources__time='"2-00:00:00"'),
    "names in any language, and one that begins with a hyphen": changed(
        HPC, metadata__name="Modèle-Übung 模型 2", logging__mlflow__experiment='"-x"'
    ),
    "several epochs without a limit of steps": changed(HPC, training__epochs="200"),
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_a_good_profile_has_no_error(text):
    assert keys(text) == []


def test_the_documents_profiles_have_not_even_a_warning():
    assert (found(HPC), found(EMBEDDED)) == ([], [])


# What is changed, the key that must be named, and the requirement.
BAD = [
    (HPC, {"model__num_heads": "7"}, "model.num_heads", "S4-9"),
    (HPC, {"model__window": "2048"}, "model.window", "S4-9"),
    (HPC, {"model__hidden_size": '"512"'}, "model.hidden_size", "S4-8"),
    (HPC, {"model__hidden_size": "true"}, "model.hidden_size", "S4-8"),
    (HPC, {"model__hidden_size": "0"}, "model.hidden_size", "S4-8"),
    (HPC, {"model__dropout": ".nan"}, "model.dropout", "S4-9"),
    (HPC, {"model__outputs": "null"}, "model.outputs", "S4-9"),
    (HPC, {"model__num_classes": "4"}, "model.num_classes", "S4-9"),
    (CLASSES, {"model__num_classes": "null"}, "model.num_classes", "S4-9"),
    (HPC, {"training__loss__name": "cross_entropy"}, "training.loss.name", "S4-30"),
    (HPC, {"validation__metrics": "[loss, accuracy]"}, "validation.metrics[1]", "S4-24"),
    (HPC, {"validation__metrics": "[loss, loss]"}, "validation.metrics", "S4-24"),
    (HPC, {"training__early_stopping__monitor": "accuracy"}, "training.early_stopping.monitor", "S4-23"),
    (HPC, {"training__early_stopping__mode": "max"}, "training.early_stopping.mode", "S4-23"),
    (CLASSES, {"training__early_stopping__monitor": "accuracy"}, "training.early_stopping.mode", "S4-23"),
    (
        CLASSES,
        {
            "training__early_stopping__monitor": "f1",
            "training__early_stopping__mode": "max",
            "training__early_stopping__min_delta": "1",
        },
        "training.early_stopping.min_delta",
        "S4-23",
    ),
    (HPC, {"training__optimizer__lr": "0.01"}, "training.optimizer.lr", "S4-17"),
    (EMBEDDED, {"training__optimizer__lr": "1.0e-3"}, "training.optimizer.lr", "S4-18"),
    (TRANSFER, {"training__optimizer__lr": "5.0e-4"}, "training.optimizer.lr", "S4-19"),
    (HPC, {"training__optimizer__name": "adam"}, "training.optimizer.name", "S4-9"),
    (HPC, {"training__optimizer__betas": "[0.9]"}, "training.optimizer.betas", "S4-9"),
    (HPC, {"training__scheduler__warmup_steps": "0"}, "training.scheduler.warmup_steps", "S4-17"),
    (HPC, {"training__scheduler__t_max": "900"}, "training.scheduler.t_max", "S4-9"),
    (HPC, {"training__scheduler__eta_min": "0.1"}, "training.scheduler.eta_min", "S4-9"),
    (HPC, {"training__scheduler__warmup_steps": "5000"}, "training.scheduler.warmup_steps", "S4-9"),
    (HPC, {"training__evaluation__every_steps": "5000"}, "training.evaluation.every_steps", "S4-9"),
    (HPC, {"data__train_samples": "15000"}, "training.checkpointing.every_steps", "S4-9"),
    (HPC, {"data__train_samples": "1000"}, "data.train_samples", "S4-9"),
    (HPC, {"validation__every_epochs": "3"}, "validation.every_epochs", "S4-9"),
    (HPC, {"training__batch_size": "512"}, "training.batch_size", "S4-13"),
    (HPC, {"training__gradient_accumulation_steps": "8"}, "training.gradient_accumulation_steps", "S4-13"),
    (HPC, {"resources__gpu_type": "a100-40"}, "resources.gpu_memory_gb", "S4-13"),
    (
        HPC,
        {"model__window": "1024", "resources__gpu_type": "other", "resources__gpu_memory_gb": "24"},
        "training.batch_size",
        "S4-28",
    ),
    (EMBEDDED, {"training__gradient_accumulation_steps": "8"}, "training.gradient_accumulation_steps", "S4-16"),
    (HPC, {"training__checkpointing__every_steps": "10000"}, "training.checkpointing.every_steps", "S4-20"),
    (HPC, {"training__checkpointing__keep": "10"}, "training.checkpointing.keep", "S4-21"),
    (HPC, {"training__checkpointing__format": "pickle"}, "training.checkpointing.format", "S4-22"),
    (HPC, {"training__checkpointing__directory": "checkpoints"}, "training.checkpointing.directory", "S4-20"),
    (HPC, {"training__mixed_precision__loss_scale": "null"}, "training.mixed_precision.loss_scale", "S4-3"),
    (HPC, {"training__mixed_precision__dtype": "bfloat16"}, "training.mixed_precision.loss_scale", "S4-3"),
    (HPC, {"distributed__world_size": "2"}, "distributed.world_size", "S4-3"),
    (HPC, {"distributed__enabled": "false", "distributed__world_size": "1"}, "distributed.enabled", "S4-3"),
    (EMBEDDED, {"distributed__enabled": "true"}, "distributed.enabled", "S4-3"),
    (EMBEDDED, {"distributed__world_size": "2"}, "distributed.world_size", "S4-3"),
    (HPC, {"distributed__find_unused_parameters": "true"}, "distributed.find_unused_parameters", "S4-9"),
    (HPC, {"data__num_workers": "0"}, "data.prefetch_factor", "S4-29"),
    (HPC, {"data__validation": "/mnt/beegfs/datasets/training_windows/train/"}, "data.validation", "S4-24"),
    (HPC, {"data__normalization__mean": "[0.5, 0.5, 0.5]"}, "data.normalization.mean", "S4-30"),
    (HPC, {"data__normalization__std": "0.0"}, "data.normalization.std", "S4-30"),
    (HPC, {"reproducibility__deterministic": "true"}, "reproducibility.benchmark", "S4-9"),
    (HPC, {"monitoring__stall_seconds": "100"}, "monitoring.stall_seconds", "S4-9"),
    (HPC, {"logging__wandb__mode": "online"}, "logging.wandb.mode", "S4-3"),
    (HPC, {"resources__time": "48:00:00"}, "resources.time", "S4-9"),
    (HPC, {"debug__profiler": "yes"}, "debug.profiler", "S4-9"),
    (HPC, {"fault_tolerance__max_restarts": "010"}, "fault_tolerance.max_restarts", "S4-9"),
    (HPC, {"post_training__export": "[executorch, onnx]"}, "post_training.export[0]", "S4-22"),
    (HPC, {"post_training__export": "[onnx, tensorrt]"}, "post_training.export[1]", "S4-22"),
    (EMBEDDED, {"post_training__export": "[tensorrt]"}, "post_training.export", "S4-22"),
    (
        EMBEDDED,
        {"post_training__quantization__calibration_data": "null"},
        "post_training.quantization.calibration_data",
        "S4-5",
    ),
    (
        EMBEDDED,
        {"post_training__quantization__calibration_data": "/mnt/beegfs/datasets/training_windows//device-test"},
        "post_training.quantization.calibration_data",
        "S4-5",
    ),
    (EMBEDDED, {"post_training__max_latency_ms": "null"}, "post_training.max_latency_ms", "S4-6"),
    (EMBEDDED, {"power_management": "null"}, "power_management", "S4-5"),
    (EMBEDDED, {"monitoring__temperature": "false"}, "monitoring.temperature", "S4-5"),
    (EMBEDDED, {"model__attention": "math"}, "model.attention", "S4-5"),
    (HPC, {"training__begins_with": "/models/source"}, "training.begins_with", "S4-17"),
    (
        TRANSFER,
        {"training__begins_with": "/mnt/beegfs/models/training-profiles/hpc/checkpoint_step_4000/"},
        "training.checkpointing.directory",
        "S4-18",
    ),
    (TRANSFER, {"training__begins_with": "null"}, "training.begins_with", "S4-19"),
    (HPC, {"metadata__name": '"hpc\\n--wrap=true"'}, "metadata.name", "S4-12"),
    (HPC, {"metadata__name": '" hpc"'}, "metadata.name", "S4-12"),
    (HPC, {"metadata__name": '"hpc\\x9b31m"'}, "metadata.name", "S4-12"),
    (HPC, {"metadata__name": '"\\u200b"'}, "metadata.name", "S4-12"),
    (HPC, {"metadata__name": '"a\\u202egnp"'}, "metadata.name", "S4-12"),
    (HPC, {"logging__mlflow__tracking_uri": '"https://host\\x07"'}, "logging.mlflow.tracking_uri", "S4-9"),
    (HPC, {"metadata__created": '"2026-99-99"'}, "metadata.created", "S4-9"),
    (HPC, {"resources__time": '"00:00:00"'}, "resources.time", "S4-9"),
    (HPC, {"resources__time": '"0-00:00:00"'}, "resources.time", "S4-9"),
    (HPC, {"resources__time": '"10:99:00"'}, "resources.time", "S4-9"),
    (HPC, {"resources__time": '"\u0664\u0668:00:00"'}, "resources.time", "S4-9"),
    (HPC, {"resources__memory_gb": "0.0001"}, "resources.memory_gb", "S4-9"),
    (HPC, {"data__normalization__mean": ".nan"}, "data.normalization.mean", "S4-30"),
    (HPC, {"data__validation": "//mnt/beegfs/datasets/training_windows/train"}, "data.validation", "S4-24"),
    (HPC, {"training__scheduler__warmup_steps": "4200"}, "training.scheduler.warmup_steps", "S4-9"),
    (
        HPC,
        {"training__early_stopping__enabled": "false", "training__early_stopping__monitor": "accuracy"},
        "training.early_stopping.monitor",
        "S4-23",
    ),
    (
        HPC,
        {"training__early_stopping__enabled": "false", "training__early_stopping__mode": "max"},
        "training.early_stopping.mode",
        "S4-23",
    ),
    (HPC, {"post_training__export": "[onnx, onnx]"}, "post_training.export[1]", "S4-22"),
    (EMBEDDED, {"power_management__power_rails": "[]"}, "power_management.power_rails", "S4-9"),
    (EMBEDDED, {"power_management__power_rails": "[VDD_IN, VDD_SOC, VDD_IN]"}, "power_management.power_rails", "S4-9"),
    (EMBEDDED, {"resources__gpu_type": "a100-80"}, "resources.gpu_type", "S4-16"),
    (EMBEDDED, {"model__window": "512", "model__num_layers": "200"}, "training.batch_size", "S4-28"),
    (
        EMBEDDED,
        {"embedded_optimizations__max_memory_gb": "40"},
        "embedded_optimizations.max_memory_gb",
        "S4-6",
    ),
    (HPC, {"logging__mlflow__tracking_uri": "https://user:pass@host"}, "logging.mlflow.tracking_uri", "S4-9"),
    (HPC, {"logging__mlflow__tracking_uri": "https://token@host"}, "logging.mlflow.tracking_uri", "S4-9"),
    (
        HPC,
        {"logging__mlflow__tracking_uri": "http://host\n    token_file: /etc/keys/mlflow"},
        "logging.mlflow.tracking_uri",
        "S4-12",
    ),
    (TRANSFER, {"transfer_learning__unfreeze_epochs": "[2, 4, 101]"}, "transfer_learning.unfreeze_epochs", "S4-5"),
    (
        TRANSFER,
        {"training__max_steps": "1000", "transfer_learning__unfreeze_epochs": "[2, 4, 60]"},
        "transfer_learning.unfreeze_epochs",
        "S4-5",
    ),
    (
        TRANSFER,
        {"transfer_learning__freeze_layers": "0", "transfer_learning__unfreeze_epochs": "[5]"},
        "transfer_learning.unfreeze_epochs",
        "S4-5",
    ),
    (TRANSFER, {"transfer_learning__freeze_layers": "12"}, "transfer_learning.freeze_layers", "S4-5"),
    (TRANSFER, {"transfer_learning__unfreeze_epochs": "[4, 2]"}, "transfer_learning.unfreeze_epochs", "S4-5"),
    (TRANSFER, {"transfer_learning__unfreeze_epochs": "[2, 400]"}, "transfer_learning.unfreeze_epochs", "S4-5"),
    (TRANSFER, {"transfer_learning__unfreeze_epochs": "[1, 2, 3, 4, 5]"}, "transfer_learning.unfreeze_epochs", "S4-5"),
    (TRANSFER, {"metadata__purpose": "scratch", "training__optimizer__lr": "1e-3"}, "transfer_learning", "S4-5"),
    (HPC, {"metadata__purpose": "transfer", "training__optimizer__lr": "5e-5"}, "transfer_learning", "S4-5"),
    (HPC, {"fault_tolerance": "-"}, "fault_tolerance", "S4-9"),
    (HPC, {"notes": "[a, b]"}, "notes", "S4-12"),
    (HPC, {"metadata__created": "2026-1-1"}, "metadata.created", "S4-9"),
    (HPC, {"logging__mlflow__tracking_uri": "file:///tmp/runs"}, "logging.mlflow.tracking_uri", "S4-9"),
]


@pytest.mark.parametrize(("good", "change", "key", "requirement"), BAD)
def test_a_bad_profile_is_refused_at_its_key(good, change, key, requirement):
    text = changed(good, **change)
    there = [each for each in found(text) if each[0] == "error" and each[1] == key]
    assert requirement in [each[2] for each in there], found(text)
    path = key.partition("[")[0]
    while f"{path.rpartition('.')[2]}:" not in text:
        path = path.rpartition(".")[0]
    expected = line_of(text, path) if (path and not path.startswith("fault_tolerance")) or "max_restarts" in key else 1
    assert there[0][3] == expected


def test_there_are_as_many_as_promised():
    assert len(GOOD) >= 30
    assert len(BAD) >= 40


WARNED = [
    (HPC, {"training__optimizer__lr": "2.0e-3"}, "training.optimizer.lr"),
    (HPC, {"training__max_steps": "100000"}, "training.max_steps"),
    (HPC, {"training__scheduler__t_max": "100000"}, "training.scheduler.t_max"),
    (HPC, {"training__evaluation__every_steps": "1000"}, "training.early_stopping.patience"),
    (HPC, {"data__num_workers": "16"}, "data.num_workers"),
    (HPC, {"post_training__export": "[onnx, torchscript]"}, "post_training.export[1]"),
    (HPC, {"debug__profiler": "true"}, "debug.profiler"),
    (HPC, {"debug__detect_anomaly": "true"}, "debug.detect_anomaly"),
    (HPC, {"debug__limit_batches": "100"}, "debug.limit_batches"),
    (HPC, {"monitoring__gpu": "false", "monitoring__power": "false"}, "monitoring.temperature"),
    (EMBEDDED, {"model__hidden_size": "64"}, "post_training.quantization.enabled"),
    (EMBEDDED, {"embedded_optimizations__max_memory_gb": "32"}, "embedded_optimizations.max_memory_gb"),
    (HPC, {"model__window": "1024", "resources__gpu_memory_gb": "32"}, "training.batch_size"),
]


@pytest.mark.parametrize(("good", "change", "key"), WARNED)
def test_what_is_doubtful_is_a_warning(good, change, key):
    text = changed(good, **change)
    assert (keys(text), keys(text, "warning")) == ([], [key])


@pytest.mark.parametrize(
    ("key", "least", "less"),
    [
        ("training__optimizer__eps", "1.0e-20", "1.0e-300"),
        ("training__gradient_clipping__max_norm", "1.0e-6", "1.0e-300"),
        ("training__mixed_precision__loss_scale", "1", "1.0e-300"),
        ("data__normalization__std", "1.0e-30", "1.0e-300"),
        ("data__normalization__std", f"[{', '.join(['1.0e-30'] * 32)}]", f"[{', '.join(['1.0e-300'] * 32)}]"),
        ("monitoring__health_check_seconds", "0.01", "1.0e-300"),
        ("monitoring__stall_seconds", "1", "1.0e-300"),
    ],
)
def test_what_is_zero_in_32_bits_or_no_time_at_all_is_refused(key, least, less):
    often = changed(HPC, monitoring__health_check_seconds="0.01")
    place = key.replace("__", ".")
    assert {each.partition("[")[0] for each in keys(changed(often, **{key: less}))} == {place}
    assert keys(changed(often, **{key: least})) == []


def test_a_key_that_is_misspelt_is_one_error_and_the_right_one_is_named():
    text = HPC.replace("gradient_accumulation_steps", "gradient_acumulation_steps")
    checked = judged(document.parse(text))
    (wrong,) = errors(checked.findings)
    assert dotted(wrong.place) == "training.gradient_acumulation_steps"
    assert "gradient_accumulation_steps" in wrong.text
    assert wrong.line == line_of(text, "training.gradient_acumulation_steps")


@pytest.mark.parametrize("key", ["mean", "std"])
def test_an_element_that_is_wrong_is_one_error_on_its_line(key):
    elements = ["1.5"] * 32
    elements[20] = "oops"
    text = changed(HPC, **{f"data__normalization__{key}": "".join(f"\n      - {each}" for each in elements)})
    (wrong,) = errors(judged(document.parse(text)).findings)
    line = line_of(text, f"data.normalization.{key}") + 21
    assert str(wrong) == f"{line}: error: data.normalization.{key}[20]: 'oops'; expected a number [S4-30]"


def test_elements_that_are_wrong_are_an_error_each():
    text = changed(HPC, data__normalization__std="[1, x, 0, 1]")
    assert keys(text) == ["data.normalization.std[1]", "data.normalization.std[2]"]


def test_bounds_are_whole_where_they_are():
    (wrong,) = errors(judged(document.parse(changed(HPC, reproducibility__seed="4294967296"))).findings)
    assert "expected less than 4294967296" in wrong.text


def test_an_unknown_key_and_a_missing_one_that_have_nothing_in_common_are_two():
    assert keys(HPC.replace("  seed: 42", "  colour: 42")) == ["reproducibility.seed", "reproducibility.colour"]


@pytest.mark.parametrize("digits", ["12345678901234567890", "9" * 100])
def test_a_number_of_many_digits_is_told_the_bound(digits):
    (wrong,) = errors(judged(document.parse(changed(HPC, reproducibility__seed=digits))).findings)
    assert wrong.text.endswith("; expected less than 4294967296")


def test_every_finding_has_a_requirement_and_what_is_missing_is_described():
    texts = (
        changed(HPC, fault_tolerance="-", model__dropout="-", debug__profiler="yes", notes="&a x"),
        changed(HPC, metadata__created='"2026-99-99"', resources__time='"00:00:00"'),
        HPC + "notes: twice\n",
    )
    lines = [str(each) for text in texts for each in judged(document.parse(text)).findings]
    assert [line for line in lines if not re.search(r" \[S4-\d+\]$", line)] == []
    assert "1: error: fault_tolerance: missing: expected a section: What happens when a rank dies. [S4-9]" in lines


def test_cross_checks_that_did_not_run_are_named():
    text = changed(HPC, model__num_heads='"7"')
    assert ("warning", "", "S4-9", 1) in found(text)


def test_a_file_with_a_key_lets_wandb_be_online():
    text = changed(HPC, logging__wandb__mode="online\n    key_file: /etc/hpc/wandb")
    assert judged(document.parse(text)).good


def test_a_line_has_the_key_and_the_requirement_if_there_are_any():
    assert str(Finding(("a", "b", 0), "odd", requirement="S4-9", line=7)) == "7: error: a.b[0]: odd [S4-9]"
    assert str(Finding((), "doubtful", WARNING)) == "0: warning: doubtful [S4-9]"


def test_all_errors_come_at_once():
    text = changed(HPC, model__num_heads="7", training__optimizer__lr="0.01", distributed__world_size="2")
    assert keys(text) == ["model.num_heads", "training.optimizer.lr", "distributed.world_size"]


def test_a_value_that_may_be_a_credential_is_not_shown():
    secret = "hf_abcdefghijklmnopqrstuvwx0123456789"
    text = changed(HPC, model__hidden_size=f'"{secret}"')
    shown = "\n".join(str(each) for each in judged(document.parse(text)).findings)
    assert "looks like a Hugging Face token" in shown
    assert secret not in shown


def test_a_short_training_can_save_at_its_end():
    short = changed(HPC, data__train_samples="15000", training__max_steps="700")
    short = changed(short, training__checkpointing__every_steps="700", training__evaluation__every_steps="50")
    short = changed(
        short,
        training__scheduler__warmup_steps="100",
        training__scheduler__t_max="700",
        monitoring__weight_histogram_every_steps="100",
    )
    assert keys(short) == []


SECRET = "hf_" + "aB3dE5gH7jK9mN1pQ2sT4uV6"


@pytest.mark.parametrize(
    "text",
    [
        HPC.replace("  hidden_size: 512", f"  hidden_size:\n    {SECRET}"),
        HPC.replace("  hidden_size: 512", f"  hidden_size: |\n    {SECRET}"),
        changed(HPC, post_training__export=f"[onnx, {SECRET}]"),
        changed(HPC, training__begins_with=f"/models/{SECRET}"),
        HPC + f"{SECRET}: 1\n",
        HPC + f"{SECRET}: 1\n{SECRET}: 2\n",
        changed(HPC, notes=f"!{SECRET} x"),
        changed(HPC, notes=f'"\\x68{SECRET[1:]}"'),
        changed(HPC, notes=f"x\n  {SECRET}"),
        changed(HPC, logging__wandb__mode=f"online\n    key_file: {'0123456789abcdef' * 2}"),
        changed(HPC, logging__mlflow__tracking_uri="null\n    token_file: s3cret7"),
        changed(HPC, logging__mlflow__tracking_uri="null\n    token_file: !s3cret7"),
        HPC + "credentials:\n  - value: 0123456789_1\n",
        HPC + '"password: s3cret7-s3cret7": 1\n',
        HPC + "mine: {pwd=s3cret7-s3cret7}\n",
        changed(HPC, notes='"password: s3cret7-s3cret7"'),
        changed(HPC, logging__wandb__mode='"password: s3cret7-s3cret7"'),
        changed(HPC, logging__mlflow__tracking_uri="null\n    token_file: 123456789012"),
    ],
)
def test_wherever_a_credential_is_it_is_an_error_and_not_shown(text):
    checked = judged(document.parse(text))
    shown = "\n".join(str(each) for each in checked.findings)
    assert errors(checked.findings)
    for secret in (SECRET, SECRET[:25], "0123456789abcdef", "s3cret7", "123456789012", "0123456789_1", "1234567891"):
        assert secret not in shown


@pytest.mark.parametrize(
    "changes",
    [
        {"notes": SECRET},
        {"logging": {"mlflow": {"tracking_uri": "https://u:passw0rd@h:5000"}}},
        {"model": {"hidden_size": SECRET}},
    ],
)
def test_a_credential_among_the_changes_is_an_error_and_not_shown(tmp_path, changes):
    file = tmp_path / "profile.yaml"
    file.write_text(HPC, encoding="utf-8")
    found = check(file, changes).findings
    assert any("looks like a" in each.text for each in errors(found))
    shown = "\n".join(str(each) for each in found)
    assert SECRET not in shown
    assert "passw0rd" not in shown


@pytest.mark.parametrize("key", ['"\\x1b[31mx"', '"a\\nmine.yaml:1: 0 errors"', '""'])
def test_a_key_that_is_no_name_is_shown_so_that_nobody_is_misled(key):
    (line,) = [str(each) for each in errors(judged(document.parse(HPC + f"{key}: 1\n")).findings)]
    assert line.isprintable()
    assert "unknown key" in line
    assert "error: '" in line


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        (HPC.replace("prefetch_factor:", "prefetch_facter:"), "data.prefetch_facter", "is it prefetch_factor?"),
        (HPC.replace("num_classes:", "num_clases:"), "model.num_clases", "is it num_classes?"),
        (EMBEDDED.replace("power_management:", "powermanagement:"), "powermanagement", "is it power_management?"),
        (
            HPC.replace("  seed: 42", "  seed: 42\n  sed: 1"),
            "reproducibility.sed",
            "expected none: all keys of the section are",
        ),
        (HPC.replace("  num_classes: null\n", "  x: 1\n"), "model.x", "expected none, or one of num_classes"),
        (HPC + "x: 1\n", "x", "expected none, or one of power_management, embedded_optimizations, transfer_learning"),
    ],
)
def test_an_unknown_key_is_told_with_the_one_that_is_meant_or_those_that_are_free(text, key, words):
    (wrong,) = errors(judged(document.parse(text)).findings)
    assert dotted(wrong.place) == key
    assert wrong.text.startswith(f"unknown key; {words}")


def test_a_path_has_no_characters_that_command_a_terminal():
    for character in ("\\0", "\\e[31m", "\\t", "\\x7f", "\\x9b"):
        assert keys(changed(HPC, logging__directory=f'"/mnt/{character}x"')) == ["logging.directory"]
    assert keys(changed(HPC, logging__directory='"/mnt/Mod\u00e8les 2"')) == []


def test_a_finding_is_one_line_that_commands_no_terminal():
    text = changed(
        HPC, post_training__export='[onnx, "x\\n/etc/good.yaml: 0 errors\\e[2J", "x\\n/etc/good.yaml: 0 errors\\e[2J"]'
    )
    shown = [str(each) for each in judged(document.parse(text)).findings]
    assert shown
    assert all(each.isprintable() for each in shown)
    assert str(Finding(("a",), "C:\\x 'y'")) == "0: error: a: C:\\x 'y' [S4-9]"
    assert str(Finding(("a",), "x\n\x1b\u00fc\udcff")) == "0: error: a: x\\n\\x1b\u00fc\\udcff [S4-9]"
