# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put Mistral-7B on the share: downloaded from the Hugging Face hub, from a folder, or its stand-in.

    python stage.py --target <share>/huggingface/models/mistral_7b --source download|path|stand-in [--from FOLDER]

Needs the kit on PYTHONPATH and, for download and stand-in, the Python of the runtime `oumi` or `sft`. HF_TOKEN and
HF_ENDPOINT are heeded; the model is gated, so that a download needs a token of an account that accepted its licence.
Prints {changed, path, source, description, revision, sha256, model_type, parameters, …}.
"""

from __future__ import annotations

import sys
from pathlib import Path

import stand_in
from kit import model_folder, staging
from kit.hub import Source

REPOSITORY = "mistralai/Mistral-7B-v0.1"


def prepare(folder: Path) -> tuple[staging.Contents, staging.Facts]:
    """Check a model's folder; return its files and what they say. KitError."""
    return model_folder.check_model(folder, ["mistral"])


ASSET = staging.Asset(
    name="mistral_7b",
    source=Source("model", REPOSITORY, model_folder.PATTERNS),
    descriptions={
        "download": f"Mistral-7B-v0.1 ({REPOSITORY} of the Hugging Face hub)",
        "path": "a Mistral model's folder, given by the site for Mistral-7B-v0.1",
        "stand-in": "stand-in for Mistral-7B-v0.1: a small Mistral of random weights, its tokenizer trained on made-up "
        "instructions",
    },
    recipe=stand_in.RECIPE,
    make_stand_in=stand_in.make,
    prepare=prepare,
)

if __name__ == "__main__":
    sys.exit(staging.main(ASSET, __doc__))
