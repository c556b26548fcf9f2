# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last lines on the screen: verdict, coverage, what failed and its remedy, the evidence, the next command."""

from __future__ import annotations

import typing as t
from pathlib import Path

Json = dict[str, t.Any]
WORDS = {"pass": "PASS", "fail": "FAIL", "undetermined": "UNDETERMINED"}


def _value(judged: Json) -> str:
    unit = f" {judged['unit']}" if judged["unit"] else ""
    value = judged["value"]
    if isinstance(value, float):
        value = f"{value:.6g}"
    return f"value {value}{unit}, bound {judged['bound']}{unit}"


def _where(finding: Json) -> str:
    return ", ".join(f"{key} {value}" for key, value in finding.get("where", {}).items() if key != "step")


def _odd(judged: Json, prefix: str = "") -> list[str]:
    place = _where(judged)
    lines = [f"  {judged['verdict']:<13} {prefix}{judged['id']}  {judged['title']}{f' ({place})' if place else ''}"]
    lines.append(f"                {_value(judged)}")
    lines.append(f"                why: {judged['why']}")
    if judged["remedy"]:
        lines.append(f"                do:  {judged['remedy']}")
    return lines


def _coverage(coverage: Json) -> str:
    parts = []
    for kind in ("nodes", "gpus"):
        exercised, scope = coverage[kind]["exercised"], coverage[kind]["in_scope"]
        name = "GPUs" if kind == "gpus" else kind
        text = f"{len(exercised)} of {'an unknown number of' if scope is None else scope} {name}"
        parts.append(text + (f" ({', '.join(exercised)})" if exercised and kind == "nodes" else ""))
    return ", ".join(parts)


def _next_command(verdict: Json, folder: Path) -> str:
    if verdict["verdict"] == "pass":
        return f"less {folder}/verdict.json"
    jobs = [w["job"] for w in verdict["workloads"] if w["job"] and w["verdict"] != "pass" and w["job"].get("stderr")]
    if jobs:
        return f"tail -n 50 {jobs[0]['stderr']}    (on the login node)"
    return f"less {folder}/verdict.json"


def summary(verdict: Json, folder: Path) -> list[str]:
    """Lines for a person, at most some 20 for a pass and four for each thing that is not one."""
    lines = [f"VERDICT: {WORDS[verdict['verdict']]}  {verdict['title']}"]
    if verdict["accelerator"] != "cuda":
        lines.append(f"  on {verdict['accelerator']} hardware: says nothing about real GPUs")
    lines.append(f"  coverage: {_coverage(verdict['coverage'])}")
    lines += [f"  left out: {left['name']} ({left['why']})" for left in verdict["coverage"]["left_out"]]
    for workload in verdict["workloads"]:
        job = f", job {workload['job']['job_id']} on {','.join(workload['job']['nodes'])}" if workload["job"] else ""
        lines.append(f"{workload['id']} {WORDS[workload['verdict']]}  {workload['title']}{job}")
        for name, source in sorted(workload["data"].items()):
            lines.append(f"  data {name}: {source}")
        if not workload["criteria"]:
            lines.append(f"  {workload['why']}")
        for judged in workload["criteria"]:
            if judged["verdict"] in ("fail", "undetermined", "waived"):
                lines += _odd(judged, f"{workload['id']} ")
            else:
                lines.append(f"  {judged['verdict']:<13} {judged['id']}  {judged['title']}: {_value(judged)}")
    for finding in verdict["findings"]:
        if finding["verdict"] in ("fail", "undetermined", "waived"):
            lines += _odd(finding)
    passed = sum(finding["verdict"] == "pass" for finding in verdict["findings"])
    if verdict["findings"]:
        lines.append(f"preflight and steps: {passed} of {len(verdict['findings'])} findings pass")
    lines.append(f"evidence: {folder}")
    lines.append(f"next:     {_next_command(verdict, folder)}")
    return lines
