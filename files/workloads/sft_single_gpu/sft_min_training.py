# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Train: model, optimizer, steps, and saving and reloading the model."""

from __future__ import annotations

import gc
import math
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from kit.files import sync_directory, write_json
from kit.metrics import Progress
from safetensors import SafetensorError
from sft_min_data import IGNORED, RESTAGE, Sample, WorkloadError
from sft_min_figures import Batch, Steps, learning_rate
from torch import nn
from torch.nn import functional
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

MAX_GRAD_NORM = 1.0  # the limit of transformers' Trainer, which the document used
LORA = {"r": 8, "lora_alpha": 16, "lora_dropout": 0.05, "target_modules": ["q_proj", "v_proj"]}
ONE_FILE = "1TB"  # larger than any model: a single weights file


class Memory:
    """Memory that the steps need, in bytes: the GPU's, or this process's on a CPU."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.peak: int | None = None
        self.peak_reserved: int | None = None

    def mark(self) -> int:
        """Return the GPU's peak since the last mark; on a CPU, the process's current memory."""
        if self.device.type != "cuda":
            resident = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
            return int(resident) * os.sysconf("SC_PAGE_SIZE")
        peak = torch.cuda.max_memory_allocated(self.device)
        self.peak = max(self.peak or 0, peak)
        self.peak_reserved = max(self.peak_reserved or 0, torch.cuda.max_memory_reserved(self.device))
        torch.cuda.reset_peak_memory_stats(self.device)
        return peak


def load_tokenizer(folder: Path) -> Any:
    """Return the folder's tokenizer; raise WorkloadError if it cannot be read or has no end-of-text token."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        raise WorkloadError(f"model {folder}: its tokenizer cannot be read: {error}; {RESTAGE}") from error
    if tokenizer.eos_token_id is None:
        raise WorkloadError(f"model {folder}: its tokenizer has no end-of-text token, which also pads; {RESTAGE}")
    return tokenizer


def load_model(folder: Path, device: torch.device) -> Any:
    """Return the folder's model on the device: bf16 on a GPU, float32 on a CPU. Raises WorkloadError.

    Missing weights are an error: transformers would initialise them randomly and only warn.
    """
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    try:
        model, told = AutoModelForCausalLM.from_pretrained(
            str(folder),
            dtype=dtype,
            device_map={"": device},  # straight to the GPU: the model need not fit into host memory too
            attn_implementation="sdpa",
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise WorkloadError(f"model {folder} cannot be loaded: {error}; {RESTAGE}") from error
    lacking = sorted(map(str, [*told.get("missing_keys", ()), *told.get("mismatched_keys", ())]))
    if lacking:
        raise WorkloadError(f"model {folder} is missing {len(lacking)} of its weights, such as {lacking[0]}; {RESTAGE}")
    model.config.use_cache = False
    return model


def with_adapter(model: Any) -> Any:
    """Return the model with a new LoRA adapter, the only part that is then trained."""
    import peft  # noqa: PLC0415 - only for --lora: it takes a second

    return peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **LORA))


def check_fit(folder: Path, samples: Sequence[Sample], length: int) -> None:
    """Raise WorkloadError if the samples do not fit this model: a GPU would only report "device-side assert"."""
    config = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    highest = max(max(sample.input_ids) for sample in samples)
    if highest >= config.vocab_size:
        raise WorkloadError(
            f"model {folder}: its tokenizer yields token {highest}, its vocabulary ends at {config.vocab_size - 1}; "
            "stage the tokenizer and weights of the same model"
        )
    longest = getattr(config, "max_position_embeddings", None)
    if longest and length > longest:
        raise WorkloadError(f"--seq_len {length} is more than the {longest} positions of model {folder}")


@torch.inference_mode()
def logit_row(model: Any, sample: Sample, device: torch.device) -> torch.Tensor:
    """Return the model's logits after a sample's text: one for each token of the vocabulary, on the CPU."""
    model.eval()
    ids = torch.tensor([sample.input_ids[: sample.length]], device=device)
    return model(input_ids=ids, use_cache=False).logits[0, -1].float().cpu()


def difference(row: torch.Tensor, other: torch.Tensor) -> float:
    """Return the largest difference of two logit rows, as a fraction of the second's largest logit.

    Raises WorkloadError if one of them is not finite.
    """
    if not (torch.isfinite(row).all() and torch.isfinite(other).all()):
        raise WorkloadError("the model's logits are not finite; check the GPU's health (ECC errors, Xid messages)")
    return ((row - other).abs().max() / other.abs().max().clamp_min(1e-9)).item()


