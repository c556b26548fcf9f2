# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What accounting knows of jobs that slurmctld has forgotten, and of the steps of those that ended."""

from __future__ import annotations

import re

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_state import UNKNOWN, split_state
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm_text import (
    clean,
    epoch,
    exit_pair,
    expand_nodes,
    number,
    tres_count,
)

# Nothing that a user can write is among the fields, so that no name can look like a record.
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


def argv(job_ids: list[str]) -> list[str]:
    """Return the command. Without --duplicates only a requeued job's last run is told."""
    return ["sacct", "--noheader", "--parsable2", "--jobs=" + ",".join(job_ids), "--format=" + ",".join(FIELDS)]


def parse(text: str) -> dict[str, dict[str, object]]:
    """Return rows by job id, each with its steps. Lines that are not records are left out."""
    rows: dict[str, dict[str, object]] = {}
    steps: dict[str, list[dict[str, object]]] = {}
    for line in text.splitlines():
        values = line.split("|")
        match = _ID.fullmatch(values[0])
        if len(values) != len(FIELDS) or not match:
            continue
        record = dict(zip(FIELDS, values))
        state, flags = split_state(record["State"])
        code, signal = exit_pair(record["ExitCode"])
        job_id, step = match.groups()
        if step is not None:
            if state != UNKNOWN:
                steps.setdefault(job_id, []).append({"id": step, "state": state, "exit_code": code, "signal": signal})
            continue
        derived, derived_signal = exit_pair(record["DerivedExitCode"])
        minutes = number(record["TimelimitRaw"])
        rows[job_id] = {
            "job_id": job_id,
            "user": clean(record["User"]),
            "state": state if code is not None else UNKNOWN,
            "flags": flags,
            "exit_code": code,
            "signal": signal,
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
    for job_id, row in rows.items():
        row["steps"] = steps.get(job_id, [])
    return rows
