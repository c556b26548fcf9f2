# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arithmetic of MFU: FLOPs for each token, and peaks by the names that drivers report."""

from __future__ import annotations

import pytest
from kit import flops
from kit.training import flops as training_flops

# GPT-2's architecture, 24 layers of width 1536, 2048 tokens, 50,000 words, tied.
GPT = flops.Shape(parameters=759_905_280, trainable=759_905_280, layers=24, width=1536, length=2048)


def test_training_takes_6_a_parameter_and_12_a_layer_width_and_length() -> None:
    # 6 · 759,905,280 = 4,559,431,680; 12 · 24 · 1536 · 2048 = 905,969,664
    assert flops.flops_per_token(GPT) == 4_559_431_680 + 905_969_664


def test_what_is_not_trained_takes_a_third_less() -> None:
    frozen = flops.Shape(GPT.parameters, 0, GPT.layers, GPT.width, GPT.length)
    assert flops.flops_per_token(GPT) - flops.flops_per_token(frozen) == 2 * GPT.parameters


@pytest.mark.parametrize(
    ("reported", "name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", "H100", 989.4e12),
        ("NVIDIA H100 PCIe", "H100 PCIe", 756e12),
        ("NVIDIA H100 NVL", "H100 NVL", 835.5e12),
        ("NVIDIA H200", "H200", 989.4e12),
        ("NVIDIA H200 NVL", "H200 NVL", 835.5e12),
        ("NVIDIA GH200 480GB", "GH200", 989.4e12),
        ("NVIDIA H20", "H20", 148e12),
        ("NVIDIA B200", "B200", 2250e12),
        ("NVIDIA A100-SXM4-80GB", "A100", 312e12),
        ("NVIDIA A800-SXM4-80GB", "A800", 312e12),
        ("NVIDIA A40", "A40", 149.7e12),
        ("NVIDIA A30", "A30", 165e12),
        ("NVIDIA A10", "A10", 125e12),
        ("NVIDIA L40S", "L40S", 362e12),
        ("NVIDIA L4", "L4", 121e12),
        ("NVIDIA A1000", None, None),
        ("Tesla T4", None, None),
        ("", None, None),
        (None, None, None),
    ],
)
def test_the_peak_goes_by_whole_words_of_the_name(reported: str | None, name: str | None, peak: float | None) -> None:
    assert flops.sheet_name(reported) == name
    assert flops.peak_flops(reported) == peak


def test_workloads_find_the_same_under_training() -> None:
    for name in ("PEAKS", "Shape", "flops_per_token", "peak_flops"):
        assert getattr(training_flops, name) is getattr(flops, name)
