# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model: a transformer encoder over windows of features.

Its attention has four linear layers of its own: PyTorch's encoder layer cannot be pruned by heads.
"""

from __future__ import annotations

import torch
from kit.profiles import arithmetic
from kit.profiles.model import CLASSIFICATION, Model
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

ACTIVATIONS = {"gelu": functional.gelu, "relu": functional.relu}


class Attention(nn.Module):
    """Attention of every time step to all others; ``heads`` and ``head_size`` are what is left of them when pruned."""

    def __init__(self, width: int, heads: int, dropout: float, *, plain: bool) -> None:
        """``plain``: compute the matrix of all pairs, as written in textbooks."""
        super().__init__()
        self.heads, self.head_size = heads, width // heads
        self.dropout, self.plain = dropout, plain
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _each in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of x's shape: (samples, time steps, width)."""
        samples, steps, _width = x.shape
        q, k, v = (
            layer(x).view(samples, steps, self.heads, self.head_size).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        dropout = self.dropout if self.training else 0.0
        if self.plain:
            with sdpa_kernel(SDPBackend.MATH):
                found = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
        else:
            found = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
        attended: torch.Tensor = self.o(found.transpose(1, 2).reshape(samples, steps, self.heads * self.head_size))
        return attended


class Block(nn.Module):
    """Attention and a feed-forward part, each behind a norm and added to what came in."""

    def __init__(self, model: Model) -> None:
        """Make it of the model's sizes."""
        super().__init__()
        width, inner = model.hidden_size, model.feedforward_size
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, model.num_heads, model.dropout, plain=model.attention == "math")
        self.f1, self.f2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.activation, self.dropout = ACTIVATIONS[model.activation], nn.Dropout(model.dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor of x's shape."""
        x = x + self.dropout(self.attention(self.norm1(x)))
        found: torch.Tensor = x + self.dropout(self.f2(self.activation(self.f1(self.norm2(x)))))
        return found


class Encoder(nn.Module):
    """Windows of features in, an answer for each out."""

    def __init__(self, model: Model, *, activation_checkpointing: bool = False) -> None:
        """Make it of the model's sizes. ``activation_checkpointing``: compute activations twice, and keep few."""
        super().__init__()
        self.input = nn.Linear(model.input_features, model.hidden_size)
        self.positions = nn.Parameter(torch.randn(model.max_position, model.hidden_size) * 0.02)
        self.blocks = nn.ModuleList(Block(model) for _each in range(model.num_layers))
        self.norm = nn.LayerNorm(model.hidden_size)
        self.head = nn.Linear(model.hidden_size, arithmetic.answers(model))
        self.saves_memory = activation_checkpointing
        self.classifies = model.task == CLASSIFICATION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (samples, outputs), or (samples, classes) as logits, for (samples, time steps, features)."""
        x = self.input(x) + self.positions[: x.shape[1]]
        for block in self.blocks:
            twice = self.saves_memory and self.training
            x = checkpoint(block, x, use_reentrant=False) if twice else block(x)
        found: torch.Tensor = self.head(self.norm(x).mean(dim=1))
        return found
