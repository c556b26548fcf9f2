# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what a value is compared with: a reference of the inventory, its own run, or the runs of a baseline.

Pure. PRIVATE to the collection.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import baseline
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.applies import fits
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.comparisons import Denominator, Needs
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import Expression, ValueTest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import (
    Missing,
    UndeterminedError,
    with_reduced_fields,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.soundness import (
    Json,
    evaluate,
    require_collected,
    require_own,
    require_read,
)


def needs_of(test: ValueTest, evidence: Json, references: Json, missing: Missing) -> Needs:
    """Return what the test may need."""

    def reference(name: str) -> float:
        return _reference(name, references.get(name), evidence.get("context"))

    def denominator(_divisor: str, whose: str) -> Denominator:
        divisor = test.divisor
        if divisor is None:
            raise UndeterminedError(f"the criterion does not say what {test.name} divides by")
        if whose == "own":
            return Denominator([_divided_by(divisor, evidence, "own", missing)])
        return _against_baseline(divisor, evidence, missing)

    return Needs(reference=reference, denominator=denominator, missing=missing)


def _divided_by(divisor: Expression, evidence: Json, whose: str, missing: Missing) -> float:
    found = evaluate(divisor, evidence, set(), missing)
    try:
        return scalars.number(found)
    except scalars.NotANumberError as exc:
        raise UndeterminedError(f"{whose} {divisor.text} {exc}") from exc


def _against_baseline(divisor: Expression, evidence: Json, missing: Missing) -> Denominator:
    require_read(evidence, "baseline")
    runs = baseline.runs(evidence)
    for root in baseline.COMPARED_OF_OWN:
        require_own(evidence, root)
    values = [_of_run(divisor, evidence, run, missing) for run in runs]
    return Denominator(values, baseline.age(evidence, runs))


def _of_run(divisor: Expression, evidence: Json, run: Json, missing: Missing) -> float:
    run = with_reduced_fields(run)
    try:
        require_collected(run)
        for root in baseline.COMPARED:
            require_own(run, root)
        baseline.require_comparable(evidence, run)
        return _divided_by(divisor, run, "its", missing)
    except UndeterminedError as exc:
        raise UndeterminedError(f"{baseline.title(run)}: {exc}", exc.remedy) from exc


def _reference(name: str, entry: Any, context: Any) -> float:
    """Return the reference for this hardware: the value with the most matching conditions.

    Raise UndeterminedError also if it is not known whether an entry with as many conditions matches.
    """
    if scalars.is_number(entry):
        return float(entry)
    found: list[tuple[int, float | UndeterminedError]] = []
    for item in entry if isinstance(entry, list) else []:
        count = len(item["when"])
        try:
            if _is_for(item["when"], context, f"the inventory has a reference {name!r}"):
                found.append((count, float(item["value"])))
        except UndeterminedError as exc:
            found.append((count, exc))
    if not found:
        raise UndeterminedError(
            f"the inventory has no reference {name!r} for this hardware",
            f"Add {name} for this hardware to the inventory's references, from a run known to be good.",
        )
    most = max(count for count, value in found)
    values: set[float] = set()
    for count, value in found:
        if count == most:
            if isinstance(value, UndeterminedError):
                raise value
            values.add(value)
    if len(values) > 1:
        raise UndeterminedError(f"the inventory has {len(values)} references {name!r} that match this hardware equally")
    return values.pop()


def _is_for(conditions: dict[str, Any], context: Any, subject: str) -> bool:
    """Return whether all conditions hold; one that does not decides. Raise UndeterminedError if that is unknown."""
    doubt = None
    for key, wanted in conditions.items():
        try:
            if not fits(context, key, [wanted], subject):
                return False
        except UndeterminedError as exc:
            doubt = exc
    if doubt is not None:
        raise doubt
    return True
