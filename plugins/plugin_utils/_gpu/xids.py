# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the Xids in a node's kernel log: whether the log is complete, and what each GPU and NVSwitch reported."""

from __future__ import annotations

import datetime
import re
import typing as t
from collections import Counter

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import xid_table
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.facts import (
    COUNT,
    FLAG,
    LIST,
    NUMBER,
    OBJECT,
    TEXT,
    Gpu,
    read,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Judge

Json = dict[str, t.Any]
CALL = "kernel log"
SLACK = 120  # seconds by which the clocks of the kernel, of the log and of the node may differ
_ADDRESS = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.[0-7])?")


def address(pci: t.Any) -> tuple[int, ...] | None:
    """Return domain, bus and device of a PCI address in any spelling, or None if it is not a PCI address."""
    match = _ADDRESS.fullmatch(pci.strip().lower().removeprefix("pci:")) if isinstance(pci, str) else None
    return tuple(int(part or "0", 16) for part in match.groups()) if match else None


def findings(judge: Judge, facts: t.Any, gpus: list[Gpu], setting: str) -> list[Json]:
    """Return the findings for the node and each GPU. `setting` is how the inventory says to read the kernel log."""
    if setting == "none":
        reason = "the inventory sets hpc_validation_kernel_log: none"
        return [judge.not_applicable(check, reason, CALL) for check in ("gpu.kernel_log", "gpu.xid")]
    log = read(facts, "kernel_log", OBJECT)
    doubt = log.missing or _doubt(facts, judge.expect["xid_since"])
    found = [_kernel_log(judge, facts, doubt)]
    entries = read(facts, "kernel_log.xids", LIST).value or []
    start, told = _start(facts, judge.expect["xid_since"]), read(facts, "kernel_log.since", NUMBER).value
    entries = [entry for entry in entries if not _earlier(entry, start, told)]
    by_address: dict[tuple[int, ...] | None, list[t.Any]] = {}
    switches: dict[tuple[int, ...] | None, list[t.Any]] = {}
    for entry in entries:
        parts = switches if read(entry, "switch", FLAG).value else by_address
        parts.setdefault(address(read(entry, "pci", TEXT).value), []).append(entry)
    for place, own in switches.items():
        found.append(_of_switch(judge.of(gpu=f"NVSwitch at {_shown(place)}") if place else judge, own))
    for gpu in gpus:
        place = address(read(gpu.facts, "pci", TEXT).value)
        own = by_address.pop(place, []) if place else []
        found += _of_part(judge.of(gpu=gpu.name), own, doubt)
    for place, others in by_address.items():  # a GPU that is no longer listed, or a line that names no GPU
        part = judge.of(gpu=f"GPU at {_shown(place)}, not listed") if place else judge
        found += _of_part(part, others, doubt)
    return found if gpus or by_address else [*found, *_of_part(judge, [], doubt)]


def _shown(place: tuple[int, ...]) -> str:
    return f"{place[0]:04x}:{place[1]:02x}:{place[2]:02x}"


def _kernel_log(judge: Judge, facts: t.Any, doubt: str | None) -> Json:
    source = read(facts, "kernel_log.source", TEXT).value or CALL
    bound = f"readable, complete since {judge.expect['xid_since']}"
    if doubt:
        return judge.decided("gpu.kernel_log", "undetermined", None, bound, doubt, source)
    return judge.decided("gpu.kernel_log", "pass", source, bound, "it was read", source)


def _start(facts: t.Any, since: t.Any) -> float | None:
    """Return the time from which Xids count, or None if the facts do not say."""
    now, booted = read(facts, "time", NUMBER).value, read(facts, "boot_time", NUMBER).value
    if now is None or since != "boot":
        return None if now is None else now - since
    return None if booted is None or booted > now + SLACK else booted


def _doubt(facts: t.Any, since: t.Any) -> str | None:
    """Return why the log may hold Xids that were not seen, or None if all of it was read."""
    if "error" not in facts["kernel_log"]:
        return "whether the kernel log could be read was not reported"
    error = facts["kernel_log"]["error"]
    if error is not None:
        return f"the kernel log could not be read: {error if isinstance(error, str) else scalars.describe(error)}"
    if facts["kernel_log"].get("access") == "none":
        return "the kernel log was not requested"
    readings = [read(facts, f"kernel_log.{key}", kind) for key, kind in _NEEDED.items()]
    absent = next((reading.missing for reading in readings if reading.missing), None)
    if absent:
        return absent
    xids, more, complete, since_told = (reading.value for reading in readings)
    start = _start(facts, since)
    if start is None:
        return "the time of the reading, or of a boot before it, was not reported"
    if since_told > start + SLACK:
        return f"it was read only from {_utc(since_told)}, not from {_utc(start)}"
    # If more was requested than is judged, the log need only reach back to what is judged.
    oldest = read(facts, "kernel_log.oldest", NUMBER).value if since_told < start - SLACK else None
    if not complete and (oldest is None or oldest > start):
        return "its oldest line is newer than the requested start: the kernel's buffer was overwritten"
    return f"{more} more Xids were left out" if more and _may_hide(xids, start, since_told) else None


