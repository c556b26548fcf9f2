# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of `cluster gpu`: faults by the names people give them, and the states they stand for. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from hpcval_cluster.gpus import HEALTHY, OF_ONE_CALL, OF_ONE_GPU, SYSTEM, check_key
from hpcval_cluster.state import ClusterError

Values = dict[str, str]


@dataclass
class Change:
    """What to do to one GPU, or to its node."""

    reset: bool = False  # first back to the initial state
    values: Values = field(default_factory=dict)
    xids: list[int] | None = None  # that the driver reports; an empty list takes this GPU's back
    library: bool | None = None  # whether the node has NVML's library


def _number(key: str, low: int = 0, high: int = 2**63) -> Callable[[str], Values]:
    def values(text: str) -> Values:
        return {key: str(_whole(text, low, high))}

    return values


def _whole(text: str, low: int, high: int) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or not low <= int(text) <= high:
        raise ClusterError(f"{text!r}: expected a whole number from {low} to {high}")
    return int(text)


def _one_of(choices: dict[str, Values]) -> Callable[[str], Values]:
    def values(text: str) -> Values:
        if text not in choices:
            raise ClusterError(f"{text!r}: expected one of {', '.join(choices)}")
        return choices[text]

    return values


def _healthy(*keys: str) -> Values:
    return {key: HEALTHY[key] for key in keys}


def _utilization(text: str) -> Values:
    return {"utilization_gpu": f"0/{_whole(text, 0, 100)}"}


def _links_down(text: str) -> Values:
    if text == "none":
        return {f"nvlink.{link}.state": "1" for link in range(int(HEALTHY["nvlinks"]))}
    return {f"nvlink.{_whole(link, 0, 35)}.state": "0" for link in text.split(",")}


def _power_limit(text: str) -> Values:
    return {"power_limit_mw": str(_whole(text, 0, 100_000) * 1000)}


def _ecc_uncorrected(text: str) -> Values:
    count = str(_whole(text, 0, 2**63))
    return {"ecc_uncorrected_volatile": count, "ecc_uncorrected_aggregate": count}


def _retired(text: str) -> Values:
    """Such a card retires pages and remaps no rows."""
    without = {key: "" for key in HEALTHY if key.startswith("remap")}
    return {
        **without,
        "retired_single_bit": "0",
        "retired_double_bit": str(_whole(text, 0, 1000)),
        "retired_pending": "0",
    }


REASONS = {
    "none": HEALTHY["clocks_event_reasons"],
    "idle": "0x1",
    "applications_clocks": "0x2",
    "sw_power_cap": "0x4",
    "hw_slowdown": "0x8",
    "sync_boost": "0x10",
    "sw_thermal": "0x20",
    "hw_thermal": "0x48",
    "power_brake": "0x88",
}
_SWITCHES = {"on": "1", "off": "0"}
_INIT = {"fail.nvmlInitWithFlags": "", "hang.nvmlInitWithFlags": ""}

# Word → value → keys of gpuN.state
FAULTS: dict[str, Callable[[str], Values]] = {
    "ecc_uncorrected": _ecc_uncorrected,
    "ecc_corrected": _number("ecc_corrected_volatile"),
    "ecc": _one_of({word: {"ecc_mode": bit, "ecc_mode_pending": bit} for word, bit in _SWITCHES.items()}),
    "sram": _one_of(
        {
            "exceeded": {"sram_threshold_exceeded": "1", "sram_uncorrected": "9"},
            "ok": _healthy("sram_threshold_exceeded", "sram_uncorrected"),
        }
    ),
    "retired_pages": _retired,
    "row_remap": _one_of(
        {
            "pending": {"remapped_pending": "1", "remapped_uncorrected": "1"},
            "failure": {"remapped_failed": "1", "remapped_uncorrected": "8"},
            "exhausted": {"remap_banks_none": "1", "remap_banks_max": "639", "remapped_uncorrected": "8"},
            "none": _healthy(
                "remapped_pending", "remapped_failed", "remapped_uncorrected", "remap_banks_none", "remap_banks_max"
            ),
        }
    ),
    "recovery": _one_of(
        {
            word: {"field.230": str(number)}
            for number, word in enumerate(("none", "reset", "reboot", "drain_p2p", "drain_and_reset"))
        }
    ),
    "throttle": _one_of({word: {"clocks_event_reasons": bits} for word, bits in REASONS.items()}),
    "utilization": _utilization,
    "power_limit": _power_limit,
    "persistence": _one_of({word: {"persistence_mode": bit} for word, bit in _SWITCHES.items()}),
    "mig": _one_of({word: {"mig_mode": bit, "mig_mode_pending": bit} for word, bit in _SWITCHES.items()}),
    "nvlink_down": _links_down,
    "fabric": _one_of(
        {
            "none": {"fabric_state": "0"},
            "not_started": {"fabric_state": "1", "fabric_health": "0"},
            "in_progress": {"fabric_state": "2", "fabric_health": "0"},
            "completed": _healthy("fabric_state", "fabric_status", "fabric_health"),
            "failed": {"fabric_state": "3", "fabric_status": "999", "fabric_health": "2"},
            "unhealthy": {"fabric_state": "3", "fabric_health": "2"},
        }
    ),
    # Process 1 is in no job.
    "process": _one_of({"foreign": {"processes_compute": f"1:{2 << 30}"}, "none": _healthy("processes_compute")}),
}
# Words without a value
STATES: dict[str, Values] = {"missing": {"present": "0"}, "lost": {"fail": "15"}, "hang": {"hang": "1"}}

