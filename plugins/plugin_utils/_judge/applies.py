# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide whether a criterion applies to the hardware that the inventory describes. Pure. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import Criterion, value_test
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import UndeterminedError


def not_applicable(criterion: Criterion, context: Any, references: dict[str, Any]) -> str | None:
    """Return why the criterion does not apply, or None if it does. Raise UndeterminedError if that is unknown."""
    return _by_context(criterion.applies_when, context) or _without_reference(criterion, references)


def fits(context: Any, key: str, allowed: list[Any], subject: str) -> bool:
    """Return whether the context has one of the allowed values; text is compared without case and blanks.

    `subject` is what depends on it, in words. Raise UndeterminedError if the context has no value, or one of a kind
    that is none of the allowed ones'.
    """
    found = context.get(key) if isinstance(context, dict) else None
    if found is None:
        raise UndeterminedError(f"whether {subject} depends on {key}, which the inventory does not give")
    kind = _kind(found)
    if kind is None or kind not in map(_kind, allowed):
        wanted = _listed(allowed)
        raise UndeterminedError(
            f"{subject} where {key} is {wanted}; here it is {scalars.describe(found)}, of a different type",
            f"Give {key} in the inventory as {wanted}, with that type. INI inventories and -e name=value turn "
            "every value into text: use a YAML inventory, or -e with JSON.",
        )
    return any(_kind(value) == kind and _spelt(found) == _spelt(value) for value in allowed)


def _by_context(applies: dict[str, list[Any]], context: Any) -> str | None:
    for key, allowed in applies.items():
        if not fits(context, key, allowed, "it applies"):
            return f"it applies where {key} is {_listed(allowed)}; here it is {scalars.show(context[key])}"
    return None


def _listed(allowed: list[Any]) -> str:
    return " or ".join(scalars.show(value) for value in allowed)


def _without_reference(criterion: Criterion, references: dict[str, Any]) -> str | None:
    """Return why a criterion with an optional reference does not apply: the inventory does not have the reference.

    If it has the reference, but only for other hardware, the criterion is undetermined instead.
    """
    test = value_test(criterion.source)
    name = test.optional_reference if test else None
    if name is None or name in references:
        return None
    return f"the inventory has no reference {scalars.printable(name)}"


def _kind(value: Any) -> str | None:
    """Return the kind of a value that something may depend on, or None for a list, an object, null or NaN."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "text"
    return "number" if scalars.is_number(value) else None


def _spelt(value: Any) -> Any:
    """Return text as it is compared: capitals and surrounding blanks do not matter."""
    return value.strip().casefold() if isinstance(value, str) else value
