# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts about a host apart from GPUs and the share: commands, munge, Python, Apptainer, internet access."""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.host.indexes import index_urls
from kit.job import Job, node_name

SECONDS = 10.0
COMMANDS = ("sbatch", "squeue", "scontrol", "sinfo", "scancel", "sacct", "srun")


def ask(argv: Sequence[str], text: str | None = None, seconds: float = SECONDS) -> dict[str, Any]:
    """Run a command and return {ok, out, error}; give it up without waiting if it does not end in time."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        return {"ok": False, "out": "", "error": f"{argv[0]}: {error.strerror}"}
    try:
        out, err = process.communicate(text, timeout=seconds)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        return {"ok": False, "out": "", "error": f"{argv[0]} did not end within {seconds:g} s"}
    failed = process.returncode != 0
    why = f"{argv[0]} exited with {process.returncode}: {err.strip()[-500:]}" if failed else ""
    return {"ok": not failed, "out": out, "error": why}


def read_json(path: Path) -> Any:
    """Return a JSON document, or None if it cannot be read."""
    try:
        return strict_json.read(path)
    except (OSError, ValueError):
        return None


def os_name(path: Path = Path("/etc/os-release")) -> str | None:
    """Return the distribution's name."""
    try:
        said = dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
    except OSError:
        return None
    return said.get("PRETTY_NAME", "").strip('"') or None


def boot_id(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str | None:
    """Return what tells this machine, since it was booted, from every other."""
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def munge() -> dict[str, Any]:
    """Encode a credential and decode it again: {ok, error}."""
    made = ask(["munge", "--no-input"])
    if not made["ok"]:
        return {"ok": False, "error": made["error"]}
    checked = ask(["unmunge"], made["out"])
    status = re.search(r"^STATUS:\s+(.*)$", checked["out"], re.MULTILINE)
    if not checked["ok"] or status is None or not status[1].startswith("Success"):
        return {"ok": False, "error": checked["error"] or f"unmunge printed {checked['out'][:200]!r}"}
    return {"ok": True, "error": None}


def apptainer(image: str | None = None) -> dict[str, Any]:
    """Return {version, error, image}; with an image also what `--nv` adds to it: {devices, libraries}."""
    program = shutil.which("apptainer")
    if program is None:
        return {"version": None, "error": "apptainer is not on PATH", "image": None}
    said = ask([program, "--version"])
    match = re.search(r"(\d+\.\d+(?:\.\d+)?)", said["out"])
    version = match[1] if said["ok"] and match else None
    error = None if version else said["error"] or f"{program} --version printed {said['out'][:100]!r}"
    return {"version": version, "error": error, "image": in_image(program, image) if image and version else None}


# One line for each GPU that opens and each NVIDIA library; the image needs only a shell.
_LOOK = (
    'for device in /dev/nvidia[0-9]*; do (exec 3<> "$device") 2> /dev/null && echo "device $device"; done; '
    'for library in /.singularity.d/libs/*; do echo "library $library"; done'
)


def in_image(program: str, image: str) -> dict[str, Any]:
    """Return what a process in the image sees of the GPUs: {path, devices, libraries, error}."""
    said = ask([program, "exec", "--nv", "--no-home", image, "sh", "-c", _LOOK], seconds=60)
    lines = [line.partition(" ") for line in said["out"].splitlines()]
    return {
        "path": image,
        "devices": [rest for kind, _other, rest in lines if kind == "device"],
        "libraries": [os.path.basename(rest) for kind, _other, rest in lines if kind == "library" and "*" not in rest],
        "error": said["error"] or None,
    }


def reachable(url: str, seconds: float = SECONDS) -> dict[str, Any]:
    """Return {host, ok, error}: whether an HTTP server answers there, with any answer."""
    # Not above: a fifth of what this module costs a node that is asked for no address.
    import urllib.error  # noqa: PLC0415
    import urllib.parse  # noqa: PLC0415
    import urllib.request  # noqa: PLC0415

    parts = urllib.parse.urlsplit(url)
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    try:
        request = urllib.request.Request(bare.geturl(), method="HEAD")  # noqa: S310 - a site may name a file: index
        with urllib.request.urlopen(request, timeout=seconds):  # noqa: S310
            pass
    except urllib.error.HTTPError:
        pass  # an HTTP error is an answer
    except (OSError, ValueError) as error:
        return {"host": bare.hostname, "ok": False, "error": str(getattr(error, "reason", error))}
    return {"host": bare.hostname, "ok": True, "error": None}


def devices(folder: Path = Path("/dev")) -> dict[str, Any]:
    """Return {present, openable}: the GPUs' device files, and those that the devices cgroup lets this process open."""
    present = sorted(str(path) for path in folder.glob("nvidia[0-9]*"))
    return {"present": present, "openable": [path for path in present if _is_permitted(path)]}


def _is_permitted(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except PermissionError:
        return False
    except OSError:
        return True  # a failing driver is not a refusal
    return True


class _Beside(threading.Thread):
    """A call in a thread of its own, without concurrent.futures: its import takes 10 ms of each node's job."""

    def __init__(self, work: Callable[..., Any], *arguments: Any) -> None:
        super().__init__(daemon=True)
        self._work, self._arguments = work, arguments
        self._value: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._value = self._work(*self._arguments)
        except BaseException as error:
            self._error = error

    def result(self) -> Any:
        """Return what the call returned, when it has. Raise what it raised."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._value


def facts(
    job: Job, *, image: str | None, reach: Sequence[str], index: bool, now: float | None = None
) -> dict[str, Any]:
    """Return this host's facts. `reach` names URLs to try; with `index` also the package index of the environment."""
    urls = [*reach, *(index_urls(None) if index else [])]
    answers = [_Beside(reachable, url) for url in urls]
    credential, container = _Beside(munge), _Beside(apptainer, image)
    return {
        "schema": 1,
        **job.stamp,
        "host": node_name(),
        "hostname": platform.node(),
        "boot_id": boot_id(),
        "user": getpass.getuser(),
        "time": time.time() if now is None else now,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "os": os_name(),
        "python": platform.python_version(),
        "commands": {name: shutil.which(name) for name in COMMANDS},
        "munge": credential.result(),
        "apptainer": container.result(),
        "reach": [answer.result() for answer in answers],
    }
