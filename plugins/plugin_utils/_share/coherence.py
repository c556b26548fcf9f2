# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what two nodes saw of each other's files and locks. PRIVATE to the collection."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.facts import at, text
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.judging import judge

Json = dict[str, t.Any]
SOURCE = "python -m kit coherence"
STEPS = {
    "create": "share.coherence",
    "overwrite": "share.coherence_overwrite",
    "rename": "share.coherence_rename",
    "unlink": "share.coherence_unlink",
}
LOCKS = "share.locks_across_nodes"


def coherence_findings(document: t.Any, expect: t.Any, *, nodes: list[str], share_type: str = "beegfs") -> list[Json]:
    """Judge what two nodes saw of each other's files; `nodes` are the two that ran it. Raise ExpectError."""
    judging = judge(expect, share_type, {})
    problem = text(at(document, "error")) or _other_nodes(at(document, "nodes"), nodes)
    if problem:  # nothing was compared: one finding is enough
        return [judging.check("share.coherence", "eq", True, None, SOURCE, missing=problem)]
    directions = at(document, "directions")
    found = []
    for writer, reader in (nodes, nodes[::-1]):
        told = _told(directions if isinstance(directions, list) else [], writer, reader)
        found += _files(judging, told, writer, reader, at(document, "wait"))
        found += _locks(judging, told, writer, reader)
    return found


def _other_nodes(told: t.Any, nodes: list[str]) -> str | None:
    """Return why the nodes `told` in the document are not the two requested ones, or None if they are."""
    if isinstance(told, list) and sorted(map(str, told)) == sorted(nodes) and len(set(nodes)) == 2:
        return None
    return f"expected a run on {' and '.join(nodes)}, found {told}"


def _told(directions: list[t.Any], writer: str, reader: str) -> t.Any:
    of_both = (each for each in directions if at(each, "writer") == writer and at(each, "reader") == reader)
    return next(of_both, None)


def _files(judging: Judge, told: t.Any, writer: str, reader: str, wait: t.Any) -> list[Json]:
    """Judge what was written on one node and awaited on the other for `wait` seconds."""
    found = []
    for step, identity in STEPS.items():
        seen, seconds = at(told, "steps", step, "seen"), at(told, "steps", step, "seconds")
        test, limit, value, unit = _outcome(judging.expect["coherence_seconds"], seen, seconds, wait)
        found.append(
            judging.check(
                identity,
                test,
                limit,
                value,
                SOURCE,
                unit=unit,
                missing=f"it was awaited for only {wait} s" if seen is False else "it was not reported",
                detail=f"written on {writer}, awaited on {reader}",
                node=reader,
            )
        )
    return found


def _outcome(bound: t.Any, seen: t.Any, seconds: t.Any, wait: t.Any) -> tuple[str, t.Any, t.Any, str | None]:
    """Return test, bound, value and unit of one step."""
    gave_up_early = scalars.is_number(wait) and wait < bound
    if seen is False and not gave_up_early:  # it was awaited until the reader gave up
        return "eq", f"seen within {bound} s", "not seen", None
    return "le", bound, seconds if seen is True else None, "s"


def _locks(judging: Judge, told: t.Any, writer: str, reader: str) -> list[Json]:
    found = []
    for kind in ("flock", "fcntl"):
        held, again = (text(at(told, "locks", kind, key)) for key in ("while_held", "after_release"))
        found.append(
            judging.check(
                LOCKS,
                "eq",
                "refused while held, granted after",
                f"{held} while held, {again} after" if held and again else None,
                f"{SOURCE}: {kind}",
                missing="it was not reported",
                detail=f"held on {writer}, tried on {reader}",
                record=judging.expect["global_locks"] is False,
                node=reader,
            )
        )
    return found
