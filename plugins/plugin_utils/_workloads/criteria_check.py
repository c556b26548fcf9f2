# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find faults in the criteria of a manifest, and what they read that its job does not write.

PRIVATE to the collection.
"""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import criterion as kinds
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import log_patterns, query, soundness, spec
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.notes import Wrong
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import UndeterminedError

Manifest = dict[str, t.Any]
Faults = t.Iterator[tuple[tuple[t.Any, ...], str]]

# The documents of every job, and those that depend on a key of the manifest. roles/workload collects these names.
DOCUMENTS = ("metrics", "provenance", "gpu")
EDGE = "edge"  # which roles/edge adds
NO_EDGE = "the document edge is there only with `edge: true`"
PARTS = tuple(sorted(set(soundness.PARTS) - {"logs", "baseline"}))  # queries cannot read those two


def documents(manifest: Manifest) -> list[str]:
    """Return what a query may begin with: the documents of the job, then the parts of the evidence itself."""
    output = manifest.get("output")
    progress = ["progress"] if isinstance(output, dict) and "progress" in output else []
    legs = ["legs"] if "launcher" in manifest else []
    return [*DOCUMENTS, *progress, *legs, *([EDGE] if manifest.get(EDGE) else []), *PARTS]


def faults(manifest: Manifest) -> Faults:
    """Yield the wrong keys of criteria with the reasons; their places begin with criteria and a position."""
    criteria = manifest.get("criteria")
    patterns = log_patterns.load()
    seen: dict[str, int] = {}
    for position, entry in enumerate(criteria if isinstance(criteria, list) else []):
        place = ("criteria", position)
        try:
            (criterion,) = spec.read([entry], workload=str(manifest.get("id")), pattern_sets=patterns)
        except spec.CriteriaError as exc:
            for wrong in exc.wrong or [Wrong("-", str(exc))]:
                key, why = _of_one_key(wrong)
                yield (*place, *key), why
            continue
        if seen.setdefault(criterion.id, position) != position:
            yield (*place, "id"), f"{criterion.id} appears twice; give each criterion its own ID"
        for key, why in _unanswerable(criterion, manifest):
            yield (*place, *key), why


def without_edge(manifest: Manifest) -> Faults:
    """Yield the criteria that read the document edge, of a workload that is not measured on edge hosts.

    What cannot be read as a criterion is not looked at: whoever selects the workload is told of it.
    """
    for position, entry in enumerate([] if manifest.get(EDGE) else manifest["criteria"]):
        try:
            (criterion,) = spec.read([entry], workload=str(manifest.get("id")))
        except spec.CriteriaError:
            continue
        for key, expression in _asked(criterion.source):
            if _unknown_root(expression.tree, []) == EDGE:
                yield ("criteria", position, *key), NO_EDGE


def _of_one_key(wrong: Wrong) -> tuple[tuple[str, ...], str]:
    """Return the key as a place; a fault of several keys or of the whole belongs to the criterion."""
    if " " in wrong.key:
        return (), f"{wrong.key}: {wrong.why}"
    return (() if wrong.key in ("-", "test") else tuple(wrong.key.split("."))), wrong.why


def _unanswerable(criterion: kinds.Criterion, manifest: Manifest) -> t.Iterator[tuple[tuple[str, ...], str]]:
    """Yield what the evidence of this workload can never answer."""
    output = manifest.get("output")
    kept = output.get("artifacts", []) if isinstance(output, dict) else []
    source = criterion.source
    if isinstance(source, kinds.Artifact) and source.name not in kept:
        yield ("artifact",), f"{source.name!r} is not collected; add it to output.artifacts"
    there = documents(manifest)
    for key, expression in _asked(source):
        root = _unknown_root(expression.tree, there)
        if root == EDGE:
            yield key, NO_EDGE
        elif root is not None:
            yield key, f"unknown document {root!r}; available: {', '.join(there)}"


def _asked(source: kinds.Source) -> t.Iterator[tuple[tuple[str, ...], kinds.Expression]]:
    """Yield the expressions that are evaluated on the whole evidence, not on an element, with their keys."""
    test = kinds.value_test(source)
    inside: tuple[str, ...] = ("each",) if isinstance(source, kinds.Each) else ()
    if isinstance(source, kinds.Query):
        yield ("query",), source.expression
    if isinstance(source, kinds.Each):
        yield (*inside, "over"), source.over
        if isinstance(source.number, kinds.Expression):
            yield (*inside, "count" if source.exactly else "at_least"), source.number
    if test and test.divisor:
        yield (*inside, test.name, "to"), test.divisor


def _unknown_root(tree: t.Any, there: list[str]) -> str | None:
    """Return a document that the query reads but no run of this workload has, or None."""
    try:
        query.evaluate(tree, {name: {} for name in there}, set())
    except query.UnansweredError as exc:
        return exc.root
    except UndeterminedError:
        return None
    return None
