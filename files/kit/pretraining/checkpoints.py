# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints as folders that are whole or are not taken.

A checkpoint is written beside its place, file by file, each on the disk; then its manifest, with the SHA-256 of every
file; then it is renamed. What a crash, a full disk or a failing disk leaves is recognised by that, and the newest
checkpoint before it is taken. PyTorch's and DeepSpeed's own readers load damaged files without a word.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

from kit import strict_json
from kit.errors import KitError
from kit.files import sha256, sync_directory, write_atomic

MANIFEST = "manifest.json"
DIGEST = "sha256"  # in the manifest, of all else in it
OWN, DEEPSPEED = "own", "deepspeed"  # formats; a manifest that says nothing is of the first
FILES = {  # of each rank
    OWN: ("rank-{rank:04d}-of-{ranks:04d}.safetensors",),
    DEEPSPEED: (
        "zero_pp_rank_{rank}_mp_rank_00_model_states.pt",
        "zero_pp_rank_{rank}_mp_rank_00_optim_states.pt",
    ),
}
NAME = re.compile(r"^(final_)?checkpoint_step_([0-9]+)$")
INCOMPLETE = ".incomplete-"
REPLACED = ".replaced-"  # until another of its name is in its place
NONE_WHOLE = 4  # exit code of a training that was to resume and found no whole checkpoint
MARGIN = 1.05  # bytes asked for, relative to those of the tensors


class NoneWholeError(KitError):
    """There are checkpoints, or there should be, and none can be taken; the message names each with its reason."""


class DamagedError(KitError):
    """A checkpoint is not whole; the message says which file, and how."""


@dataclass(frozen=True)
class Taken:
    """A whole checkpoint, its manifest, and the newer ones that were refused: name → reason."""

    path: Path
    manifest: dict[str, Any]
    refused: dict[str, str] = field(default_factory=dict)


def name_of(step: int, *, final: bool = False) -> str:
    """Return the name of a checkpoint's folder."""
    return f"{'final_' if final else ''}checkpoint_step_{step}"


def step_of(name: str) -> int | None:
    """Return the step of a checkpoint by its folder's name, None for other names."""
    match = NAME.match(name)
    return int(match[2]) if match else None


def newest_first(names: Iterable[str]) -> list[str]:
    """Return those names that are of checkpoints, by step; the final checkpoint comes before another of its step."""
    steps = [(step, name) for name in names if (step := step_of(name)) is not None]
    return [name for _step, name in sorted(steps, reverse=True)]


def rank_file(rank: int, ranks: int) -> str:
    """Return the name of a rank's file in the own format."""
    return FILES[OWN][0].format(rank=rank, ranks=ranks)


def format_of(manifest: Mapping[str, Any]) -> str:
    """Return what wrote the files of a checkpoint."""
    return str(manifest.get("format", OWN))


