# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of gpu_probe, and its part on the node: run `python -m kit probe` and return its facts. PRIVATE.

Any failure becomes the facts' `error`: a node that could not be queried is a finding, not a traceback.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, BinaryIO

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul, strict_json

# Handled entirely on the controller; these are not sent to the module.
CONTROLLER_ONLY = ("expect", "fail", "node", "simulated")
KERNEL_LOG = ("user", "journal", "sudo", "none")
OUTPUT_BYTES = 16 * 1024 * 1024
GRACE = 15.0  # seconds that the kit may still take to end after its own limit
STOPPING = 2.0  # seconds in which a killed process ends, unless it is blocked inside the driver
# Another interpreter is started by this one: if it is on a dead share, only the child hangs.
_EXEC = "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"


def argument_spec() -> dict[str, Any]:
    """Return the argument specification of both parts."""
    return {
        "kit": {"type": "str", "default": "/mnt/beegfs/scripts"},
        "python": {"type": "str"},
        "health": {"type": "bool", "default": True},
        "sample_seconds": {"type": "float", "default": 0.0},
        "interval": {"type": "float", "default": 0.2},
        "kernel_log": {"type": "str", "default": "user", "choices": list(KERNEL_LOG)},
        "since": {"type": "str"},
        "deadline": {"type": "float", "default": 5.0},
        "init_deadline": {"type": "float", "default": 30.0},
        "limit": {"type": "float", "default": 60.0},
        "expect": {"type": "dict", "default": {}},
        "node": {"type": "str"},
        "simulated": {"type": "bool", "default": False},
        "fail": {"type": "bool", "default": True},
    }


def problems(options: dict[str, Any]) -> list[str]:
    """Name every option that is out of range."""
    told = [
        f"{name}: expected {low:g} to {high:g} seconds, found {options[name]}"
        for name, low, high in (
            ("sample_seconds", 0, 3600),
            ("interval", 0.02, 1),
            ("deadline", 0.1, 600),
            ("init_deadline", 0.1, 600),
            ("limit", 1, 3600),
        )
        if not low <= options[name] <= high  # written so that NaN is rejected
    ]
    told += [
        f"{name}: expected an absolute path, found {options[name]!r}"
        for name in ("kit", "python")
        if options[name] is not None and not os.path.isabs(options[name])
    ]
    try:
        back = None if options["since"] in (None, "boot") else float(options["since"])
    except ValueError:
        back = -1.0
    if back is not None and not 0 < back < 1e9:
        told.append(f"since: expected boot or a number of seconds above 0, found {options['since']!r}")
    return told + no_nul.problems(options)


def command(options: dict[str, Any], now: float) -> list[str]:
    """Return the argument list."""
    python = options["python"] or sys.executable
    since = options["since"] or "boot"
    argv = [python, "-m", "kit", "probe"]
    for name in ("deadline", "init_deadline", "limit"):
        argv += [f"--{name.replace('_', '-')}", f"{options[name]:g}"]
    argv += ["--kernel-log", options["kernel_log"]]
    argv += ["--since", since if since == "boot" else f"{now - float(since):.0f}"]
    if options["sample_seconds"]:
        argv += ["--sample", f"{options['sample_seconds']:g}", "--interval", f"{options['interval']:g}"]
    argv += [] if options["health"] else ["--no-health"]
    return argv if python == sys.executable else [sys.executable, "-c", _EXEC, *argv]


def probe(options: dict[str, Any]) -> dict[str, Any]:
    """Return the facts; if the kit gave none, a document with the `error`."""
    seconds = options["limit"] + options["sample_seconds"] + GRACE
    # An installed kit would be found as well: the named one takes precedence.
    path = os.pathsep.join(part for part in (options["kit"], os.environ.get("PYTHONPATH")) if part)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            # Files, not pipes: a grandchild blocked inside the driver would hold a pipe open forever.
            process = subprocess.Popen(
                command(options, time.time()),
                cwd="/",
                env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            return _nothing(f"the kit could not be started: {error}")
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            _stop(process)
            return _nothing(f"the kit was still running after {seconds:g} s and was stopped; {_tail(err)}")
        return _facts(out, err, process.returncode)


def _stop(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(STOPPING)
    except (OSError, subprocess.TimeoutExpired):
        pass  # it is blocked inside the kernel and cannot be killed


def _facts(out: BinaryIO, err: BinaryIO, status: int) -> dict[str, Any]:
    out.seek(0)
    content = out.read(OUTPUT_BYTES + 1)
    try:
        facts = strict_json.parse(content) if len(content) <= OUTPUT_BYTES else None
    except (ValueError, RecursionError):
        facts = None
    if status == 0 and isinstance(facts, dict):
        return facts
    how = f"ended with {status}" if status else "did not print facts"
    return _nothing(f"the kit {how}; {_tail(err)}")


def _tail(err: BinaryIO) -> str:
    err.seek(0, os.SEEK_END)
    err.seek(max(0, err.tell() - 2000))
    lines = err.read().decode("utf-8", "replace").strip().splitlines()
    return f"its last line: {lines[-1][:300]}" if lines else "it printed no error"


def _nothing(error: str) -> dict[str, Any]:
    return {
        "schema": 1,
        "node": socket.gethostname(),
        "time": time.time(),
        "source": "none",
        "error": error,
        "gpus": [],
        "kernel_log": None,
        "samples": None,
    }
