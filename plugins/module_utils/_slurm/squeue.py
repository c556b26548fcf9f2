# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read one squeue for all jobs of a user, by fixed widths: this works alike on 22.05, 24.11 and 26.05."""

from __future__ import annotations

import os
import re

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import expand_nodes
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import split_state
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import (
    clean,
    duration,
    epoch,
    number,
    tres_count,
    wait_status,
)

# Field of --Format, width in bytes. A value that fills its width may have been cut.
FIELDS = (
    ("JobID", 24),
    ("State", 24),
    ("Reason", 160),
    ("RestartCnt", 12),
    ("SubmitTime", 24),
    ("StartTime", 24),
    ("EndTime", 24),
    ("TimeLimit", 24),
    ("Partition", 128),
    ("UserName", 64),
    ("tres-alloc", 256),
    ("tres-per-job", 64),
    ("tres-per-node", 64),
    ("tres-per-socket", 64),
    ("tres-per-task", 64),
    ("NodeList", 2048),
    ("Comment", 80),
    ("WorkDir", 1024),
    ("STDOUT", 1024),
    ("STDERR", 1024),
    ("Name", 256),
)
# Where slurmctld has none, squeue prints nothing for one of these, not even blanks: of a job that had ended and whose
# completion was reported once more, for example. So they come last.
CODE = 16
CODES = (("exit_code", CODE), ("DerivedEC", CODE))
RECORD = sum(width for _field, width in FIELDS)
Row = dict[str, object]


class UnreadableError(Exception):
    """squeue's output is not the requested records."""


def argv(*, user: str | None = None, job_ids: list[str] | None = None) -> list[str]:
    """Return the command. With user alone slurmctld sends that user's jobs only; with job_ids it sends them all."""
    fields = ",".join(f"{field}:{width}" for field, width in (*FIELDS, *CODES))
    # --local avoids a query for other clusters of a federation.
    command = ["squeue", "--local", "--states=all", "--noheader", f"--Format={fields}"]
    if user is not None:
        command.append(f"--user={user}")
    if job_ids:
        command.append("--jobs=" + ",".join(job_ids))
    return command


def parse(out: bytes) -> dict[str, Row]:
    """Return rows by job ID. Raise UnreadableError if the output is not whole records.

    Records are counted in bytes, not in lines: a job's name may hold a line break.
    """
    rows: dict[str, Row] = {}
    start = 0
    while start < len(out):
        codes = _codes(out, start + RECORD)
        row = _row(out[start : start + RECORD], codes)
        rows[str(row["job_id"])] = row
        start += RECORD + len(codes) + 1
    return rows


def _codes(out: bytes, start: int) -> bytes:
    """Return what follows a record's fields up to the end of its line: both exit codes, or one, or none."""
    for width in range(0, len(CODES) * CODE + 1, CODE):
        if out[start + width : start + width + 1] == b"\n":
            return out[start : start + width]
    raise UnreadableError(f"squeue printed {len(out)} bytes, and the record that ends at {start} is of another length")


def _row(record: bytes, codes: bytes) -> Row:
    raw: dict[str, str] = {}
    cut: set[str] = set()
    at = 0
    for field, width in FIELDS:
        piece = record[at : at + width]
        at += width
        raw[field] = piece.decode("utf-8", "replace").rstrip(" ")
        if not piece.endswith(b" "):
            cut.add(field)
    if number(raw["JobID"]) is None:
        raise UnreadableError(f"squeue printed {clean(raw['JobID'], 60)!r} where a job ID was expected")
    if number(raw["RestartCnt"]) is None:
        raise UnreadableError(f"squeue printed an invalid restart count for job {raw['JobID']}")
    state, flags = split_state(raw["State"])
    code, signal, derived_code = _exit(raw["JobID"], codes)
    directory = raw["WorkDir"] if "WorkDir" not in cut else ""
    names = {"job_id": raw["JobID"], "name": raw["Name"], "user": raw["UserName"]}
    stdout = "" if "STDOUT" in cut else output_path(raw["STDOUT"], directory, names)
    stderr = "" if "STDERR" in cut else output_path(raw["STDERR"], directory, names)
    nodes = [] if "NodeList" in cut else expand_nodes(raw["NodeList"])
    return {
        "job_id": raw["JobID"],
        "attempt": number(raw["RestartCnt"]),
        "name": clean(raw["Name"]),
        "user": clean(raw["UserName"]),
        "state": state,
        "flags": flags,
        "exit_code": code,
        "signal": signal,
        "derived_exit_code": derived_code,
        "reason": clean(raw["Reason"]),
        "nodes": nodes,
        "gpus": None if state == "PENDING" else tres_count(raw["tres-alloc"]),
        "asks_gpus": any("gpu" in raw[field] for field in raw if field.startswith("tres-per-")),
        "partition": clean(raw["Partition"]),
        "submitted": epoch(raw["SubmitTime"]),
        "started": epoch(raw["StartTime"]),
        "ended": epoch(raw["EndTime"]),
        "time_limit_seconds": duration(raw["TimeLimit"]),
        "stdout": stdout,
        "stderr": stderr or stdout,
        "comment": raw["Comment"],
    }


def _exit(job_id: str, codes: bytes) -> tuple[int | None, int | None, int | None]:
    """Return exit code, signal and derived exit code; of one code alone it is not known which it is."""
    if len(codes) < len(CODES) * CODE:
        return None, None, None
    own, derived = (codes[start : start + CODE].decode("utf-8", "replace").rstrip(" ") for start in (0, CODE))
    code, signal = wait_status(own)
    if code is None:
        raise UnreadableError(f"squeue printed an invalid exit code for job {job_id}")
    derived_code, derived_signal = wait_status(derived)
    return code, signal, 128 + derived_signal if derived_signal else derived_code


def output_path(pattern: str, directory: str, names: dict[str, str]) -> str:
    """Return an absolute path: 22.05 prints the path as given, with its %j and relative to the directory."""
    if not pattern or pattern == "(null)":
        return ""

    def fill(match: re.Match[str]) -> str:
        width, letter = match.groups()
        if letter == "%":
            return "%"
        if letter in "jA":
            return names["job_id"].zfill(int(f"0{width}"))
        return {"x": names["name"], "u": names["user"]}[letter]

    filled = re.sub(r"%(\d{0,2})([%jAxu])", fill, pattern)
    return (
        os.path.normpath(os.path.join(directory, filled)) if directory.startswith("/") or filled.startswith("/") else ""
    )
