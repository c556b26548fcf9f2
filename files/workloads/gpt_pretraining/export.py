# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Export a checkpoint for Transformers, and use it as its users will: without DeepSpeed, in a process of its own."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from engine import shape_of
from gpt import GPT
from kit.files import write_json
from kit.pretraining import checkpoints
from safetensors.torch import save_file
from settings import Settings
from utils.data_loader import Batch

FOLDER = "hf_model"
MODEL = "model.safetensors"
GENERATED = 64  # tokens
PROMPT = 16  # tokens of the first held-out sample


def export(flat: Mapping[str, torch.Tensor], settings: Settings, folder: Path) -> Path:
    """Write the weights in 32 bits, and Transformers' configuration; return the file. Tied weights are there once."""
    with torch.device("meta"):
        expected = {name: parameter.shape for name, parameter in GPT(shape_of(settings)).named_parameters()}
    weights = {
        f"transformer.{name}": flat[name][: math.prod(shape)].view(shape).contiguous()
        for name, shape in expected.items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / MODEL, metadata={"format": "pt"})
    checkpoints.describe(folder / MODEL)
    model = {name.removeprefix("model."): settings[name] for name in settings.values if name.startswith("model.")}
    dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    write_json(
        folder / "config.json",
        {
            "architectures": ["GPT2LMHeadModel"],
            "model_type": model.pop("architecture"),
            **model,
            **dropout,
            "activation_function": "gelu_new",
            "torch_dtype": "float32",
        },
    )
    return folder / MODEL


def use(folder: Path, held_out: list[list[Batch]]) -> dict[str, Any]:
    """Load the export with Transformers; return its held-out loss, and what it generates.

    ``held_out`` are the micro batches of each rank, so that the mean is taken as the ranks took it.
    """
    sys.modules["deepspeed"] = None  # type: ignore[assignment] # whoever imports it fails
    from transformers import GPT2LMHeadModel  # noqa: PLC0415 - it looks for DeepSpeed when it is imported

    model = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32).eval()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)
    with torch.no_grad():
        of_ranks = []
        for batches in held_out:
            losses = []
            for tokens, targets in batches:
                logits = model(tokens.to(device)).logits.float()
                losses.append(
                    torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.to(device).reshape(-1))
                )
            of_ranks.append(torch.stack(losses).mean().item())
        prompt = held_out[0][0][0][:1, :PROMPT].to(device)
        said = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=GENERATED,
            min_new_tokens=GENERATED,
            do_sample=False,
            pad_token_id=model.config.eos_token_id,
            output_logits=True,
            return_dict_in_generate=True,
        )
    is_finite = all(bool(torch.isfinite(logits).all()) for logits in said.logits)
    new = said.sequences[0, prompt.shape[1] :].tolist()
    return {
        "held_out_loss": sum(of_ranks) / len(of_ranks),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "generated": len(new),
        "valid_tokens": sum(0 <= token < model.config.vocab_size for token in new) if is_finite else 0,
    }
