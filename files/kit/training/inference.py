# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Use a trained model: load it, generate with it, and compare its loss on unseen rows with the untrained model's.

    python -m kit.training.inference --untrained FOLDER --trained FOLDER --held-out FILE --report FOLDER \\
        --accelerator cuda

Writes inference.json even if something does not load: it reports failures by part.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from kit import strict_json
from kit.files import write_json

REPORT = "inference.json"
ROWS = 64  # held-out rows
BATCH = 8
MAX_LENGTH = 512  # tokens
NEW_TOKENS = 24
SHOWN = 200  # characters of the generated text


def load(folder: Path, device: torch.device) -> Any:
    """Load a model from a folder on the share, safetensors only, and put it on the device.

    Raise ValueError if weights are missing: transformers only warns, and initialises them.
    """
    model, told = AutoModelForCausalLM.from_pretrained(
        folder, local_files_only=True, use_safetensors=True, dtype=torch.float32, output_loading_info=True
    )
    lacking = sorted(map(str, [*told["missing_keys"], *told["mismatched_keys"]]))
    if lacking:
        raise ValueError(f"{folder} is missing {len(lacking)} of its weights, such as {lacking[0]}")
    return model.to(device).eval()


def read_rows(path: Path) -> list[list[dict[str, str]]]:
    """Return the conversations of the first held-out rows."""
    with path.open(encoding="utf-8") as lines:
        return [strict_json.parse(line)["messages"] for line, _number in zip(lines, range(ROWS))]


@torch.inference_mode()
def mean_loss(model: Any, tokenizer: Any, rows: list[list[dict[str, str]]]) -> float:
    """Return the mean loss per token over all rows, without padding."""
    total, tokens = 0.0, 0
    texts = [tokenizer.apply_chat_template(row, tokenize=False) for row in rows]
    for start in range(0, len(texts), BATCH):
        batch = tokenizer(
            texts[start : start + BATCH], return_tensors="pt", padding=True, truncation=True, max_length=MAX_LENGTH
        ).to(model.device)
        logits = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
        labels = batch.input_ids.masked_fill(batch.attention_mask == 0, -100)[:, 1:]
        losses = torch.nn.functional.cross_entropy(
            logits[:, :-1].reshape(-1, logits.shape[-1]).float(), labels.reshape(-1), reduction="sum"
        )
        total += losses.item()
        tokens += int((labels != -100).sum())
    return total / tokens


@torch.inference_mode()
def generate(model: Any, tokenizer: Any, prompt: list[dict[str, str]]) -> dict[str, Any]:
    """Generate an answer greedily; report whether its logits are finite."""
    inputs = tokenizer.apply_chat_template(
        prompt,
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
        truncation=True,
        max_length=MAX_LENGTH,
    ).to(model.device)
    answer = model.generate(
        **inputs,
        max_new_tokens=NEW_TOKENS,
        min_new_tokens=NEW_TOKENS,
        do_sample=False,
        output_logits=True,
        return_dict_in_generate=True,
        pad_token_id=tokenizer.pad_token_id,
    )
    logits = torch.stack(answer.logits)
    written = answer.sequences[0, inputs["input_ids"].shape[1] :]
    return {
        "new_tokens": len(written),
        "logits_shape": list(logits.shape),
        "logits_finite": bool(torch.isfinite(logits).all()),
        "vocabulary": model.config.vocab_size,
        "text": tokenizer.decode(written, skip_special_tokens=True)[:SHOWN],
    }


def checkpoints(trained: Path) -> list[dict[str, Any]]:
    """Load every checkpoint completely; report for each whether all its weights are finite."""
    found = []
    for folder in sorted(trained.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2])):
        entry: dict[str, Any] = {"name": folder.name, "loads": False, "finite": False, "error": None}
        try:
            model = load(folder, torch.device("cpu"))
            entry["loads"] = True
            entry["finite"] = all(bool(torch.isfinite(weights).all()) for weights in model.parameters())
            entry["step"] = strict_json.read(folder / "trainer_state.json")["global_step"]
        except Exception as problem:  # the report says why this checkpoint cannot be used
            entry["error"] = f"{type(problem).__name__}: {problem}"[:500]
        found.append(entry)
    return found


def examine(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run all parts; return the report."""
    started = time.monotonic()
    device = torch.device("cuda" if arguments.accelerator == "cuda" else "cpu")
    report: dict[str, Any] = {"loads": False, "error": None, "checkpoints": checkpoints(arguments.trained)}
    try:
        tokenizer = AutoTokenizer.from_pretrained(arguments.trained, local_files_only=True)
        trained = load(arguments.trained, device)
        report["loads"] = True
        rows = read_rows(arguments.held_out)
        report["generated"] = generate(trained, tokenizer, rows[0][:1])
        report["held_out_rows"] = len(rows)
        report["held_out_loss"] = mean_loss(trained, tokenizer, rows)
        del trained
        report["untrained_held_out_loss"] = mean_loss(load(arguments.untrained, device), tokenizer, rows)
        report["perplexity"] = math.exp(min(report["held_out_loss"], 700.0))
    except Exception as problem:  # a failure here is the finding
        report["error"] = f"{type(problem).__name__}: {problem}"[:1000]
        print(f"inference with the trained model failed: {report['error']}", file=sys.stderr)
    report["seconds"] = time.monotonic() - started
    return report


def main() -> int:
    """Run the command line; return 0 if the model could be used."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("untrained", "trained", "held-out", "report"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--accelerator", choices=("cuda", "simulated", "cpu"), required=True)
    arguments = parser.parse_args()
    report = examine(arguments)
    write_json(arguments.report / REPORT, report)
    return 0 if report["error"] is None else 1


if __name__ == "__main__":
    sys.exit(main())
