# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge from slurm_cluster_info whether the scheduler can start what was selected, before anything is submitted."""

from __future__ import annotations

import typing as t
from functools import partial

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.cluster_facts import read, stated
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import remedies
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import capacity, checks, reach
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import plan as workload_plan

Json = dict[str, t.Any]
MAX_PROBLEMS = 10  # listed in one finding

finding = partial(checks.finding, source="slurm_cluster_info")


def findings(
    info: Json, workloads: list[Json], slurm: Json, accelerator: str, workload_slurm: dict[str, Json] | None = None
) -> list[Json]:
    """Return the findings for `info` (slurm_cluster_info) and the selected manifests.

    `slurm` is the site's hpc_validation_slurm, `workload_slurm` what is merged over it by workload ID.
    """
    info, wrong = read(info)
    found = [_answers(info, wrong)]
    if found[0]["verdict"] != "pass":
        return found  # without facts nothing else can be judged
    found += [_accounting(info)] if workloads else [_accounting(info), partition(info, stated(slurm))]
    settings = {"slurm": slurm, "workload_slurm": workload_slurm or {}, "accelerator": accelerator}
    for workload in workloads:
        found += [entry for entry in _for_workload(info, workload, settings) if entry not in found]
    return found


def _for_workload(info: Json, workload: Json, settings: Json) -> list[Json]:
    directives = workload_plan.directives(workload, settings, 0)  # a deadline chooses no partition
    judged = partition(info, stated(directives))
    return [judged] if judged["verdict"] == "fail" else [judged, capacity.finding(info, workload["id"], directives)]


def _accounting(info: Json) -> Json:
    on = info.get("accounting")
    told = {True: "on", False: "off"}.get(on) if isinstance(on, bool) else None
    return finding(
        "scheduler.accounting",
        "recorded",
        value=told,
        bound="on or off",
        why=f"accounting is {told}" if told else "accounting is configured but does not answer",
    )


def _answers(info: Json, wrong: list[str]) -> Json:
    """Judge whether Slurm answered: one controller is up, no query failed, and no fact is malformed (`wrong`)."""
    up = [controller["host"] for controller in info.get("controllers") or [] if controller.get("up") is True]
    told = wrong or [scalars.printable(str(problem)) for problem in info.get("problems") or []]
    more = [f"and {len(told) - MAX_PROBLEMS} more"] if len(told) > MAX_PROBLEMS else []
    problems = "; ".join([*told[:MAX_PROBLEMS], *more])
    healthy = bool(up) and not problems
    return finding(
        "scheduler.answers",
        "pass" if healthy else "undetermined",
        value=up,
        bound="one controller is up",
        why=f"{', '.join(up) or 'no controller'} answered" + (f"; {problems}" if problems else ""),
        remedy=None if healthy else remedies.remedy("scheduler.answers"),
    )


def partition(info: Json, slurm: Json) -> Json:
    """Return the finding about the partition for a job with these settings."""
    wanted, chosen, partitions = reach.named(slurm), reach.chosen(info, slurm), info.get("partitions") or []
    missing = [name for name in wanted if name not in [partition["name"] for partition in chosen]]
    bound = f"partition {','.join(wanted)}" if wanted else "a default partition"
    if missing or not chosen:
        known = ", ".join(partition["name"] for partition in partitions) or "none"
        absent = f"partition {','.join(missing)}" if missing else bound
        return finding(
            "scheduler.partition",
            "fail",
            value=[partition["name"] for partition in partitions],
            bound=bound,
            why=f"{absent} does not exist; available: {known}",
            remedy=remedies.remedy("scheduler.partition"),
        )
    down = [partition for partition in chosen if str(partition.get("state")).lower() != "up"]
    return finding(
        "scheduler.partition",
        "undetermined" if len(down) == len(chosen) else "pass",
        value=[partition.get("state") for partition in chosen],
        bound="up",
        why=", ".join(f"partition {partition['name']} is {partition.get('state')}" for partition in chosen),
        remedy=remedies.remedy("scheduler.partition") if down else None,
    )
