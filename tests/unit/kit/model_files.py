# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models' files, for tests: small, sound, and as wrong as asked."""

from __future__ import annotations

import json
import math
import struct
import typing as t
from pathlib import Path

BYTES = {"F32": 4, "BF16": 2, "I8": 1}
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 269060552\n"
HTML_PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n"
SHAPES = {"model.embed_tokens.weight": [10, 4], "model.norm.weight": [4]}


def entries(shapes: t.Mapping[str, list[int]], dtype: str = "BF16") -> dict[str, t.Any]:
    """The header of tensors that lie one after the other."""
    header, end = {}, 0
    for name, shape in shapes.items():
        start, end = end, end + math.prod(shape) * BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
    return header


def encode(header: t.Any, data: bytes | None = None) -> bytes:
    """A file of this header; without data, as much as the header asks for."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    if data is None:
        data = b"\x01" * max(entry["data_offsets"][-1] for name, entry in header.items() if name != "__metadata__")
    return struct.pack("<Q", len(text)) + text + data


def weights(shapes: t.Mapping[str, list[int]] | None = None) -> bytes:
    """A sound safetensors file."""
    return encode({"__metadata__": {"format": "pt"}, **entries(SHAPES if shapes is None else shapes)})


def model_files(model_type: str = "llama") -> dict[str, bytes]:
    """A sound model in one file of weights."""
    return {
        "config.json": json.dumps({"model_type": model_type, "vocab_size": 10}).encode(),
        "tokenizer.json": json.dumps({"model": {"type": "BPE"}}).encode(),
        "tokenizer_config.json": json.dumps({"eos_token": "</s>"}).encode(),
        "model.safetensors": weights(),
    }


def sharded_files(model_type: str = "llama") -> dict[str, bytes]:
    """A sound model in two files of weights and an index."""
    names = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    shards = dict(zip(names, ({name: shape} for name, shape in SHAPES.items())))
    index = {"metadata": {"total_size": 88}, "weight_map": {name: names[n] for n, name in enumerate(SHAPES)}}
    files = model_files(model_type)
    del files["model.safetensors"]
    return {
        **files,
        "model.safetensors.index.json": json.dumps(index).encode(),
        **{name: weights(shapes) for name, shapes in shards.items()},
    }


def fill(folder: Path, files: t.Mapping[str, bytes]) -> Path:
    """Write files to a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder
