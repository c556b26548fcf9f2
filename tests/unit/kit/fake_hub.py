# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hub and its library, as a module: what kit.staging.hub calls of huggingface_hub, with faults to order."""

from __future__ import annotations

import hashlib
import types
import typing as t
from fnmatch import fnmatch
from pathlib import Path

COMMIT, OLD_COMMIT = "a" * 40, "b" * 40


class RefusedError(Exception):
    """An HTTP answer that the library raises."""

    def __init__(self, status: int, text: str = "Client Error") -> None:
        super().__init__(text)
        self.response = types.SimpleNamespace(status_code=status)


class FakeHub(types.ModuleType):
    """The module. ``files`` are what it serves; ``sent`` replaces what arrives, None is a file that does not."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__("huggingface_hub")
        self.files = files
        self.sent: dict[str, bytes | None] = {}
        self.listed: dict[str, t.Any] = {}
        self.revisions = {"main": COMMIT, COMMIT: COMMIT, OLD_COMMIT: OLD_COMMIT}
        self.info_errors: list[Exception] = []
        self.download_error: Exception | None = None
        self.stop_after: int | None = None
        self.calls: list[tuple[str, dict[str, t.Any]]] = []
        self.fetched: list[str] = []

    def HfApi(self) -> FakeHub:  # noqa: N802 - the library's name
        return self

    def repo_info(self, repo: str, **options: t.Any) -> t.Any:
        self.calls.append(("repo_info", {"repo": repo, **options}))
        for error in self.info_errors:
            raise error
        siblings = [types.SimpleNamespace(**self.entry(name), **self.listed) for name in self.files]
        return types.SimpleNamespace(sha=self.revisions[options["revision"]], siblings=siblings)

    def entry(self, name: str) -> dict[str, t.Any]:
        digest = hashlib.sha256(self.files[name]).hexdigest()
        lfs = types.SimpleNamespace(sha256=digest) if name.endswith((".safetensors", ".parquet")) else None
        return {"rfilename": name, "size": len(self.files[name]), "lfs": lfs}

    def snapshot_download(self, repo: str, **options: t.Any) -> str:
        self.calls.append(("snapshot_download", {"repo": repo, **options}))
        folder = Path(options["local_dir"])
        (folder / ".cache").mkdir(exist_ok=True)
        wanted = [name for name in self.files if any(fnmatch(name, each) for each in options["allow_patterns"])]
        for count, name in enumerate(sorted(wanted)):
            if count == self.stop_after:
                raise self.download_error or ConnectionError("the connection was reset")
            content = self.sent.get(name, self.files[name])
            if content is None or (folder / name).exists():
                continue
            self.fetched.append(name)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        if self.download_error:
            raise self.download_error
        return str(folder)
