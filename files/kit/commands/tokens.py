# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit tokens`: folders of tokens for pretraining, made, verified, fetched and uploaded."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from kit.errors import KitError
from kit.pretraining import converter, manifest, store, tokens
from kit.process import unfinished


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    actions = parser.add_subparsers(dest="action", required=True)
    convert = actions.add_parser("convert", help="make a folder of shards from *.npz files; needs NumPy")
    convert.add_argument("npz", type=Path, metavar="FOLDER", help="folder of *.npz files with an array input_ids")
    convert.add_argument("into", type=Path, metavar="INTO", help="folder to make")
    convert.add_argument("--vocab", type=int, required=True, help="the model's vocabulary: every token is below")
    convert.add_argument("--validation", type=int, help="tokens at the end that are held out (default: one in 200)")
    convert.add_argument("--shard-bytes", type=int, default=manifest.MAX_SHARD, help="default and most: %(default)s")
    convert.add_argument("--stated", type=int, help="how many tokens there should be; anything else is an error")
    verify = actions.add_parser("verify", help="compare a folder of shards with its manifest")
    verify.add_argument("folder", type=Path, metavar="FOLDER")
    verify.add_argument("--scan", action="store_true", help="compare every token with the vocabulary, too")
    verify.add_argument("--stated", type=int, help="how many tokens there should be; anything else is an error")
    fetch = actions.add_parser("fetch", help="have a store's folder of shards in a folder, verified")
    fetch.add_argument("url", metavar="URL", help="gs://BUCKET/PREFIX or a folder")
    fetch.add_argument("folder", type=Path, metavar="FOLDER", help="what is there whole is not fetched again")
    fetch.add_argument("--manifest-sha256", help="the SHA-256 that its manifest must have")
    upload = actions.add_parser("upload", help="put a folder of shards into a store")
    upload.add_argument("folder", type=Path, metavar="FOLDER")
    upload.add_argument("url", metavar="URL", help="gs://BUCKET/PREFIX or a folder; what is there is not sent again")
    for each in (fetch, upload):
        each.add_argument("--credentials", type=Path, help="file of a key, mode 0600; without, the application default")
        each.add_argument("--deadline", type=float, default=store.DEADLINE, help="seconds for an object, all attempts")
    for each in (verify, fetch, upload):
        each.add_argument("--workers", type=int, default=tokens.WORKERS, help="shards at a time (default: %(default)s)")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Do it and return what there is, with the space that it takes. Raise KitError."""
    if getattr(arguments, "workers", 1) < 1:
        raise KitError(f"--workers {arguments.workers}: expected at least 1")
    return {"convert": _convert, "verify": _verify, "fetch": _fetch, "upload": _upload}[arguments.action](arguments)


def _convert(arguments: argparse.Namespace) -> dict[str, Any]:
    try:
        from kit.pretraining import npz  # noqa: PLC0415 - it needs NumPy
    except ImportError as error:
        raise KitError(
            f"{sys.executable} has no NumPy ({error}): run this with the Python of the runtime deepspeed"
        ) from error
    into: Path = arguments.into.absolute()
    if into.exists():
        raise KitError(f"{into} exists; give the name of a new folder")
    found = npz.sources(arguments.npz)
    building = unfinished.beside(into)
    try:
        building.mkdir(parents=True)
        made = converter.convert(
            found,
            building,
            vocab=arguments.vocab,
            validation=arguments.validation,
            limit=arguments.shard_bytes,
            source=f"{len(found)} npz files",
        )
        if arguments.stated is not None:
            tokens.check_stated(made, arguments.stated)
        building.rename(into)
    finally:
        unfinished.remove(building)
    return {**tokens.describe(made), "path": str(into)}


def _verify(arguments: argparse.Namespace) -> dict[str, Any]:
    found = tokens.read_manifest(arguments.folder)
    if arguments.stated is not None:
        tokens.check_stated(found, arguments.stated)
    return tokens.verify(arguments.folder, found, scan=arguments.scan, workers=arguments.workers)


def _fetch(arguments: argparse.Namespace) -> dict[str, Any]:
    return tokens.fetch(
        _store(arguments),
        arguments.folder,
        manifest_sha256=arguments.manifest_sha256,
        workers=arguments.workers,
        tell=_tell,
    )


def _upload(arguments: argparse.Namespace) -> dict[str, Any]:
    return tokens.upload(arguments.folder, _store(arguments), workers=arguments.workers, tell=_tell)


def _store(arguments: argparse.Namespace) -> store.Store:
    return store.open_store(arguments.url, credentials=arguments.credentials, deadline=arguments.deadline)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