def begin(folder: Path, name: str, size: int, *, keep: bool = False) -> Path:
    """Make the place where checkpoint ``name`` is written, after checking that ``size`` bytes fit. Raise KitError.

    With ``keep`` what an earlier attempt left there stays: it is to be compared with what should be there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    asked, free = int(size * MARGIN), shutil.disk_usage(folder).free
    if free < asked:
        raise KitError(
            f"no space for {name}: it takes {asked:,} bytes, {folder} has {free:,} free; remove old checkpoints there, "
            f"or lower checkpoint.keep"
        )
    place = folder / f"{INCOMPLETE}{name}"
    if place.exists() and not keep:
        shutil.rmtree(place)
    place.mkdir(exist_ok=True)
    return place


def describe(path: Path) -> dict[str, Any]:
    """Put a written file onto the disk, and return its entry for the manifest, from what is there.

    The disk and the processor that computes the SHA-256 work at the same time. Raise OSError.
    """
    with path.open("rb+") as stream, ThreadPoolExecutor(1) as disk:
        flushed = disk.submit(os.fsync, stream.fileno())
        entry = {"name": path.name, "bytes": path.stat().st_size, "sha256": sha256(path)}
        flushed.result()
    return entry


def finish(place: Path, facts: Mapping[str, Any], files: Sequence[Mapping[str, Any]]) -> Path:
    """Write the manifest of what `begin` made a place for, and rename it into view; return where it is then."""
    name = place.name[len(INCOMPLETE) :]
    manifest = {"schema": 1, "name": name, **facts, "time": time.time(), "files": list(files)}
    return adopt(place, _document({**manifest, DIGEST: _digest(strict_json.parse(_document(manifest)))}))


def _digest(manifest: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != DIGEST}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def parse(content: bytes, where: str) -> dict[str, Any]:
    """Return a manifest that is what was written, of whatever checkpoint. Raise DamagedError."""
    try:
        manifest = strict_json.parse(content)
        if not isinstance(manifest, dict):
            raise ValueError(f"expected an object, found {type(manifest).__name__}")
        digest = _digest(manifest)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{where} cannot be read: {error}") from error
    if manifest.get(DIGEST) != digest:
        raise DamagedError(f"{where} is not what was written: its SHA-256 differs")
    return manifest


def _document(manifest: Mapping[str, Any]) -> bytes:
    return json.dumps(manifest, indent=1).encode() + b"\n"


def adopt(place: Path, manifest: bytes) -> Path:
    """Give the files in ``place`` their manifest and rename them into view; return where they are then."""
    name = place.name[len(INCOMPLETE) :]
    sync_directory(place)
    write_atomic(place / MANIFEST, lambda stream: stream.write(manifest))
    target, replaced = place.parent / name, place.parent / f"{REPLACED}{name}"
    if target.exists():  # of a run that went back behind it
        if replaced.exists():  # of one that was cut off here
            shutil.rmtree(replaced)
        target.rename(replaced)
    place.rename(target)
    sync_directory(place.parent)
    if replaced.exists():
        shutil.rmtree(replaced)
    return target


def verify(path: Path, *, hashed: bool = True, rank: int = 0, ranks: int = 1) -> dict[str, Any]:
    """Return the manifest of a whole checkpoint. Raise DamagedError.

    Without ``hashed`` sizes are compared only, for a list that must be quick. With ``ranks`` this one of them reads its
    part of the files, and the others read the rest.
    """
    try:
        content = (path / MANIFEST).read_bytes()
    except FileNotFoundError:
        raise DamagedError(f"{path.name} has no {MANIFEST}: it was not finished") from None
    except OSError as error:
        raise DamagedError(f"{path.name}/{MANIFEST} cannot be read: {error}") from error
    manifest = parse(content, f"{path.name}/{MANIFEST}")
    files = files_of(manifest, path.name, path.name)
    strange = sorted({each.name for each in path.glob("*.pt")} - {name for name, _size, _digest in files})
    if strange:  # DeepSpeed's readers take whatever has such a name
        raise DamagedError(f"{path.name}/{strange[0]} is not in its {MANIFEST}")
    for position, (name, size, digest) in enumerate(files):
        _compare(path / name, size, digest if hashed and position % ranks == rank else None)
    return manifest


def files_of(manifest: Mapping[str, Any], name: str, where: str) -> list[tuple[str, int, str]]:
    """Return name, bytes and SHA-256 of each file of checkpoint ``name``, which is at ``where``.

    Raise DamagedError if the manifest is of another checkpoint, or does not have the files of its ranks.
    """
    try:
        if manifest["name"] != name or int(manifest["step"]) != step_of(name):
            raise DamagedError(f"{where}/{MANIFEST} is of {manifest['name']}, step {manifest['step']}")
        files = sorted((str(each["name"]), int(each["bytes"]), str(each["sha256"])) for each in manifest["files"])
        _require_files(where, format_of(manifest), manifest["ranks"], [file for file, _size, _digest in files])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DamagedError(f"{where}/{MANIFEST} is damaged: {error!r}") from error
    return files


def _require_files(where: str, form: str, ranks: int, names: Sequence[str]) -> None:
    if form not in FILES:
        raise DamagedError(f"{where} is of the format {form!r}, which is not known")
    # DeepSpeed names some of its files after the precision.
    found = sorted(name.removeprefix("bf16_") for name in names)
    if (
        not found
        or len(found) != ranks * len(FILES[form])  # before the names of as many ranks as it says are made up
        or found != sorted(each.format(rank=rank, ranks=ranks) for each in FILES[form] for rank in range(ranks))
    ):
        raise DamagedError(f"{where} has {len(names)} files, not those of {ranks} ranks")


def _compare(path: Path, written: int, digest: str | None) -> None:
    """Raise DamagedError for a file of another size, or of another SHA-256 if one is given."""
    where = f"{path.parent.name}/{path.name}"
    try:
        size = path.stat().st_size
        if size != written:
            raise DamagedError(f"{where} has {size} bytes, {written} were written")
        if digest is not None and sha256(path) != digest:
            raise DamagedError(f"{where} is not what was written: its SHA-256 differs")
    except OSError as error:
        raise DamagedError(f"{where} cannot be read: {error.strerror}") from error


def listed(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, newest first; those that were not finished are not among them."""
    try:
        return [folder / name for name in newest_first(os.listdir(folder))]
    except FileNotFoundError:
        return []


