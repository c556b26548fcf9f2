# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Select the workloads of a run, and the waves in which they are submitted. PRIVATE to the collection."""

from __future__ import annotations

import re
import types
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import edge_group, leaving_out
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.manifests import WorkloadError

LOOKS_LIKE_ID = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)+(\.[0-9]+)*")


class Selected(t.NamedTuple):
    """The workloads of a run, and those of its categories that the inventory leaves out."""

    run: list[dict[str, t.Any]]
    left_out: list[dict[str, t.Any]]


def select(
    workloads: list[dict[str, t.Any]],
    categories: list[int] | None,
    only: list[str],
    run_tags: list[str],
    leave_out: t.Mapping[str, str] = types.MappingProxyType({}),
    edge_hosts: t.Collection[str] = (),
) -> Selected:
    """Return the selected workloads: by ID (`only`, or IDs among the tags), else those of `categories` and their needs.

    Without `categories` (None) all are selected. `asked` is added to each, False if it is only needed; a selection by
    ID does not add needs. `leave_out` has the reason of each workload that is not to be run, by ID; it is added as
    `why`. Without `edge_hosts`, what is measured on edge hosts is left out where all are selected. Raise WorkloadError
    if an ID is unknown, if nothing is left to run, if a workload is left out that is selected by ID or that another one
    needs, or if one needs edge hosts and there are none.
    """
    known = [workload["id"] for workload in workloads]
    named = _named(known, only, run_tags)
    if named is None and categories is None:
        leave_out = {**edge_group.left_out(workloads, edge_hosts), **leave_out}
    if named is None:
        asked = {each["id"] for each in workloads if categories is None or each["category"] in categories}
        out = asked & set(leave_out)
        asked -= out
        wanted = _with_needs(workloads, asked)
        leaving_out.require_no_need(workloads, wanted, leave_out)
    else:
        asked, out = named, set()
        wanted = named
        leaving_out.require_not_named(named, leave_out)
    edge_group.require(workloads, wanted, edge_hosts)
    chosen = [{**each, "asked": each["id"] in asked} for each in workloads if each["id"] in wanted]
    if not chosen:
        raise WorkloadError(
            f"no workload is selected: categories {'all' if categories is None else categories}, hpc_validation_only "
            f"{only}, --tags {run_tags}, hpc_validation_leave_out {sorted(out)}; {_known_are(known)}"
        )
    return Selected(chosen, [{**each, "why": leave_out[each["id"]]} for each in workloads if each["id"] in out])


def _named(known: list[str], only: list[str], run_tags: list[str]) -> set[str] | None:
    """Return the IDs that `only` and the tags name, in both if both name any; None if neither does."""
    _require_known("hpc_validation_only", only, known)
    _require_known("--tags", filter(LOOKS_LIKE_ID.fullmatch, run_tags), known)
    tagged = [name for name in known if name in run_tags]
    if "all" not in run_tags and not tagged:
        raise WorkloadError(f"--tags {','.join(run_tags)} selects no workload; {_known_are(known)}")
    return set(only or known) & set(tagged or known) if only or tagged else None


def _require_known(setting: str, names: t.Iterable[str], known: list[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise WorkloadError(f"{setting}: unknown workload {', '.join(unknown)}; {_known_are(known)}")


def _known_are(known: list[str]) -> str:
    return f"available: {', '.join(known) or 'none'}"


def _with_needs(workloads: list[dict[str, t.Any]], asked: set[str]) -> set[str]:
    wanted = set(asked)
    for workload in reversed(workloads):  # each is after those that it needs
        if workload["id"] in wanted:
            wanted |= set(workload["needs"])
    return wanted


def waves(selected: list[dict[str, t.Any]]) -> list[list[str]]:
    """Return the IDs of `selected` in the order of running, grouped into waves that are queued together.

    A workload comes after those that it needs, and is alone in its wave if its manifest has `alone`.
    """
    found: list[list[dict[str, t.Any]]] = []
    place: dict[str, int] = {}
    for workload in selected:
        first = 1 + max((place[need] for need in workload["needs"] if need in place), default=-1)
        fits = (n for n in range(first, len(found)) if not workload["alone"] and not found[n][0]["alone"])
        wave = next(fits, len(found))
        if wave == len(found):
            found.append([])
        found[wave].append(workload)
        place[workload["id"]] = wave
    return [[workload["id"] for workload in wave] for wave in found]
