# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan and judge the jobs on all nodes, from files to files: nothing here grows in memory with the reports.

nodes.json        the plan: the scope, the nodes that can take a job, their jobs, what was left out
jobs.json         what slurm_job returned for the jobs
reports.jsonl.gz  what the jobs reported, a line for each
"""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import read_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.findings import step_failed
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import plan as preflight_plan
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import scheduler
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.nodes import Judging
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.reports import FILE, Reports
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import records, runs

Json = dict[str, t.Any]
PLAN = "nodes.json"
JOBS = "jobs.json"
SHOWN = 5


def plan(
    folder: Path,
    info: Json,
    settings: Json,
    expected: t.Sequence[str],
    asked: tuple[list[Json], dict[str, Json]],
    *,
    dry: bool = False,
) -> int:
    """Record the cluster, the plan of the jobs and the findings about both; return the number of jobs.

    `asked` are the selected manifests and the inventory's hpc_validation_workload_slurm. In a `dry` run no job will
    follow, so that no node is expected to have a result. Raise RunError, OSError or ValueError.
    """
    workloads, workload_slurm = asked
    runs.record(folder, "cluster", info)
    planned = preflight_plan.plan(info, settings, expected)
    found = scheduler.findings(info, workloads, settings["slurm"], settings["accelerator"], workload_slurm)
    runs.record(folder, "findings", [*found, *planned.pop("findings")])
    records.add(folder, PLAN, planned)
    if not dry:
        runs.record(folder, "probed", {**_scope(planned), "nodes": [], "gpus": []})
    return len(planned["jobs"])


def judge(folder: Path, settings: Json) -> None:
    """Record the findings of all nodes and which were checked. Raise RunError, OSError or ValueError."""
    planned = records.read(folder, PLAN)
    reports = Reports(folder / FILE)
    judging = Judging(planned, read_json(folder / JOBS), settings)
    runs.record(folder, "findings", _findings(judging, reports, folder))
    runs.record(folder, "probed", {**_scope(planned), **judging.probed()})


def _findings(judging: Judging, reports: Reports, folder: Path) -> t.Iterator[Json]:
    yield from judging.findings(reports)
    unplanned = [f"{folder / FILE}: unexpected report of job {job}" for job in judging.unplanned]
    problems = [*reports.problems, *unplanned]
    if problems:
        more = [f"and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
        why = "; ".join([*problems[:SHOWN], *more])
        yield step_failed("reports", "The reports of all nodes are read", why, {"path": str(folder / FILE)})


def _scope(planned: Json) -> Json:
    return {"scope": planned["scope"], "left_out": planned["left_out"]}
