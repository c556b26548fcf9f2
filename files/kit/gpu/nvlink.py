# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVLinks of one GPU: which are up, what is at the other end, and their error counters."""

from __future__ import annotations

from typing import Any

from kit.gpu.reader import Reader

MAX_LINKS = 36
ABSENT = ("NotSupported", "FunctionNotFound", "InvalidArgument")  # NVML's errors for a link that the card does not have
PEER_KINDS = {0: "gpu", 1: "npu", 2: "switch"}
# Counter of nvmlDeviceGetNvLinkErrorCounter, and the field that replaces the call (Blackwell and later)
ERRORS = {"replay": (0, 161), "recovery": (1, 162), "crc_flit": (2, 163), "crc_data": (3, None)}


def links(gpu: Reader) -> dict[str, Any]:
    """Return every link the card has, or None if it has none."""
    found = []
    absent = None
    for number in range(getattr(gpu.pynvml, "NVML_NVLINK_MAX_LINKS", MAX_LINKS)):
        active, why = gpu.ask_first(("nvmlDeviceGetNvLinkState", (number,)))
        if why in ABSENT:  # not the end: a card sold with fewer links may lack one in the middle
            absent = absent or why
            continue
        found.append(_link(gpu, number, None if active is None else bool(active), why))
    if found:
        return {"nvlink": {"links": found}}
    gpu.unsupported["nvlink"] = absent or "NotSupported"
    return {"nvlink": None}


def _link(gpu: Reader, number: int, active: bool | None, why: str | None) -> dict[str, Any]:
    key = f"nvlink.links.{number}"
    facts: dict[str, Any] = {"link": number, "active": active, "peer": None, "peer_kind": None, "errors": None}
    if not active:
        gpu.unsupported[key] = why or "the link is down"
        return facts
    facts["peer"] = gpu.read(f"{key}.peer", "nvmlDeviceGetNvLinkRemotePciInfo", number, shape=lambda pci: pci.busId)
    kind = gpu.read(f"{key}.peer_kind", "nvmlDeviceGetNvLinkRemoteDeviceType", number)
    facts["peer_kind"] = None if kind is None else PEER_KINDS.get(kind, "unknown")
    facts["errors"] = {name: _errors(gpu, f"{key}.errors.{name}", name, number) for name in ERRORS}
    return facts


def _errors(gpu: Reader, key: str, name: str, link: int) -> Any:
    counter, field = ERRORS[name]
    count = gpu.read(key, "nvmlDeviceGetNvLinkErrorCounter", link, counter)
    if count is not None or field is None or gpu.unsupported[key] not in ABSENT:
        return count
    count = gpu.field(key, field, link)
    if count is not None:
        del gpu.unsupported[key]
    return count
