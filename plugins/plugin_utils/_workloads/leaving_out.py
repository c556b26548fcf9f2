# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check hpc_validation_leave_out, the workloads that the inventory leaves out, each with its reason. PRIVATE."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.manifests import WorkloadError


def check(leave_out: t.Any, known: list[str]) -> dict[str, str]:
    """Return the reasons by workload ID, each without white space around it.

    Raise WorkloadError for an unknown ID, and for a reason that a report cannot show on one line.
    """
    if not isinstance(leave_out, dict):
        raise WorkloadError(f"hpc_validation_leave_out: expected a mapping of IDs to reasons, found {leave_out!r}")
    unknown = [str(name) for name in leave_out if name not in known]
    if unknown:
        raise WorkloadError(
            f"hpc_validation_leave_out: unknown workload {', '.join(unknown)}; available: {', '.join(known) or 'none'}"
        )
    for name, reason in leave_out.items():
        if not isinstance(reason, str) or not reason.strip() or not reason.strip().isprintable():
            raise WorkloadError(
                f"hpc_validation_leave_out.{name}: expected the reason, as text on one line, found {reason!r}"
            )
    return {name: reason.strip() for name, reason in leave_out.items()}


def require_no_need(workloads: list[dict[str, t.Any]], wanted: set[str], leave_out: t.Mapping[str, str]) -> None:
    """Raise WorkloadError if one of the `wanted` needs one that is left out: it could not run."""
    for workload in workloads:
        needs = [need for need in workload["needs"] if need in leave_out]
        if workload["id"] in wanted and needs:
            raise WorkloadError(
                f"hpc_validation_leave_out: {workload['id']} needs {', '.join(needs)}; leave out {workload['id']} as "
                f"well, or run {', '.join(needs)}"
            )


def require_not_named(named: set[str], leave_out: t.Mapping[str, str]) -> None:
    """Raise WorkloadError if a workload that is selected by ID is left out."""
    both = sorted(named & set(leave_out))
    if both:
        raise WorkloadError(
            f"hpc_validation_leave_out: {', '.join(both)} is also selected by hpc_validation_only or --tags; take it "
            "out of one of them"
        )
