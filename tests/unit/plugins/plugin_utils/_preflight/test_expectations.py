# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expectations in words that no check knows."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.expect import ExpectError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.expectations import check


def test_what_is_known_is_taken() -> None:
    check({"model": "NVIDIA H200", "nvlinks": 18}, {"compute02": {"count": 4}}, {"rdma": True, "free_gib": 500})


@pytest.mark.parametrize(
    ("gpu", "nodes", "share", "words"),
    [
        ({"modell": "x"}, {}, {}, ["hpc_validation_gpu", "modell"]),
        ({"count": "two"}, {}, {}, ["hpc_validation_gpu", "count"]),
        ({"not_applicable": {"gpu.nonsense": "why"}}, {}, {}, ["gpu.nonsense"]),
        ({}, {"compute02": {"ecc": "on"}}, {}, ["hpc_validation_node_gpus, compute02", "ecc"]),
        ({}, {}, {"rmda": True}, ["hpc_validation_share_expect", "rmda"]),
        ({}, {}, {"free_gib": -1}, ["hpc_validation_share_expect", "free_gib"]),
    ],
)
def test_what_is_not_is_refused_by_name(gpu: dict, nodes: dict, share: dict, words: list[str]) -> None:
    with pytest.raises(ExpectError) as caught:
        check(gpu, nodes, share)
    for word in words:
        assert word in str(caught.value)
