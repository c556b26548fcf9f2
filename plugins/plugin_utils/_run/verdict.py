# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the verdict of a run for verdict.json from its plan and its records. PRIVATE."""

from __future__ import annotations

import hashlib
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import read_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.presentable import presentable
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import card
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import complete, fold, groups
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings.columns import Table
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.verdicts import overall
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import record as report_record
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import (
    as_planned,
    coverage,
    folding,
    held_back,
    readback,
    records,
)

Json = dict[str, t.Any]
SCHEMA = 2
SIDECAR = "findings.json.gz"
MADE_OF_IT = ("verdict.json", "junit.xml", SIDECAR, "verdict-1.json", report_record.FILE)
MAX_REASONS = 20
LEFT_OUT = "not_applicable"  # the verdict of a workload that hpc_validation_leave_out names
NOT_FINISHED = "the run did not finish: it was interrupted or killed, or is still running"


def of_run(folder: Path, finished: float | None) -> tuple[Json, Table]:
    """Return the verdict of the records so far, and all findings; `finished` is None for a run that has not ended."""
    plan = read_json(folder / "plan.json")
    table = readback.findings(folder)
    held = held_back.reasons(table)
    workloads: list[Json] = []
    for manifest in plan["workloads"]:  # a workload comes after those that it needs
        lacking = held.get(manifest["id"]) or unmet(manifest, workloads)
        workloads.append(of_workload(folder, manifest, _not_run(finished, lacking)))
    workloads += map(_left_out, plan.get("left_out", []))
    cluster, unread = readback.cluster(folder)
    table.extend(unread)
    probed, unread = readback.probed(folder)
    table.extend(unread)
    covered = coverage.of_run(folder, workloads, cluster, probed, table)
    if finished is not None:
        table.extend(_lost(table, probed))
    findings = fold.whole(table)
    if finished is None:
        verdict, why = "undetermined", NOT_FINISHED
    else:
        # A passed probe proves no training: if workloads were selected, only workloads can make a pass, and if the
        # nodes were, only nodes that were checked.
        proven = bool((probed or {}).get("nodes")) if plan.get("probes_only") else _any_passed(workloads)
        parts = {*(each["verdict"] for each in workloads), *table.verdicts()}
        verdict = verdict_of(parts if proven else parts - {"pass"})
        why = _why(verdict, workloads, findings, len(table))
    slurm = (cluster or {}).get("version")
    document = {
        "schema": SCHEMA,
        "run": plan["run"],
        "title": plan["title"],
        "verdict": verdict,
        "why": why,
        "started": plan["started"],
        "finished": finished,
        "accelerator": plan["accelerator"],
        "coverage": covered,
        "gpu_hours": coverage.gpu_hours(workloads),
        "versions": {**plan["versions"], "slurm": slurm if isinstance(slurm, str) else None},
        "cluster": folding.cluster(cluster),
        "workloads": [folding.workload(each) for each in workloads],
        "findings": findings,
        "checks": fold.folded(table),
        "sidecar": None,
        "evidence": _inventory(folder),
    }
    return t.cast(Json, presentable(document)), table


def of_workload(folder: Path, manifest: Json, not_run: str) -> Json:
    """Return the verdict of one workload of the plan; `not_run` is the reason if nothing was recorded."""
    blank = _blank(manifest)
    name = f"workloads/{manifest['id']}.json"
    try:
        recorded = records.read(folder, name)
        if "earlier" in recorded:
            return {**blank, **_stands(recorded["earlier"], name)}
        as_planned.require_whole(recorded, name)
    except FileNotFoundError:
        return {**blank, "verdict": "undetermined", "why": not_run}
    except (OSError, ValueError, TypeError, KeyError, schema.SchemaError) as exc:
        return {**blank, "verdict": "undetermined", "why": f"{folder / name} cannot be read back: {exc}"}
    return {
        **blank,
        **_judged(manifest, recorded),
        "job": recorded["job"],
        "data": recorded["data"],
        "criteria": recorded["criteria"],
    }


def _blank(workload: Json) -> Json:
    return {**{key: workload[key] for key in ("id", "name", "title")}, "job": None, "data": {}, "criteria": []}


