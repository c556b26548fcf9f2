# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put MNIST on the share, as torchvision's loader reads it: downloaded, from a folder, or its stand-in.

    python stage.py --target <share>/datasets/mnist --source stand-in|download|path [--from FOLDER]

Whatever the source, the files are checked before they are put in place, and provenance.json, written last, says what
they are; the workload refuses files that differ from it. Needs the kit on PYTHONPATH; `stand-in` runs in the runtime
`standin`, `download` in `pytorch`, `path` in any Python. Prints {changed, path, source, description, train, test}.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import idx
from kit import strict_json
from kit.errors import KitError
from kit.files import sha256, write_atomic, write_json

RAW = Path("MNIST") / "raw"
COPIES = 3  # of each of the 1,437 training originals: on ten seeds S0-13 held (lowest 96.1 %, median 98.9 %)
SEED = 0
MAX_BYTES = 64 << 20  # of one file; the largest of MNIST's has 47,040,016
DESCRIPTIONS = {
    "download": "MNIST (60,000 and 10,000 handwritten digits), downloaded by torchvision",
    "path": "files in MNIST's format, given by the site",
    "stand-in": "stand-in for MNIST: handwritten digits of scikit-learn (1,797 of 8x8), enlarged to 28x28, "
    "training images also shifted by up to 2 pixels; no original is in both sets",
}


def stage(
    target: Path, source: str, folder: Path | None, recipe: dict[str, Any], check: bool = False
) -> dict[str, Any]:
    """Stage the dataset unless it is there already; return what is there. KitError says what is wrong with a source."""
    given = read_folder(folder) if source == "path" and folder else None
    wanted = {"name": "mnist", "source": source, "recipe": recipe if source == "stand-in" else None}
    changed = not is_staged(target, wanted, given)
    if changed and not check:
        put(target, wanted, given or obtain(source, recipe))
    provenance = {} if changed and check else strict_json.read(target / "provenance.json")
    return {
        "changed": changed,
        "path": str(target),
        "source": source,
        "description": describe(wanted),
        "sha256": hashlib.sha256(json.dumps(provenance.get("files"), sort_keys=True).encode()).hexdigest(),
        "train": provenance.get("train"),
        "test": provenance.get("test"),
    }


def is_staged(target: Path, wanted: dict[str, Any], given: dict[str, bytes] | None) -> bool:
    """Tell whether ``target`` holds, undamaged, what is wanted."""
    try:
        provenance = strict_json.read(target / "provenance.json")
        if any(provenance.get(key) != value for key, value in wanted.items()):
            return False
        recorded = {name: provenance["files"][name]["sha256"] for name in idx.FILES}
        if given and recorded != {name: hashlib.sha256(content).hexdigest() for name, content in given.items()}:
            return False
        return all(sha256(target / RAW / name) == recorded[name] for name in idx.FILES)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def obtain(source: str, recipe: dict[str, Any]) -> dict[str, bytes]:
    """Return the four files from a source other than a folder."""
    if source == "stand-in":
        import stand_in  # noqa: PLC0415 - it needs scikit-learn

        return stand_in.make(**recipe)
    from torchvision.datasets import MNIST  # noqa: PLC0415 - a site that gives a folder needs no PyTorch to stage it

    with tempfile.TemporaryDirectory() as scratch:
        try:
            MNIST(scratch, download=True)
        except (RuntimeError, OSError) as error:
            raise KitError(
                f"cannot download MNIST: {error}. Without internet use --source path, or --source stand-in"
            ) from error
        return read_folder(Path(scratch) / RAW)


def read_folder(folder: Path) -> dict[str, bytes]:
    """Read the four files, plain or gzipped, from ``folder``, its ``raw`` or its ``MNIST/raw``."""
    for place in (folder, folder / "raw", folder / RAW):
        plain = {name: place / name for name in idx.FILES}
        packed = {name: place / f"{name}.gz" for name in idx.FILES}
        try:
            if all(path.is_file() for path in plain.values()):
                return idx.read(place)
            if all(path.is_file() for path in packed.values()):
                return {name: unpack(path) for name, path in packed.items()}
        except (OSError, EOFError, zlib.error) as error:
            raise KitError(f"cannot read MNIST from {place}: {error}") from error
    raise KitError(f"{folder} does not hold MNIST: expected {', '.join(idx.FILES)} there, plain or .gz")


def unpack(path: Path) -> bytes:
    """Return a packed file's content; KitError where it is larger than any file of MNIST."""
    with gzip.open(path) as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise KitError(f"{path} holds more than {MAX_BYTES} bytes: no file of MNIST does")
    return content


def put(target: Path, wanted: dict[str, Any], contents: dict[str, bytes]) -> None:
    """Check the files and put them in place, provenance last."""
    try:
        counts = idx.check(contents)
    except idx.IdxError as error:
        raise KitError(f"not staged: {error}") from error
    for name, content in contents.items():
        write_atomic(target / RAW / name, lambda stream, content=content: stream.write(content))
    files = {
        name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in contents.items()
    }
    document = {**wanted, "description": describe(wanted), **counts, "files": files}
    write_json(target / "provenance.json", document)


def describe(wanted: dict[str, Any]) -> str:
    """Return what the verdict says of the data."""
    spoiled = bool(wanted["recipe"] and wanted["recipe"].get("shuffle_labels"))
    return DESCRIPTIONS[wanted["source"]] + ("; TRAINING LABELS SHUFFLED, nothing can be learned" if spoiled else "")


def main() -> int:
    """Run the command line; 0 staged, 1 a problem told on stderr."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--source", choices=tuple(DESCRIPTIONS), required=True)
    parser.add_argument("--from", dest="folder", type=Path, help="folder with MNIST's files, for --source path")
    parser.add_argument("--copies", type=int, default=COPIES, help="stand-in: times each training original appears")
    parser.add_argument("--seed", type=int, default=SEED, help="stand-in: of the split and the shifts")
    parser.add_argument("--shuffle-labels", action="store_true", help="stand-in, for tests: nothing can be learned")
    parser.add_argument("--check", action="store_true", help="say whether anything would change, do nothing")
    arguments = parser.parse_args()
    if (arguments.source == "path") != (arguments.folder is not None):
        parser.error("--from belongs to --source path")
    os.umask(0o022)  # jobs read what it makes, and nobody else may write there
    recipe = {"copies": arguments.copies, "seed": arguments.seed, "shuffle_labels": arguments.shuffle_labels}
    try:
        result = stage(arguments.target, arguments.source, arguments.folder, recipe, arguments.check)
    except (KitError, OSError, ImportError) as error:
        print(f"stage mnist: {error}", file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
