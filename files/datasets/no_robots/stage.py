# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put no_robots on the share as JSON Lines: downloaded from the Hugging Face hub, from a folder, or its stand-in.

    python stage.py --target <share>/datasets/no_robots --source download|path|stand-in [--from FOLDER]

Needs the kit on PYTHONPATH and the Python of the runtime `oumi` or `sft`. Writes train.jsonl and held_out.jsonl (the
hub's split `test`), a row {"messages": [{"role": "user"|"assistant", "content": …}, …]}, and provenance.json, which
says how many rows each has and how many were dropped. Prints {changed, path, source, description, rows, dropped, …}.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kit.errors import KitError
from kit.files import json_line
from kit.staging import asset
from kit.staging.content import refuse_lookalike
from kit.staging.hub import Source
from kit.stand_in import texts

REPOSITORY = "HuggingFaceH4/no_robots"
SPLITS = {"train": "train.jsonl", "test": "held_out.jsonl"}  # the hub's split → what jobs read
COLUMNS = ("prompt", "prompt_id", "messages", "category")
ROLES = ("system", "user", "assistant")
MIN_ROWS = {"train": 1000, "test": 100}  # what the workloads train on and are judged by
MAX_DROPPED = 0.1  # of a split's rows; more, and it is some other dataset
MAX_BYTES = 1 << 30  # of a split's files; the real ones have some 15 MB
STAND_IN_ROWS = {"train": 1200, "test": 100}  # more than are trained on, as the real one has
SEED = 0

Row = Mapping[str, Any]


def prepare(folder: Path) -> tuple[asset.Contents, asset.Facts]:
    """Check the hub's parquet files in ``folder`` or its ``data``; return JSON Lines and how many rows they have.

    KitError names file, row and what was expected.
    """
    contents, rows, dropped = {}, {}, {}
    for split, name in SPLITS.items():
        converted = [
            convert(row, f"{path.name}, row {number}")
            for path in find_files(folder, split)
            for number, row in enumerate(read_parquet(path), start=1)
        ]
        lines = [json_line({"messages": messages}) for messages in converted if messages]
        check_count(split, len(lines), len(converted) - len(lines))
        contents[name] = b"".join(lines)
        rows[Path(name).stem], dropped[Path(name).stem] = len(lines), len(converted) - len(lines)
    holds = f"{rows['train']:,} training and {rows['held_out']:,} held-out rows"
    return contents, {"rows": rows, "dropped": dropped, "holds": holds}


def find_files(folder: Path, split: str) -> list[Path]:
    """Return the files of a split; KitError where there are none, or too large ones."""
    for place in (folder / "data", folder):
        found = sorted(path for path in place.glob(f"{split}-*.parquet") if path.is_file())
        if found:
            break
    else:
        raise KitError(f"{folder}: the split {split} is missing: expected {split}-*.parquet there or in its data")
    size = sum(path.stat().st_size for path in found)
    if size > MAX_BYTES:
        raise KitError(
            f"{found[0].name}: the split {split} has {size} bytes, more than the {MAX_BYTES} expected at most"
        )
    return found


def read_parquet(path: Path) -> list[Row]:
    """Return a file's rows; KitError where it is no parquet file or lacks a column."""
    from pyarrow import ArrowException, parquet  # noqa: PLC0415 - only in the runtimes

    head = refuse_lookalike(path)
    if not head.startswith(b"PAR1"):
        raise KitError(f"{path.name} is not a parquet file: it begins with {head[:4]!r}, expected b'PAR1'")
    try:
        table = parquet.read_table(path)
        missing = [name for name in COLUMNS if name not in table.column_names]
        if missing:
            raise KitError(
                f"{path.name} has no column {missing[0]!r}: its columns are {', '.join(table.column_names)}, expected "
                f"{', '.join(COLUMNS)}"
            )
        rows: list[Row] = table.select(["messages"]).to_pylist()
    except (ArrowException, OSError, ValueError) as error:
        raise KitError(f"{path.name}: this parquet file is damaged: {error}") from error
    return rows


def convert(row: Row, where: str) -> list[dict[str, str]] | None:
    """Return a row's turns as user, assistant, user, …, assistant; None where they are not that.

    A system turn goes in front of the first user's. KitError where a value is of the wrong type.
    """
    turns = check_turns(row.get("messages"), where)
    first = turns[0] if turns else {}
    if first.get("role") == "system":
        turns = turns[1:]
        if turns:
            turns[0] = {**turns[0], "content": f"{first['content']}\n\n{turns[0]['content']}"}
    expected = ["user", "assistant"] * (len(turns) // 2)
    whole = turns and [turn["role"] for turn in turns] == expected and all(turn["content"].strip() for turn in turns)
    return turns if whole else None


def check_turns(messages: object, where: str) -> list[dict[str, str]]:
    """Return the messages as turns of role and content; KitError where a value is of the wrong type."""
    if not isinstance(messages, Sequence) or isinstance(messages, (str, bytes)):
        raise KitError(f"{where}: messages is {type(messages).__name__}, expected a list of role and content")
    turns = []
    for position, message in enumerate(messages, start=1):
        if not isinstance(message, Mapping):
            raise KitError(f"{where}: message {position} is {type(message).__name__}, expected role and content")
        role, content = message.get("role"), message.get("content")
        if role not in ROLES:
            raise KitError(f"{where}: the role of message {position} is {role!r}, expected {', '.join(ROLES)}")
        if not isinstance(content, str):
            raise KitError(f"{where}: the content of message {position} is {type(content).__name__}, expected text")
        turns.append({"role": str(role), "content": content})
    return turns


def check_count(split: str, kept: int, dropped: int) -> None:
    """Raise KitError where too few rows were usable."""
    if dropped > MAX_DROPPED * (kept + dropped):
        raise KitError(
            f"split {split}: {dropped} of {kept + dropped} rows are not turns of user and assistant, at most "
            f"{MAX_DROPPED:.0%} may be: this is not no_robots"
        )
    if kept < MIN_ROWS[split]:
        raise KitError(f"split {split} has {kept} usable rows, at least {MIN_ROWS[split]} are needed")


def stand_in_rows() -> dict[str, list[dict[str, Any]]]:
    """Return the stand-in's rows for each split; no question is in both."""
    made = texts.conversations(sum(STAND_IN_ROWS.values()), SEED)
    train = STAND_IN_ROWS["train"]
    return {"train": made[:train], "test": made[train:]}


def make_stand_in(folder: Path) -> None:
    """Write the stand-in's parquet files to ``folder``, as the hub would serve them."""
    import pyarrow  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    text = pyarrow.string()
    messages = pyarrow.list_(pyarrow.struct([("content", text), ("role", text)]))
    schema = pyarrow.schema([(name, messages if name == "messages" else text) for name in COLUMNS])
    (folder / "data").mkdir()
    for split, rows in stand_in_rows().items():
        table = pyarrow.Table.from_pylist(rows, schema=schema)
        parquet.write_table(table, folder / "data" / f"{split}-00000-of-00001.parquet")


ASSET = asset.Asset(
    name="no_robots",
    source=Source("dataset", REPOSITORY, ("data/train-*.parquet", "data/test-*.parquet")),
    descriptions={
        "download": f"no_robots ({REPOSITORY} of the Hugging Face hub, CC-BY-NC-4.0)",
        "path": "files in no_robots' format, given by the site",
        "stand-in": "stand-in for no_robots: made-up instructions from templates",
    },
    recipe={"seed": SEED, "texts": texts.digest(stand_in_rows())},
    make_stand_in=make_stand_in,
    prepare=prepare,
)

if __name__ == "__main__":
    sys.exit(asset.main(ASSET, __doc__))
