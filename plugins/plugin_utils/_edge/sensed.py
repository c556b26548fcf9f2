# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether what a device says of its sensors is made of what it says that it read. Pure. PRIVATE to the collection.

Each function returns why a part of the soak is not to be believed, None if it is.
"""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars

Json = dict[str, t.Any]
ROUNDING = 1e-6


def part(found: t.Any, quantity: str) -> str | None:
    """Return why a part says nothing at all."""
    if not isinstance(found, dict):
        return f"soak.{quantity} is {scalars.describe(found)}; expected an object"
    if "error" not in found:
        return f"soak.{quantity} does not say whether it was read all the time"
    error = found["error"]
    if error is None or (isinstance(error, str) and error):
        return None
    return f"soak.{quantity}.error is {scalars.describe(error)}; expected null or the reason"


def temperature(found: Json, _rails: t.Any) -> str | None:
    """The highest is the highest of the zones."""
    zones, highest = found.get("zones"), found.get("highest")
    if not isinstance(zones, dict) or not zones or not all(scalars.is_number(each) for each in zones.values()):
        return f"soak.temperature.zones is {scalars.describe(zones)}; expected the temperature of one zone at least"
    most = max(zones.values())
    if scalars.is_number(highest) and abs(highest - most) > ROUNDING:
        told = f"soak.temperature.highest is {scalars.show(highest)}, and the hottest zone has {scalars.show(most)}"
        return f"{told}: they contradict each other"
    return None


def throttle(found: Json, _rails: t.Any) -> str | None:
    """The events are those of the counters, of the samples and of the firmware together."""
    events = 0
    for name in ("counters", "samples_throttled"):
        counts = found.get(name)
        if not isinstance(counts, dict) or not all(_is_count(each) for each in counts.values()):
            return f"soak.throttle.{name} is {scalars.describe(counts)}; expected whole numbers, 0 or more"
        events += sum(counts.values())
    bits = found.get("firmware_bits")
    if bits is not None and not _is_count(bits):
        return f"soak.throttle.firmware_bits is {scalars.describe(bits)}; expected a whole number or null"
    if bits is None and not found["counters"] and not found["samples_throttled"]:
        return "soak.throttle has no counters, samples or firmware bits: it does not say if it was throttled"
    events += bin(bits or 0).count("1")
    told = found.get("events")
    if scalars.is_number(told) and told != events:
        return f"soak.throttle.events is {scalars.show(told)}, and its parts have {events}: they contradict each other"
    return None


def power(found: Json, wanted: t.Any) -> str | None:
    """Its rails are those that were asked for, if any were."""
    rails = found.get("rails")
    if not isinstance(rails, list) or not rails or not all(isinstance(each, str) for each in rails):
        return f"soak.power.rails is {scalars.describe(rails)}; expected the names of the rails that were read"
    if isinstance(wanted, list) and wanted and set(rails) != {each for each in wanted if isinstance(each, str)}:
        asked = ", ".join(str(scalars.bounded(each)) for each in wanted)
        return f"soak.power.rails are {scalars.bounded(', '.join(rails))}; expected {asked}"
    return None


def _is_count(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


DOUBTS: t.Mapping[str, t.Callable[[Json, t.Any], str | None]] = {
    "temperature": temperature,
    "throttle": throttle,
    "power": power,
}
