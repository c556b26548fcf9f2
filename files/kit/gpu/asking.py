# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask NVML about every GPU of this process in child processes that can be given up.

A child reports each call before it makes it. If it stops answering or dies, that call is the finding, and the next
child continues with the next GPU. NVML is initialised in each child, since it does not survive a fork.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit.gpu import facts as gpu_facts
from kit.gpu import nvml
from kit.gpu.reader import Reader
from kit.process.bounded import Child, GivenUpError, Send

START_PATIENCE = 2  # deadlines that the first call about a GPU may take: without persistence mode it starts the GPU
GAP = 0.001  # seconds within which a deadline counts as the overall limit's


@dataclass
class Options:
    """What to read and how long it may take; all times in seconds."""

    deadline: float = 5.0
    init_deadline: float = 30.0  # of nvmlInit, which starts eight GPUs one after another without persistence mode
    log_deadline: float = 20.0
    limit: float = 60.0
    kernel_log: str = "user"
    since: float | None = None  # None: boot
    sample: float = 0.0
    interval: float = 0.2
    health: bool = True
    root: Path = Path("/")


@dataclass
class Progress:
    """What is known so far, and what the next child must not ask again."""

    document: dict[str, Any]
    gpus: dict[str, dict[str, Any]] = field(default_factory=dict)  # by UUID and PCI address
    finished: set[str] = field(default_factory=set)
    silent: dict[int, str] = field(default_factory=dict)  # GPUs that cannot even be identified, by index


def ask(progress: Progress, options: Options, until: float) -> None:
    """Ask until every GPU is complete or given up, at most until ``until`` of the monotonic clock."""
    while True:
        asking, why = _ask_once(progress, options, until)
        if why is None:
            _close(progress, "NVML no longer lists it")
            return
        if "key" in asking:
            _give_up_gpu(progress.gpus[asking["key"]], asking["facts"], why)
            progress.finished.add(asking["key"])
        elif "index" in asking:
            progress.silent[asking["index"]] = why
        late = time.monotonic() >= until - GAP
        if late or not ("key" in asking or "index" in asking):
            library = f"{asking['call']} {why}" if asking else why
            at_first = asking.get("call") == "nvmlInit" and not progress.gpus
            why = f"not reached within {options.limit:g} s" if late and not at_first else library
            if not progress.gpus:
                progress.document["error"] = why
            _close(progress, why)
            return


def _ask_once(progress: Progress, options: Options, until: float) -> tuple[dict[str, Any], str | None]:
    """Read from one child; return its last call, and why it was given up (None if it finished)."""
    child = Child(lambda send: _tell(progress, options, send))
    asking: dict[str, Any] = {"call": "nvmlInit"}
    try:
        while True:
            said = child.next(min(_patience(asking, options), max(0.0, until - time.monotonic())))
            if said is None:
                return asking, None
            if "unavailable" in said:
                return {}, str(said["unavailable"])
            if "call" in said:
                asking = said
            else:
                _take(progress, said)
    except GivenUpError as error:
        return asking, str(error)
    finally:
        child.close()


def _patience(asking: dict[str, Any], options: Options) -> float:
    """Return the seconds that the call may take."""
    if asking["call"] == "nvmlInit":
        return options.init_deadline
    return options.deadline * (START_PATIENCE if "index" in asking else 1)


def _take(progress: Progress, said: dict[str, Any]) -> None:
    if "gpus" in said:
        for identity in said.pop("gpus"):
            _meet(progress, identity)
    if "read" in said:
        gpu = progress.gpus[said["read"]]
        gpu.update(said["facts"])
        gpu["unsupported"].update(said["unsupported"])
    elif "finished" in said:
        progress.finished.add(said["finished"])
    else:
        progress.document.update(said)


def _meet(progress: Progress, identity: dict[str, Any]) -> None:
    """Note a GPU that a child lists; one that can no longer be identified may be known from an earlier child."""
    known = [gpu for gpu in progress.gpus.values() if gpu["index"] == identity["index"]]
    if known and not (identity["uuid"] or identity["pci"]):
        known[0]["error"] = known[0]["error"] or identity["error"]
    else:
        facts = {**identity, **dict.fromkeys(gpu_facts.FACTS), "unsupported": {}}
        progress.gpus.setdefault(_key(identity), facts)


