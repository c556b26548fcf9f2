# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apply an inventory's changes to a criterion: move a bound, or waive the criterion until a day.

An inventory cannot change what is measured or whether it counts: that could turn an undetermined criterion into a
pass. Pure. PRIVATE to the collection.
"""

from __future__ import annotations

import copy
import datetime
from dataclasses import dataclass
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import (
    ALL_TESTS,
    NUMBER_TESTS,
    Waiver,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.notes import Notes

_OVERRIDABLE = ("unit", "remedy", "severity", "waive", "each")
# The tests whose bound can be moved, with the keys of the bound, or none if the bound is a plain value. `from` is not
# among them: with the name of a reference that does not exist, an optional criterion would not apply.
_MOVABLE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("gt", "ge", "lt", "le", "eq", "between"), ()),
    "within": ("reference", "tolerance", "absolute"),
    "ratio_ge": ("bound",),
    "ratio_le": ("bound",),
    "decreasing": ("min_drop",),
    "exists": ("min_bytes",),
}
_INSTEAD = "to let the criterion fail, waive it: waive: {reason: …, expires: 2026-12-31}"
_DROPS_NONE = f"an override can move a bound, not remove it; {_INSTEAD}"


@dataclass(frozen=True)
class Overridden:
    """A criterion of the manifest with the inventory's changes."""

    data: dict[str, Any]
    waiver: Waiver | None = None
    is_moved: bool = False


def merge(base: Any, change: Any) -> Any:
    """Return a deep merge of `change` into `base`; a null in `change` deletes the key. Neither is modified."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return copy.deepcopy(change)
    result = dict(base)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def tests_in(body: dict[str, Any]) -> list[str]:
    """Return the tests of a criterion, or of its each."""
    return [name for name in ALL_TESTS if name in body]


def overridden(entry: dict[str, Any], override: Any, notes: Notes) -> Overridden:
    """Return the entry with the permitted changes, unmodified if the override asks for more."""
    if override is None:
        return Overridden(entry)
    if not isinstance(override, dict):
        notes.wrong("-", "expected an override with the keys to change", override)
        return Overridden(entry)
    change = {key: value for key, value in override.items() if key != "waive"}
    for key, value in change.items():
        _check(str(key), value, entry, notes)
    waiver = _waiver(override["waive"], notes) if "waive" in override else None
    merged = entry if notes.faults else merge(entry, change)
    return Overridden(merged, waiver, any(key in ALL_TESTS for key in change))


def _check(key: str, value: Any, entry: dict[str, Any], notes: Notes) -> None:
    if key == "each":
        _check_each(value, entry, notes)
    elif key in ALL_TESTS:
        _check_bound(key, value, entry, key, notes)
    elif key not in _OVERRIDABLE:
        known = ", ".join(sorted({*_OVERRIDABLE, *_MOVABLE}))
        notes.wrong(key, f"cannot be overridden; an inventory may change {known}", value)
    elif value is None:
        notes.wrong(key, "an override can change a key, not delete it", value)
    elif key == "severity" and value != "gate":
        notes.wrong(key, f"an override can only set it to gate; {_INSTEAD}", value)


def _check_each(value: Any, entry: dict[str, Any], notes: Notes) -> None:
    had = entry.get("each")
    if not isinstance(had, dict):
        _check_bound("each", value, entry, "each", notes)
        return
    if not isinstance(value, dict):
        notes.wrong("each", f"expected {_listed(tests_in(had))} with another bound; {_INSTEAD}", value)
        return
    for name, bound in value.items():
        if name not in NUMBER_TESTS:
            notes.wrong(f"each.{name}", f"cannot be overridden; expected one of {', '.join(NUMBER_TESTS)}", value)
        else:
            _check_bound(name, bound, had, f"each.{name}", notes)


def _check_bound(test: str, value: Any, body: dict[str, Any], key: str, notes: Notes) -> None:
    """Note an override that does more than move the bound of the test in `body`."""
    had = body.get(test)
    if test not in body:
        kept = _listed(tests_in(body))
        notes.wrong(key, f"an override can move the bound of the test, {kept}, not change the test; {_INSTEAD}", value)
    elif test not in _MOVABLE or (test == "eq" and isinstance(had, bool)):
        notes.wrong(key, f"{scalars.show(had)} has no bound to move; {_INSTEAD}", value)
    elif value is None:
        notes.wrong(key, _DROPS_NONE, value)
    elif test == "eq" and _kind(value) != _kind(had):
        notes.wrong(key, f"an override cannot change the type of the bound, as in {had!r}", value)
    elif _MOVABLE[test]:
        _check_parts(_MOVABLE[test], value, key, notes)
        if isinstance(value, dict) and _is_nothing(value, had):
            notes.wrong(f"{key}.min_drop", f"expected a fraction above 0; {_DROPS_NONE}", value["min_drop"])


def _check_parts(movable: tuple[str, ...], value: Any, key: str, notes: Notes) -> None:
    """Note an override of a bound with several parts that does more than move the movable ones."""
    listed = " or ".join(movable)
    if not isinstance(value, dict):
        notes.wrong(key, f"expected {listed} with another value; {_INSTEAD}", value)
        return
    for name, part in value.items():
        if name == "from":
            notes.wrong(f"{key}.{name}", "cannot be overridden; put the site's number into its references", value)
        elif name not in movable:
            notes.wrong(f"{key}.{name}", f"cannot be overridden; expected {listed}", value)
        elif part is None:
            notes.wrong(f"{key}.{name}", _DROPS_NONE, value)


def _is_nothing(value: dict[str, Any], had: Any) -> bool:
    """Return whether the override asks for no drop at all where the manifest asks for some."""
    drop: Any = value.get("min_drop")
    wanted: Any = had.get("min_drop") if isinstance(had, dict) else None
    return scalars.is_number(drop) and drop <= 0 and scalars.is_number(wanted) and bool(wanted > 0)


def _waiver(waive: Any, notes: Notes) -> Waiver | None:
    if not isinstance(waive, dict) or set(waive) != {"reason", "expires"}:
        notes.wrong("waive", "expected the keys reason and expires only", waive)
        return None
    reason = waive["reason"]
    if not isinstance(reason, str) or not reason.strip():
        notes.wrong("waive.reason", "expected why this may fail, in words", reason)
        return None
    try:
        expires = datetime.date.fromisoformat(waive["expires"])
    except (TypeError, ValueError):
        notes.wrong("waive.expires", "expected a date such as 2026-12-31", waive["expires"])
        return None
    return Waiver(reason.strip(), expires)


def _kind(value: Any) -> str:
    return "number" if scalars.is_number(value) else type(value).__name__


def _listed(names: list[str]) -> str:
    return " and ".join(names) or "none"
