# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of one GPU's PCIe and NVLink links, and of the processes that use it."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import card
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.facts import (
    COUNT,
    FLAG,
    LACKS,
    LIST,
    NUMBER,
    TEXT,
    Gpu,
    absent,
    read,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.reading import Reading

Json = dict[str, t.Any]
HEALTHY = 1  # NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY
# Two bits each of the health mask: 0 is "not supported", 1 is true, 2 is false
HEALTH_BITS = {"degraded bandwidth": 0, "route recovery": 2, "unhealthy route": 4, "access timeout recovery": 6}
CONFIGURATION = 8  # where the mask has four bits of the configuration: 0 is "not supported", 1 is right
LINK_STATE = "nvmlDeviceGetNvLinkState"
MIG_ON = "MIG is on"


def pcie(judge: Judge, gpu: Gpu) -> list[Json]:
    """Judge the width always, the generation only under load: an idle link slows down to save power."""
    expected = judge.expect.get("pcie_width")
    bound = _above_0(gpu, "pcie.width_max") if expected is None else expected
    width, call = gpu.get("pcie.width", COUNT), "nvmlDeviceGetCurrPcieLinkWidth"
    found = [judge.check_reading("gpu.pcie_width", "ge", bound, width, call, unit="lanes"), _generation(judge, gpu)]
    replays, call = gpu.get("pcie.replays", COUNT), "nvmlDeviceGetPcieReplayCounter"
    most = judge.expect.get("pcie_replays_max")
    if most is None:  # DCGM judges their rate, and only warns
        return [*found, judge.told("gpu.pcie_replays", replays, call, key="pcie_replays_max")]
    return [*found, judge.check_reading("gpu.pcie_replays", "le", most, replays, call)]


def _above_0(gpu: Gpu, path: str) -> Reading:
    """Return a link's limit; 0 is damaged, since nothing would be below it."""
    limit = gpu.get(path, COUNT)
    return Reading(missing=f"{path}: expected a number above 0, found 0", damaged=True) if limit.value == 0 else limit


def _generation(judge: Judge, gpu: Gpu) -> Json:
    now, call = gpu.get("pcie.generation", COUNT), "nvmlDeviceGetCurrPcieLinkGeneration"
    busy = gpu.get("utilization.gpu", NUMBER)
    stated = judge.expect.get("under_load") is True
    expected = judge.expect.get("pcie_generation")
    needed = stated or expected is not None
    bound = _above_0(gpu, "pcie.generation_max") if expected is None else expected
    if not stated and busy.missing and not busy.unsupported:
        return judge.check_reading("gpu.pcie_generation", "ge", bound, busy, call, needed=needed)
    if not stated and (busy.missing or busy.value < card.LOADED):
        untold = f"{MIG_ON}: {busy.missing}" if gpu.split else busy.missing
        idle = f"whether it is under load was not reported ({untold})" if busy.missing else "the GPU is not under load"
        why = now.missing or f"{idle}, and an idle link is slowed down"
        return judge.record("gpu.pcie_generation", now.value, why, call)
    return judge.check_reading("gpu.pcie_generation", "ge", bound, now, call, needed=needed)


def nvlink(judge: Judge, gpu: Gpu) -> list[Json]:
    """Judge the links that are down, their errors, and the fabric that they belong to."""
    links = gpu.get("nvlink.links", LIST)
    found = _links(judge, gpu, links.value) if links.value else _no_links(judge, gpu, links)
    return [*found, _fabric(judge, gpu)]


def _no_links(judge: Judge, gpu: Gpu, links: Reading) -> list[Json]:
    """Judge a card without reported links: an empty list does not say that the card has none."""
    expected, checks = judge.expect.get("nvlinks"), ("gpu.nvlink", "gpu.nvlink_errors")
    why = links if links.missing else absent(gpu.facts, "nvlink.links")
    if expected == 0 and why and why.reason == LACKS:
        said = f"the card has no NVLink ({why.missing})"
        return [judge.decided(check, "pass", 0, "= 0", said, LINK_STATE) for check in checks]
    untold = why or Reading(missing="NVLinks were not reported, nor why there are none", unsupported=True)
    return [judge.check_reading(check, "eq", 0, untold, LINK_STATE, needed=expected is not None) for check in checks]


def _links(judge: Judge, gpu: Gpu, links: list[t.Any]) -> list[Json]:
    expected = judge.expect.get("nvlinks")
    numbers = [read(link, "link", COUNT) for link in links]
    up = [_of_link(gpu, link, "active", FLAG) for link in links]
    damaged = next((reading for reading in [*numbers, *up] if reading.missing), None)
    if damaged is None and len({number.value for number in numbers}) < len(links):
        damaged = Reading(missing="a link appears twice in nvlink.links", damaged=True)
    active = damaged or Reading(sum(flag.value for flag in up))
    down = [number.value for number, flag in zip(numbers, up) if flag.value is False]
    if expected is None and active.value == 0:
        why = f"none of {len(up)} links is up"
        if gpu.split:
            why = f"{why}; {MIG_ON}, so the GPU cannot use NVLink"
            found = [judge.record("gpu.nvlink", 0, why, LINK_STATE, unit="links")]
        else:
            why = f"{why}, and hpc_validation_gpu.nvlinks does not say how many should be"
            found = [judge.decided("gpu.nvlink", "undetermined", 0, "-", why, LINK_STATE)]
    else:
        detail = f"down: {', '.join(map(str, down))}" if down else None
        bound = len(up) if expected is None else expected
        found = [judge.check_reading("gpu.nvlink", "eq", bound, active, LINK_STATE, unit="links", detail=detail)]
    counted = [link for link, flag in zip(links, up) if flag.value is not False]
    if not counted:
        return [*found, judge.record("gpu.nvlink_errors", None, "no link is up", LINK_STATE, unit="recoveries")]
    return [*found, *_link_errors(judge, gpu, counted)]


def _of_link(gpu: Gpu, link: t.Any, path: str, kind: str) -> Reading:
    reading = read(link, path, kind)
    number = read(link, "link", COUNT).value
    if not reading.missing or number is None:
        return reading
    return absent(gpu.facts, f"nvlink.links.{number}.{path}") or reading


def _link_errors(judge: Judge, gpu: Gpu, links: list[t.Any]) -> list[Json]:
    """Fail a link that had to recover, as DCGM does; replays and checksum errors are normal on a sound link."""
    call = "nvmlDeviceGetNvLinkErrorCounter"
    sums: dict[str, Reading] = {}
    for counter in ("recovery", "replay", "crc_flit", "crc_data"):
        told = [_of_link(gpu, link, f"errors.{counter}", COUNT) for link in links]
        missing = next((reading for reading in told if reading.missing), None)
        sums[counter] = missing or Reading(sum(reading.value for reading in told))
    retries = {counter: reading.value for counter, reading in sums.items() if counter != "recovery"}
    return [
        judge.check_reading("gpu.nvlink_errors", "eq", 0, sums["recovery"], call, needed=False, unit="recoveries"),
        judge.told("gpu.nvlink_retries", Reading(retries), call),
    ]


def _fabric(judge: Judge, gpu: Gpu) -> Json:
    state, call = gpu.get("fabric.state", TEXT), "nvmlDeviceGetGpuFabricInfo"
    if state.value == "not_supported":
        return judge.told("gpu.fabric", state, call)
    if state.missing or state.value != "completed":
        waiting = state.value == "in_progress"
        found = judge.check_reading("gpu.fabric", "eq", "completed", state, call, needed=False)
        return {**found, "verdict": "undetermined"} if waiting and found["verdict"] == "fail" else found
    status = gpu.get("fabric.status", COUNT)
    if status.value != 0:
        return judge.check_reading("gpu.fabric", "eq", 0, status, f"{call}, status")
    health = gpu.get("fabric.health", COUNT)
    if not health.missing or not health.unsupported:
        return judge.check_reading("gpu.fabric", "eq", HEALTHY, health, f"{call}, health summary")
    mask = gpu.get("fabric.health_mask", COUNT)  # from drivers without a health summary
    if mask.missing and mask.unsupported:
        return judge.check_reading("gpu.fabric", "eq", 0, status, f"{call}, status")
    if mask.missing:
        return judge.check_reading("gpu.fabric", "eq", 0, mask, f"{call}, health mask")
    wrong = [name for name, shift in HEALTH_BITS.items() if mask.value >> shift & 3 not in (0, 2)]
    wrong += ["configuration"] if mask.value >> CONFIGURATION & 15 > 1 else []
    detail = ", ".join(wrong) or None
    return judge.check_reading("gpu.fabric", "eq", 0, Reading(len(wrong)), f"{call}, health mask", detail=detail)


def processes(judge: Judge, gpu: Gpu) -> Json:
    """Judge processes of other jobs. For a GPU split by MIG, NVML reports them to root only, if at all."""
    running, call = gpu.get("processes", LIST), "nvmlDeviceGetComputeRunningProcesses"
    if gpu.split and (running.unsupported or running.reason == "NoPermission"):
        return judge.record("gpu.foreign_processes", None, f"{MIG_ON}: {running.missing}", call, unit="processes")
    if running.missing:
        allowed = judge.expect.get("foreign_processes") is True
        return judge.check_reading("gpu.foreign_processes", "eq", 0, running, call, needed=not allowed)
    ours = [read(process, "ours", FLAG) for process in running.value]
    foreign = [process for process, own in zip(running.value, ours) if own.value is False]
    listed = [{key: process.get(key) for key in ("pid", "kind", "memory")} for process in foreign]
    if judge.expect.get("foreign_processes") is True:
        return judge.record("gpu.foreign_processes", listed, "the inventory allows other processes", call)
    count = Reading(len(foreign)) if foreign else _untold(gpu, ours) or Reading(0)
    pids = ", ".join(scalars.show(process["pid"]) for process in listed)
    detail = f"process IDs {pids}" if foreign else None
    return judge.check_reading("gpu.foreign_processes", "eq", 0, count, call, unit="processes", detail=detail)


def _untold(gpu: Gpu, ours: list[Reading]) -> Reading | None:
    """What keeps it open whether there are foreign processes, where none of those in the list is one.

    Compute processes alone decide whether there is a list; the others may still not have been told.
    """
    kinds = (absent(gpu.facts, f"processes.{kind}") for kind in ("graphics", "mps"))
    told = [*ours, *(kind for kind in kinds if kind and not kind.unsupported)]
    return next((reading for reading in told if reading.missing), None)
