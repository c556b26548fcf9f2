# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the facts of a node's GPUs (`python -m kit probe`) against what the inventory expects.

Facts that are missing, of the wrong type or from another node are undetermined: an unreadable fact never passes.
"""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import card, jetson, links, memory, xids
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.devices import (
    device_count,
    devices,
    is_jetson,
    mig_enabled,
    pci_gpus,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.expect import GPU
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.facts import (
    COUNT,
    LIST,
    TEXT,
    Gpu,
    read,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.titles import TITLES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.reading import Reading

__all__ = ["device_count", "findings", "mig_enabled"]

Json = dict[str, t.Any]
KERNEL_LOG = ("user", "journal", "sudo", "none")
SCHEMA = 1
# The checks that remain if health was not requested.
INVENTORY = ("readable", "count", "driver", "unique", "answers", "model", "memory", "mig")
# What NVML or the kit reports if no GPU can be read at all, and the symptom with the remedy.
_UNREADABLE = {
    "nvidia-ml-py": "gpu.readable.no_binding",
    "LibraryNotFound": "gpu.readable.no_library",
    "DriverNotLoaded": "gpu.readable.no_driver",
    "GpuNotFound": "gpu.readable.no_gpu",  # from drivers since 545
    "LibRmVersionMismatch": "gpu.readable.mismatch",
    "did not answer": "gpu.readable.hung",
    "NoPermission": "gpu.readable.no_permission",
}
_UNKNOWN = Reading(missing="NVML was not read, so the GPUs were not counted")


def findings(
    facts: t.Any, expect: t.Any, *, node: str, kernel_log: str = "user", simulated: bool = False, health: bool = True
) -> list[Json]:
    """Return the findings for one node; without `health`, only those on its inventory.

    Raise ExpectError for malformed expectations, ValueError for a `kernel_log` not in KERNEL_LOG.
    """
    stated = GPU.read(expect, TITLES)
    if kernel_log not in KERNEL_LOG:
        raise ValueError(f"kernel_log: expected one of {', '.join(KERNEL_LOG)}, found {scalars.describe(kernel_log)}")
    board = is_jetson(facts)
    reader = ("simulated " if simulated else "") + ("sysfs" if board else "NVML")
    judge = Judge(GPU.setting, TITLES, stated, {"node": node}, reader)
    foreign = _foreign(facts, node)
    if foreign:
        return [judge.decided("gpu.readable", "undetermined", None, "readable", foreign, "kit probe", "gpu.unread")]
    readable = _readable(judge, facts)
    if _not_asked(facts):
        return [readable]
    entries = read(facts, "gpus", LIST) if readable["verdict"] == "pass" else _UNKNOWN
    gpus = [Gpu(entry, position) for position, entry in enumerate(_placed(facts, entries.value or []))]
    found = [readable, _count(judge, facts, entries, gpus)]
    found += [_driver(judge, facts)] if not board or "driver" in stated else []
    found += [] if board else [_unique(judge, gpus)] if gpus else []
    for gpu in gpus:
        found += jetson.findings(judge.of(gpu=gpu.name), gpu) if board else _of_gpu(judge.of(gpu=gpu.name), gpu)
    if not health:
        return [finding for finding in found if finding["id"].removeprefix("gpu.") in INVENTORY]
    if board and not read(facts, "kernel_log.xids", LIST).value:  # the drivers of most boards have no Xids
        return found
    return found + xids.findings(judge, facts, gpus, kernel_log)


def _of_gpu(judge: Judge, gpu: Gpu) -> list[Json]:
    found = [card.answers(judge, gpu)]
    for check in (card.identity, memory.ecc, memory.repairs, card.state, links.pcie):
        found += check(judge, gpu)
    return [*found, *links.nvlink(judge, gpu), card.mig(judge, gpu), links.processes(judge, gpu)]


def _foreign(facts: t.Any, node: str) -> str | None:
    """Return why these are not facts of this node, or None if they are."""
    if not isinstance(facts, dict):
        return f"expected facts as an object, found {scalars.describe(facts)}"
    schema = facts.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema != SCHEMA:
        return f"expected facts of schema {SCHEMA}, found {scalars.describe(schema)}"
    name = read(facts, "node", TEXT)
    if name.missing:
        return name.missing
    if name.value.split(".")[0].lower() != node.split(".", maxsplit=1)[0].lower():
        return f"the facts are from node {scalars.printable(name.value)}"
    return None


def _not_asked(facts: Json) -> bool:
    """Return whether the facts say that the node, or the kit on it, reported nothing."""
    return str(facts.get("error")).startswith(("the kit ", "the node "))


def _readable(judge: Judge, facts: Json) -> Json:
    source, call = read(facts, "source", TEXT), "nvmlInit"
    if "error" not in facts or source.missing:
        return judge.check_reading(
            "gpu.readable",
            "eq",
            True,
            Reading(missing=source.missing or "whether reading the GPUs failed was not reported"),
            call,
        )
    error = facts["error"]
    if error is not None:
        text = error if isinstance(error, str) else scalars.describe(error)
        symptom = next((symptom for sign, symptom in _UNREADABLE.items() if sign in text), None)
        symptom = "gpu.unread" if _not_asked(facts) else symptom
        # An unrecognised error may be ours, not the node's, so it is undetermined.
        verdict = "undetermined" if symptom in (None, "gpu.unread", "gpu.readable.no_binding") else "fail"
        value = text.partition(":")[0] if verdict == "fail" else None
        return judge.decided("gpu.readable", verdict, value, "readable", text, call, symptom)
    if source.value not in ("nvml", "jetson"):
        why = f"expected GPUs read from nvml or jetson, found {source.value!r}"
        return judge.decided("gpu.readable", "undetermined", source.value, "nvml or jetson", why, call)
    return judge.decided("gpu.readable", "pass", source.value, "readable", "it answered", call)


def _placed(facts: Json, entries: list[t.Any]) -> list[t.Any]:
    """Give a lost GPU without an address the one PCI address that no other GPU has."""
    lost = [entry for entry in entries if isinstance(entry, dict) and entry.get("error") and entry.get("pci") is None]
    places = {xids.address(read(entry, "pci", TEXT).value) for entry in entries}
    free = [bus for bus in read(facts, "pci_devices", LIST).value or [] if xids.address(bus) not in places]
    if len(lost) != 1 or len(free) != 1 or not isinstance(free[0], str):
        return entries
    return [{**entry, "pci": free[0]} if entry is lost[0] else entry for entry in entries]


def _count(judge: Judge, facts: Json, entries: Reading, gpus: list[Gpu]) -> Json:
    """Compare the number of whole GPUs with what the inventory expects, or with what the node has."""
    call = "nvmlDeviceGetCount"
    listed = Reading(missing=entries.missing) if entries.missing else Reading(len(gpus))
    if any(not isinstance(entry, dict) for entry in entries.value or []):
        listed = Reading(missing="gpus: expected a list of objects")
    split = "MIG is on; whole GPUs are counted, not instances" if mig_enabled(facts) else None
    detail = "; ".join(filter(None, (None if is_jetson(facts) else _missing(facts, gpus), split))) or None
    if "count" in judge.expect:
        return judge.check_reading("gpu.count", "eq", judge.expect["count"], listed, call, unit="GPUs", detail=detail)
    present = devices(facts)
    bound = present.but(max(1, present.value or 0))
    return judge.check_reading("gpu.count", "ge", bound, listed, call, unit="GPUs", detail=detail)


def _missing(facts: Json, gpus: list[Gpu]) -> str | None:
    """Name the node's devices that NVML does not list."""
    places = {xids.address(read(gpu.facts, "pci", TEXT).value) for gpu in gpus}
    minors = {f"/dev/nvidia{read(gpu.facts, 'minor', COUNT).value}" for gpu in gpus}
    absent = [f"PCI {bus}" for bus in pci_gpus(facts).value or [] if xids.address(bus) not in places]
    absent += [str(path) for path in read(facts, "device_files", LIST).value or [] if str(path) not in minors]
    return f"not listed: {', '.join(absent)}" if absent else None