def newest(
    folder: Path,
    result_settings: Mapping[str, Any] | None = None,
    check: Callable[[Path], dict[str, Any]] = verify,
) -> Taken:
    """Return the newest whole checkpoint of this training. Raise NoneWholeError if there is none.

    ``result_settings`` are those that change the result, by name: a checkpoint that was made with others is refused.
    ``check`` is for ranks that verify together: each calls it for the same folders, and it answers the same to all.
    """
    refused: dict[str, str] = {}
    for path in listed(folder):
        try:
            manifest = check(path)
            if result_settings is not None:
                _require_same(path.name, manifest.get("settings"), result_settings)
        except DamagedError as error:
            refused[path.name] = str(error)
            continue
        return Taken(path, manifest, refused)
    said = "; ".join(refused.values()) or "there is none"
    raise NoneWholeError(f"no whole checkpoint: {said} (in {folder})")  # a verdict cuts what is long at its end


def newest_until(folder: Path, step: int) -> Path:
    """Return the newest checkpoint that is not beyond a step, whole or not. Raise NoneWholeError if there is none."""
    for path in listed(folder):
        if (step_of(path.name) or 0) <= step:
            return path
    raise NoneWholeError(f"{folder} has no checkpoint of step {step} or before")


def _require_same(name: str, made: Any, now: Mapping[str, Any]) -> None:
    if not isinstance(made, dict):
        raise DamagedError(f"{name} does not say with which settings it was made")
    for key in sorted({*made, *now}):
        if key not in made or key not in now or made[key] != now[key]:
            there, here = (repr(each[key]) if key in each else "nothing" for each in (made, now))
            raise DamagedError(f"{name} was made with {key} {there}, this training has {here}")


def due(first: int, last: int, every: int, keep: int) -> int:
    """Return how many checkpoints are there after steps ``first`` to ``last``, one after each ``every`` of them."""
    return min(keep, last // every - (first - 1) // every)


def retain(folder: Path, keep: int, refused: Container[str] = ()) -> list[str]:
    """Remove the oldest checkpoints but ``keep``, and return their names; those that cannot be removed stay.

    The newest one that is whole by the sizes of its files always stays; reading them all would stop the training. Those
    whose names are ``refused``, since they were read and are not whole, do not count: they stay while there are fewer
    than ``keep`` others, and are removed then.
    """
    found = listed(folder)
    counted = [path for path in found if path.name not in refused]
    others = [path for path in found if path.name in refused]
    most = max(1, keep)
    spared = next((path for path in counted if _is_whole_by_sizes(path)), None)
    old = [path for path in counted[most:] if path != spared]
    removed = []
    for path in [*old, *(others if len(counted) >= most else [])]:
        with suppress(OSError):  # it is no reason to end a training; the verdict counts what stays
            shutil.rmtree(path)
            removed.append(path.name)
    return removed


def _is_whole_by_sizes(path: Path) -> bool:
    try:
        verify(path, hashed=False)
    except DamagedError:
        return False
    return True
