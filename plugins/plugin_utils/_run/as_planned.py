# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell how the record of a judged workload differs from the plan, and from its own job. Pure. PRIVATE."""

from __future__ import annotations

import typing as t
from collections import Counter

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import JOB_ID
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.job import judge_job

Json = dict[str, t.Any]


def require_whole(record: Json, where: str) -> None:
    """Raise SchemaError or KeyError unless the record has a job or null, data and judged criteria, each as such."""
    job, data, criteria = (record[key] for key in ("job", "data", "criteria"))
    if job is not None:
        schema.require("job", job, f"job of {where}")
    if not isinstance(data, dict) or not all(isinstance(told, str) for told in data.values()):
        raise schema.SchemaError(
            f"data of {where}: expected a description of each dataset, found {scalars.describe(data)}"
        )
    if not isinstance(criteria, list):
        raise schema.SchemaError(f"criteria of {where}: expected a list, found {scalars.describe(criteria)}")
    for criterion in criteria:
        schema.require("judged", criterion, f"criterion of {where}")


def differences(manifest: Json, record: Json) -> list[str]:
    """Return how the record differs from what was planned, in words; with any difference it proves nothing.

    Each criterion of the plan, and the job's own, must be there exactly once. An inventory's override may make a gate
    of what is only recorded, never the reverse, and no criterion without a condition may claim that it does not apply.
    """
    planned = {criterion["id"]: criterion for criterion in (*manifest["criteria"], {"id": JOB_ID})}
    judged = record["criteria"]
    wanted, found = Counter(list(planned)), Counter(criterion["id"] for criterion in judged)
    known = [(criterion, planned[criterion["id"]]) for criterion in judged if criterion["id"] in planned]
    ways = (
        ("not judged", wanted - found),
        ("judged but not planned, or twice", found - wanted),
        ("planned as a gate, but only recorded", [one["id"] for one, plan in known if _is_lowered(one, plan)]),
        (
            "not applicable, but planned without a condition",
            [one["id"] for one, plan in known if _is_evaded(one, plan)],
        ),
    )
    told = [f"{how}: {', '.join(sorted(names))}" for how, names in ways if names]
    return [*told, *_of_job(record["job"], [one for one in judged if one["id"] == JOB_ID])]


def _is_lowered(judged: Json, planned: Json) -> bool:
    gate = planned.get("severity", "gate") == "gate"
    return gate and (judged["severity"] != "gate" or judged["verdict"] == "recorded")


def _is_evaded(judged: Json, planned: Json) -> bool:
    return judged["verdict"] == "not_applicable" and not _has_condition(planned)


def _has_condition(planned: Json) -> bool:
    """Return whether the criterion may not apply: by the cluster's description, or without an optional reference."""
    within = planned.get("within") or planned.get("each", {}).get("within") or {}
    return "applies_when" in planned or "optional" in within


def _of_job(job: Json | None, judged: list[Json]) -> t.Iterator[str]:
    """Yield how the criterion on the job's outcome differs from what the recorded job says."""
    for criterion in judged:
        if criterion["verdict"] == "waived":
            yield f"{JOB_ID} is waived, which no inventory can do"
        outcome = judge_job(job)
        if criterion["verdict"] == "pass" and outcome["verdict"] != "pass":
            yield f"{JOB_ID} is recorded as a pass, but of the recorded job: {outcome['why']}"
