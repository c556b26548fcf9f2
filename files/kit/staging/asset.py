# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put a model or a dataset on the share: downloaded, from a folder, or its stand-in.

The files are checked and completed in a folder next to the target, provenance.json last, and renamed into place as a
whole: a job sees the old files, the new ones, or for a moment none.

Sizes and modification times, recorded in provenance.json, decide whether an asset is already staged; a file is read
again only if its time differs, or with ``verify``. This misses a file whose content changed but not its size and time,
such as one damaged by a disk. That is acceptable: the job reads the whole file afterwards and its training shows it,
while reading 14 GB before each play would take a minute or more.
"""

from __future__ import annotations

import argparse
import glob
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Union

from kit import strict_json
from kit.errors import KitError
from kit.files import sha256, sync_directory, write_atomic, write_json
from kit.process import unfinished
from kit.process.locks import sole
from kit.staging.hub import Source, download

PROVENANCE = "provenance.json"
SOURCES = ("download", "path", "stand-in")

Contents = Mapping[str, Union[bytes, Path]]  # name on the share → content, or the file that has it
Facts = Mapping[str, Any]
Fill = Callable[[Path], None]  # put files into a folder, as published


@dataclass(frozen=True)
class Made:
    """Files that are made, and made again only if their recipe differs from that of those which are staged."""

    recipe: Mapping[str, Any]
    fill: Fill


Origin = Union[Source, Fill, Made, Path, None]


@dataclass(frozen=True)
class Asset:
    """Something that can be staged, and the functions that know its format."""

    name: str  # of its folder on the share
    source: Source | Fill | Made  # a repository of the Hugging Face hub, or what downloads from elsewhere
    descriptions: Mapping[str, str]  # source → what the verdict says of it
    recipe: Mapping[str, Any]  # what the stand-in is made from
    make_stand_in: Fill
    # Check such a folder; return what jobs read, and facts for the provenance, described in `holds`. Raise KitError.
    prepare: Callable[[Path], tuple[Contents, Facts]]
    # What jobs read if it is made from the files in a folder given by the site, too many to compare; None if it is not.
    convert: Callable[[Path], Made | None] = lambda _folder: None
    # Look at the finished folder, with the size and SHA-256 of each file, before jobs see it. Raise KitError.
    check: Callable[[Path, Mapping[str, Mapping[str, Any]]], None] = lambda _folder, _files: None


@dataclass(frozen=True)
class Obtained:
    """A folder of files as published."""

    folder: Path
    ours: bool  # its files may be moved away
    revision: str | None = None
    requested: str | None = None
    digests: Mapping[Path, str] = field(default_factory=dict)  # SHA-256 of files that were already read


def stage(
    asset: Asset,
    target: Path,
    source: str,
    *,
    folder: Path | None = None,
    revision: str | None = None,
    check: bool = False,
    verify: bool = False,
) -> dict[str, Any]:
    """Stage ``asset`` in the folder ``target`` unless it is already there; return what is there.

    ``folder`` is for source path. ``revision`` is for download; without it the commit of an earlier staging is kept,
    else the hub's main is resolved once. ``check``: report whether anything would change, do nothing. ``verify``:
    compare every file with its recorded SHA-256. Raise KitError. Two processes may run this at the same time.
    """
    origins = {
        "download": asset.source,
        "path": (asset.convert(folder) or folder) if folder else None,
        "stand-in": Made(asset.recipe, asset.make_stand_in),
    }
    origin = origins.get(source)
    recipe = json.loads(json.dumps(origin.recipe)) if isinstance(origin, Made) else None  # as it is read back
    wanted = {"name": asset.name, "source": source, "recipe": recipe}
    given = asset.prepare(origin)[0] if isinstance(origin, Path) else None
    target = target.absolute()
    changed = not is_staged(target, wanted, given=given, revision=revision, verify=verify)
    if changed and not check:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with sole(target.parent / f".{target.name}.lock", f"staging {target}"):
                # Another process may have finished while this one waited.
                changed = not is_staged(target, wanted, given=given, revision=revision, verify=verify)
                if changed:
                    _renew(asset, target, wanted, origin, revision)
        except OSError as error:
            raise KitError(
                f"cannot write to {target.parent}: {error}; is the share mounted, writable and not full?"
            ) from error
    return _answer(asset, target, source, changed, read=not (changed and check))


def is_staged(
    target: Path,
    wanted: Mapping[str, Any],
    *,
    given: Contents | None = None,
    revision: str | None = None,
    verify: bool = False,
) -> bool:
    """Return whether ``target`` holds exactly the wanted files, unchanged.

    ``wanted`` are keys of its provenance; ``given`` is the current content of the source path.
    """
    try:
        provenance = strict_json.read(target / PROVENANCE)
        files, times = provenance["files"], provenance["mtimes"]
        if any(provenance.get(key) != value for key, value in wanted.items()):
            return False
        if revision and revision not in (provenance["revision"], provenance["requested"]):
            return False
        names = {name for name in os.listdir(target) if not name.startswith(".")}
        if not files or names != {*files, PROVENANCE}:
            return False
        if given is not None and set(given) != set(files):
            return False
        if any(not _is_same(content, files[name], times[name]) for name, content in (given or {}).items()):
            return False
        return all(_is_same(target / name, files[name], times[name], verify) for name in files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _is_same(content: bytes | Path, recorded: Mapping[str, Any], mtime: int, verify: bool = False) -> bool:
    """Compare a content or a file with its record. Raise OSError."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest() == recorded["sha256"]
    said = content.stat()
    if said.st_size != recorded["size"]:
        return False
    return (int(said.st_mtime) == mtime and not verify) or sha256(content) == recorded["sha256"]


