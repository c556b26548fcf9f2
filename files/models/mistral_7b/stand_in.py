# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Mistral of Mistral-7B's kind, and small: grouped queries, a sliding window, embeddings not tied, <s> in front."""

from __future__ import annotations

from kit.stand_in import model

DESIGN = model.Design(
    model_type="mistral",
    sizes={
        "hidden_size": 128,
        "intermediate_size": 448,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 32768,
        "sliding_window": 4096,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
    },
    begin="<s>",
    end="</s>",
    unknown="<unk>",
    adds_begin=True,
)
