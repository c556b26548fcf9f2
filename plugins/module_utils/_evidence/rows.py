# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read JSON Lines and CSV of any length, in blocks of rows. PRIVATE to the collection.

A block's lines are parsed together if possible, so that built-in functions do the work: a million rows take seconds.
Memory does not grow with the file.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars, strict_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.opening import EvidenceError

BLOCK_BYTES = 1048576
MAX_LINE = 1 << 20
MAX_ROWS_AT_ONCE = 2048
# A number as JSON writes it, and non-finite values. Python would also accept 1_000, 0005, +0 and other digits.
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?")
_NON_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)

Row = dict[str, Any]


def blocks(stream: BinaryIO, form: str) -> Iterator[tuple[list[Row], int]]:
    """Yield the rows of JSON Lines (`form` jsonl) or CSV (csv) in blocks, each with the number of malformed lines.

    Raise EvidenceError.
    """
    return _jsonl_blocks(stream) if form == "jsonl" else _csv_blocks(stream)


def _lines(stream: BinaryIO) -> Iterator[tuple[list[bytes], bool]]:
    """Yield blocks of lines without their ends; the flag marks a last line without a line end."""
    rest = b""
    for block in iter(lambda: stream.read(BLOCK_BYTES), b""):
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        if len(rest) > MAX_LINE:
            raise EvidenceError("too_large", f"a line is longer than {MAX_LINE} bytes")
        yield lines, False
    yield [rest], True


def _jsonl_blocks(stream: BinaryIO) -> Iterator[tuple[list[Row], int]]:
    for lines, unfinished in _lines(stream):
        filled = [line for line in lines if line and not line.isspace()]
        for start in range(0, len(filled), MAX_ROWS_AT_ONCE):
            part = filled[start : start + MAX_ROWS_AT_ONCE]
            rows = _parse_together(part)
            yield (rows, 0) if rows is not None else _parse_singly(part, unfinished)


def _parse_together(lines: list[bytes]) -> list[Row] | None:
    """Parse many lines in one call, several times as fast as one by one; None if any of them is not an object.

    The lines are joined with a random text. Only if each line is exactly one value does this text come out as every
    second element: this detects lines that are invalid alone but valid when joined.
    """
    separator = json.dumps(os.urandom(12).hex())
    try:
        joined = ("," + separator + ",").encode().join(lines).decode("utf-8")
        values = json.loads("[" + joined + "]", object_pairs_hook=strict_json.unique)
    except (ValueError, RecursionError):
        return None
    marks = values[1::2]
    if len(values) != 2 * len(lines) - 1 or marks.count(separator[1:-1]) != len(marks):
        return None
    rows: list[Row] = values[::2]
    return rows if set(map(type, rows)) == {dict} else None


def _parse_singly(lines: list[bytes], unfinished: bool) -> tuple[list[Row], int]:
    rows: list[Row] = []
    bad = 0
    for line in lines:
        try:
            row = strict_json.parse(line)
        except strict_json.DuplicateKeyError as exc:
            raise EvidenceError("duplicate_key", f"{exc}: {_shown(line)}") from exc
        except (ValueError, RecursionError) as exc:
            if unfinished:
                raise EvidenceError("truncated", f"it ends in the middle of a row: {_shown(line)}") from exc
            bad += 1
            continue
        if isinstance(row, dict):
            rows.append(row)
        else:
            bad += 1
    return rows, bad


def _shown(line: bytes) -> str:
    return scalars.show(line[-80:].decode("utf-8", "replace"))


class _Text(io.RawIOBase):
    """Pass a file's bytes on, but reject what csv would accept: a line that is too long, a hole."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._length = 0
        self.last = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer))
        if block:
            self._length = len(block) - block.rfind(b"\n") - 1 if b"\n" in block else self._length + len(block)
            if self._length > MAX_LINE:
                raise EvidenceError("too_large", f"a line is longer than {MAX_LINE} bytes")
            self.last = block[-1:]
            if b"\0" in block:  # a hole in a file reads so; Python 3.11 and newer would take it for text
                raise EvidenceError("not_csv", "it contains a NUL byte")
        buffer[: len(block)] = block
        return len(block)


def _csv_blocks(stream: BinaryIO) -> Iterator[tuple[list[Row], int]]:
    raw = _Text(stream)
    text = io.TextIOWrapper(io.BufferedReader(raw, BLOCK_BYTES), encoding="utf-8-sig", newline="")
    reader = csv.reader(text, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        if not header or len(set(header)) != len(header) or "" in header:
            raise EvidenceError("not_csv", "expected a first line that names each column once")
        rows: list[Row] = []
        bad = 0
        for cells in reader:
            if len(cells) == len(header):
                rows.append({name: _cell(cell) for name, cell in zip(header, cells)})
                if len(rows) == MAX_ROWS_AT_ONCE:
                    yield _own_columns(rows), bad
                    rows, bad = [], 0
            elif cells:
                bad += 1
        if raw.last != b"\n":  # a truncated number is still a number
            raise EvidenceError("truncated", "its last line has no line end")
        yield _own_columns(rows), bad
    except (csv.Error, UnicodeDecodeError) as exc:
        raise EvidenceError("not_csv", str(exc)) from exc


def _cell(text: str) -> Any:
    """Return a cell's value: a number if it is one in JSON, None if it is empty, else text."""
    text = text.strip()
    if not text:
        return None
    number = _NUMBER.fullmatch(text)
    if number is None and not _NON_FINITE.fullmatch(text):
        return text
    try:
        return int(text) if number and not number[2] and not number[3] else float(text)
    except ValueError:  # thousands of digits
        return text


def _own_columns(rows: list[Row]) -> list[Row]:
    for row in rows:
        if isinstance(row.get("job_id"), int):
            row["job_id"] = str(row["job_id"])
    return rows