def _answer(asset: Asset, target: Path, source: str, changed: bool, read: bool) -> dict[str, Any]:
    """Return what the command line prints; ``read``: the target already holds it."""
    provenance = strict_json.read(target / PROVENANCE) if read else {}
    kept_there = ("name", "recipe", "requested", "holds", "files", "mtimes")
    facts = {key: value for key, value in provenance.items() if key not in kept_there}
    return {
        **facts,
        "changed": changed,
        "path": str(target),
        "source": source,
        "description": provenance.get("description", asset.descriptions[source]),
        "revision": provenance.get("revision"),
        "sha256": hashlib.sha256(json.dumps(provenance.get("files"), sort_keys=True).encode()).hexdigest(),
    }


def _renew(asset: Asset, target: Path, wanted: dict[str, Any], origin: Origin, revision: str | None) -> None:
    """Obtain, check and complete next to ``target``, then rename. Raise KitError, or OSError from the share."""
    unfinished.remove_beside(target)
    building = unfinished.beside(target)
    with _obtain(asset, target, origin, revision) as obtained:
        contents, facts = asset.prepare(obtained.folder)
        try:
            files, times = _fill(building, contents, obtained)
            asset.check(building, files)
            document = {
                **wanted,
                "description": _describe(asset, wanted["source"], obtained, facts),
                "revision": obtained.revision,
                "requested": obtained.requested,
                **facts,
                "files": files,
                "mtimes": times,
            }
            write_json(building / PROVENANCE, document)
            _put_in_place(building, target, wanted)
        finally:
            shutil.rmtree(building, ignore_errors=True)  # no longer there if it was renamed


def _describe(asset: Asset, source: str, obtained: Obtained, facts: Facts) -> str:
    """Return the description for the verdict."""
    commit = f" at commit {obtained.revision[:12]}" if obtained.revision else ""
    return f"{asset.descriptions[source]}{commit}, {facts['holds']}"


@contextmanager
def _obtain(asset: Asset, target: Path, origin: Origin, revision: str | None) -> Iterator[Obtained]:
    """Provide a folder of files as published, and remove it afterwards if it is ours.

    An unfinished download from the hub is kept, and the next one continues it.
    """
    if isinstance(origin, Path):
        yield Obtained(origin, ours=False)
    elif isinstance(origin, Source):
        requested = revision or _pinned(target, asset.name) or "main"
        fetched = download(origin, target, requested)
        yield Obtained(fetched.folder, True, fetched.commit, requested, fetched.digests)
        for old in target.parent.glob(f".download-{glob.escape(target.name)}-*"):
            shutil.rmtree(old, ignore_errors=True)
    elif origin:
        building = unfinished.beside(target)
        made = building.with_name(f"{building.name}-made")
        try:
            made.mkdir(mode=0o755)
            (origin.fill if isinstance(origin, Made) else origin)(made)
            yield Obtained(made, ours=True)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    else:
        raise ValueError(f"no origin of {asset.name}: expected one of {', '.join(SOURCES)}, path with a folder")


