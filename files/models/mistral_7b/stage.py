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

from kit.staging import asset
from kit.staging.model_asset import model_asset
from stand_in import DESIGN

ASSET = model_asset("mistral_7b", "mistralai/Mistral-7B-v0.1", "Mistral-7B-v0.1", DESIGN)

if __name__ == "__main__":
    sys.exit(asset.main(ASSET, __doc__))
