# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put tokens for pretraining on the share: from a bucket, from a folder, or their stand-in.

    python stage.py --target <share>/datasets/pretraining_tokens --source path --from FOLDER
    python stage.py --target … --source download --url gs://BUCKET/PREFIX [--credentials KEY.json]
    python stage.py --target … --source stand-in

FOLDER holds shards with their manifest.json, as `python -m kit tokens convert` makes them, or *.npz files with an array
`input_ids`, which are converted for a vocabulary of 50,000 tokens. The bucket holds shards and manifest, as
`python -m kit tokens upload` puts them there. Needs the kit on PYTHONPATH and the Python of the runtime `deepspeed`.
Writes train-00000.bin …, validation-00000.bin …, manifest.json and provenance.json. Prints {changed, path, source,
description, tokens, manifest_sha256, …}.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kit.errors import KitError
from kit.pretraining import converter, manifest, markov, tokens
from kit.pretraining.store import open_store
from kit.staging import asset as staging_asset

NAME = "pretraining_tokens"
VOCAB = 50000  # of the model that is trained; for another convert by hand
SEED = 0
STAND_IN = {manifest.TRAIN: 2_000_000, manifest.VALIDATION: 100_000}  # tokens
STAND_IN_SHARD = 1 << 20  # bytes: several shards, as the real ones have


def prepare(folder: Path) -> tuple[staging_asset.Contents, staging_asset.Facts]:
    """Look at manifest and sizes in ``folder``; return its files and what they hold. KitError names file and fault."""
    found = manifest.read(folder)
    for shard in found.shards:
        tokens.check_size(folder, shard)
    held = tokens.describe(found)
    train, validation = held["train_tokens"], held["validation_tokens"]
    holds = f"{train:,} training and {validation:,} validation tokens of a vocabulary of {found.vocab:,}"
    if found.entropy is not None:
        holds += f", entropy {found.entropy:.4f} nats a token"
    facts = {key: held[key] for key in ("tokens", "bytes", "vocab", "max_token", "entropy", "manifest_sha256")}
    return {name: folder / name for name in names(found)}, {**facts, "holds": f"{holds} ({held['size']})"}


def names(found: manifest.Manifest) -> list[str]:
    """Return the names of all files."""
    return [manifest.NAME, *(shard.name for shard in found.shards)]


def check(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    """Compare what was staged with the manifest: each shard's SHA-256, and every token with the vocabulary."""
    found = manifest.read(folder)
    for shard in found.shards:
        tokens.check_shard(folder, shard, files[shard.name]["sha256"])
    largest = [tokens.largest_token(folder, found, shard) for shard in found.shards]
    tokens.check_largest(folder, found, largest, whole=True)


def convert(folder: Path) -> staging_asset.Made | None:
    """Return how shards are made from *.npz files; None if the folder holds shards."""
    if (folder / manifest.NAME).is_file():
        return None
    if not any(folder.glob("*.npz")):
        raise KitError(
            f"{folder} holds neither {manifest.NAME} with its shards nor *.npz files with an array input_ids"
        )
    given = {path.name: [path.stat().st_size, int(path.stat().st_mtime)] for path in folder.glob("*.npz")}

    def fill(made: Path) -> None:
        from kit.pretraining import npz  # noqa: PLC0415 - it needs NumPy, which only the runtime has

        source = f"{len(given)} npz files given by the site"
        try:
            converter.convert(npz.sources(folder), made, vocab=VOCAB, source=source)
        except KitError as error:
            raise KitError(
                f"{error} (For a model with another vocabulary than {VOCAB}, convert with `python3 -B -m kit tokens "
                "convert --vocab`, and give that folder.)"
            ) from error

    return staging_asset.Made({"files": given, "vocab": VOCAB}, fill)


def make_stand_in(folder: Path) -> None:
    """Write the stand-in's shards."""
    converter.convert(
        [markov.source(sum(STAND_IN.values()), SEED)],
        folder,
        vocab=markov.VOCAB,
        validation=STAND_IN[manifest.VALIDATION],
        entropy=markov.ENTROPY,
        source="stand-in: a Markov chain",
        limit=STAND_IN_SHARD,
    )


def refuse(_folder: Path) -> None:
    """Raise KitError: without an address there is nothing to download."""
    raise KitError(
        "tokens are published nowhere: give a bucket with url: gs://BUCKET/PREFIX, a folder with source: path, or use "
        "source: stand-in"
    )


def from_bucket(url: str, credentials: Path | None) -> staging_asset.Made:
    """Return how the shards come from a bucket. An unfinished download is kept, and the next one continues it."""

    def fill(made: Path) -> None:
        kept = made.with_name(f".download-{NAME}")
        tokens.fetch(open_store(url, credentials=credentials), kept, tell=lambda line: print(line, file=sys.stderr))
        for name in names(manifest.read(kept)):
            os.replace(kept / name, made / name)
        staging_asset.unfinished.remove(kept)

    return staging_asset.Made({"url": url}, fill)


def asset(url: str | None = None, credentials: Path | None = None) -> staging_asset.Asset:
    """Return the tokens as something that can be staged."""
    return staging_asset.Asset(
        name=NAME,
        source=from_bucket(url, credentials) if url else refuse,
        descriptions={
            "download": f"tokens from {url}",
            "path": "tokens given by the site",
            "stand-in": "stand-in for a corpus: tokens of a Markov chain",
        },
        recipe={
            "seed": SEED,
            "tokens": STAND_IN,
            "shard": STAND_IN_SHARD,
            "chain": [markov.VOCAB, markov.FREQUENCY_OFFSET, markov.PIECE, *markov.WEIGHTS],
        },
        make_stand_in=make_stand_in,
        prepare=prepare,
        convert=convert,
        check=check,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 staged, 1 a problem told on stderr."""
    parser = staging_asset.command_line(__doc__)
    parser.add_argument("--url", help="gs://BUCKET/PREFIX, for --source download")
    parser.add_argument("--credentials", type=Path, help="file of a key for the bucket, mode 0600, on this host")
    given = parser.parse_args(arguments)
    check_usage(parser, given)
    return staging_asset.run(asset(given.url, given.credentials), parser, given)


def check_usage(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """End with a message if options do not belong together."""
    if given.url and given.source != "download":
        parser.error("--url requires --source download")
    if given.credentials and not given.url:
        parser.error("--credentials requires --url")


if __name__ == "__main__":
    sys.exit(main())