def _may_hide(xids: list[t.Any], start: float, since_told: float) -> bool:
    """Return whether an omitted Xid may have a GPU and code that no listed Xid has.

    The kit lists the first Xid of each GPU and code, then the latest ones as far as there is room: what it omits is a
    repetition, unless every listed Xid is a first. A repetition matters only if all listed Xids of its kind are too
    old to count and the omitted one is not.
    """
    times: dict[tuple[t.Any, t.Any], list[float]] = {}
    for xid in xids:
        kind = (str(read(xid, "pci", TEXT).value), read(xid, "code", COUNT).value)
        times.setdefault(kind, []).append(read(xid, "time", NUMBER).value or 0.0)
    repeated = [time for listed in times.values() for time in sorted(listed)[1:]]
    if not repeated:
        return True
    if since_told >= start - SLACK or min(repeated) < start - SLACK:
        return False
    return any(max(listed) < start - SLACK for listed in times.values())


_NEEDED = {"xids": LIST, "more": COUNT, "complete": FLAG, "since": NUMBER}


def _earlier(entry: t.Any, start: float | None, told: float | None) -> bool:
    """Return whether the Xid certainly precedes what is judged; one that precedes the log's `told` start is damaged."""
    time = read(entry, "time", NUMBER).value
    if time is None or start is None or told is None:
        return False
    return bool(told - SLACK <= time < start - SLACK)


def _of_part(judge: Judge, entries: list[t.Any], doubt: str | None) -> list[Json]:
    """Return the findings for one GPU, or for the node from lines that name no GPU."""
    table = xid_table.shipped()
    fatal: list[tuple[xid_table.Xid, Json]] = []
    mild: list[xid_table.Xid] = []
    unknown: list[str] = []
    for entry in entries:
        code = read(entry, "code", COUNT)
        xid = table.get(code.value) if code.value is not None else None
        line = read(entry, "text", TEXT).value or ""
        if xid is None:
            unknown.append(f"Xid {code.value}" if code.value is not None else str(code.missing))
        elif xid.severity_of(line) == "fail":
            fatal.append((xid, entry))
        else:
            mild.append(xid)
    found = [_fatal(judge, fatal, unknown, doubt)]
    if mild:
        counts = {str(code): count for code, count in sorted(Counter(xid.code for xid in mild).items())}
        why = "; ".join(f"{counts[str(xid.code)]} x {_named(xid)}" for xid in sorted(set(mild), key=lambda x: x.code))
        found.append(judge.record("gpu.xid_warnings", counts, why, CALL))
    return found


def _of_switch(judge: Judge, entries: list[t.Any]) -> Json:
    """Return the finding for one NVSwitch: the kit lists its fatal errors and lines of unknown form."""
    codes = sorted({code.value for code in (read(entry, "code", COUNT) for entry in entries) if code.value is not None})
    line = read(entries[-1], "text", TEXT).value or ""
    why = f'{len(entries)} SXid in the log; the last line: "{line[:200]}"'
    verdict, symptom = ("fail", "gpu.xid.switch") if codes else ("undetermined", "gpu.xid.switch_unknown")
    return judge.decided("gpu.xid", verdict, codes, "no fatal SXid", why, CALL, symptom)


def _fatal(judge: Judge, fatal: list[tuple[xid_table.Xid, Json]], unknown: list[str], doubt: str | None) -> Json:
    bound = "no fatal Xid"
    if fatal:
        codes = sorted({xid.code for xid, _entry in fatal})
        worst = min((xid for xid, _entry in fatal), key=lambda xid: xid_table.ACTIONS.index(xid.action))
        latest = max((read(entry, "time", NUMBER).value or 0 for _xid, entry in fatal), default=0)
        when = f", last at {_utc(latest)}" if latest else ""
        named = "; ".join(dict.fromkeys(_named(xid) for xid, _entry in fatal))
        text = read(fatal[-1][1], "text", TEXT).value or ""
        why = f"{len(fatal)} in the log{when}: {named}" + (f'; the last line: "{text[:200]}"' if text else "")
        return judge.decided("gpu.xid", "fail", codes, bound, why, CALL, f"gpu.xid.{worst.action}")
    if unknown:
        why = f"{', '.join(dict.fromkeys(unknown))}: not in files/xids.yml, so the severity is unknown"
        return judge.decided("gpu.xid", "undetermined", unknown, bound, why, CALL, "gpu.xid.unknown")
    if doubt:
        return judge.decided("gpu.xid", "undetermined", None, bound, doubt, CALL, "gpu.kernel_log")
    return judge.decided("gpu.xid", "pass", [], bound, f"none since {judge.expect['xid_since']}", CALL)


def _named(xid: xid_table.Xid) -> str:
    return f"Xid {xid.code} ({xid.meaning})"


def _utc(seconds: float) -> str:
    try:
        moment = datetime.datetime.fromtimestamp(seconds, tz=datetime.timezone.utc)
    except (ValueError, OverflowError, OSError):
        return scalars.show(seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
