# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put SmolLM-135M on the share: downloaded from the Hugging Face hub, from a folder, or its stand-in.

    python stage.py --target <share>/huggingface/models/smollm_135m --source download|path|stand-in [--from FOLDER]

Needs the kit on PYTHONPATH and, for download and stand-in, the Python of the runtime `oumi` or `sft`. HF_TOKEN and
HF_ENDPOINT are heeded. Prints {changed, path, source, description, revision, sha256, model_type, parameters, …}.
"""

from __future__ import annotations

import sys
from pathlib import Path

import stand_in
from kit import model_folder, staging
from kit.hub import Source

REPOSITORY = "HuggingFaceTB/SmolLM-135M"


def prepare(folder: Path) -> tuple[staging.Contents, staging.Facts]:
    """Check a model's folder; return its files and what they say. KitError."""
    return model_folder.check_model(folder, ["llama"])


ASSET = staging.Asset(
    name="smollm_135m",
    source=Source("model", REPOSITORY, model_folder.PATTERNS),
    descriptions={
        "download": f"SmolLM-135M ({REPOSITORY} of the Hugging Face hub)",
        "path": "a Llama model's folder, given by the site for SmolLM-135M",
        "stand-in": "stand-in for SmolLM-135M: a small Llama of random weights, its tokenizer trained on made-up "
        "instructions",
    },
    recipe=stand_in.RECIPE,
    make_stand_in=stand_in.make,
    prepare=prepare,
)

if __name__ == "__main__":
    sys.exit(staging.main(ASSET, __doc__))
