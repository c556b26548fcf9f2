# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A decoder of GPT-2's architecture, with GPT-2's names for its parameters: Transformers loads what is exported."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

DEVIATION = 0.02  # of the initial weights, as in GPT-2


@dataclass(frozen=True)
class Shape:
    """The model's numbers, under GPT-2's names: width, layers, heads, longest input, and vocabulary."""

    n_embd: int
    n_layer: int
    n_head: int
    n_positions: int
    vocab_size: int


class Linear(nn.Module):
    """A layer whose weight is transposed, (inputs, outputs), as GPT-2's are."""

    def __init__(self, inputs: int, outputs: int) -> None:
        """Leave the values to `GPT.begin`."""
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return (…, outputs) of (…, inputs)."""
        return functional.linear(inputs, self.weight.t(), self.bias)


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, shape: Shape) -> None:
        """Require that the heads divide the width."""
        super().__init__()
        self.heads = shape.n_head
        self.c_attn = Linear(shape.n_embd, 3 * shape.n_embd)
        self.c_proj = Linear(shape.n_embd, shape.n_embd)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return (batch, length, width) of the same."""
        batch, length, width = inputs.shape
        parts = self.c_attn(inputs).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return torch.Tensor(self.c_proj(mixed.transpose(1, 2).reshape(batch, length, width)))


class Block(nn.Module):
    """Attention and a network of two layers, each added to its input."""

    def __init__(self, shape: Shape) -> None:
        """Name the parts as GPT-2 does."""
        super().__init__()
        self.ln_1 = nn.LayerNorm(shape.n_embd)
        self.attn = Attention(shape)
        self.ln_2 = nn.LayerNorm(shape.n_embd)
        self.mlp = nn.ModuleDict(
            {"c_fc": Linear(shape.n_embd, 4 * shape.n_embd), "c_proj": Linear(4 * shape.n_embd, shape.n_embd)}
        )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return (batch, length, width) of the same."""
        inputs = inputs + self.attn(self.ln_1(inputs))
        hidden = functional.gelu(self.mlp["c_fc"](self.ln_2(inputs)), approximate="tanh")
        return inputs + torch.Tensor(self.mlp["c_proj"](hidden))


class GPT(nn.Module):
    """Returns the mean loss of predicting each token from those before it."""

    def __init__(self, shape: Shape) -> None:
        """Make the modules; on the meta device no memory is taken."""
        super().__init__()
        self.shape = shape
        self.wte = nn.Embedding(shape.vocab_size, shape.n_embd)  # also what predicts: the weights are tied
        self.wpe = nn.Embedding(shape.n_positions, shape.n_embd)
        self.h = nn.ModuleList(Block(shape) for _each in range(shape.n_layer))
        self.ln_f = nn.LayerNorm(shape.n_embd)

    @torch.no_grad()
    def begin(self, seed: int) -> GPT:
        """Set the initial values, which depend on the seed and the shape alone."""
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                # Each block adds twice to its input, so what it adds begins the smaller the more blocks there are.
                scale = math.sqrt(2 * self.shape.n_layer) if name.endswith("c_proj.weight") else 1.0
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * (DEVIATION / scale))
        return self

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor | None = None) -> torch.Tensor:
        """Return the mean loss in nats of ``targets``, or without them the logits; both inputs are (batch, length)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.wte(tokens) + self.wpe(places)
        for block in self.h:
            hidden = block(hidden)
        logits = functional.linear(self.ln_f(hidden), self.wte.weight)
        if targets is None:
            return logits
        return functional.cross_entropy(logits.float().view(-1, logits.shape[-1]), targets.reshape(-1))


def groups(model: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Return the optimizer's groups: biases and the parameters of norms are not decayed."""
    named = list(model.named_parameters())
    return [
        {"params": [item for _name, item in named if item.dim() > 1], "weight_decay": weight_decay},
        {"params": [item for _name, item in named if item.dim() <= 1], "weight_decay": 0.0},
    ]
