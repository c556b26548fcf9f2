# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put alpaca-cleaned on the share: downloaded from the Hugging Face hub, from a folder, or its stand-in.

    python stage.py --target <share>/datasets/alpaca_cleaned --source download|path|stand-in [--from FOLDER]

Needs the kit on PYTHONPATH and, for download, the Python of the runtime `oumi` or `sft`. Writes train.json, the hub's
own file, unchanged: a list of {instruction, input, output}; and provenance.json. Prints {changed, path, source,
description, rows, …}.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kit.errors import KitError
from kit.staging import asset
from kit.staging.content import read_json
from kit.staging.hub import Source
from kit.stand_in import texts

REPOSITORY = "yahma/alpaca-cleaned"
FILE, STAGED = "alpaca_data_cleaned.json", "train.json"
KEYS = ("instruction", "input", "output")
MIN_ROWS = 2048  # the subset that the fine-tuning takes
MAX_BLANK = 0.01  # of the rows; more, and it is some other dataset
MAX_BYTES = 1 << 30  # the real one has 44 MB
STAND_IN_ROWS = 2500
SEED = 0


def prepare(folder: Path) -> tuple[asset.Contents, asset.Facts]:
    """Check the hub's file in ``folder``, or one that was staged before; return it and how many rows it has.

    KitError names file, row and what was expected.
    """
    path = next((folder / name for name in (FILE, STAGED) if (folder / name).is_file()), None)
    if path is None:
        raise KitError(f"{folder}: the split train is missing: expected the file {FILE}")
    rows = read_json(path, MAX_BYTES)
    count = check(rows, path.name)
    return {STAGED: path}, {"rows": {"train": count}, "dropped": {"train": 0}, "holds": f"{count:,} rows"}


def check(rows: object, name: str) -> int:
    """Return how many rows there are; KitError names the row and what was expected."""
    if not isinstance(rows, list):
        raise KitError(f"{name} holds {type(rows).__name__}, expected a list of {', '.join(KEYS)}")
    for number, row in enumerate(rows, start=1):
        check_row(row, f"{name}, row {number}")
    if len(rows) < MIN_ROWS:
        raise KitError(f"{name} has {len(rows)} rows, at least {MIN_ROWS} are needed")
    blank = sum(not row["instruction"].strip() or not row["output"].strip() for row in rows)
    if blank > MAX_BLANK * len(rows):
        raise KitError(
            f"{name}: {blank} of {len(rows)} rows have an empty instruction or output, at most {MAX_BLANK:.0%} may: "
            "this is not alpaca-cleaned"
        )
    return len(rows)


def check_row(row: object, where: str) -> None:
    """Raise KitError where a row is not three texts."""
    if not isinstance(row, Mapping):
        raise KitError(f"{where} is {type(row).__name__}, expected an object of {', '.join(KEYS)}")
    for key in KEYS:
        if key not in row:
            raise KitError(f"{where} has no {key!r}: it has {', '.join(map(str, row))}, expected {', '.join(KEYS)}")
        if not isinstance(row[key], str):
            raise KitError(f"{where}: {key} is {type(row[key]).__name__}, expected text")


def stand_in_rows() -> list[dict[str, Any]]:
    """Return the stand-in's rows."""
    return [{key: getattr(made, key) for key in KEYS} for made in texts.instructions(STAND_IN_ROWS, SEED)]


def make_stand_in(folder: Path) -> None:
    """Write the stand-in's file to ``folder``, as the hub would serve it."""
    (folder / FILE).write_text(json.dumps(stand_in_rows(), indent=4), encoding="utf-8")


ASSET = asset.Asset(
    name="alpaca_cleaned",
    source=Source("dataset", REPOSITORY, (FILE,)),
    descriptions={
        "download": f"alpaca-cleaned ({REPOSITORY} of the Hugging Face hub, CC-BY-4.0)",
        "path": "a file in alpaca-cleaned's format, given by the site",
        "stand-in": "stand-in for alpaca-cleaned: made-up instructions from templates",
    },
    recipe={"seed": SEED, "texts": texts.digest(stand_in_rows())},
    make_stand_in=make_stand_in,
    prepare=prepare,
)

if __name__ == "__main__":
    sys.exit(asset.main(ASSET, __doc__))