def _key(identity: dict[str, Any]) -> str:
    return f"{identity['uuid']} {identity['pci']}" if identity["uuid"] or identity["pci"] else f"{identity['index']}"


def _give_up_gpu(gpu: dict[str, Any], unread: list[str], why: str) -> None:
    gpu["error"] = gpu["error"] or why
    gpu["unsupported"].update(dict.fromkeys(unread, why))


def explain(gpu: dict[str, Any]) -> None:
    """Mark the whole GPU as lost if any call says so, and give missing facts the reason of the whole GPU."""
    if gpu["error"] is None and "GpuIsLost" in gpu["unsupported"].values():
        gpu["error"] = "GpuIsLost"
    if gpu["error"]:
        missing = [name for name in gpu_facts.FACTS if gpu[name] is None]
        gpu["unsupported"] = {**dict.fromkeys(missing, gpu["error"]), **gpu["unsupported"]}


def _close(progress: Progress, why: str) -> None:
    """Record the reason at each GPU that is not complete."""
    for key, gpu in progress.gpus.items():
        if key not in progress.finished and gpu["error"] is None:
            _give_up_gpu(gpu, [name for name in gpu_facts.FACTS if gpu[name] is None], why)


# ---- in the child ----


def _tell(progress: Progress, options: Options, send: Send) -> None:
    """Ask NVML everything that is not yet known."""
    send({"call": "nvmlInit"})
    try:
        pynvml = nvml.load()
        send({"call": "the driver's version"})
        send({"driver": {**progress.document["driver"], **_driver(pynvml)}})
        send({"call": "nvmlDeviceGetCount"})
        count = nvml.count_gpus(pynvml)
    except nvml.NvmlUnavailableError as error:
        send({"unavailable": str(error)})
        return
    gpus, openable = [], {}
    for index in range(count):
        if index in progress.silent:
            gpus.append(nvml.Gpu(index, error=progress.silent[index]))
            continue
        send({"call": "what it is", "index": index})
        gpus.append(nvml.describe(pynvml, index))
        minor = gpus[-1].minor
        if minor is not None:
            openable[minor] = nvml.may_open(minor)
    chosen, selected_by = nvml.select(gpus, os.environ, lambda minor: openable[minor])
    send({"listed": count, "selected_by": selected_by, "gpus": [_identity(gpu) for gpu in chosen]})
    for gpu in chosen:
        key = _key(_identity(gpu))
        if key not in progress.finished and gpu.handle is not None:
            _tell_of(Reader(pynvml, gpu, options.root), key, options.health, send)
        send({"finished": key})


def _driver(pynvml: Any) -> dict[str, Any]:
    number, _other = nvml.ask_first(pynvml, [("nvmlSystemGetCudaDriverVersion", ())])
    return {
        "version": nvml.ask_first(pynvml, [("nvmlSystemGetDriverVersion", ())])[0],
        "cuda": None if number is None else f"{number // 1000}.{number % 1000 // 10}",
        "nvml": nvml.ask_first(pynvml, [("nvmlSystemGetNVMLVersion", ())])[0],
    }


def _identity(gpu: nvml.Gpu) -> dict[str, Any]:
    return {name: getattr(gpu, name) for name in ("index", "minor", "uuid", "pci", "name", "error")}


def _tell_of(reader: Reader, key: str, health: bool, send: Send) -> None:
    groups = {**gpu_facts.INVENTORY, **(gpu_facts.HEALTH if health else {})}
    unread = [name for names in groups.values() for name in names]
    if not health:
        not_asked = [name for names in gpu_facts.HEALTH.values() for name in names]
        send({"read": key, "facts": {}, "unsupported": dict.fromkeys(not_asked, "not asked")})
    for group, names in groups.items():
        send({"call": group.__name__, "key": key, "facts": unread})
        reader.unsupported = {}
        try:
            facts = group(reader)
        except Exception as error:  # answers of an unexpected form must not hide the other groups
            facts, reader.unsupported = {}, dict.fromkeys(names, f"{type(error).__name__}: {error}")
        send({"read": key, "facts": facts, "unsupported": reader.unsupported})
        unread = unread[len(names) :]
