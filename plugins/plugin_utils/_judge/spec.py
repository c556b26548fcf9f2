# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read criteria and an inventory's changes to them; reject malformed ones before anything is judged.

Pure: no Ansible, no files, no clock. PRIVATE to the collection.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import JOB_ID, Criterion
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.notes import Notes, Wrong
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.reader import read_entry


class CriteriaError(ValueError):
    """Malformed criteria; `errors` has one line for each fault, `wrong` has the faults of single criteria."""

    def __init__(self, errors: list[str], wrong: Iterable[Wrong] = ()) -> None:
        self.errors = errors
        self.wrong = list(wrong)
        super().__init__("\n".join(errors))


def read(
    criteria: Any,
    overrides: Any = None,
    *,
    workload: str,
    pattern_sets: Iterable[str] | None = None,
    references: Any = None,
) -> list[Criterion]:
    """Return the criteria with the overrides merged in; raise CriteriaError naming every fault.

    `pattern_sets` are the names that a log criterion may use (None: any); `references` are the inventory's, by key.
    """
    where = f"workload {workload}: "
    if not isinstance(criteria, list):
        raise CriteriaError([f"{where}criteria: expected a list, found {scalars.describe(criteria)}"])
    overrides = {} if overrides is None else overrides
    if not isinstance(overrides, dict):
        raise CriteriaError([f"{where}overrides: expected criterion IDs with changes, found {overrides!r}"])
    errors = [where + fault for fault in (*_of_references(references), *_of_names(overrides, criteria))]
    known_sets = None if pattern_sets is None else frozenset(pattern_sets)
    result, seen, wrong = [], set(), []
    for position, entry in enumerate(criteria):
        name = _name(entry)
        notes = Notes(workload, name or f"number {position + 1}")
        criterion = read_entry(entry, overrides.get(name), known_sets, notes)
        errors.extend(notes.faults)
        wrong.extend(notes.found)
        if name is not None and name in seen:
            errors.append(f"{where}criterion {name} appears twice")
        seen.add(name)
        if criterion is not None:
            result.append(criterion)
    if errors:
        raise CriteriaError(errors, wrong)
    return result


def _name(entry: Any) -> str | None:
    """Return the ID of a criterion, if it has one."""
    name = entry.get("id") if isinstance(entry, dict) else None
    return name if isinstance(name, str) else None


def _of_names(overrides: dict[Any, Any], criteria: list[Any]) -> Iterator[str]:
    """Yield the faults in the IDs of overrides."""
    known = [entry.get("id") for entry in criteria if isinstance(entry, dict)]
    for name in overrides:
        if name == JOB_ID:
            yield f"overrides: {JOB_ID}, the job's own outcome, cannot be overridden or waived"
        elif name not in known:
            listed = ", ".join(str(item) for item in known) or "none"
            yield f"overrides: unknown criterion {name!r}; available: {listed}"


def _of_references(references: Any) -> Iterator[str]:
    """Yield the faults in references: name → a number, or a list of {when: {context key: value}, value: …}."""
    if references is None:
        return
    if not isinstance(references, dict):
        yield f"references: expected names with values, found {references!r}"
        return
    for name, value in references.items():
        if scalars.is_number(value):
            continue
        if not isinstance(value, list):
            yield f"references: {name}: expected a finite number or a list of when and value, found {value!r}"
            continue
        for entry in value:
            if not _is_conditional(entry):
                yield (
                    f"references: {name}: expected when, a mapping of context keys to text, numbers, true or false, "
                    f"and value, a number; found {entry!r}"
                )


def _is_conditional(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and {"when", "value"} <= set(entry) <= {"when", "value", "note"}
        and isinstance(entry["when"], dict)
        and all(isinstance(value, (str, bool)) or scalars.is_number(value) for value in entry["when"].values())
        and scalars.is_number(entry["value"])
    )
