# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Record what the steps of a run found. recorded.json lists each record with its SHA-256 before it is written.

So a record that is truncated, replaced, deleted or added is noticed when it is read back.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import strict_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common.atomic import write_atomic
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import (
    encode,
    read_json,
    write_json,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import columns

INDEX = "recorded.json"
PLAN = "plan.json"
FINDINGS = "findings"


class RecordError(ValueError):
    """A record differs from what was recorded."""


def add(folder: Path, name: str, document: t.Any, *, once: bool = False) -> None:
    """Record `document` as `name`, a path relative to the run's folder, in place of an earlier one unless `once`.

    Raise OSError or ValueError.
    """
    with _alone(folder):
        index = _index(folder)
        if once and name in index:
            raise RecordError(f"{folder / name} was recorded already; run the playbook again for another result")
        _write(folder, index, name, encode(document))


def add_findings(folder: Path, findings: t.Iterable[t.Any]) -> None:
    """Record more findings, as columns. Raise OSError or ValueError."""
    content = columns.pack(columns.Table(findings))
    with _alone(folder):
        index = _index(folder)
        _write(folder, index, f"{FINDINGS}/{sum(map(_of_findings, index)):03d}.json.gz", content)


def read(folder: Path, name: str) -> t.Any:
    """Return what was recorded as `name`. Raise FileNotFoundError if nothing was, OSError or ValueError."""
    return strict_json.parse(content(folder, name))


def read_findings(folder: Path, name: str) -> columns.Table:
    """Return the findings that were recorded as `name`. Raise as `read` does."""
    return columns.unpack(content(folder, name))


def content(folder: Path, name: str) -> bytes:
    """Return the file that was recorded as `name`. Raise FileNotFoundError if none was, OSError or ValueError."""
    path, wanted = folder / name, _index(folder).get(name)
    if wanted is None and not path.exists():
        raise FileNotFoundError(f"{path} was not recorded")
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        raise RecordError(f"{path} was recorded but does not exist") from None
    if hashlib.sha256(found).hexdigest() != wanted:
        raise RecordError(f"{path} is not what was recorded")
    return found


def names_of_findings(folder: Path) -> list[str]:
    """Return the names of all lists of findings, recorded or only on disk, in order. Raise OSError, ValueError."""
    found = sorted(f"{FINDINGS}/{path.name}" for path in (folder / FINDINGS).glob("*.json*"))
    return list(dict.fromkeys([*filter(_of_findings, _index(folder)), *found]))


def _of_findings(name: str) -> bool:
    return name.startswith(f"{FINDINGS}/")


def _write(folder: Path, index: dict[str, str], name: str, content: bytes) -> None:
    write_json(folder / INDEX, {**index, name: hashlib.sha256(content).hexdigest()})
    write_atomic(str(folder / name), content)


def _index(folder: Path) -> dict[str, str]:
    try:
        index = read_json(folder / INDEX)
    except FileNotFoundError:
        return {}
    except ValueError as exc:
        raise RecordError(f"{folder / INDEX} cannot be read: {exc}") from exc
    if not isinstance(index, dict):
        raise RecordError(f"{folder / INDEX} is not a list of what was recorded")
    return index


@contextlib.contextmanager
def _alone(folder: Path) -> t.Iterator[None]:
    """Let only one process record at a time: two that count at once would give two records the same name."""
    with (folder / PLAN).open("r+b") as plan:
        fcntl.flock(plan, fcntl.LOCK_EX)
        yield
