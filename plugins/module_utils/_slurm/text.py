# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse the output of Slurm's commands: cleaning, durations, key=value lines. Pure; never raises."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]|[ -/][0-~])")
_NOT_ASCII = re.compile(r"[^ -~]")
_KEY = re.compile(r"(?:^| )([A-Za-z][A-Za-z0-9_:/.]*)=")


def clean(text: object, limit: int = 400) -> str:
    """Return text as one printable line: no terminal escapes, no control characters, at most limit characters."""
    line = _ESCAPE.sub("", str(text)).replace("\t", " ").replace("\n", " ")
    line = _NOT_ASCII.sub(lambda match: match[0] if match[0].isprintable() else "", line).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def clean_lines(text: str, count: int, width: int = 400) -> list[str]:
    """Return the last count non-empty lines of text, each cleaned."""
    lines = [clean(line, width) for line in text.replace("\r", "\n").split("\n")]
    return [line for line in lines if line][-count:] if count > 0 else []


def after_the_name(line: str) -> str:
    """Return what follows a job's name in a line of scontrol, since the name may hold anything.

    A line without a user has nothing to read.
    """
    return line[line.rfind(" UserId=") :]


def number(text: str) -> int | None:
    """Return a non-negative decimal integer, or None."""
    text = text.strip(" ")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def duration(text: str) -> int | None:
    """Return seconds of Slurm's [days-]hours:minutes:seconds or minutes:seconds; None for UNLIMITED and garbage."""
    match = re.fullmatch(r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d{2})", text.strip(), re.ASCII)
    if not match:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def epoch(text: str) -> float | None:
    """Return epoch seconds as SLURM_TIME_FORMAT=%s prints them; None for Unknown, N/A, None, 0 and garbage."""
    value = number(text)
    return float(value) if value else None


def wait_status(text: str) -> tuple[int | None, int | None]:
    """Return (exit code, signal) of squeue's exit codes: a raw wait status or, in newer releases, code:signal."""
    if ":" in text:
        return exit_pair(text)
    value = number(text)
    if value is None or value > 0xFFFF:
        return None, None
    signal = value & 0x7F
    return (0 if signal else value >> 8), signal


def exit_pair(text: str) -> tuple[int | None, int | None]:
    """Return (exit code, signal) of sacct's and scontrol's code:signal."""
    code, _sep, signal = text.partition(":")
    values = number(code), number(signal)
    return values if None not in values else (None, None)


def tres_count(tres: str, name: str = "gres/gpu") -> int | None:
    """Return the count of one trackable resource in 'cpu=1,gres/gpu=2'; None if it is not listed."""
    typed = 0
    for part in tres.split(","):
        key, _sep, value = part.strip().partition("=")
        count = number(value)
        if count is None:
            continue
        if key == name:
            return count
        if key.startswith(name + ":"):
            typed += count
    return typed or None


def gres_counts(gres: str) -> dict[str, int]:
    """Return counts by name of 'gpu:h200:2(S:0-1),shard:4', '(null)' and the like: {'gpu': 2, 'shard': 4}."""
    counts: dict[str, int] = {}
    for part in re.sub(r"\([^()]*\)", "", gres).split(","):
        fields = part.strip().removeprefix("gres/").removeprefix("gres:").split(":")
        if not re.fullmatch(r"[A-Za-z_][\w.-]*", fields[0], re.ASCII):
            continue
        count = _scaled(fields[-1])  # None for a name by itself
        counts[fields[0]] = counts.get(fields[0], 0) + (1 if count is None else count)
    return counts


def gres_types(gres: str) -> list[str]:
    """Return the types of GPUs in 'gpu:h200:2(S:0-1),shard:4' and the like: ['h200']; empty if they have no type."""
    fields = [part.strip().split(":") for part in re.sub(r"\([^()]*\)", "", gres).split(",")]
    return sorted({each[1] for each in fields if each[0] == "gpu" and len(each) > 1 and _scaled(each[1]) is None})


def _scaled(text: str) -> int | None:
    match = re.fullmatch(r"(\d{1,12})([KMGT]?)", text.strip(), re.ASCII)
    return int(match[1]) * 1024 ** " KMGT".index(match[2]) if match else None


def key_values(line: str) -> dict[str, str]:
    """Return the pairs of one line of 'scontrol -o show'. The first of equal keys wins: free text comes last."""
    pairs: dict[str, str] = {}
    marks = list(_KEY.finditer(line))
    for mark, following in zip(marks, [*marks[1:], None]):
        end = following.start() if following else len(line)
        pairs.setdefault(mark[1], line[mark.end() : end].strip())
    return pairs
