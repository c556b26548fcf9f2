# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which workloads a run has, and in which waves they go to the queue. PRIVATE to the collection."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.manifests import WorkloadError

LOOKS_LIKE_ID = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)*-[0-9]+(\.[0-9]+)*")


def select(
    workloads: list[dict[str, t.Any]], categories: list[int], only: list[str], run_tags: list[str]
) -> list[dict[str, t.Any]]:
    """Those that were asked for: by id (`only`, or ids among the tags), else all of `categories` and what these need.

    Each has `asked` added, False for one that is only needed: who names ids gets these alone. Raises WorkloadError when
    an id is unknown or nothing is left: a run of nothing proves nothing.
    """
    known = [workload["id"] for workload in workloads]
    named = _named(known, only, run_tags)
    if named is None:
        asked = {workload["id"] for workload in workloads if workload["category"] in categories}
        wanted = _with_needs(workloads, asked)
    else:
        asked = wanted = named
    chosen = [{**each, "asked": each["id"] in asked} for each in workloads if each["id"] in wanted]
    if not chosen:
        raise WorkloadError(
            f"no workload is selected: categories {categories}, hpc_validation_only {only}, --tags {run_tags}; "
            f"{_known_are(known)}"
        )
    return chosen


def _named(known: list[str], only: list[str], run_tags: list[str]) -> set[str] | None:
    """The ids that `only` and the tags name, of both where both do; None where neither names one."""
    _require_known("hpc_validation_only", only, known)
    _require_known("--tags", filter(LOOKS_LIKE_ID.fullmatch, run_tags), known)
    tagged = [name for name in known if name in run_tags]
    if "all" not in run_tags and not tagged:
        raise WorkloadError(f"--tags {','.join(run_tags)} selects no workload; {_known_are(known)}")
    return set(only or known) & set(tagged or known) if only or tagged else None


def _require_known(setting: str, names: t.Iterable[str], known: list[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise WorkloadError(f"{setting} names {', '.join(unknown)}; {_known_are(known)}")


def _known_are(known: list[str]) -> str:
    return f"known are {', '.join(known) or 'none'}"


def _with_needs(workloads: list[dict[str, t.Any]], asked: set[str]) -> set[str]:
    wanted = set(asked)
    for workload in reversed(workloads):  # each comes after those that it needs
        if workload["id"] in wanted:
            wanted |= set(workload["needs"])
    return wanted


def waves(selected: list[dict[str, t.Any]]) -> list[list[str]]:
    """The ids of `selected` in the order in which they are run, those together whose jobs may be in the queue together.

    A workload comes after those that it needs, and is the only one of its wave where its manifest says `alone`.
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
