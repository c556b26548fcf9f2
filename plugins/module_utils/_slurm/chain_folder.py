# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of a chain of jobs on the share: its record, and what the jobs left there. PRIVATE to the collection.

The jobs' side of it is files/kit/pretraining/chain.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Mapping
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import strict_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common.atomic import write_atomic
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import SlurmError

RECORD, LINKS, STOP, COMPLETE, JOURNAL = "chain.json", "links", "stop", "complete.json", ".journal"
CHECKPOINTS = "checkpoints"
SCHEMA = 1
GOING, STOPPED = "going", "stopped"
SUBMITTING, SUBMITTED = "submitting", "submitted"
_BYTES = 8 << 20
_CHECKPOINT = re.compile(r"(?:final_)?checkpoint_step_([0-9]{1,12})", re.ASCII)
_LINK_FILE = re.compile(r"[0-9]{1,18}\.json", re.ASCII)
_KEYS: dict[str, type] = {
    "id": str,
    "name": str,
    "user": str,
    "round": int,
    "created": float,
    "what": dict,
    "links": list,
}

Record = dict[str, Any]


def read_record(folder: str) -> Record | None:
    """Return the chain's record; None if there is no chain. Raise SlurmError for one that cannot be read.

    A damaged record never counts as none: a second chain would train into the same checkpoints.
    """
    path = os.path.join(folder, RECORD)
    try:
        document = _read(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from None
    wrong = _wrong(document)
    if wrong:
        raise _unreadable(path, wrong)
    return document


def _unreadable(path: str, why: str) -> SlurmError:
    return SlurmError(
        f"The record of the chain {path} cannot be read ({why}), so nothing is submitted and nothing cancelled. "
        f"Look at: ls -l {os.path.dirname(path)}"
    )


def _wrong(record: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a record; None if nothing is."""
    if record.get("schema") != SCHEMA:
        return f"its schema is {record.get('schema')!r}, this version knows {SCHEMA}"
    for key, kind in _KEYS.items():
        value = record.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            return f"{key} is {value!r}"
    if record.get("state") not in (GOING, STOPPED):
        return f"state is {record.get('state')!r}"
    for number, link in enumerate(record["links"], start=1):
        is_link = isinstance(link, dict) and link.get("number") == number and isinstance(link.get("round"), int)
        if not is_link or link.get("state") not in (SUBMITTING, SUBMITTED):
            return f"link {number} is {link!r}"
        job_id = link.get("job_id")
        if (link["state"] == SUBMITTED) != (isinstance(job_id, str) and job_id.isascii() and job_id.isdigit()):
            return f"link {number} is {link!r}"
    return None


def write_record(folder: str, record: Record) -> None:
    """Write the record, readable for everybody. Raise SlurmError."""
    path = os.path.join(folder, RECORD)
    try:
        write_atomic(path, (json.dumps(record, indent=1) + "\n").encode())
    except OSError as error:
        raise SlurmError(
            f"The record of the chain {path} could not be written: {error}. Look at: df {folder}; ls -ld {folder}"
        ) from error


def entries(folder: str) -> dict[str, dict[str, Any]]:
    """Return what the jobs said of themselves, by job ID; a file that cannot be read says so as its outcome."""
    found = {}
    try:
        names = os.listdir(os.path.join(folder, LINKS))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SlurmError(f"{folder}/{LINKS} cannot be read: {error}") from error
    for name in names:
        if _LINK_FILE.fullmatch(name):
            path = os.path.join(folder, LINKS, name)
            try:
                found[name[: -len(".json")]] = _read(path)
            except (OSError, ValueError) as error:
                found[name[: -len(".json")]] = {"outcome": f"not known, {path} cannot be read: {error}"}
    return found


def complete(folder: str) -> dict[str, Any] | None:
    """Return what the last link said when nothing was left to do; None if there is something. Raise SlurmError."""
    path = os.path.join(folder, COMPLETE)
    try:
        return _read(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SlurmError(f"{path} cannot be read: {error}") from error


def last_checkpoint(folder: str) -> str | None:
    """Return the name of the newest checkpoint whose files have the sizes that its manifest states, or None."""
    place = os.path.join(folder, CHECKPOINTS)
    try:
        found = [(int(match[1]), name) for name in os.listdir(place) if (match := _CHECKPOINT.fullmatch(name))]
    except OSError:
        return None
    for _step, name in sorted(found, reverse=True):  # by name too: of one step the final one comes first
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            files = _read(os.path.join(place, name, "manifest.json"))["files"]
            if files and all(
                os.path.getsize(os.path.join(place, name, os.path.basename(str(each["name"])))) == each["bytes"]
                for each in files
            ):
                return name
    return None


def ask_to_stop(folder: str) -> None:
    """Leave word in a folder, the chain's or a job's, that its training is to end with a checkpoint. Raise OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(os.path.join(folder, STOP), flags, 0o644), "wb"):
        pass


def let_go_on(folder: str, round_before: int) -> None:
    """Take back that the chain is to stop, or that it is complete. Raise OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, STOP))
    with contextlib.suppress(FileNotFoundError):
        os.rename(os.path.join(folder, COMPLETE), os.path.join(folder, f"complete-{round_before}.json"))


def _read(path: str) -> dict[str, Any]:
    """Return a JSON object. Raise OSError, ValueError; a link is not followed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not a regular file")
        content = stream.read(_BYTES + 1)
    if len(content) > _BYTES:
        raise ValueError(f"it is longer than {_BYTES} bytes")
    try:
        document = strict_json.parse(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError("it is no object")
    return document
