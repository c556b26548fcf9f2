# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepare the training's input: staged folders, Alpaca's rows as text, text as samples of one length. No PyTorch."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.staged import read_staged
from kit.staging.model_folder import check_model

IGNORED = -100  # cross-entropy's label for a position that is not learned
DATA_FILE = "train.json"
COLUMNS = ("instruction", "input", "output")
MODEL_TYPES = ("mistral", "llama")  # decoders with the same configuration keys for layers and heads
RESTAGE = "stage it again (the playbooks do this)"


class WorkloadError(Exception):
    """Why the training cannot start or continue: what, where, and what to do."""


@dataclass(frozen=True)
class Sample:
    """One text as the model reads it: token IDs and labels up to the sequence length, ``length`` of them text."""

    input_ids: tuple[int, ...]
    labels: tuple[int, ...]
    length: int


def describe_model(folder: Path) -> dict[str, Any]:
    """Return a staged model's provenance after checking its files; raise KitError or WorkloadError if they are wrong.

    Many gigabytes of weights are hashed when they are staged, not while a GPU waits: here only sizes are compared.
    """
    if not folder.is_dir():
        raise WorkloadError(f"model {folder} is not a folder on this node; {RESTAGE}, or choose another with --model")
    check_model(folder, MODEL_TYPES)
    return read_staged(folder, hashed=False)


def read_rows(data_dir: Path, limit: int) -> list[dict[str, str]]:
    """Return the dataset's first ``limit`` rows; raise WorkloadError with the row and column that is invalid."""
    path = data_dir / DATA_FILE
    try:
        rows = strict_json.read(path)
    except OSError as error:
        raise WorkloadError(f"dataset {path}: {error.strerror}; {RESTAGE}") from error
    except (ValueError, RecursionError) as error:
        raise WorkloadError(f"dataset {path} is not JSON ({error}); {RESTAGE}") from error
    expected = f"expected a list of objects with the texts {', '.join(COLUMNS)}"
    if not isinstance(rows, list) or not rows:
        raise WorkloadError(f"dataset {path} has no rows: {expected}")
    for number, row in enumerate(rows[:limit]):
        wrong = [column for column in COLUMNS if not isinstance(row, dict) or not isinstance(row.get(column), str)]
        if wrong:
            raise WorkloadError(f"dataset {path}: row {number} has no text {wrong[0]}: {expected}")
    return rows[:limit]


def text_of(row: Mapping[str, str]) -> str:
    """Return a row as one text: the instruction, its input if there is one, and the response."""
    parts = [("Instruction", row["instruction"]), ("Input", row["input"]), ("Response", row["output"])]
    return "\n\n".join(f"### {name}:\n{text}" for name, text in parts if text or name != "Input")


def sample_of(ids: Sequence[int], end: int, length: int) -> Sample:
    """Return token IDs as a sample of ``length`` tokens: the end token appended, then cut or padded with the end token.

    The labels are a copy that masks the padding by position, since the text's own end token is learned.
    """
    text = [*ids, end][:length]
    missing = length - len(text)
    return Sample((*text, *[end] * missing), (*text, *[IGNORED] * missing), len(text))


def draw(rows: int, needed: int, seed: int) -> list[int]:
    """Return ``needed`` row numbers below ``rows``: whole passes, each in a new order shuffled by ``seed``."""
    shuffle = random.Random(seed)  # noqa: S311 - an order, not a secret
    drawn: list[int] = []
    while len(drawn) < needed:
        order = list(range(rows))
        shuffle.shuffle(order)
        drawn += order
    return drawn[:needed]
