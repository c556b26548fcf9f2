# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Format the last lines on the screen: verdict, coverage, failures with remedies, the evidence, the next command."""

from __future__ import annotations

import typing as t
from collections import Counter
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import groups
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import criteria_table, findings_table

Json = dict[str, t.Any]
REASONS = 10  # lines about what was left out; each node may have a reason of its own


def summary(verdict: Json, folder: Path, cards: t.Sequence[str] = ()) -> list[str]:
    """Return the lines: all that did not pass in full, the rest in numbers (`metrics_assert` has shown the values).

    `cards` are the lines about the deployment cards.
    """
    lines = [f"VERDICT: {verdict['verdict'].upper()}  {verdict['title']}"]
    if verdict["accelerator"] != "cuda":
        lines.append(f"  on {verdict['accelerator']} hardware: says nothing about real GPUs")
    lines.append(f"  coverage: {_coverage(verdict['coverage'])}")
    lines += _reasons("left out", verdict["coverage"]["left_out"])
    lines += _reasons("out of scope", verdict["coverage"]["outside"])
    if verdict["workloads"]:
        lines.append(f"  cost: {_hours(verdict['gpu_hours'])} GPU-hours")
    for workload in verdict["workloads"]:
        if workload["verdict"] == "not_applicable":
            continue  # its line is under coverage
        job = f", job {workload['job']['job_id']} on {workload['job']['nodes']}" if workload["job"] else ""
        lines.append(f"{workload['id']}: {workload['verdict'].upper()}  {workload['title']}{job}")
        lines += [f"  data {name}: {source}" for name, source in sorted(workload["data"].items())]
        if not workload["criteria"]:
            lines.append(f"  {workload['why']}")
        elif workload["verdict"] == "pass":
            lines += _told(workload["criteria"])
        else:
            lines += _judged("criteria", workload["criteria"])
    lines += [*_preflight(verdict), *cards]
    lines.append(f"evidence: {folder}")
    lines.append(f"next:     {_next_command(verdict, folder)}")
    return lines


def _reasons(what: str, left: list[Json]) -> list[str]:
    """Return a line for each reason, with those of most nodes if there are too many."""
    shown = left
    if len(left) > REASONS:
        chosen = sorted(range(len(left)), key=lambda number: -left[number]["count"])[: REASONS - 1]
        shown = [left[number] for number in sorted(chosen)]
    lines = [f"  {what}: {each['name']} ({each['why']})" for each in shown]
    if len(shown) < len(left):
        count = sum(each["count"] for each in left) - sum(each["count"] for each in shown)
        others = f"{len(left) - len(shown)} other reasons"
        lines.append(f"  {what}: {count} more, for {others} (under coverage in verdict.json)")
    return lines


def _judged(kind: str, judged: list[Json]) -> list[str]:
    counts = Counter(entry["verdict"] for entry in judged)
    lines = [f"  {len(judged)} {kind}: " + ", ".join(f"{count} {word}" for word, count in counts.most_common())]
    return lines + _told(judged)


def _told(judged: list[Json]) -> list[str]:
    """Return the lines of those that are told; `metrics_assert` has counted the others."""
    told = [entry for entry in judged if _is_told(entry)]
    return ["  " + line for line in criteria_table.render("", "", told).splitlines()[1:]]


def _is_told(entry: Json) -> bool:
    """Return whether to show it: what did not pass, what the site has changed, and speed-ups."""
    amiss = entry["verdict"] in findings_table.AMISS
    return bool(amiss or entry["bound_from"] == "override" or entry["against_baseline"])


def _preflight(verdict: Json) -> list[str]:
    """Return one line if nothing is amiss, else a line for each part, with what did not pass in it."""
    if not verdict["findings"]:
        return [f"preflight: {groups.counts(verdict['checks'])}"] if verdict["checks"] else []
    lines = ["preflight:"]
    for part, checks in groups.by_part(verdict).items():
        lines += _part(part, list(checks.values()))
    return lines


def _part(part: str, checks: list[tuple[list[Json], list[Json]]]) -> list[str]:
    """Return a line for a part of the preflight, followed by what did not pass in it."""
    findings = [finding for found, _entries in checks for finding in found]
    every = [*findings, *(entry for _found, entries in checks for entry in entries)]
    verdicts = {each["verdict"] for each in every}
    worst = next((word for word in ("fail", "undetermined", "pass", "waived") if word in verdicts), "recorded")
    worst = worst.upper() if worst in ("fail", "undetermined") else worst
    line = f"  {part:<11} {worst:<13} {groups.counts(every)}"
    return [line, *("  " + told for told in findings_table.faults(findings))]


def _hours(hours: float | None) -> str:
    return "an unknown number of" if hours is None else f"{hours:.2f}"


def _coverage(coverage: Json) -> str:
    nodes, gpus = coverage["nodes"], coverage["gpus"]
    names = f" ({nodes['exercised']})" if nodes["exercised"] else ""
    return f"{_share(nodes)} nodes{names}, {_share(gpus)} GPUs"


def _share(covered: Json) -> str:
    scope = covered["in_scope"]
    return f"{covered['count']} of {'an unknown number of' if scope is None else scope}"


def _next_command(verdict: Json, folder: Path) -> str:
    for workload in verdict["workloads"]:
        if workload["verdict"] != "pass" and workload["job"] and workload["job"]["stderr"]:
            return f"tail -n 50 {workload['job']['stderr']}    (on the login node)"
    return f"less {folder}/verdict.json"