# Word → value → keys of system.state, for the whole node
NODE_FAULTS: dict[str, Callable[[str], Values]] = {
    "driver": _one_of(
        {
            "loaded": _INIT,
            "unloaded": {**_INIT, "fail.nvmlInitWithFlags": "9"},
            "mismatch": {**_INIT, "fail.nvmlInitWithFlags": "18"},
            "hang": {**_INIT, "hang.nvmlInitWithFlags": "1"},
        }
    ),
    "kernel_log": _one_of({word: {"kernel_log": word} for word in ("readable", "refused", "empty", "hang")}),
}


def parse(words: list[str]) -> Change:
    """The change to one GPU that `cluster gpu NODE INDEX WORD…` asks for; refuses what it does not know."""
    change = Change()
    for word in words:
        key, equals, value = word.partition("=")
        if word == "healthy":
            change = Change(reset=True, xids=[])
        elif word in STATES:
            change.values |= STATES[word]
        elif equals and key == "xid":
            change.xids = [] if value == "none" else [_whole(code, 1, 999) for code in value.split(",")]
        elif equals and key in FAULTS:
            change.values |= FAULTS[key](value)
        elif equals:
            check_key(key, value, HEALTHY | dict.fromkeys((*FAULTS, "xid"), ""), OF_ONE_GPU)
            change.values[key] = value
        else:
            raise ClusterError(f"{word!r}: expected key=value, or one of healthy, {', '.join(STATES)}")
    return change


def parse_node(words: list[str]) -> Change:
    """The change to a node's driver and kernel log that `cluster gpu NODE node WORD…` asks for."""
    change = Change()
    for word in words:
        key, equals, value = word.partition("=")
        if word == "healthy":
            change = Change(reset=True, library=True)
        elif word == "driver=library_missing":
            change.library = False
        elif equals and key in NODE_FAULTS:
            change.values |= NODE_FAULTS[key](value)
            if key == "driver":
                change.library = True
        elif equals:
            check_key(key, value, SYSTEM | dict.fromkeys(NODE_FAULTS, ""), OF_ONE_CALL)
            change.values[key] = value
        else:
            raise ClusterError(f"{word!r}: expected key=value or healthy")
    return change


XID_TEXTS = {
    13: "Graphics SM Warp Exception on (GPC 0, TPC 0, SM 0): Out Of Range Address",
    31: "Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f00_00000000",
    43: "Ch 00000010",
    48: "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 2",
    63: "Row Remapper: New row (0x0000000000abcdef) marked for remapping, reset gpu to activate.",
    64: "Row Remapper: remapping of a row failed",
    74: "NVLink: fatal error detected on link 3",
    79: "GPU has fallen off the bus.",
    94: "Contained: CE User Channel",
    95: "Uncontained: FBHUB. RST: Yes, D-RST: No",
    119: "Timeout after 6s of waiting for RPC response from GPU GSP! Expected function 76",
}


def reported(before: str, xids: list[int]) -> Values:
    """The state's key with these Xids added, or with none."""
    value = ",".join([before, *map(str, xids)]) if xids else HEALTHY["xids"]
    check_key("xids", value, HEALTHY, OF_ONE_GPU)
    return {"xids": value}


def kernel_log(text: str, bus: str, xids: list[int], uptime: float) -> str:
    """The kernel log with these Xids of the GPU at `bus` added now, or with all of its lines removed."""
    address = bus.lower()[4:].rpartition(".")[0]
    mark = f"NVRM: Xid (PCI:{address})"
    if not xids:
        return "".join(line for line in text.splitlines(keepends=True) if mark not in line)
    added = (
        f"[{uptime:12.6f}] {mark}: {code}, pid='<unknown>', name=<unknown>, {XID_TEXTS.get(code, 'simulated')}\n"
        for code in xids
    )
    return text + "".join(added)
