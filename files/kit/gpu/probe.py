# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU facts of this node (files/schemas/gpus.json): facts only, judged elsewhere, within the promised time."""

from __future__ import annotations

import argparse
import math
import os
import re
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from kit.errors import KitError
from kit.files import plain, write_json
from kit.gpu import asking as gpu_asking
from kit.gpu import jetson, kernel_log, nvml, reduce, sampler, topology
from kit.gpu.asking import Options
from kit.job import node_name
from kit.process.bounded import Child, GivenUpError, Send


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command line."""
    parser.add_argument("--deadline", type=float, default=5.0, help="seconds that each check may take (default 5)")
    parser.add_argument("--init-deadline", type=float, default=30.0, help="seconds that nvmlInit may take (default 30)")
    parser.add_argument("--log-deadline", type=float, default=20.0, help="seconds for the kernel log (default 20)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for everything except sampling (default 60)")
    parser.add_argument("--kernel-log", choices=kernel_log.ACCESS, default="user", help="how to read the kernel log")
    parser.add_argument("--since", default="boot", metavar="EPOCH|boot", help="Xids since then (default: boot)")
    parser.add_argument("--sample", type=float, default=0.0, metavar="SECONDS", help="also sample for this time")
    parser.add_argument("--interval", type=float, default=0.2, help="seconds between samples (default 0.2)")
    parser.add_argument("--no-health", action="store_true", help="inventory only: neither health nor kernel log")
    parser.add_argument("--output", type=Path, help="JSON file (default: standard output)")


def run(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Run the command line; return the document unless it goes to a file."""
    options = Options(
        deadline=_seconds(arguments, "deadline", 0.05, 600),
        init_deadline=_seconds(arguments, "init_deadline", 0.05, 600),
        log_deadline=_seconds(arguments, "log_deadline", 0.05, 600),
        limit=_seconds(arguments, "limit", 0.05, 3600),
        kernel_log="none" if arguments.no_health else arguments.kernel_log,
        since=None if arguments.since == "boot" else _epoch(arguments.since),
        sample=_seconds(arguments, "sample", 0, 3600),
        interval=_seconds(arguments, "interval", 0.05, 3600),
        health=not arguments.no_health,
    )
    document: dict[str, Any] = plain(collect(options))
    if arguments.output is None:
        return document
    write_json(arguments.output, document)
    return None


def _seconds(arguments: argparse.Namespace, name: str, least: float, most: float) -> float:
    value = float(getattr(arguments, name))
    if not least <= value <= most:
        raise KitError(f"--{name.replace('_', '-')} {value:g}: expected {least:g} to {most:g} seconds")
    return value


def _epoch(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e11:
        raise KitError(f"--since {text}: expected seconds since the epoch, or boot")
    return value


def collect(options: Options) -> dict[str, Any]:
    """Return the document."""
    # Here, once for all children, and before the driver's deadlines begin: it is read from the share and compiled.
    with suppress(nvml.NvmlUnavailableError):  # which the first child reports
        nvml.find_library()
    until = time.monotonic() + options.limit
    booted = kernel_log.boot_time(options.root)
    document: dict[str, Any] = {
        "schema": 1,
        "node": node_name(),
        "time": time.time(),
        "boot_time": booted,
        "source": "none",
        "error": None,
        "driver": {"version": None, "cuda": None, "nvml": None, "module": _module_version(options.root)},
        "selected_by": "none",
        "listed": 0,
        "device_files": _device_files(options.root),
        "pci_devices": topology.nvidia_devices(options.root),
        "pci_displays": topology.nvidia_devices(options.root, topology.DISPLAY_CLASSES),
        "gpus": [],
        # Read first, because it may show why the driver does not answer.
        "kernel_log": kernel_log.read(
            options.kernel_log, options.since, booted, min(options.log_deadline, options.limit)
        ),
        "samples": None,
        "jetson": None,
    }
    progress = gpu_asking.Progress(document)
    gpu_asking.ask(progress, options, until)
    for gpu in progress.gpus.values():
        gpu_asking.explain(gpu)
    document["gpus"] = sorted(progress.gpus.values(), key=lambda gpu: int(gpu["index"]))
    _place_silent_gpus(document)
    if document["error"] is None:
        document["source"] = "nvml"
    jetson.complete(document, options.root)
    if options.sample:
        document["samples"] = _sampled(progress, options)
    return document


def _place_silent_gpus(document: dict[str, Any]) -> None:
    """Give GPUs without an address their PCI address, if NVML and sysfs list the same GPUs."""
    devices = [topology.nvml_address(device) for device in document["pci_devices"] or []]
    gpus = document["gpus"]
    if document["listed"] != len(devices) or any(gpu["index"] >= len(devices) for gpu in gpus):
        return
    expected = {gpu["index"]: devices[gpu["index"]] for gpu in gpus}  # NVML's order is the PCI addresses'
    if all(gpu["pci"] is None or gpu["pci"].upper() == expected[gpu["index"]] for gpu in gpus):
        for gpu in gpus:
            gpu["pci"] = gpu["pci"] or expected[gpu["index"]]


def _module_version(root: Path) -> str | None:
    try:
        return (root / "sys/module/nvidia/version").read_text().strip() or None
    except OSError:
        return None


def _device_files(root: Path) -> list[str]:
    try:
        names = os.listdir(root / "dev")
    except OSError:
        return []
    numbers = sorted(int(name[len("nvidia") :]) for name in names if re.fullmatch(r"nvidia\d+", name))
    return [f"/dev/nvidia{number}" for number in numbers]


def _sampled(progress: gpu_asking.Progress, options: Options) -> dict[str, Any]:
    """Sample the GPUs that answer; a driver that stops answering ends the sampling, and ``error`` reports it."""
    well = {key for key, gpu in progress.gpus.items() if gpu["error"] is None}
    silent = {gpu["index"] for key, gpu in progress.gpus.items() if key not in well} | set(progress.silent)
    rows: list[dict[str, Any]] = []
    error = None
    child = Child(lambda send: _tell_samples(options, silent, send))
    patience = options.init_deadline
    try:
        while (said := child.next(patience)) is not None:
            rows.extend(said)
            patience = options.deadline + options.interval
    except GivenUpError as failure:
        error = str(failure)
    finally:
        child.close()
    said_why = [row["error"] for row in rows if row.get("error")]
    return {
        "seconds": options.sample,
        "interval": options.interval,
        "error": error or (said_why[0] if said_why else None),
        "gpus": reduce.by_gpu(row for row in rows if not row.get("error")),
    }


def _tell_samples(options: Options, silent: set[int], send: Send) -> None:
    try:
        pynvml = nvml.load()
        gpus = [nvml.describe(pynvml, index) for index in range(nvml.count_gpus(pynvml)) if index not in silent]
        chosen, selected_by = nvml.select(gpus, os.environ, nvml.may_open)
        usable = nvml.Usable(chosen, len(gpus), selected_by)
    except nvml.NvmlUnavailableError as error:
        pynvml, usable = None, nvml.Usable(reason=str(error))
    until = time.monotonic() + options.sample
    for rows in sampler.ticks(pynvml, usable, options.interval, lambda: time.monotonic() < until, threading.Event()):
        send(rows)
