# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit preflight`: examine this node, as its preflight job; one process, since on 1,000 nodes each costs minutes."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from kit.commands import begin
from kit.errors import KitError
from kit.evidence import markers
from kit.files import write_json
from kit.host import facts
from kit.job import current_job, node_name
from kit.share import look, mounts

NOT_BEGUN = 70  # exit code: the begin marker could not be written
STEP_SECONDS = 180  # while slurmctld restarts, srun waits for SlurmctldTimeout, 120 s by default, and asks again
TIMED_OUT = (124, 137)  # exit codes of `timeout`: by SIGTERM, by SIGKILL
REASON = 200  # characters of what srun said
MESSAGES = "messages.txt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    begin.add_arguments(parser)
    parser.add_argument("--output", type=Path, required=True, help="folder for what is found; it is made")
    parser.add_argument("--path", required=True, help="the share")
    parser.add_argument("--type", choices=mounts.TYPES, default="beegfs")
    parser.add_argument("--image", help="container image to look for the GPUs in")
    parser.add_argument("--gpus", action="store_true", help="examine the GPUs, too")
    parser.add_argument("--kernel-log", default="none", help="how to read the kernel log, as for `kit probe`")
    parser.add_argument("--xid-seconds", type=int, default=0, help="age of the Xids that count; 0: since the boot")


def run(arguments: argparse.Namespace) -> None:
    """Write the markers and the parts. What one part cannot find out keeps no other from being written."""
    _begin_messages(arguments.output)
    try:
        job, folder = current_job(), begin.folder(arguments)
        markers.begin(folder, job)
    except (KitError, OSError) as error:
        print(f"kit preflight: {error}", file=sys.stderr)
        raise SystemExit(NOT_BEGUN) from None
    probe = subprocess.Popen(_probe(arguments), stdin=subprocess.DEVNULL) if arguments.gpus else None
    given = arguments.gpus and (os.environ.get("SLURM_JOB_GPUS") or os.environ.get("CUDA_VISIBLE_DEVICES"))
    step = _Step("gpu:1", arguments.output / "confined.json") if given else None
    _write(arguments.output / "host.json", lambda: facts.facts(job, image=arguments.image, reach=(), index=False))
    _write(arguments.output / "share.json", lambda: look.collect(_share(arguments)))
    if probe:
        probe.wait()
    if step:
        step.wait()
        if len(facts.devices()["present"]) == 1:
            # A step with the node's only GPU sees it by right: only one without any shows confinement.
            _Step("none", arguments.output / "without.json").wait()
    markers.end(folder, job, 0)


def _begin_messages(folder: Path) -> None:
    """Make the folder; what this process and its children print goes to a file in it."""
    try:
        folder.mkdir()
        descriptor = os.open(folder / MESSAGES, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except OSError as error:
        print(f"kit preflight: {folder}: {error.strerror}", file=sys.stderr)
        raise SystemExit(mounts.NOT_WRITABLE) from None
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        os.dup2(descriptor, stream.fileno())
    os.close(descriptor)


def _write(path: Path, find: Callable[[], object]) -> None:
    try:
        write_json(path, find())
    except (KitError, OSError) as error:
        print(f"kit preflight: {path.name}: {error}", file=sys.stderr)


def _share(arguments: argparse.Namespace) -> look.Options:
    jobs = "jobs"
    return look.Options(arguments.path, node_name(), arguments.type, directories=(jobs,), folder=jobs, tool="own")


def _probe(arguments: argparse.Namespace) -> list[str]:
    since = str(int(time.time()) - arguments.xid_seconds) if arguments.xid_seconds else "boot"
    return _kit(
        "probe", "--output", str(arguments.output / "gpus.json"), "--kernel-log", arguments.kernel_log, "--since", since
    )


class _Step:
    """A step of this job that writes which GPUs it can open; if it does not, the file says why: {"problem": …}."""

    def __init__(self, gres: str, output: Path) -> None:
        self._output, self._name = output, f"srun --gres={gres}"
        limited = ["timeout", "--kill-after=10", str(STEP_SECONDS), "srun", "--ntasks=1", f"--gres={gres}"]
        self._process = subprocess.Popen(
            [*limited, *_kit("devices", "--output", str(output))],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def wait(self) -> None:
        _nothing, said = self._process.communicate()
        sys.stderr.write(said)
        if not os.path.exists(self._output):  # never raises, whatever the share answers
            _write(self._output, lambda: {"problem": self._problem(said)})

    def _problem(self, said: str) -> str:
        code = self._process.returncode
        ended = f"did not end within {STEP_SECONDS} s" if code in TIMED_OUT else f"ended with {code}"
        last = (said.strip().splitlines() or ["it said nothing"])[-1]
        return f"{self._name} {ended}: {last[:REASON]}"


def _kit(*words: str) -> list[str]:
    return [sys.executable, "-m", "kit", *words]
