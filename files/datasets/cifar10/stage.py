# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put CIFAR-10's binary version on the share: downloaded from its publisher, from a folder, or its stand-in.

    python stage.py --target <share>/datasets/cifar10 --source download|path|stand-in [--from FOLDER]

Needs the kit on PYTHONPATH; `stand-in` runs in the runtime `standin`, the others in any Python. Writes
data_batch_1.bin … data_batch_5.bin, test_batch.bin, batches.meta.txt and provenance.json. Nothing is unpickled.
Prints {changed, path, source, description, train, test, …}.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import archive
import records
from kit.errors import KitError
from kit.staging import asset as staging_asset
from kit.staging.download import download

SEED = 0
PICKLED = ("data_batch_1", "cifar-10-python.tar.gz", "cifar-10-batches-py")  # of the Python version


def prepare(folder: Path) -> tuple[staging_asset.Contents, staging_asset.Facts]:
    """Check the files in ``folder``; return them and how many images they have. KitError names file and fault."""
    contents = find_files(folder)
    try:
        counts = records.check(contents)
    except (records.RecordsError, OSError) as error:
        raise KitError(f"{folder} does not hold CIFAR-10: {error}") from error
    return contents, {**counts, "holds": f"{counts['train']:,} training and {counts['test']:,} test images"}


def find_files(folder: Path) -> Mapping[str, bytes | Path]:
    """Return the seven files of ``folder``, of its ``cifar-10-batches-bin``, or of the published archive in it."""
    for place in (folder, folder / archive.FOLDER):
        files = {name: place / name for name in records.FILES}
        if all(path.is_file() for path in files.values()):
            return files
    if (folder / archive.NAME).is_file():
        return archive.unpack(folder / archive.NAME)
    pickled = [f"; {name} is of the Python version, which is pickled" for name in PICKLED if (folder / name).exists()]
    raise KitError(
        f"{folder} does not hold CIFAR-10's binary version: expected {', '.join(records.FILES)} there or in "
        f"{archive.FOLDER}, or {archive.NAME}{''.join(pickled[:1])}"
    )


def download_archive(folder: Path) -> None:
    """Fetch the published archive; ``prepare`` compares and unpacks it."""
    download(archive.URL, folder / archive.NAME, archive.SIZE)


def asset(shuffle_labels: bool = False) -> staging_asset.Asset:
    """Return CIFAR-10 as something that can be staged."""

    def make_stand_in(folder: Path) -> None:
        import coloured_digits  # noqa: PLC0415 - it needs scikit-learn

        for name, content in coloured_digits.make(SEED, shuffle_labels).items():
            (folder / name).write_bytes(content)

    spoiled = ", TRAINING LABELS SHUFFLED so that nothing can be learned" if shuffle_labels else ""
    return staging_asset.Asset(
        name="cifar10",
        source=download_archive,
        descriptions={
            "download": f"CIFAR-10, the binary version of its publisher ({archive.URL})",
            "path": "files in CIFAR-10's format, given by the site",
            "stand-in": "stand-in for CIFAR-10: handwritten digits of scikit-learn in random colours, enlarged from "
            f"8x8 to 32x32, no original in both sets{spoiled}",
        },
        recipe={"seed": SEED, "shuffle_labels": shuffle_labels},
        make_stand_in=make_stand_in,
        prepare=prepare,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 staged, 1 a problem told on stderr."""
    parser = staging_asset.command_line(__doc__)
    parser.add_argument("--shuffle-labels", action="store_true", help="stand-in, for tests: nothing can be learned")
    given = parser.parse_args(arguments)
    if given.shuffle_labels and given.source != "stand-in":
        parser.error("--shuffle-labels belongs to --source stand-in")
    return staging_asset.run(asset(given.shuffle_labels), parser, given)


if __name__ == "__main__":
    sys.exit(main())