def _driver(judge: Judge, facts: Json) -> Json:
    version, call = read(facts, "driver.version", TEXT), "nvmlSystemGetDriverVersion"
    module = read(facts, "driver.module", TEXT)
    if is_jetson(facts) and version.missing and not version.damaged and module.value:
        version, call = module, "/sys/module/nvidia/version"
    expected = judge.expect.get("driver")
    if expected is None:
        return judge.told("gpu.driver", version, call, key="driver")
    if version.missing or not expected.startswith(">="):
        return judge.check_reading("gpu.driver", "eq", expected, version, call)
    numbers = version.value.split(".")
    if not all(number.isdecimal() and number.isascii() for number in numbers):
        why = f"expected a version, found {version.value!r}"
        return judge.decided("gpu.driver", "undetermined", version.value, expected, why, call, "gpu.unread")
    meets = [int(number) for number in numbers] >= [int(number) for number in expected[2:].split(".")]
    why = f"{version.value} is {'' if meets else 'not '}{expected}"
    return judge.decided("gpu.driver", "pass" if meets else "fail", version.value, expected, why, call)


def _unique(judge: Judge, gpus: list[Gpu]) -> Json:
    call = "nvmlDeviceGetUUID, nvmlDeviceGetPciInfo"
    twice = []
    for key in ("uuid", "pci"):
        told = [read(gpu.facts, key, TEXT) for gpu in gpus]
        unknown = [reading.missing for reading, gpu in zip(told, gpus) if reading.missing and gpu.error.value == ""]
        if unknown:
            return judge.check_reading("gpu.unique", "eq", 0, Reading(missing=unknown[0]), call)
        values = [reading.value.lower() for reading in told if not reading.missing]
        twice += sorted({value for value in values if values.count(value) > 1})
    if any(gpu.error.missing for gpu in gpus):
        return judge.check_reading("gpu.unique", "eq", 0, next(gpu.error for gpu in gpus if gpu.error.missing), call)
    detail = f"{', '.join(twice)} appears twice" if twice else None
    return judge.check_reading("gpu.unique", "eq", 0, Reading(len(twice)), call, detail=detail)
