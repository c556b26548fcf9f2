# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read from accounting the jobs that slurmctld has forgotten, and the steps of jobs that have ended."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import expand_nodes
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import UNKNOWN, split_state
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import (
    clean,
    epoch,
    exit_pair,
    number,
    tres_count,
)

# No field holds text that a user can write, so no name can look like a record.
FIELDS = (
    "JobIDRaw",
    "State",
    "ExitCode",
    "DerivedExitCode",
    "Submit",
    "Start",
    "End",
    "NodeList",
    "AllocTRES",
    "Partition",
    "User",
    "TimelimitRaw",
    "Reason",
)
SECONDS = 10.0
_ID = re.compile(r"(\d{1,18})(?:\.([A-Za-z0-9_+]{1,40}))?", re.ASCII)
_START = re.compile(_ID.pattern + r"(?![A-Za-z0-9_+.])", re.ASCII)
Row = dict[str, object]


def argv(job_ids: list[str]) -> list[str]:
    """Return the command. Without --duplicates only a requeued job's last run is reported."""
    return ["sacct", "--noheader", "--parsable2", "--jobs=" + ",".join(job_ids), "--format=" + ",".join(FIELDS)]


@dataclass
class Told:
    """What accounting reported: rows by job ID, each with its steps, and what could not be read.

    What could not be read becomes a step in state UNKNOWN, so that the rest does not pass for all.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    _unread: list[tuple[str, Row]] = field(default_factory=list)
    _asked: Collection[str] = ()

    def unread_of(self, job_id: str) -> list[Row]:
        """Return what could not be read and may be of this job: a line with an ID not asked for may be of any."""
        return [step for of, step in self._unread if of == job_id or of not in self._asked]

    def cannot_read(self, line: str) -> None:
        """Record a line that could not be parsed."""
        found = _START.match(line)
        self._unread.append((found[1] if found else "", _step(found[2] if found else None, UNKNOWN, None, None)))


def parse(text: str, asked: Collection[str]) -> Told:
    """Return what sacct reported about the jobs asked for."""
    told = Told(_asked=asked)
    steps: dict[str, list[Row]] = {}
    *lines, cut = text.split("\n")
    for line in lines:
        values = line.split("|")
        match = _ID.fullmatch(values[0])
        if len(values) != len(FIELDS) or not match:
            if line.strip():
                told.cannot_read(line)
            continue
        record = dict(zip(FIELDS, values))
        state, flags = split_state(record["State"])
        code, signal = exit_pair(record["ExitCode"])
        job_id, step = match.groups()
        if step is not None:
            steps.setdefault(job_id, []).append(_step(step, state, code, signal))
        elif state == UNKNOWN or code is None or job_id in told.rows:
            told.cannot_read(line)
        else:
            told.rows[job_id] = {"state": state, "flags": flags, "exit_code": code, "signal": signal, **_row(record)}
    if cut:
        told.cannot_read(cut)
    for job_id, row in told.rows.items():
        row["steps"] = [*steps.get(job_id, []), *told.unread_of(job_id)]
    return told


def _step(step: str | None, state: str, code: int | None, signal: int | None) -> Row:
    return {"id": step or "?", "state": state, "exit_code": code, "signal": signal}


def _row(record: dict[str, str]) -> Row:
    derived, derived_signal = exit_pair(record["DerivedExitCode"])
    minutes = number(record["TimelimitRaw"])
    return {
        "job_id": record["JobIDRaw"],
        "user": clean(record["User"]),
        "derived_exit_code": 128 + derived_signal if derived_signal else derived,
        "reason": clean(record["Reason"]),
        "nodes": expand_nodes(record["NodeList"]),
        "gpus": tres_count(record["AllocTRES"]),
        "partition": clean(record["Partition"]),
        "submitted": epoch(record["Submit"]),
        "started": epoch(record["Start"]),
        "ended": epoch(record["End"]),
        "time_limit_seconds": None if minutes is None else minutes * 60,
    }
