# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What others have published of training dense models in bf16, to compare a needed speed with.

- llm-foundry: MPT models with FSDP at 2,048 tokens, the tables of scripts/train/benchmarking/README.md in
  https://github.com/mosaicml/llm-foundry: on H100 80GB MPT-760M 345.3 TFLOP/s for each GPU (8 GPUs) and 374.9 (16),
  MPT-1.3B 413.8, MPT-7B 459.5; on A100 80GB 177.4, 186.8 and 200.4, which is 64 % of the data sheet's.
- nanochat: model d24, run 1 of dev/LEADERBOARD.md in https://github.com/karpathy/nanochat: 4.331e19 FLOPs in 10,949 s
  on 8 H100 are 494.4 TFLOP/s for each GPU over the whole run, 50.0 %; it counts neither embeddings nor what its sliding
  windows leave out.

The H200 computes as fast as the H100; we know of no figures of its own. The variants with less power (PCIe, NVL) have
none here.
"""

from __future__ import annotations

from dataclasses import dataclass

from kit.flops import PEAKS, sheet_name


@dataclass(frozen=True)
class Figure:
    """FLOP/s that each GPU reached in a published training."""

    of: str
    flops: float


H100 = (
    Figure("llm-foundry's MPT-760M on 8 GPUs", 345.3e12),
    Figure("llm-foundry's MPT-760M on 16 GPUs", 374.9e12),
    Figure("llm-foundry's MPT-1.3B on 8 GPUs", 413.8e12),
    Figure("llm-foundry's MPT-7B on 8 GPUs", 459.5e12),
    Figure("nanochat's d24 on 8 GPUs", 494.4e12),
)
A100 = (
    Figure("llm-foundry's MPT-760M on 8 GPUs", 177.4e12),
    Figure("llm-foundry's MPT-1.3B on 8 GPUs", 186.8e12),
    Figure("llm-foundry's MPT-7B on 8 GPUs", 200.4e12),
)
FIGURES = {"H100": ("H100", H100), "H200": ("H100", H100), "A100": ("A100", A100)}  # by the name of the data sheet


def compare(gpu_name: str | None, needed: float) -> tuple[bool | None, str]:
    """Return whether somebody has published as many FLOP/s for each GPU, and a remark; None if that is unknown."""
    name = sheet_name(gpu_name)
    if name is None:
        return None, "not known: no data sheet of this GPU"
    if needed > dict(PEAKS)[name]:
        return False, f"above the peak in the data sheet of {name}"
    if name not in FIGURES:
        return None, f"not known: no published bf16 figure for {name}"
    of, figures = FIGURES[name]
    reached = next((figure for figure in figures if needed <= figure.flops), None)
    if reached:
        return True, f"{reached.of} reached {reached.flops / 1e12:.0f} TFLOP/s on {of}"
    best = figures[-1]
    return (
        False,
        f"above every published bf16 figure for {of} that we know ({best.of}: {best.flops / 1e12:.0f} TFLOP/s)",
    )
