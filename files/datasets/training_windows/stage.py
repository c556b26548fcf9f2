# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put windows of features with their answers on the share, for training profiles: from a folder, or their stand-in.

    python stage.py --target <share>/datasets/training_windows --source path --from FOLDER
    python stage.py --target … --source stand-in

FOLDER holds train-inputs.npy, train-answers.npy, and the same of validation and test and of what a model is adapted to
(near-train, near-test, far-train, far-test), or a device's model is made with (device-train, device-validation,
device-test, calibration): windows that the stand-in's rule made, by which they are judged. Needs the kit on PYTHONPATH
and NumPy. Writes those files and provenance.json. Prints {changed, path, source, description, …}.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from kit.errors import KitError
from kit.staging import asset as staging_asset
from kit.stand_in import windows
from kit.stand_in.windows import ALIKE, Rule

NAME = "training_windows"
NEAR, FAR = Rule(turned=0.2, shifted=0.3), Rule(turned=0.8, shifted=0.3)  # what a model is to be adapted to
STAND_IN = {  # samples, seed and rule of each part
    "train": (87_000, 1, ALIKE),
    "validation": (4_000, 2, ALIKE),
    "test": (4_000, 3, ALIKE),
    "near-train": (2_000, 4, NEAR),
    "near-test": (3_000, 5, NEAR),
    "far-train": (2_000, 6, FAR),
    "far-test": (3_000, 7, FAR),
    "device-train": (40_000, 8, NEAR),
    "device-validation": (4_000, 9, NEAR),
    "device-test": (4_000, 10, NEAR),
    "calibration": (1_000, 11, NEAR),
}


def prepare(folder: Path) -> tuple[staging_asset.Contents, staging_asset.Facts]:
    """Look at the arrays in ``folder``; return its files and what they hold. KitError names file and fault."""
    stems = sorted(path.name[: -len("-inputs.npy")] for path in folder.glob("*-inputs.npy"))
    missing = [name for name in STAND_IN if name not in stems]
    if missing:
        raise KitError(f"{folder} has no {missing[0]}-inputs.npy")
    counts = {stem: _samples(folder, stem) for stem in stems}
    files = {name: folder / name for stem in stems for name in (f"{stem}-inputs.npy", f"{stem}-answers.npy")}
    said = ", ".join(f"{count:,} of {stem}" for stem, count in counts.items())
    return files, {"samples": counts, "holds": f"samples: {said}"}


def _samples(folder: Path, stem: str) -> int:
    shapes = []
    for name in (f"{stem}-inputs.npy", f"{stem}-answers.npy"):
        try:
            shapes.append(np.load(folder / name, mmap_mode="r", allow_pickle=False).shape)
        except (OSError, ValueError) as error:
            raise KitError(f"{folder / name} cannot be read: {error}") from error
    inputs, answers = shapes
    if len(inputs) != 3 or not answers or inputs[0] != answers[0] or not inputs[0]:
        raise KitError(f"{folder}: {stem} has inputs of {inputs} and answers of {answers}; expected as many of both")
    return int(inputs[0])


def make_stand_in(folder: Path) -> None:
    """Write the stand-in's parts."""
    for name, (samples, seed, rule) in STAND_IN.items():
        windows.write(folder / name, samples, seed, rule)


def refuse(_folder: Path) -> None:
    """Raise KitError: there is nothing to download."""
    raise KitError("windows are published nowhere: give a folder with source: path, or use source: stand-in")


def asset() -> staging_asset.Asset:
    """Return the windows as something that can be staged."""
    return staging_asset.Asset(
        name=NAME,
        source=refuse,
        descriptions={
            "download": "windows from nowhere",
            "path": "windows given by the site",
            "stand-in": "stand-in for windows of a machine's sensors, made by a rule with noise",
        },
        recipe={
            "parts": {
                name: [samples, seed, rule.turned, rule.shifted] for name, (samples, seed, rule) in STAND_IN.items()
            },
            "rule": [windows.FEATURES, windows.STEPS, windows.NOISE, windows.RULE_SEED, windows.SCALE],
        },
        make_stand_in=make_stand_in,
        prepare=prepare,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 staged, 1 a problem told on stderr."""
    return staging_asset.main(asset(), __doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
