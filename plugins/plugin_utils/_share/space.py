# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the room on BeeGFS's targets: capacity pool, space and inodes; rounded output gives intervals."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Item, Judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.expect import amount
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.facts import text
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.told import Told

Json = dict[str, t.Any]
GIB = 1 << 30
POOLS = ("normal", "low", "emergency")
# If at least this fraction of space and inodes is free, a target in another pool is there for another reason.
ROOMY = 0.5


def findings(judge: Judge, told: Told) -> list[Json]:
    """Judge the room on all online targets; a target that is not online has a finding of its own."""
    online = [target for target in told.targets if target.get("reachability") == "online"]
    if not online:  # another check reports this, and does not pass
        return []
    pools = [_pool(judge, told, target) for target in online]
    space = [_room(judge, told, target, "free", GIB) for target in online]
    inodes = [
        _room(judge, told, target, "inodes_free", 1)
        for target in online
        # Some file systems have no fixed number of inodes. A missing number means that the server did not answer.
        if not (scalars.is_number(target.get("inodes")) and target.get("inodes") == 0)
    ]
    found = judge.each("share.capacity_pool", pools, source=told.tool, what="targets")
    found += judge.each("share.target_free_space", space, source=told.tool, unit="GiB", what="targets")
    if inodes:
        found += judge.each("share.target_free_inodes", inodes, source=told.tool, unit="inodes", what="targets")
    return found


def _pool(judge: Judge, told: Told, target: Json) -> Item:
    """Judge the capacity pool; for a target that is not good it follows from the state and is only recorded.

    Servers put a target into pool low by their own bounds, well before the disk is full: low is only recorded too,
    unless the inventory expects normal.
    """
    pool, state = text(target.get("pool")), target.get("consistency")
    low = pool == "low" and judge.expect.get("capacity_pool") != "normal"
    unwell = pool in ("low", "emergency") and state not in (None, "good")
    missing = "the management daemon has not assigned one yet" if pool == "unknown" else f"it is {pool}"
    shares = _shares(target)
    detail = ", ".join(
        f"{round(100 * share)} % of its {what} free" for what, share in shares.items() if share is not None
    )
    return Item(
        told.name(target),
        "eq",
        "normal",
        pool if pool in POOLS else None,
        missing if pool else told.problem("states", target.get("type")),
        detail="; ".join(part for part in (f"follows from its being {state}" if unwell else "", detail) if part),
        record=low or unwell,
        symptom=f"share.capacity_pool.{'report' if pool == 'unknown' else _full(shares)}",
    )


def _shares(target: Json) -> dict[str, float | None]:
    """Return the free fraction of space and of inodes, or None if it was not reported."""
    found: dict[str, float | None] = {}
    for what, free, total in (("space", "free", "total"), ("inodes", "inodes_free", "inodes")):
        least, whole = target.get(f"{free}_least"), target.get(total)
        told = whole and scalars.is_number(least) and scalars.is_number(whole)
        found[what] = min(1.0, scalars.number(least) / scalars.number(whole)) if told else None
    return found


def _full(shares: dict[str, float | None]) -> str:
    """Return what a target is short of: space or inodes; `report` if neither, `unknown` if it was not reported."""
    known = {what: share for what, share in shares.items() if share is not None}
    if not known:
        return "unknown"
    what = min(known, key=lambda name: known[name])
    return "report" if known[what] >= ROOMY else what


def _room(judge: Judge, told: Told, target: Json, key: str, unit: int) -> Item:
    """Judge the printed interval by its lower end to pass and its upper end to fail; a bound inside decides nothing."""
    kind = str(target.get("type"))
    bound = amount(judge.expect, "target_free_gib" if key == "free" else "target_free_inodes", kind)
    least, most = target.get(f"{key}_least"), target.get(f"{key}_most")
    value: float | None = None
    symptom = None
    if not (scalars.is_number(least) and scalars.is_number(most)):
        missing = text(target.get("space_why")) or told.problem("space", kind)
        if target.get("pool") == "unknown":
            missing, symptom = "its space is reported once it is in a capacity pool", "share.capacity_pool.report"
        elif target.get("space_told") is False or told.problem("space", kind):
            symptom = "share.target_free_space.unanswered"
    else:
        least, most = scalars.number(least) / unit, scalars.number(most) / unit
        missing = f"it is between {_show(least)} and {_show(most)}, as printed; the bound lies in between"
        symptom = "share.target_free_space.rounded"
        if least >= bound:
            value = least
        elif most < bound:
            value, symptom = most, None
    return Item(told.name(target), "ge", bound, _plain(value), missing, symptom=symptom)


def _plain(value: float | None) -> float | int | None:
    return int(value) if value is not None and value == int(value) else value


def _show(value: float) -> str:
    return f"{value:,.8g}"
