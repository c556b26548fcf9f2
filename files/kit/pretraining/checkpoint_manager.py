# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkpoints in a folder and in a store: listed, verified, fetched, and uploaded while the training goes on.

In a store a checkpoint is the objects of its folder, its manifest last: one without a manifest is not there. A training
has a prefix of its own there: what is uploaded replaces another of its name, and what is too old is removed.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kit.errors import KitError
from kit.pretraining import checkpoints
from kit.pretraining.attempts import CONFLICT, DAMAGED, MISSING
from kit.pretraining.checkpoints import MANIFEST, DamagedError, Taken, newest_first, step_of
from kit.pretraining.store import DEADLINE, Store, StoreError, open_store

NAMED = 10  # trainings in a message


class CheckpointManager:
    """The checkpoints in ``folder``, and below ``prefix`` of ``bucket`` (gs://NAME, or a folder), if that is given."""

    def __init__(
        self,
        folder: Path | str,
        bucket: str | None = None,
        prefix: str = "",
        *,
        credentials: Path | None = None,
        deadline: float = DEADLINE,
    ) -> None:
        """Raise StoreError for a malformed address or unusable credentials; the bucket itself is not asked."""
        self.folder = Path(folder)
        url = None if bucket is None else "/".join(part for part in (bucket.rstrip("/"), prefix.strip("/")) if part)
        self.store = None if url is None else open_store(url, credentials=credentials, deadline=deadline)

    def list_checkpoints(self) -> list[dict[str, Any]]:
        """Return what there is, newest first: {name, metadata: {global_step}, local, remote, bytes, problem}."""
        here = {path.name: _looked_at(path) for path in checkpoints.listed(self.folder)}
        there = self._remote()
        found = {**{name: {"bytes": size, "problem": None} for name, size in there.items()}, **here}
        return [
            {
                "name": name,
                "metadata": {"global_step": step_of(name)},
                "local": name in here,
                "remote": name in there,
                **found[name],
            }
            for name in newest_first(found)
        ]

    def _remote(self) -> dict[str, int]:
        """Return the names and bytes of the checkpoints in the store that have a manifest, newest first."""
        sizes, whole = self._stored()
        return {name: sizes[name] for name in newest_first(whole)}

    def _stored(self) -> tuple[Mapping[str, int], set[str]]:
        """Return the bytes below each name in the store, and the names that have a manifest."""
        sizes: Counter[str] = Counter()
        whole = set()
        for each in self.store.list() if self.store else ():
            name, _slash, file = each.name.partition("/")
            sizes[name] += each.size
            if file == MANIFEST:
                whole.add(name)
        return sizes, whole

    def verify(self, name: str) -> dict[str, Any]:
        """Return the manifest of a local checkpoint, every file of which was read. Raise DamagedError."""
        return checkpoints.verify(self.folder / name)

    def latest_good(self) -> Taken:
        """Return the newest local checkpoint that is whole. Raise NoneWholeError."""
        return checkpoints.newest(self.folder)

    def download_checkpoint(self, name: str | None = None) -> Path:
        """Have a checkpoint of the store in the folder, the newest by default, verified; return where."""
        if name is None:
            return self.download_newest().path
        store = self.required_store()
        if step_of(name) is None:
            raise KitError(f"{name!r} is not the name of a checkpoint, expected checkpoint_step_N")
        content = store.read(f"{name}/{MANIFEST}")
        manifest = checkpoints.parse(content, f"{store.url}/{name}/{MANIFEST}")
        files = checkpoints.files_of(manifest, name, f"{store.url}/{name}")
        place = checkpoints.begin(self.folder, name, sum(size for _name, size, _digest in files), keep=True)
        for file, size, digest in files:
            store.get(f"{name}/{file}", place / file, size=size, sha256=digest)
        return checkpoints.adopt(place, content)

    def download_newest(self) -> Taken:
        """Have the newest checkpoint of the store that arrives whole in the folder. Raise NoneWholeError.

        Newer ones that are damaged there are refused; a store that cannot be read is an error.
        """
        refused: dict[str, str] = {}
        for name in self._remote():
            try:
                path = self.download_checkpoint(name)
                return Taken(path, checkpoints.verify(path, hashed=False), refused)
            except DamagedError as error:
                refused[name] = str(error)
            except StoreError as error:
                if error.reason not in (DAMAGED, MISSING):
                    raise
                refused[name] = str(error)
        store = self.required_store()
        if refused:
            raise checkpoints.NoneWholeError(f"{store.url} has no whole checkpoint: {'; '.join(refused.values())}")
        parts = (each.name.split("/") for each in store.list())
        below = sorted({part[0] for part in parts if len(part) == 3 and step_of(part[1]) is not None})
        named = f"; name one of those below it that have some: {', '.join(below[:NAMED])}" if below else ""
        raise checkpoints.NoneWholeError(f"{store.url} has no checkpoint{named}")

    def upload(self, name: str) -> str:
        """Put a local checkpoint into the store, its manifest last; return that one's SHA-256. Raise KitError.

        Another of its name, of a run that went back behind it, is replaced, and so is what was uploaded in part.
        """
        store, path = self.required_store(), self.folder / name
        manifest = checkpoints.verify(path, hashed=False)
        content, last = (path / MANIFEST).read_bytes(), f"{name}/{MANIFEST}"
        there = {each.name for each in store.list(f"{name}/")}
        if last in there:
            if store.read(last) == content:
                return hashlib.sha256(content).hexdigest()
            store.delete(last)
        files = {f"{name}/{entry['name']}": path / entry["name"] for entry in manifest["files"]}
        for strange in sorted(there - {last, *files}):
            store.delete(strange)
        for remote, file in files.items():
            _put(store, file, remote)
        store.write(last, content)
        return hashlib.sha256(content).hexdigest()

    def retain(self, keep: int) -> list[str]:
        """Remove the oldest checkpoints but ``keep`` from the store, their manifests first; return their names.

        What is there in part, and older than the newest that is there whole, goes as well: nobody uploads it any more.
        """
        store = self.required_store()
        sizes, with_manifest = self._stored()
        whole, names = newest_first(with_manifest), newest_first(sizes)
        older = names[names.index(whole[0]) :] if whole else []
        removed = [*whole[max(1, keep) :], *(name for name in older if name not in with_manifest)]
        for name in removed:
            store.delete(f"{name}/{MANIFEST}")
            for each in store.list(f"{name}/"):
                store.delete(each.name)
        return removed

    def required_store(self) -> Store:
        """Return the store. Raise KitError if none is given."""
        if self.store is None:
            raise KitError(f"{self.folder}: no bucket is given to fetch from or to store in")
        return self.store


