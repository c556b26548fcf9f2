# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The legs of a job that makes a model for a device.

`source` trains what the profile's training begins with, where that is not there. `made` makes the trained model
smaller, exports it, makes whole numbers of it, compares each with the one before, and packs what a device gets.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import exporting
import latency
import numpy as np
import quantising
import sessions
import torch
from acceptance import CHECKPOINTS, SOURCE, Leg, changed, weights
from bundle import ANSWERS, INPUTS, NAME, TRUTH, pack, require_enough
from encoder import Encoder
from kit import strict_json
from kit.errors import KitError
from kit.files import METRICS_FILE
from kit.pretraining import checkpoints
from kit.profiles import arithmetic
from kit.profiles.model import CLASSIFICATION, FINE_TUNE, SCRATCH, Profile
from kit.training.distributed import checksum
from pruning import prune
from training import Trainer
from windows import Windows

MADE = "made"
SOURCE_STEPS = 400
EXTRA_STEPS, EXTRA_RATE = 150, 3e-4  # of what is pruned, and of what it is compared with
INFERENCES = 500  # of each form, for its time
HANDED_OVER = "/handed/over"  # where a model begins that a training is given itself: nothing is read there
FLOAT, PRUNED, INT8 = "float", "pruned", "int8"


def source(leg: Leg) -> dict[str, Any]:
    """Train a model from scratch for the profile to begin with, unless its own beginning is there."""
    given = leg.profile.training.begins_with
    if given and (Path(given) / checkpoints.MANIFEST).is_file():
        made = Encoder(leg.profile.model)
        made.load_state_dict(weights(Path(given)))
        return {"from": "the profile", "weights_sha256": checksum(made)}
    stem = Path(leg.profile.data.train).with_name("train")
    samples = len(Windows(stem, leg.profile))
    profile = short(
        leg.profile,
        SCRATCH,
        min(SOURCE_STEPS, arithmetic.steps(leg.profile)),
        1e-3,
        {"train": str(stem), "validation": str(stem.with_name("validation")), "train_samples": samples},
    )
    trainer = Trainer(
        leg.joined,
        profile,
        Windows(stem, profile),
        leg.data(profile.data.validation, profile),
        leg.output,
        saver=leg.saver(leg.job / SOURCE / CHECKPOINTS),
        stall=leg.stall,
    )
    leg.joined.state.phase("training")
    done = trainer.run()
    leg.stall.rest()
    found = {"from": "this job", "steps": done.last, "weights_sha256": checksum(trainer.module)}
    return {**found, **trainer.evaluate()}


