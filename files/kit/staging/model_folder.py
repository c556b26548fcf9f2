# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check a model's folder before anything loads it: complete, safetensors, and without code of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kit.errors import KitError
from kit.staging.content import read_json, refuse_lookalike
from kit.staging.safetensors_file import read_header

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
SHARD = "model-*-of-*.safetensors"
TOKENIZERS = ("tokenizer.json", "tokenizer.model")
OTHERS = (
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
)
PATTERNS = (CONFIG, WEIGHTS, INDEX, SHARD, *TOKENIZERS, *OTHERS)  # the files fetched for a model
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
MAX_JSON = 64 << 20  # bytes; tokenizer.json for a vocabulary of 256,000 has about 30 MB
MAX_CONFIG = 1 << 20  # bytes


def check_model(folder: Path, model_types: Sequence[str]) -> tuple[dict[str, Path], dict[str, Any]]:
    """Check a model's folder as a hub serves it.

    Return the files that are part of the model (name → path) and their facts: model_type, parameters. Raise KitError
    with the file and the fault.
    """
    model_type = _check_config(folder, model_types)
    tokenizer = _check_tokenizer(folder)
    weights, parameters = _check_weights(folder)
    others = [name for name in OTHERS if (folder / name).is_file()]
    for name in others:
        _check_other(folder / name)
    names = dict.fromkeys([CONFIG, *tokenizer, *others, *weights])
    facts = {"model_type": model_type, "parameters": parameters, "holds": f"{parameters:,} parameters"}
    return {name: folder / name for name in names}, facts


def _check_config(folder: Path, model_types: Sequence[str]) -> str:
    """Return config.json's model_type."""
    if not (folder / CONFIG).is_file():
        raise KitError(f"{folder} is not a model folder: {CONFIG} is missing")
    config = _read_object(folder / CONFIG)
    found = config.get("model_type")
    if found not in model_types:
        raise KitError(f"{CONFIG}: model_type is {found!r}, expected {' or '.join(map(repr, model_types))}")
    return str(found)


def _read_object(path: Path, limit: int = MAX_CONFIG) -> dict[str, Any]:
    """Return a JSON object that does not ask for code."""
    document = read_json(path, limit)
    if not isinstance(document, dict):
        raise KitError(f"{path.name} is not a JSON object")
    if document.get("auto_map"):
        raise KitError(
            f"{path.name} names the model's own code (auto_map), which would need trust_remote_code: refused. "
            "Use a model that transformers itself supports"
        )
    return document


def _check_tokenizer(folder: Path) -> list[str]:
    """Return the names of the tokenizer's main files."""
    found = [name for name in TOKENIZERS if (folder / name).is_file()]
    if not found:
        raise KitError(f"{folder} has no tokenizer: expected {' or '.join(TOKENIZERS)}")
    for name in found:
        _check_other(folder / name)
    return found


def _check_other(path: Path) -> None:
    if path.suffix == ".json":
        _read_object(path, MAX_JSON)
    else:
        refuse_lookalike(path)


def _check_weights(folder: Path) -> tuple[list[str], int]:
    """Return the names of the weight files and the number of parameters.

    A single file takes precedence over an index, as in transformers.
    """
    if (folder / WEIGHTS).is_file():
        return [WEIGHTS], read_header(folder / WEIGHTS).parameters
    if (folder / INDEX).is_file():
        return _check_shards(folder)
    pickled = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLES)
    if pickled:
        raise KitError(
            f"{folder} has its weights only as pickles ({', '.join(pickled[:3])}), which run code when they are "
            "loaded: refused. Provide the model as safetensors (load it on a separate machine, save_pretrained)"
        )
    raise KitError(f"{folder} has no weights: expected {WEIGHTS}, or {INDEX} and the files it names")


def _check_shards(folder: Path) -> tuple[list[str], int]:
    """Check the index: every shard must exist, be complete, and hold the tensors that the index lists."""
    weight_map = _read_object(folder / INDEX, MAX_JSON).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise KitError(f"{INDEX}: expected weight_map as an object with a file for each tensor")
    promised: dict[str, set[str]] = {}
    for tensor, shard in weight_map.items():
        if not isinstance(shard, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*\.safetensors", shard):
            raise KitError(
                f"{INDEX}: expected a safetensors file name for tensor {tensor!r}, found {str(shard)[:80]!r}"
            )
        promised.setdefault(shard, set()).add(tensor)
    parameters = 0
    for position, (shard, tensors) in enumerate(sorted(promised.items()), start=1):
        if not (folder / shard).is_file():
            raise KitError(f"{shard}, which {INDEX} names (file {position} of {len(promised)}), is missing in {folder}")
        header = read_header(folder / shard)
        missing = sorted(tensors - set(header.tensors))
        if missing:
            raise KitError(f"{shard} has no tensor {missing[0]!r}, which {INDEX} lists there")
        parameters += header.parameters
    return [INDEX, *sorted(promised)], parameters
