# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell which workloads are held back, by their partition or by the edge hosts that they need; the others still run."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings.columns import Table

Json = dict[str, t.Any]
# Findings about an edge host: nothing depends on one but what is measured there, if the finding names that.
EDGE = ("edge.reached", "edge.python", "edge.wheels")
# Findings about one workload: if they did not pass, only that one is not submitted.
CHECKS = ("scheduler.gres", "scheduler.nodes", *EDGE)
AMISS = ("fail", "undetermined")


def is_one(finding: Json) -> bool:
    """Return whether the finding holds a workload back."""
    return finding["id"] in CHECKS and finding["verdict"] in AMISS and "workload" in finding["where"]


def findings(table: Table) -> list[Json]:
    """Return the findings that hold a workload back."""
    return [told for told in _of(table, CHECKS) if is_one(told)]


def _of(table: Table, names: t.Iterable[str]) -> t.Iterator[Json]:
    for check in filter(None, map(table.checks.get, names)):
        yield from (check.get(n, table.places) for n in range(len(check)))


def others(table: Table) -> int:
    """Return how many other findings fail or are undetermined: after one of these nothing is submitted."""
    verdicts = table.verdicts()
    aside = [told for told in _of(table, EDGE) if told["verdict"] in AMISS and not is_one(told)]
    return sum(verdicts[verdict] for verdict in AMISS) - len(findings(table)) - len(aside)


def reasons(table: Table) -> dict[str, str]:
    """Return why each workload is held back, by ID; of several hosts each with its name."""
    found: dict[str, list[str]] = {}
    for told in findings(table):
        host = told["where"].get("host")
        found.setdefault(told["where"]["workload"], []).append(f"{host}: {told['why']}" if host else told["why"])
    return {name: "; ".join(whys) for name, whys in found.items()}


def with_dependents(held: dict[str, str], workloads: list[Json]) -> dict[str, str]:
    """Return why each of `workloads` is not submitted: it is held back, or needs one of them that is.

    A workload comes after those that it needs.
    """
    found: dict[str, str] = {}
    for workload in workloads:
        needs = [need for need in workload.get("needs", []) if need in found]
        if workload["id"] in held:
            found[workload["id"]] = held[workload["id"]]
        elif needs:
            found[workload["id"]] = f"it needs {', '.join(needs)}"
    return found
