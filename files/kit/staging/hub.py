# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Download the needed files of a Hugging Face hub repository: pinned, resumable, compared with the hub's list."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from kit.errors import KitError
from kit.files import sha256

KINDS = ("model", "dataset")
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt", "*.py")  # never fetched, whatever the patterns say
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Source:
    """A repository of the hub, and the patterns of the files needed from it."""

    kind: str  # model or dataset
    repo: str
    patterns: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown kind."""
        if self.kind not in KINDS:
            raise ValueError(f"kind {self.kind!r}: expected one of {', '.join(KINDS)}")

    @property
    def page(self) -> str:
        """The URL of the repository's web page."""
        return f"https://huggingface.co/{'datasets/' if self.kind == 'dataset' else ''}{self.repo}"

    def admits(self, name: str) -> bool:
        """Return whether a file of the repository is needed."""
        refused = any(fnmatch(name, pattern) for pattern in PICKLES)
        return not refused and any(fnmatch(name, pattern) for pattern in self.patterns)


@dataclass(frozen=True)
class Download:
    """The result of a download."""

    folder: Path  # the repository's files, and the library's notes in .cache
    commit: str
    digests: Mapping[Path, str]  # SHA-256 of the files that had to be read


def download(source: Source, target: Path, revision: str) -> Download:
    """Download the needed files of a repository into a folder next to ``target``, continuing an earlier attempt.

    Complete files are not fetched again; a partial file is continued only if the library can do so (since some 1.x
    only within one run).

    ``revision`` is a branch, a tag or a commit. The token comes from HF_TOKEN, the hub's address from HF_ENDPOINT.
    Raise KitError if the hub refuses, cannot be reached, or the files differ from the hub's list.
    """
    token = os.environ.get("HF_TOKEN") or None
    hub = _import_hub(target)
    with _told(source, revision, token):
        # False: use only the given token, not one from the user's home.
        info = hub.HfApi().repo_info(
            source.repo, repo_type=source.kind, revision=revision, files_metadata=True, token=token or False
        )
    commit, listing = str(info.sha), _listing(source, info.siblings or [])
    if not re.fullmatch("[0-9a-f]{40}", commit):
        raise KitError(f"{_endpoint()}: expected the commit of {source.repo} {revision}, found {commit[:80]!r}")
    folder = target.with_name(f".download-{target.name}-{commit[:12]}")
    folder.mkdir(mode=0o755, exist_ok=True)
    _remove_unusable(folder)
    _check_space(source, folder, listing)
    with _told(source, revision, token):
        hub.snapshot_download(
            source.repo,
            repo_type=source.kind,
            revision=commit,
            local_dir=folder,
            allow_patterns=sorted(listing),
            ignore_patterns=list(PICKLES),
            token=token or False,
        )
    return Download(folder, commit, _compare(source, folder, listing))


def _import_hub(target: Path) -> Any:
    """Import huggingface_hub, which reads its settings from the environment on import."""
    os.environ.update(HF_HUB_DISABLE_PROGRESS_BARS="1", HF_HUB_DISABLE_TELEMETRY="1")
    # Keep its caches and logs out of the user's home; they are removed when the download is in place.
    os.environ.setdefault("HF_HOME", str(target.with_name(f".download-{target.name}-home")))
    try:
        import huggingface_hub  # noqa: PLC0415 - only a download needs it
    except ImportError as error:
        raise KitError(
            f"{sys.executable} has no huggingface_hub ({error}): run this with the model's runtime"
        ) from error
    return huggingface_hub


def _listing(source: Source, siblings: Sequence[Any]) -> dict[str, tuple[int | None, str | None]]:
    """Return, for each needed file of the hub's list, size in bytes and SHA-256 where the list has them."""
    listing = {}
    for entry in siblings:
        if not source.admits(entry.rfilename):
            continue
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*", entry.rfilename):
            raise KitError(
                f"{_endpoint()} lists a file {entry.rfilename[:80]!r} of {source.repo}: not a safe file name"
            )
        listing[entry.rfilename] = (entry.size, getattr(entry.lfs, "sha256", None))
    if not listing:
        raise KitError(f"{source.repo} on {_endpoint()} has none of {', '.join(source.patterns)}")
    return listing


