# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert submissions to jobs that are waited for, and these to the result of slurm_job."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.arguments import DEFAULT_QUEUE_TIMEOUT
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import expand_nodes, fold_nodes
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.markers import KINDS
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import write_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.messages import message
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import Waiting

Json = dict[str, Any]
_LARGE = ("job", "jobs", "jobs_by_key", "outcomes", "submitted", "cancelled", "diff")

# Texts of refused jobs in a message.
_SHOWN = 5


def waiting_for(spec: Mapping[str, Any], entry: Mapping[str, Any] | None) -> Waiting:
    """Return the job to wait for: one of the task's, with the result of its submission if it was submitted."""
    if entry and entry.get("refused"):
        refused = Waiting("0", name=str(entry["name"]), key=spec.get("key"))
        refused.refuse(str(entry["refused"]))
        return refused
    return Waiting(
        job_id=str(entry["job_id"] if entry else spec["job_id"]),
        name=str(entry["name"]) if entry else "",
        comment=str(entry["comment"]) if entry else "",
        script_sha256=str(entry["script_sha256"]) if entry else None,
        ours=entry is not None and not entry["attached"],
        submitted_by=entry["submitted_by"] if entry else None,
        queue_timeout=spec.get("queue_timeout") or DEFAULT_QUEUE_TIMEOUT,
        run_timeout=spec.get("run_timeout"),
        patterns={kind: spec[f"{kind}_marker"] for kind in KINDS if spec.get(f"{kind}_marker")},
        key=spec.get("key"),
        needs=fold_nodes(expand_nodes(_nodelist(spec.get("options") or {}))),
    )


def _nodelist(options: Mapping[str, Any]) -> str:
    """Return the nodes that sbatch's options require."""
    given = next((value for name, value in options.items() if str(name) == "nodelist"), "") or ""
    return given if isinstance(given, str) else ",".join(map(str, given))


def looked_at(jobs: Sequence[Waiting], fail_on_state: bool) -> Json:
    """Return the jobs as they are, without having waited for them. Only a rejected job is then a failure."""
    return {**_jobs(jobs), "cancelled": [], **_failure(_refusals(jobs), fail_on_state)}


def waited_for(jobs: Sequence[Waiting], cancelled: Collection[str], fail_on_state: bool) -> Json:
    """Return the result for the jobs once all waits are over."""
    waited = [one for one in jobs if one.outcome != "refused"]
    outcomes = {
        one.job_id: {
            "outcome": one.outcome,
            "why": one.why,
            "remedy": one.remedy,
            "cancelled": one.job_id in cancelled,
        }
        for one in waited
    }
    told = _refusals(jobs)
    if any(one.state != "COMPLETED" for one in waited):
        told.append(message([one.job for one in waited], outcomes))
    return {
        **_jobs(jobs),
        "outcomes": outcomes,
        "cancelled": sorted(cancelled, key=int),
        **_failure(told, fail_on_state),
    }


def saved(result: Json, path: str) -> Json:
    """Write the jobs of the result to the file `path` and return the rest of it. Raise OSError."""
    told = {key: result.get(key) or {} for key in ("jobs_by_key", "outcomes")}
    write_json(Path(path), told)
    large = _LARGE if result.get("failed") else (*_LARGE, "msg")
    rest = {key: value for key, value in result.items() if key not in large}
    return {**rest, "saved": len(told["jobs_by_key"])}


def _jobs(jobs: Sequence[Waiting]) -> Json:
    told = [one.job if one.key is None else {**one.job, "key": one.key} for one in jobs]
    return {
        "job": told[0] if told else None,
        "jobs": told,
        "jobs_by_key": {job["key"]: job for job in told if "key" in job},
    }


def _refusals(jobs: Sequence[Waiting]) -> list[str]:
    texts = [one.why for one in jobs if one.outcome == "refused"]
    more = [f"{len(texts) - _SHOWN} more were refused."] if len(texts) > _SHOWN else []
    return [*texts[:_SHOWN], *more]


def _failure(texts: list[str], fail_on_state: bool) -> Json:
    return {"msg": "\n".join(texts), "failed": fail_on_state} if texts else {}
