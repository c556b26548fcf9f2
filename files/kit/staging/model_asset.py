# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model of the Hugging Face hub as an asset, with a small model of the same type as its stand-in."""

from __future__ import annotations

from dataclasses import asdict

from kit.staging.asset import Asset
from kit.staging.hub import Source
from kit.staging.model_folder import PATTERNS, check_model
from kit.stand_in import model, texts


def model_asset(name: str, repository: str, known_as: str, design: model.Design) -> Asset:
    """Return the asset of the model staged as ``name``; ``design`` describes its stand-in of the same type."""
    kind = design.model_type.capitalize()
    return Asset(
        name=name,
        source=Source("model", repository, PATTERNS),
        descriptions={
            "download": f"{known_as} ({repository} of the Hugging Face hub)",
            "path": f"a {kind} model's folder, given by the site for {known_as}",
            "stand-in": f"stand-in for {known_as}: a small {kind} of random weights, its tokenizer trained on made-up "
            "instructions",
        },
        recipe={
            "seed": model.SEED,
            "vocabulary": model.VOCABULARY,
            "texts": texts.digest(texts.corpus()),
            "design": asdict(design),
        },
        make_stand_in=lambda folder: model.make(folder, design, texts.corpus()),
        prepare=lambda folder: check_model(folder, [design.model_type]),
    )