def _remove_unusable(folder: Path) -> None:
    """Remove files of killed downloads that the library cannot continue: their names belong to one process."""
    for path in folder.glob(".cache/huggingface/download/**/*.incomplete"):
        if re.search(r"\.[0-9a-f]{8}\.incomplete$", path.name):
            path.unlink(missing_ok=True)


def _check_space(source: Source, folder: Path, listing: Mapping[str, tuple[int | None, str | None]]) -> None:
    """Raise KitError if the share has less space than the remaining files need."""
    needed = sum(size or 0 for name, (size, _digest) in listing.items() if not (folder / name).is_file())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise KitError(
            f"{folder.parent} has {free // MEGABYTE} MB free, {source.repo} needs {needed // MEGABYTE} MB: "
            "free some space"
        )


def _compare(source: Source, folder: Path, listing: Mapping[str, tuple[int | None, str | None]]) -> dict[Path, str]:
    """Compare the files with the hub's list; return the SHA-256 of the files that had to be read.

    Raise KitError for a file that differs, after removing it so that the next run fetches it again.
    """
    digests = {}
    for name, (size, digest) in listing.items():
        path = folder / name
        if not path.is_file():
            raise KitError(f"{name} of {source.repo} was not received: run it again, fetched files are kept")
        found = path.stat().st_size
        if size is not None and found != size:
            path.unlink()
            raise KitError(f"{name} of {source.repo} has {found} bytes, the hub lists {size}: run it again")
        if digest:
            digests[path] = sha256(path)
            if digests[path] != digest:
                path.unlink()
                raise KitError(
                    f"{name} of {source.repo} has SHA-256 {digests[path]}, the hub lists {digest}: run it again"
                )
    return digests


@contextmanager
def _told(source: Source, revision: str, token: str | None) -> Iterator[None]:
    """Turn any exception of the hub's library into a KitError."""
    try:
        yield
    except Exception as error:  # errors of its HTTP library have no base class in common with its own
        raise KitError(_why(error, source, revision, token)) from error


def _why(error: Exception, source: Source, revision: str, token: str | None) -> str:
    """Return why a download failed and what to do, without the token."""
    status, where = _status(error), _endpoint()
    if status in (401, 403) and token:
        return (
            f"{where} refuses {source.repo} (HTTP {status}) with the token of hpc_validation_hub_token: accept the "
            f"licence on {source.page} with the token's account, and let it read gated repositories"
        )
    if status in (401, 403):
        return (
            f"{where} refuses {source.repo} (HTTP {status}) without a token: accept the licence on {source.page}, "
            "create a read token there, and set hpc_validation_hub_token to it (by hand: HF_TOKEN)"
        )
    if status == 404:
        return f"{where} has no {source.kind} {source.repo} with the revision {revision!r}: check both, and HF_ENDPOINT"
    if status == 429:
        return f"{where} limits requests (HTTP 429): run it again later, or with hpc_validation_hub_token set"
    said = " ".join(str(error).split())[:300] or type(error).__name__
    said = _without_password(said.replace(token, "***") if token else said)
    return (
        f"cannot download {source.repo} from {where}: {said}. Run it again, fetched files are kept; set HF_ENDPOINT "
        "to use a mirror; without internet use --source path, or --source stand-in"
    )


def _status(error: BaseException | None) -> int | None:
    """Return the HTTP status of an error or of its cause."""
    for _depth in range(10):
        if error is None:
            break
        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(status, int):
            return status
        error = error.__cause__ or error.__context__
    return None


def _endpoint() -> str:
    """Return the hub's address without a password."""
    return _without_password(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")


def _without_password(text: str) -> str:
    return re.sub(r"(://)[^/\s@]+@", r"\1***@", text)
