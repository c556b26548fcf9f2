# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run from the staged folders to the published results."""

from __future__ import annotations

import importlib
import os
import platform
import resource
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from kit.evidence.publishing import PUBLISHED_FILE, publish
from kit.files import METRICS_FILE
from kit.job import node_name
from kit.metrics import Progress, write_metrics
from kit.staged import read_staged
from kit.training import device as training_device
from kit.training.flops import Shape, peak_flops, shape_of
from sft_min_arguments import Settings
from sft_min_data import Sample, WorkloadError, describe_model, draw, read_rows, sample_of, text_of
from sft_min_figures import document_figures, figures
from sft_min_training import (
    Training,
    check_fit,
    difference,
    load_again,
    load_model,
    load_tokenizer,
    logit_row,
    quiet,
    save,
    with_adapter,
)

ARGUMENTS_FILE = "run_args.json"
PROGRESS_FILE = "progress.jsonl"
MODEL_FOLDER = "model"
LIBRARIES = ("torch", "transformers", "accelerate", "datasets", "peft", "safetensors", "tokenizers")


def import_libraries() -> dict[str, str]:
    """Return the versions of the required libraries, imported here on the compute node."""
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = str(importlib.import_module(name).__version__)
        except (ImportError, OSError, AttributeError) as error:
            raise WorkloadError(
                f"{name} cannot be imported on {node_name()}: {error}; remove the environment from the share's venvs "
                "(or rebuild the image), and compare this node's system with the login node's"
            ) from error
    return versions


def arguments_of(settings: Settings) -> dict[str, Any]:
    """Return the command-line arguments under the document's names."""
    return {
        "run_name": settings.run_name,
        "model": str(settings.model),
        "dataset": str(settings.dataset),
        "max_steps": settings.max_steps,
        "seq_len": settings.batch.length,
        "bsz": settings.batch.size,
        "grad_accum": settings.batch.accumulation,
        "seed": settings.seed,
        "subset_size": settings.subset_size,
        "lora": settings.lora,
        "learning_rate": settings.learning_rate,
        "output_dir": str(settings.output_dir),
    }


def paths_of(settings: Settings) -> dict[str, str | None]:
    """Return the folders that the run used."""
    return {
        "share": os.environ.get("HPC_VALIDATION_SHARE"),
        "hf_home": os.environ.get("HF_HOME"),
        "runs_root": str(settings.results.parent) if settings.results else None,
        "results": str(settings.results) if settings.results else None,
        "output": str(settings.output_dir),
        "script": str(Path(__file__).resolve().with_name("train_sft_min.py")),
        "environment": sys.prefix,
    }