def short(profile: Profile, purpose: str, steps: int, rate: float, data: dict[str, Any]) -> Profile:
    """Return the profile for a training of some steps by itself; it is checked as any other."""
    samples = data.get("train_samples", profile.data.train_samples)
    per_step = profile.training.batch_size * profile.training.gradient_accumulation_steps
    return changed(
        profile,
        metadata={"purpose": purpose, "target": "local"},
        training={
            "begins_with": None if purpose == SCRATCH else profile.training.begins_with or HANDED_OVER,
            "epochs": math.ceil(steps / max(1, samples // per_step)),
            "max_steps": steps,
            "log_every_steps": min(10, steps),
            "optimizer": {"lr": rate},
            "scheduler": {"name": "cosine", "warmup_steps": max(1, steps // 10), "t_max": steps},
            "evaluation": {"every_steps": steps},
            "early_stopping": {"enabled": False},
            "checkpointing": {"every_steps": steps},
        },
        data=data,
        monitoring={"gradient_norm_every_steps": steps, "weight_histogram_every_steps": steps},
        validation={"every_epochs": None},
        transfer_learning=None,
    )


def made(leg: Leg) -> dict[str, Any]:
    """Make the model smaller, export it, make whole numbers of it; return the job's metrics. Raise KitError."""
    joined, profile, after = leg.joined, leg.profile, leg.profile.post_training
    whole = strict_json.read(leg.job / METRICS_FILE)
    best = leg.saver(leg.kept).best()
    windows, truth = samples_of(leg.data(profile.data.test))
    require_enough(len(windows), profile.data.test)
    require_calibration(leg)
    found: dict[str, Any] = {key: value for key, value in whole.items() if key not in ("job_id", "attempt")}
    found["source"] = source_of(leg)
    found["learnt"] = found["source"]["test"]["mae"] - whole["test"]["mae"]
    models = {FLOAT: trained(profile, best)}
    joined.state.phase("pruning")
    if after.pruning.enabled:
        small = trained(profile, best).to(joined.device)
        became = prune(small, after.pruning.amount, torch.from_numpy(windows[:1]).to(joined.device))
        control, after_tuning = tuned(leg, models[FLOAT], "control"), tuned(leg, small, PRUNED)
        models[PRUNED] = small
        found["pruning"] = {
            **became,
            "extra_steps": EXTRA_STEPS,
            "control": control,
            "tuned": after_tuning,
            "worse": after_tuning["mae"] - control["mae"],
        }
    leg.stall.rest()
    joined.state.phase("exporting")
    files = {name: leg.output / f"{name}.onnx" for name in models}
    forms = {name: exporting.export(model, files[name], *windows.shape[1:]) for name, model in models.items()}
    answers = {name: sessions.answers(path, windows) for name, path in files.items()}
    found["export"] = {
        "furthest": max(
            exporting.furthest(answers[name], exporting.torch_answers(model, windows)) for name, model in models.items()
        )
    }
    last = next(reversed(files))
    if after.quantization.enabled:
        joined.state.phase("quantising")
        files[INT8] = leg.output / f"{INT8}.onnx"
        found |= quantised(leg, files[last], files[INT8])
        forms[INT8] = exporting.describe(files[INT8])
        answers[INT8] = sessions.answers(files[INT8], windows)
        allowed = error_of(profile, answers[last], truth) * (1 + after.quantization.max_metric_loss)
        found["quantization"] |= {**quantising.compared(answers[last], answers[INT8]), "error_allowed": allowed}
        last = INT8
    joined.state.phase("measuring")
    times = latency.interleaved(files, windows, INFERENCES)
    found["models"] = {
        name: {
            **forms[name],
            "file": path.name,
            "sha256": checkpoints.describe(path)["sha256"],
            "error": error_of(profile, answers[name], truth),
            "p50_ms": times[name]["p50"],
            "p99_ms": times[name]["p99"],
        }
        for name, path in files.items()
    }
    found["deployed"] = last
    with (leg.output / INPUTS).open("wb") as stream:
        np.save(stream, windows, allow_pickle=False)
    with (leg.output / TRUTH).open("wb") as stream:
        np.save(stream, answers[last], allow_pickle=False)
    found["bundle"] = pack(leg.job / NAME, leg.output, last, list(files), profile)
    return found


def require_calibration(leg: Leg) -> None:
    """Raise KitError if the calibration data has fewer windows than the profile calibrates with."""
    chosen = leg.profile.post_training.quantization
    if not chosen.enabled or chosen.calibration_data is None:
        return
    there = len(leg.data(chosen.calibration_data))
    if there < chosen.calibration_samples:
        raise KitError(
            f"post_training.quantization.calibration_data, {chosen.calibration_data}, has {there} windows; expected "
            f"{chosen.calibration_samples} at least, as calibration_samples says"
        )


def source_of(leg: Leg) -> dict[str, Any]:
    """Return what the leg `source` said, and how good its model is on the data that the profile's is tested on."""
    said = strict_json.read(leg.job / SOURCE / METRICS_FILE)
    trainer = leg.trainer()
    return {"from": said["from"], "weights_sha256": said["weights_sha256"], "test": tested(leg, trainer)}


def tested(leg: Leg, trainer: Trainer) -> dict[str, float]:
    """Return the metrics on the test data."""
    found = trainer.evaluate(leg.data(leg.profile.data.test))
    leg.stall.rest()
    return found


def trained(profile: Profile, best: Path) -> Encoder:
    """Return the model of the best checkpoint."""
    model = Encoder(profile.model)
    model.load_state_dict(weights(best))
    return model


def tuned(leg: Leg, model: Encoder, name: str) -> dict[str, float]:
    """Train a model some steps more; return its metrics on the test data."""
    profile = short(leg.profile, FINE_TUNE, EXTRA_STEPS, EXTRA_RATE, {})
    trainer = Trainer(
        leg.joined,
        profile,
        leg.data(profile.data.train, profile),
        leg.data(profile.data.validation, profile),
        leg.output / name,
        stall=leg.stall,
        module=model,
    )
    trainer.run()
    return tested(leg, trainer)


def quantised(leg: Leg, path: Path, target: Path) -> dict[str, Any]:
    """Write the model in whole numbers; return how, and how far its calibration data is from the training data."""
    chosen = leg.profile.post_training.quantization
    if chosen.calibration_data is None:
        return {"quantization": quantising.quantize(path, target, chosen.method, None)}
    calibration, _truth = samples_of(leg.data(chosen.calibration_data), chosen.calibration_samples)
    training, _truth = samples_of(leg.data(leg.profile.data.train), chosen.calibration_samples)
    return {
        "quantization": quantising.quantize(path, target, chosen.method, calibration),
        "calibration": {"samples": len(calibration), **quantising.drift(calibration, training)},
    }


def samples_of(windows: Windows, count: int = ANSWERS) -> tuple[np.ndarray, np.ndarray]:
    """Return the first samples, as the model gets them, with their answers."""
    inputs, truth = windows[range(min(count, len(windows)))]
    return inputs.numpy(), truth.numpy()


def error_of(profile: Profile, answers: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean absolute error, or of classes the share that is wrong."""
    if profile.model.task == CLASSIFICATION:
        return float((answers.argmax(axis=1) != truth).mean())
    return float(np.abs(answers.astype(np.float64) - truth).mean())