def _left_out(workload: Json) -> Json:
    """Return a workload that the inventory leaves out, with its reason."""
    return {**_blank(workload), "verdict": LEFT_OUT, "why": workload["why"]}


def is_of_this_run(workload: Json) -> bool:
    """Return whether the run was to run it: the inventory does not leave it out, and no earlier pass is valid."""
    return workload["verdict"] != LEFT_OUT and "earlier" not in workload


def verdict_of(verdicts: t.Iterable[str]) -> str:
    """Return one verdict for many: fail before undetermined before pass; without any pass it is undetermined."""
    seen = set(verdicts)
    for verdict in ("fail", "undetermined", "pass"):
        if verdict in seen:
            return verdict
    return "undetermined"


def has_passed(workload: Json) -> bool:
    """Return whether it passed in this run, or an earlier pass is valid, so that those that need it may run."""
    return workload["verdict"] == "pass" or "earlier" in workload


def unmet(manifest: Json, workloads: list[Json]) -> str:
    """Return which of the workloads that this one needs did not pass, in words; those not in the run do not count."""
    needed = [each for each in workloads if each["id"] in manifest.get("needs", []) and not has_passed(each)]
    return ", ".join(f"{each['id']} {'failed' if each['verdict'] == 'fail' else 'is undetermined'}" for each in needed)


def _not_run(finished: float | None, lacking: str) -> str:
    if finished is None:
        return NOT_FINISHED
    return f"not_run: {lacking or 'the run ended before it was judged, see the findings'}"


def _stands(earlier: t.Any, name: str) -> Json:
    """Return an earlier pass as recorded: it only decides whether the workloads that need it run."""
    schema.require("earlier", earlier, name)
    return {"verdict": "recorded", "why": f"passed in run {earlier['run']}, not run again", "earlier": earlier}


def _judged(manifest: Json, recorded: Json) -> Json:
    criteria, amiss = recorded["criteria"], as_planned.differences(manifest, recorded)
    verdict = verdict_of([overall(criteria), *(["undetermined"] if amiss else [])])
    if verdict == "pass":
        return {"verdict": verdict, "why": "every applicable criterion passed"}
    odd = [f"{c['id']}: {c['why']}" for c in criteria if c["verdict"] == verdict and c["severity"] == "gate"]
    return {"verdict": verdict, "why": "; ".join([*odd, *amiss]) or "nothing was judged"}


def _any_passed(workloads: list[Json]) -> bool:
    return any(workload["verdict"] == "pass" for workload in workloads)


def _why(verdict: str, workloads: list[Json], findings: list[Json], count: int) -> str:
    if verdict == "pass" and not workloads:
        return f"no problem in {count} finding{'s' * (count != 1)}"
    if verdict == "pass":
        ran = len(list(filter(is_of_this_run, workloads)))
        return f"{ran} of {ran} workloads passed"
    told = [f"{each['id']}: {each['why']}" for each in workloads if each["verdict"] == verdict]
    # What holds a workload back is told as its reason, and such a workload is undetermined.
    known = held_back.is_one if verdict == "undetermined" else (lambda _finding: False)
    faults = groups.grouped(each for each in findings if each["verdict"] == verdict and not known(each))
    told = [*(f"{each['id']}: {each['at']}{each['why']}" for each in faults), *told]
    more = [f"and {len(told) - MAX_REASONS} more"] if len(told) > MAX_REASONS else []
    return "; ".join([*told[:MAX_REASONS], *more]) or "nothing was judged"


def _lost(table: Table, probed: Json | None) -> list[Json]:
    """Return findings about the nodes in scope that have no result. If no job was to run on any, that is no news."""
    probed = probed or {}
    if not probed.get("nodes") and held_back.others(table):
        return []
    return complete.lost(table, probed.get("scope") or [])


def _inventory(folder: Path) -> list[Json]:
    files = []
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder).as_posix()
        made = relative in MADE_OF_IT or card.is_made(relative)
        if path.is_file() and not made and not path.name.startswith("."):
            content = path.read_bytes()
            files.append({"path": relative, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()})
    return files
