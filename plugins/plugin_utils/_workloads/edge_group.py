# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell which workloads cannot run without hosts in the inventory's group edge, and which hosts a run needs. PRIVATE."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.manifests import WorkloadError

Workloads = t.Iterable[dict[str, t.Any]]
NO_HOST = "no host in the inventory's group edge"
EXAMPLE = "edge: {hosts: {jetson01: {ansible_host: 192.168.100.50}}}"


def needing(workloads: Workloads) -> list[str]:
    """Return the IDs of those that are measured on edge hosts."""
    return [workload["id"] for workload in workloads if workload.get("edge")]


def left_out(workloads: Workloads, hosts: t.Collection[str]) -> dict[str, str]:
    """Return why those that need edge hosts are not applicable, by ID; none where there are hosts."""
    return {} if hosts else dict.fromkeys(needing(workloads), NO_HOST)


def require(workloads: Workloads, wanted: t.Container[str], hosts: t.Collection[str]) -> None:
    """Raise WorkloadError if one of the `wanted` is measured on edge hosts and there are none."""
    lacking = [name for name in ([] if hosts else needing(workloads)) if name in wanted]
    if lacking:
        raise WorkloadError(
            f"{', '.join(lacking)} is measured on the hosts of the inventory's group edge, which has none; add one, "
            f"such as {EXAMPLE}"
        )


def of_run(workloads: Workloads, hosts: t.Iterable[str]) -> list[str]:
    """Return the edge hosts that a run of these workloads looks at: all of them, or none."""
    return list(hosts) if needing(workloads) else []
