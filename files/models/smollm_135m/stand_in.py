# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Llama of SmolLM-135M's kind, and small: grouped queries, tied embeddings, one token for begin and end."""

from __future__ import annotations

from kit.stand_in import model

DESIGN = model.Design(
    model_type="llama",
    sizes={
        "hidden_size": 128,
        "intermediate_size": 384,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
    },
    begin="<|endoftext|>",
    end="<|endoftext|>",
    unknown="<|endoftext|>",
    others=("<|im_start|>", "<|im_end|>"),
)
