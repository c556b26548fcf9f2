# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What came of the rows of a soak.

A part that some rows lack is an error by name; where there is an error, the value beside it does not count.
"""

from __future__ import annotations

from typing import Any

Reading = dict  # as in sensors.py
BITS = {1: "under-voltage", 2: "a capped frequency", 4: "throttling", 8: "the soft limit of temperature"}


def summary(rows: list[Reading], chosen: Reading, inferences: int) -> Reading:
    """Return what the rows say together. ``chosen``: of `sensors.whole_board`."""
    seconds = rows[-1]["time"] - rows[0]["time"]
    power, joules = _power(rows, chosen), _energy(rows)
    return {
        "samples": len(rows),
        "seconds": seconds,
        "inferences": inferences,
        "per_second": inferences / seconds if seconds else None,
        "temperature": _temperature(rows),
        "throttle": _throttle(rows),
        "power": power,
        "energy": joules,
        **_energy_per_inference(power, joules, seconds, inferences),
        "clocks": _clocks(rows),
    }


def _names(rows: list[Reading], kind: str) -> list[str]:
    return sorted({name for each in rows for name in each[kind]})


def _unread(rows: list[Reading], kind: str, *keys: str, names: list[str] | None = None) -> list[str]:
    """Return the names of what some row has no value for, of these or all, each with a reason if one was given."""
    found = []
    for name in _names(rows, kind) if names is None else names:
        lacking = [
            each[kind].get(name, {}) for each in rows if all(each[kind].get(name, {}).get(key) is None for key in keys)
        ]
        if lacking:
            reason = next((each["error"] for each in lacking if each.get("error")), None)
            found.append(f"{name} ({reason})" if reason else name)
    return found


def _error(unread: list[str]) -> str | None:
    return "{} could not be read all the time".format(", ".join(unread)) if unread else None


def _temperature(rows: list[Reading]) -> Reading:
    found: dict[str, float] = {}
    for each in rows:
        for name, zone in each["zones"].items():
            if "celsius" in zone:
                found[name] = max(found.get(name, zone["celsius"]), zone["celsius"])
    error = _error(_unread(rows, "zones", "celsius", "off"))
    if not all(any("celsius" in zone for zone in each["zones"].values()) for each in rows):
        error = error or "no thermal zone can be read"
    return {"highest": max(found.values(), default=None), "zones": found, "error": error}


def _throttle(rows: list[Reading]) -> Reading:
    unread = _unread(rows, "counters", "count") + _unread(rows, "throttling", "state")
    steps = {name: _steps(rows, name) for name in _names(rows, "counters")}
    grown = {name: sum(step for step in each if step > 0) for name, each in steps.items() if each}
    active = {
        name: sum(bool((each["throttling"].get(name) or {}).get("state")) for each in rows)
        for name in _names(rows, "throttling")
    }
    firmware = _firmware(rows)
    bits = firmware["bits"]
    is_known = bool(grown or active or bits is not None)
    went_back = [name for name, each in steps.items() if min(each, default=0) < 0]
    errors = [_error(unread), f"{went_back[0]} went back" if went_back else None, firmware["error"]]
    error = "; ".join(each for each in errors if each) or None
    return {
        "events": sum(grown.values()) + sum(active.values()) + bin(bits or 0).count("1") if is_known else None,
        "counters": grown,
        "samples_throttled": active,
        "firmware_bits": bits,
        "error": error or (None if is_known else "nothing says whether the board was throttled"),
    }


def _steps(rows: list[Reading], name: str) -> list[int]:
    """Return by how much a counter changed from each row that has it to the next one."""
    counts = [each["counters"].get(name, {}).get("count") for each in rows]
    known = [count for count in counts if count is not None]
    return [after - before for before, after in zip(known, known[1:])]


def _firmware(rows: list[Reading]) -> Reading:
    """Return the bits that were set in a row, or since the first one, by the firmware of a Raspberry Pi.

    The bits of now are the lower ones; 16 higher are those since the board was started, which say nothing once set.
    """
    said = [each["firmware"] for each in rows]
    if all(each is None for each in said):
        return {"bits": None, "error": None}
    bits = [each["bits"] for each in said if each and each["bits"] is not None]
    if len(bits) < len(rows):
        reason = next((each["error"] for each in said if each and each["error"]), "it has gone")
        return {"bits": None, "error": f"vcgencmd does not say whether the board was throttled: {reason}"}
    before, seen = bits[0] >> 16, (bits[-1] >> 16) & ~(bits[0] >> 16)
    for each in bits:
        seen |= each & 0xF
    unknown = [text for bit, text in BITS.items() if before & bit and not seen & bit]
    error = "{} was noted before, since the board was started: restart it to judge".format(" and ".join(unknown))
    return {"bits": seen & 0xF, "error": error if unknown else None}


def _power(rows: list[Reading], chosen: Reading) -> Reading:
    names, missing = chosen["rails"], []
    mean = highest = None
    if not chosen["error"]:
        measured = [name for name in names if name in rows[0]["rails"]]
        missing = _unread(rows, "rails", "watts", names=measured)
        counted = _energy(rows, [name for name in names if name not in measured])
        seconds = rows[-1]["time"] - rows[0]["time"]
        if counted["joules"] is None or not seconds:
            missing.append(counted["error"] or "the time of the soak")
        if not missing:
            watts = [sum(each["rails"][name]["watts"] for name in measured) for each in rows]
            computing = watts[1:]  # the first row is read before anything computes
            mean = sum(computing) / len(computing) + counted["joules"] / seconds
            highest = max(watts) + counted["joules"] / seconds
    return {"mean": mean, "highest": highest, "rails": names, "error": chosen["error"] or _error(missing)}


def _energy(rows: list[Reading], names: list[str] | None = None) -> Reading:
    """Return the joules of these processor packages, or of all; a counter that wrapped went on from 0."""
    wanted = _names(rows, "energy") if names is None else names
    found, error = 0.0, None if wanted or names is not None else "no energy counter in sysfs"
    for name in wanted:
        counts = [each["energy"].get(name, {}) for each in rows]
        reasons = [each.get("error") or "gone" for each in counts if each.get("microjoules") is None]
        if reasons:
            return {"joules": None, "packages": wanted, "error": f"{name}: {reasons[0]}"}
        if len({each["microjoules"] for each in counts}) == 1:
            return {"joules": None, "packages": wanted, "error": f"{name}: its counter stands still"}
        for before, after in zip(counts, counts[1:]):
            step = after["microjoules"] - before["microjoules"]
            if step < 0 and not after["wraps_at"]:
                return {"joules": None, "packages": wanted, "error": f"{name}: it wrapped, and where is not said"}
            found += (step if step >= 0 else step + after["wraps_at"]) / 1e6
    return {"joules": None if error else found, "packages": wanted, "error": error}


def _energy_per_inference(power: Reading, energy: Reading, seconds: float, inferences: int) -> dict[str, Any]:
    """Return the energy of an inference, what else the board did included, if power or energy was read."""
    if not inferences or (power["error"] and energy["error"]):
        return {}
    joules = energy["joules"] if power["error"] else power["mean"] * seconds
    of = energy["packages"] if power["error"] else power["rails"]
    return {"millijoules_per_inference": joules / inferences * 1000, "energy_of": of}


def _clocks(rows: list[Reading]) -> Reading:
    return {
        name: min(each["clocks"][name]["khz"] for each in rows if name in each["clocks"])
        for name in _names(rows, "clocks")
    }