class Run:
    """One run, and what is known about it so far."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.facts: dict[str, Any] = {"arguments": arguments_of(settings), "paths": paths_of(settings)}
        self.times: dict[str, float | None] = dict.fromkeys(("startup_seconds", "save_seconds", "reload_seconds"))
        self.training: Training
        self.shape: Shape

    def carry_out(self) -> dict[str, Any]:
        """Do everything but publish; return the written metrics. On an error, write them incomplete and re-raise."""
        settings = self.settings
        device = training_device.choose(settings.accelerator)
        if device.type == "cuda":
            torch.set_float32_matmul_precision("high")  # TF32 for what is not bf16
        quiet()
        self.facts["libraries"] = import_libraries()
        samples, tokenizer, rows = self._prepare()
        write_metrics(settings.output_dir / ARGUMENTS_FILE, self.facts["arguments"])
        with training_device.occupied(settings.accelerator):
            transformers.set_seed(settings.seed)
            model = load_model(settings.model, device)
            self.facts["architecture"] = type(model).__name__
            if settings.lora:
                model = with_adapter(model)
            self.shape = shape_of(model, settings.batch.length)
            before = logit_row(model, samples[0], device)
            self.training = Training(model, samples, rows, settings.batch, settings.learning_rate, device)
            del model
            self.times["startup_seconds"] = time.monotonic() - settings.started
            print(f"training {self.shape.trainable} of {self.shape.parameters} parameters on {device}", flush=True)
            try:
                with Progress(settings.output_dir / PROGRESS_FILE) as progress:
                    self.training.run(progress)
                self._save_and_load(samples[0], tokenizer, before, device)
            except (WorkloadError, torch.OutOfMemoryError):
                self._write(device, completed=False)
                raise
            return self._write(device, completed=True)

    def _prepare(self) -> tuple[list[Sample], Any, int]:
        """Return the samples of all steps, the tokenizer, and the number of rows they were drawn from."""
        settings = self.settings
        model, data = describe_model(settings.model), read_staged(settings.dataset)
        tokenizer = load_tokenizer(settings.model)
        rows = read_rows(settings.dataset, settings.subset_size)
        drawn = draw(len(rows), settings.max_steps * settings.batch.samples, settings.seed)
        ids = [tokenizer(text_of(rows[number]))["input_ids"] for number in drawn]
        samples = [sample_of(item, tokenizer.eos_token_id, settings.batch.length) for item in ids]
        check_fit(settings.model, samples, settings.batch.length)
        for kind, folder, told in (("model", settings.model, model), ("dataset", settings.dataset, data)):
            self.facts[kind] = told.get("name") or folder.name
            print(f"{kind} {self.facts[kind]}: {told.get('description')}", flush=True)
        self.facts.update(model_source=model, data={**data, "rows_used": len(rows)})
        return samples, tokenizer, len(rows)

    def _save_and_load(self, probe: Sample, tokenizer: Any, before: torch.Tensor, device: torch.device) -> None:
        """Save and reload the model, and compare the output of the three models: as loaded, as trained, as saved."""
        folder = self.settings.output_dir / MODEL_FOLDER
        trained = logit_row(self.training.model, probe, device)
        self.facts["model_change"] = difference(before, trained)
        started = time.perf_counter()
        self.facts["model_files"] = save(self.training.model, tokenizer, folder)
        self.facts["model_bytes"] = sum(self.facts["model_files"].values())
        self.times["save_seconds"] = time.perf_counter() - started
        self.training.release()
        started = time.perf_counter()
        again = load_again(folder, self.settings.model, self.settings.lora, device)
        self.facts["model_reload_difference"] = difference(logit_row(again, probe, device), trained)
        self.times["reload_seconds"] = time.perf_counter() - started

    def _write(self, device: torch.device, *, completed: bool) -> dict[str, Any]:
        """Write the metrics document and return it."""
        training, settings = self.training, self.settings
        steps, hardware = training.steps, training_device.describe(device, settings.accelerator)
        peak = peak_flops(hardware["gpu_name"]) if device.type == "cuda" else None
        training.memory.mark()
        metrics = {
            "completed": completed,
            **document_figures(steps, settings.batch, training.seconds + (self.times["save_seconds"] or 0.0)),
            **hardware,
            "gpu": hardware["gpu_name"],  # these two under the document's names
            "torch": hardware["torch_version"],
            "node": node_name(),
            **self.facts,
            "loss": steps.loss,
            "grad_norm": steps.grad_norm,
            "learning_rate": steps.learning_rate,
            "epoch": steps.epoch,
            "step_seconds": steps.seconds,
            "step_tokens_non_padding": steps.tokens_non_padding,
            "step_memory_bytes": steps.memory_bytes,
            "train_seconds": training.seconds,
            **self.times,
            "wall_time_seconds": time.monotonic() - settings.started,
            **figures(steps, settings.batch, self.shape, training.seconds, peak),
            "gpu_memory_peak_bytes": training.memory.peak,
            "gpu_memory_reserved_peak_bytes": training.memory.peak_reserved,
            "host_memory_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
        write_metrics(settings.output_dir / METRICS_FILE, metrics)
        return metrics


def run(settings: Settings) -> dict[str, Any]:
    """Run the whole workload; return the written metrics. Raises WorkloadError, KitError and OSError."""
    settings.output_dir.mkdir(parents=True, exist_ok=True)
    # A folder may be reused by hand; an old result must not pass for a new one.
    for name in (ARGUMENTS_FILE, METRICS_FILE, PROGRESS_FILE, PUBLISHED_FILE):
        (settings.output_dir / name).unlink(missing_ok=True)
    shutil.rmtree(settings.output_dir / MODEL_FOLDER, ignore_errors=True)
    try:
        metrics = Run(settings).carry_out()
    except torch.OutOfMemoryError as error:
        # The error's own text stays: log patterns match it.
        raise WorkloadError(
            f"{error} Lower --bsz or --seq_len, train an adapter (--lora), or use a larger GPU"
        ) from error
    if settings.results:
        publish(settings.output_dir, settings.results, (ARGUMENTS_FILE, METRICS_FILE))
    return metrics