class Training:
    """One training run: the model, its optimizer, and each step's results."""

    def __init__(
        self, model: Any, samples: Sequence[Sample], rows: int, batch: Batch, base_rate: float, device: torch.device
    ) -> None:
        """Take all steps' samples in order, drawn from ``rows`` rows, and the first step's learning rate."""
        self.model, self.samples, self.rows, self.batch = model, samples, rows, batch
        self.base_rate, self.device = base_rate, device
        self.trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        fused = device.type == "cuda"
        self.optimizer = torch.optim.AdamW(self.trained, lr=base_rate, weight_decay=0.0, fused=fused)
        self.memory = Memory(device)
        self.steps = Steps()
        self.seconds = 0.0

    def run(self, progress: Progress) -> None:
        """Train on all samples; raise WorkloadError at the first loss or gradient that is not finite."""
        count = len(self.samples) // self.batch.samples
        self.model.train()
        self.memory.mark()  # memory used by loading belongs to no step
        started = time.perf_counter()
        try:
            for step in range(1, count + 1):
                self._step(step, count)
                self._report(progress, step, count)
        finally:
            self.seconds = time.perf_counter() - started

    def _step(self, step: int, count: int) -> None:
        started = time.perf_counter()
        rate = learning_rate(step, count, self.base_rate)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        chosen = self.samples[(step - 1) * self.batch.samples : step * self.batch.samples]
        learned = sum(sample.length - 1 for sample in chosen)  # nothing precedes the first token
        loss = torch.zeros((), device=self.device)
        for first in range(0, len(chosen), self.batch.size):
            part = self._loss(chosen[first : first + self.batch.size]) / learned
            part.backward()
            loss += part.detach()
        norm = nn.utils.clip_grad_norm_(self.trained, MAX_GRAD_NORM)
        # Checked before use: one step with a gradient that is not finite would ruin every weight.
        self.steps.loss.append(loss.item())
        self.steps.grad_norm.append(norm.item())
        self._check(step, rate)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.steps.seconds.append(time.perf_counter() - started)
        self.steps.learning_rate.append(rate)
        self.steps.epoch.append(step * self.batch.samples / self.rows)
        self.steps.tokens_non_padding.append(sum(sample.length for sample in chosen))
        self.steps.memory_bytes.append(self.memory.mark())

    def _loss(self, chosen: Sequence[Sample]) -> torch.Tensor:
        """Return the summed loss of a micro-batch. No mask is needed: causal attention ignores padding at the end."""
        ids = torch.tensor([sample.input_ids for sample in chosen], device=self.device)
        labels = torch.tensor([sample.labels for sample in chosen], device=self.device)
        logits = self.model(input_ids=ids, use_cache=False).logits
        return functional.cross_entropy(
            logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten(), ignore_index=IGNORED, reduction="sum"
        )

    def _check(self, step: int, rate: float) -> None:
        for what, value in (("loss", self.steps.loss[-1]), ("gradient's norm", self.steps.grad_norm[-1])):
            if not math.isfinite(value):
                raise WorkloadError(
                    f"the {what} became {value} in step {step}: the training is broken. Check the learning rate "
                    f"({rate:g}) and the GPU's health (ECC errors, Xid messages in the kernel log)"
                )

    def _report(self, progress: Progress, step: int, count: int) -> None:
        steps = self.steps
        progress.row(
            step=step,
            steps=count,
            loss=steps.loss[-1],
            grad_norm=steps.grad_norm[-1],
            learning_rate=steps.learning_rate[-1],
            epoch=steps.epoch[-1],
            step_seconds=steps.seconds[-1],
            tokens=self.batch.tokens,
            tokens_non_padding=steps.tokens_non_padding[-1],
            memory_bytes=steps.memory_bytes[-1],
        )
        print(
            f"step {step}/{count}: loss {steps.loss[-1]:.4f}, gradient norm {steps.grad_norm[-1]:.4g}, "
            f"learning rate {steps.learning_rate[-1]:.3g}, {steps.seconds[-1]:.3f} s",
            flush=True,
        )

    def release(self) -> None:
        """Release model and optimizer: reloading the saved model needs their memory."""
        del self.model, self.optimizer, self.trained
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def save(model: Any, tokenizer: Any, folder: Path) -> dict[str, int]:
    """Write model (or adapter) and tokenizer atomically as a folder; return the size of the weights in bytes.

    Its files.json, with every file's size, is written last.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    for old in (partial, folder):
        if old.exists():
            shutil.rmtree(old)
    model.save_pretrained(str(partial), max_shard_size=ONE_FILE)
    tokenizer.save_pretrained(str(partial))
    sizes = {}
    for path in sorted(partial.iterdir()):
        path.chmod(0o644)  # safetensors makes its files readable only by their owner
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
        sizes[path.name] = path.stat().st_size
    write_json(partial / "files.json", sizes)
    partial.rename(folder)
    sync_directory(folder.parent)
    return {name: size for name, size in sizes.items() if name.endswith(".safetensors")}


def load_again(folder: Path, base: Path, lora: bool, device: torch.device) -> Any:
    """Return the saved model; with ``lora``, its adapter on the base model."""
    if not lora:
        return load_model(folder, device)
    import peft  # noqa: PLC0415 - only for --lora

    return peft.PeftModel.from_pretrained(load_model(base, device), str(folder))


def quiet() -> None:
    """Keep the log readable: no progress bars in a file, and no spurious warnings."""
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
