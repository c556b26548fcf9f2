# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell which workloads are held back, since the partition cannot hold them or start them now; the others still run."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings.columns import Table

Json = dict[str, t.Any]
# Findings of preflight about one workload: if they did not pass, only that one is not submitted.
CHECKS = ("scheduler.gres", "scheduler.nodes")
AMISS = ("fail", "undetermined")


def is_one(finding: Json) -> bool:
    """Return whether the finding holds a workload back."""
    return finding["id"] in CHECKS and finding["verdict"] in AMISS and "workload" in finding["where"]


def findings(table: Table) -> list[Json]:
    """Return the findings that hold a workload back."""
    checks = filter(None, map(table.checks.get, CHECKS))
    return [told for check in checks for n in range(len(check)) if is_one(told := check.get(n, table.places))]


def others(table: Table) -> int:
    """Return how many other findings fail or are undetermined: after one of these nothing is submitted."""
    verdicts = table.verdicts()
    return sum(verdicts[verdict] for verdict in AMISS) - len(findings(table))


def reasons(table: Table) -> dict[str, str]:
    """Return why each workload is held back, by ID."""
    return {told["where"]["workload"]: told["why"] for told in findings(table)}


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
