# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether BeeGFS's targets have room: capacity pool, space and inodes, which are intervals where printed rounded."""

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
# With this share of space and of inodes free, a target is in another pool for another reason than being full.
ROOMY = 0.5


def findings(judge: Judge, told: Told) -> list[Json]:
    """Judge the room of all targets that are online: a target that is not is reported as that."""
    online = [target for target in told.targets if target.get("reachability") == "online"]
    if not online:  # which is reported, and is no pass
        return []
    pools = [_pool(judge, told, target) for target in online]
    space = [_room(judge, told, target, "free", GIB) for target in online]
    inodes = [
        _room(judge, told, target, "inodes_free", 1)
        for target in online
        # Some file systems have no fixed number of inodes. One whose server did not answer has told nothing.
        if not (scalars.is_number(target.get("inodes")) and target.get("inodes") == 0)
    ]
    found = judge.each("share.capacity_pool", pools, source=told.tool, what="targets")
    found += judge.each("share.target_free_space", space, source=told.tool, unit="GiB", what="targets")
    if inodes:
        found += judge.each("share.target_free_inodes", inodes, source=told.tool, unit="inodes", what="targets")
    return found


def _pool(judge: Judge, told: Told, target: Json) -> Item:
    """Judge the capacity pool. That of a target that is not good follows from its state and is recorded.

    Servers put a target into pool low by bounds of their own, above what a full disk is: low is recorded, too, unless
    the inventory expects normal.
    """
    pool, state = text(target.get("pool")), target.get("consistency")
    low = pool == "low" and judge.expect.get("capacity_pool") != "normal"
    unwell = pool in ("low", "emergency") and state not in (None, "good")
    missing = "the management daemon has not yet put it into one" if pool == "unknown" else f"it is {pool}"
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
    """Return the share of space and of inodes that is free; None where it was not told."""
    found: dict[str, float | None] = {}
    for what, free, total in (("space", "free", "total"), ("inodes", "inodes_free", "inodes")):
        least, whole = target.get(f"{free}_least"), target.get(total)
        told = whole and scalars.is_number(least) and scalars.is_number(whole)
        found[what] = min(1.0, scalars.number(least) / scalars.number(whole)) if told else None
    return found


def _full(shares: dict[str, float | None]) -> str:
    """Say what a target lacks: space or inodes; `report` where it lacks neither, `unknown` where that was not told."""
    known = {what: share for what, share in shares.items() if share is not None}
    if not known:
        return "unknown"
    what = min(known, key=lambda name: known[name])
    return "report" if known[what] >= ROOMY else what


def _room(judge: Judge, told: Told, target: Json, key: str, unit: int) -> Item:
    """Judge the end of the printed interval that is against the machine; a bound inside it decides nothing."""
    kind = str(target.get("type"))
    bound = amount(judge.expect, "target_free_gib" if key == "free" else "target_free_inodes", kind)
    least, most = target.get(f"{key}_least"), target.get(f"{key}_most")
    value: float | None = None
    symptom = None
    if not (scalars.is_number(least) and scalars.is_number(most)):
        missing = text(target.get("space_why")) or told.problem("space", kind)
        if target.get("pool") == "unknown":
            missing, symptom = "its space is told once it is in a capacity pool", "share.capacity_pool.report"
        elif target.get("space_told") is False or told.problem("space", kind):
            symptom = "share.target_free_space.unanswered"
    else:
        least, most = scalars.number(least) / unit, scalars.number(most) / unit
        missing = f"it is between {_show(least)} and {_show(most)}, as it was printed; the bound lies in between"
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
