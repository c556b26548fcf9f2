# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of slurm_job: the module documents and checks them, its action plugin acts on them."""

from __future__ import annotations

from typing import Any

DEFAULT_WINDOW = 200
# A task with more jobs than this is asked about, and reported on, as one.
FEW = 8

PER_JOB: dict[str, dict[str, Any]] = {
    "key": {"type": "str", "no_log": False},
    "path": {"type": "path"},
    "script": {"type": "str"},
    "sha256": {"type": "str"},
    "options": {"type": "dict"},
    "chdir": {"type": "path"},
    "share": {"type": "path"},
    "job_id": {"type": "str"},
    "end_marker": {"type": "str"},
    "begin_marker": {"type": "str"},
    "progress_marker": {"type": "str"},
    "queue_timeout": {"type": "float"},
    "run_timeout": {"type": "float"},
}

SPEC: dict[str, dict[str, Any]] = {
    **PER_JOB,
    "jobs": {"type": "list", "elements": "dict", "options": PER_JOB},
    "journal": {"type": "path"},
    "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
    "wait": {"type": "bool", "default": True},
    "window": {"type": "int", "default": DEFAULT_WINDOW},
    "node_grace": {"type": "float"},
    "controller_timeout": {"type": "float", "default": 300.0},
    "progress_interval": {"type": "float", "default": 30.0},
    "on_interrupt": {"type": "str", "default": "cancel", "choices": ["cancel", "leave"]},
    "on_refusal": {"type": "str", "default": "fail", "choices": ["fail", "go_on"]},
    "fail_on_state": {"type": "bool", "default": True},
    "tail": {"type": "int", "default": 20},
    "save": {"type": "path"},
    "token": {"type": "str", "no_log": False},
    "looked": {"type": "float"},
}

DEFAULT_QUEUE_TIMEOUT = 600.0


class BadArgumentsError(ValueError):
    """The options contradict each other."""


def job_specs(params: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one dictionary per job: its entry in jobs over the task's own options. Raise BadArgumentsError."""
    common = {key: params.get(key) for key in PER_JOB}
    entries = params.get("jobs")
    if entries is None:
        entries = [{}] if any(common[key] is not None for key in ("path", "script", "job_id")) else []
    elif not entries:
        raise BadArgumentsError("jobs is an empty list: there is nothing to submit or to wait for.")
    specs = [{**common, **{key: value for key, value in entry.items() if value is not None}} for entry in entries]
    _check_keys(specs)
    for number, spec in enumerate(specs, start=1):
        given = [key for key in ("path", "script", "job_id") if spec.get(key) is not None]
        if len(given) != 1:
            raise BadArgumentsError(
                f"Job {number} of {len(specs)} must have exactly one of path, script and job_id; it has "
                f"{', '.join(given) or 'none'}."
            )
        job_id = spec.get("job_id")
        if job_id is not None and not (job_id.isascii() and job_id.isdigit()):
            raise BadArgumentsError(f"job_id {job_id!r} is not a number.")
        for key in ("queue_timeout", "run_timeout"):
            if spec.get(key) is not None and spec[key] <= 0:
                raise BadArgumentsError(f"{key} must be more than 0 seconds, not {spec[key]}.")
    return specs


def check_window(params: dict[str, Any]) -> None:
    """Raise BadArgumentsError for a window that takes no job, or no grace at all."""
    if params["window"] < 1:
        raise BadArgumentsError(f"window must be at least 1 job, not {params['window']}.")
    if params["node_grace"] is not None and params["node_grace"] <= 0:
        raise BadArgumentsError(f"node_grace must be more than 0 seconds, not {params['node_grace']}.")


def _check_keys(specs: list[dict[str, Any]]) -> None:
    """Reject duplicate keys: such jobs could not be told apart in the result. Raise BadArgumentsError."""
    keys = [spec["key"] for spec in specs if spec["key"] is not None]
    if "" in keys:
        raise BadArgumentsError("key is empty: name the job, or omit key.")
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise BadArgumentsError(f"key: {', '.join(map(repr, twice))} appears twice; give each job its own key.")


def journal_directory(params: dict[str, Any], home: str) -> str:
    """Return the journal: as given, else below the share, else in the user's cache."""
    if params.get("journal"):
        return str(params["journal"])
    share = params.get("share")
    return f"{share.rstrip('/')}/jobs/.journal" if share else f"{home}/.cache/hpc_validation/journal"
