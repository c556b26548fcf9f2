# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure on this device, from one file: python3 payload.pyz

The payload is a zip with this module as its __main__.py, the others that payload.json names, request.json, a bundle of
models and inputs, and wheels. What came of it is one line on standard output; all else is said on standard error.
It ends, and leaves no process, when standard input is closed: whoever started it has gone. Python 3.8.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import time
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import memory
import place
import problem
import processes
import strict_json
import unpack
from problem import Problem

MARKER = "HPC_VALIDATION_EDGE"
RESULT_BYTES = 32 << 20
LATER = 30  # seconds after this process's limit that the runner's own strikes
PACKAGES = """\
import json, numpy, onnxruntime
print(json.dumps({"numpy": numpy.__version__, "onnxruntime": onnxruntime.__version__}))
"""


def main() -> int:
    """Measure; print the line, which tells of problems too; return the exit code."""
    os.umask(0o077)
    payload = Path(sys.argv[0]).absolute()
    said: dict[str, Any] = {"schema": 1, "problem": None, "host": platform.node(), "folder": None}
    said.update(deployed=None, measured=None)
    try:
        _measure(payload, processes.Device(), said)
    except Problem as error:
        said["problem"] = {"id": error.id, "text": str(error)}
    except OSError as error:
        found = problem.of_files(error)
        said["problem"] = {"id": found.id, "text": str(found)}
    finally:
        _remove(payload)
    with suppress(OSError):  # nobody reads it any more
        sys.stdout.write(f"{MARKER} {json.dumps(said, allow_nan=False)}\n")
        sys.stdout.flush()
    return 0


def _remove(payload: Path) -> None:
    if zipfile.is_zipfile(payload):
        with suppress(OSError):
            payload.unlink()


def _measure(payload: Path, device: processes.Device, said: dict[str, Any]) -> None:
    asked = unpack.request(payload)
    try:
        run, limit, wait, keep = str(asked["run"]), int(asked["limit"]), float(asked["wait"]), int(asked["keep"])
        model = "{}.onnx".format(asked["bundle"]["deployed"])
        folder, files = str(asked["folder"]), dict(asked["files"])
        packages, options = dict(asked["packages"]), _options(asked)
        if limit < 1:
            raise ValueError(f"limit {limit}; expected seconds")
    except (LookupError, TypeError, ValueError) as error:
        raise Problem("files", f"request.json: {error!r}") from error
    signal.alarm(int(wait) + limit)
    home = place.ours(folder)
    said["folder"] = str(home / run)
    device.doing = "waiting for another run"
    with place.sole(home, run, wait):
        signal.alarm(limit)
        ends = time.monotonic() + limit
        device.doing = "unpacking"
        place.tidy(home, run, keep)
        place.room(home, unpack.sizes(payload))
        memory.require()
        into = place.fresh(home, run)
        try:
            try:
                unpack.unpacked(payload, into, into / "site", files)
                _remove(payload)
                device.doing = "loading the packages"
                _loaded(device, into, packages)
                device.doing = "measuring"
                left = max(1, int(ends - time.monotonic())) + LATER
                result = _run(device, into, [model, "inputs.npy", place.RESULT, "--limit", str(left), *options])
            finally:
                device.closing()
        finally:  # apart, since Problem may be raised up to the line before
            said["deployed"] = _deployed(into / model)
            place.clean(into, model)
        said["measured"] = result


def _options(asked: dict[str, Any]) -> list[str]:
    """Return the runner's options; raise LookupError, TypeError or ValueError for a request that lacks something."""
    limits, bundle = asked["bundle"]["limits"], asked["bundle"]
    options = ["--count", str(int(asked["count"])), "--seconds", str(float(asked["seconds"]))]
    options += ["--soak", str(float(asked["soak"])), "--root", str(asked["root"])]
    for rail in limits.get("power_rails") or []:
        options.append(f"--rail={rail}")
    for name in sorted(bundle["files"]):
        if name.endswith(".onnx"):
            options.append(f"--model={name}")
    return options


def _python(*arguments: str) -> list[str]:
    return [sys.executable, "-s", "-S", *arguments]  # no packages but ours


def _loaded(device: processes.Device, run: Path, expected: dict[str, str]) -> None:
    """Raise Problem unless the packages load and have the versions of the lock.

    It also has Python compile them, so that the cold start is that of what is installed.
    """
    log = run / "packages.log"
    with device.running(_python("-c", PACKAGES), run, run / "site", log) as process:
        code = device.ended(process)
    if code:
        ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
        raise Problem("runtime", f"ONNX Runtime does not load, {ended}: {processes.tail(log)}")
    found = {**unpack.installed(run / "site"), **_last_object(log)}
    for name, version in sorted(expected.items()):
        if found.get(name) != version:
            there = found.get(name, "no version")
            raise Problem("runtime", f"of {name} {there} is loaded; expected {version}, which the lock names")


def _last_object(log: Path) -> dict[str, Any]:
    for line in reversed(log.read_bytes().splitlines()):
        with suppress(ValueError):
            return strict_json.parse(line)
    return {}


def _run(device: processes.Device, run: Path, arguments: list[str]) -> dict[str, Any]:
    """Run the runner; return its result. Raise Problem if there is none."""
    log, before = run / "runner.log", memory.oom_kills()
    with device.running(_python("runner.py", *arguments), run, run / "site", log) as process:
        code = device.ended(process)
    if code < 0:
        raise Problem("killed", f"the runner was ended by signal {-code}{_memory(before) if code == -9 else ''}")
    if code:
        raise Problem("crashed", f"the runner ended with exit code {code}: {processes.tail(log)}")
    try:
        result = place.read(run / place.RESULT, RESULT_BYTES)
        if result["schema"] != 1:
            raise ValueError("schema {}; expected 1".format(result["schema"]))
    except (OSError, ValueError, LookupError) as error:
        raise Problem("result", f"the runner's {place.RESULT} cannot be read: {error!r}") from error
    return result


def _memory(before: int | None) -> str:
    """Say what speaks for too little memory."""
    after = memory.oom_kills()
    if after is not None and before is not None:
        killed = after - before
        return (
            f": memory has run out, the kernel has ended {killed} of the control group's processes for it"
            if killed
            else ", and not by the kernel for memory: none of the control group's processes were ended for it"
        )
    return ", as the kernel does when memory runs out"


def _deployed(model: Path) -> dict[str, Any] | None:
    """Describe the model as it lies there."""
    try:
        return {"model": model.stem, "sha256": unpack.sha256(model), "bytes": model.stat().st_size}
    except OSError:
        return None


if __name__ == "__main__":
    sys.exit(main())