def _looked_at(path: Path) -> dict[str, Any]:
    """Return a local checkpoint's bytes, and what is wrong with it."""
    try:
        manifest = checkpoints.verify(path, hashed=False)
    except DamagedError as error:
        return {"bytes": None, "problem": str(error)}
    return {"bytes": sum(int(entry["bytes"]) for entry in manifest["files"]), "problem": None}


def _put(store: Store, path: Path, name: str) -> None:
    """Store a file, in the place of another if there is one."""
    try:
        store.put(path, name)
    except StoreError as error:
        if error.reason != CONFLICT:
            raise
        store.delete(name)
        store.put(path, name)


class Uploader:
    """Uploads checkpoints one after another in a thread; what goes wrong is told, and the training goes on."""

    def __init__(self, manager: CheckpointManager, keep: int) -> None:
        """Keep so many in the store. Raise KitError if the manager has none."""
        self._manager, self._store, self._keep = manager, manager.required_store(), keep
        self._waiting: queue.Queue[str | None] = queue.Queue()
        self._added: list[str] = []
        self._ends: dict[str, dict[str, Any]] = {}
        self._thread = threading.Thread(target=self._work, name="upload", daemon=True)
        self._thread.start()

    def add(self, name: str) -> None:
        """Upload a checkpoint that is whole, once those before it are."""
        self._added.append(name)
        self._waiting.put(name)

    def catch_up(self, refused: Iterable[str] = ()) -> None:
        """Upload what earlier jobs of this training left over: the folder's whole checkpoints but those refused.

        Only as many of the newest as the store keeps; what is there already is not sent again.
        """
        found = [path for path in checkpoints.listed(self._manager.folder) if path.name not in {*refused}]
        names = [path.name for path in found if _looked_at(path)["problem"] is None]
        for name in reversed(names[: self._keep]):
            self.add(name)

    def close(self, patience: float) -> dict[str, dict[str, Any]]:
        """Wait for what is left, ``patience`` seconds at most; return each one's end: {uploaded, why, sha256, url}."""
        self._waiting.put(None)
        self._thread.join(patience)
        if self._thread.is_alive():
            self._store.stop()
        late = {"uploaded": False, "why": f"not done after {patience:.0f} s", "sha256": None, "url": None}
        return {name: self._ends.get(name, late) for name in self._added}

    def _work(self) -> None:
        while (name := self._waiting.get()) is not None:
            try:
                digest = self._manager.upload(name)
                self._ends[name] = {"uploaded": True, "why": None, "sha256": digest, "url": self._store.where(name)}
                self._manager.retain(self._keep)
            except (KitError, OSError) as error:
                self._ends.setdefault(name, {"uploaded": False, "why": str(error), "sha256": None, "url": None})


def not_uploaded(kept: Iterable[str], done: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the oldest of the checkpoints that were kept which did not come into the store, and why; or "none"."""
    for name in reversed(newest_first(kept)):
        end = done.get(name, {"uploaded": False, "why": "it did not come to its end in time"})
        if not end["uploaded"]:
            return f"{name}: {end['why']}"
    return "none"