def _pinned(target: Path, name: str) -> str | None:
    """Return the commit that an earlier staging downloaded."""
    try:
        provenance = strict_json.read(target / PROVENANCE)
        found = provenance["revision"] if (provenance["name"], provenance["source"]) == (name, "download") else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def _fill(building: Path, contents: Contents, obtained: Obtained) -> tuple[dict[str, Any], dict[str, int]]:
    """Create ``building`` from the contents; return each file's size, SHA-256, and modification time in seconds."""
    known = {path: obtained.digests.get(path) or sha256(path) for path in _paths(contents)} if obtained.ours else {}
    building.mkdir(mode=0o755)
    for name, content in contents.items():
        path = building / name
        if isinstance(content, bytes):
            _write(path, content)
        elif obtained.ours:
            os.replace(content, path)
            os.chmod(path, 0o644)
            _sync(path)
        else:
            _copy(content, path)
    files, times = {}, {}
    for name, content in contents.items():
        said = os.stat(building / name)
        digest = known.get(content) if isinstance(content, Path) else None
        files[name] = {"size": said.st_size, "sha256": digest or sha256(building / name)}
        times[name] = int(said.st_mtime)  # whole seconds: some file systems keep no more
    return files, times


def _paths(contents: Contents) -> list[Path]:
    return [content for content in contents.values() if isinstance(content, Path)]


def _write(path: Path, content: bytes) -> None:
    write_atomic(path, lambda stream: stream.write(content))


def _copy(source: Path, target: Path) -> None:
    """Copy a file with its modification time, so that both can be compared later without being read."""
    with open(source, "rb") as stream:
        write_atomic(target, lambda out: shutil.copyfileobj(stream, out, 1 << 20))
    said = os.stat(source)
    os.utime(target, (said.st_atime, said.st_mtime))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _put_in_place(building: Path, target: Path, wanted: Mapping[str, Any]) -> None:
    """Rename; if another node's process was first, keep its files."""
    sync_directory(building)
    replaced = building.with_name(f"{building.name}-replaced")
    if os.path.lexists(target):
        target.rename(replaced)
    try:
        building.rename(target)
    except OSError as error:
        if not is_staged(target, wanted):
            if os.path.lexists(replaced) and not os.path.lexists(target):
                replaced.rename(target)
            raise KitError(f"cannot put {building} in place as {target}: {error.strerror}") from error
    sync_directory(target.parent)
    if os.path.lexists(replaced):
        unfinished.remove(replaced)


def main(asset: Asset, description: str | None = None, arguments: Sequence[str] | None = None) -> int:
    """Run the command line of an asset's stage.py; return 0 if staged, 1 for a problem reported on stderr."""
    parser = command_line(description)
    return run(asset, parser, parser.parse_args(arguments))


def command_line(description: str | None) -> argparse.ArgumentParser:
    """Return the options that every stage.py has."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--source", choices=SOURCES, required=True)
    parser.add_argument("--from", dest="folder", type=Path, help="folder with the files, for --source path")
    parser.add_argument("--revision", help="branch, tag or commit on the hub (default: as staged before, else main)")
    parser.add_argument("--check", action="store_true", help="report whether anything would change, do nothing")
    parser.add_argument("--verify", action="store_true", help="read every staged file and compare its SHA-256")
    return parser


def run(asset: Asset, parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Stage as the command line says; return 0 if staged, 1 for a problem reported on stderr."""
    if (given.source == "path") != (given.folder is not None):
        parser.error("--from requires --source path")
    if given.revision and not (given.source == "download" and isinstance(asset.source, Source)):
        parser.error("--revision requires --source download from the Hugging Face hub")
    os.umask(0o022)  # jobs read these files, so nobody else may write to them
    options = {"folder": given.folder, "revision": given.revision, "check": given.check, "verify": given.verify}
    try:
        with redirect_stdout(sys.stderr):  # stdout is only for the answer, whatever a library prints
            result = stage(asset, given.target, given.source, **options)
    except (KitError, OSError, ImportError) as error:
        print(f"stage {asset.name}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0
