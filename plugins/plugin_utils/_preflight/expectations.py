# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reject expectations about GPUs and the share that no check knows, before anything is checked."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.expect import GPU
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.titles import TITLES as GPU_TITLES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.expect import ExpectError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.expect import SHARE
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.titles import TITLES as SHARE_TITLES

Json = dict[str, t.Any]


def check(gpu: Json, node_gpus: Json, share: Json) -> None:
    """Raise ExpectError for hpc_validation_gpu, hpc_validation_node_gpus or hpc_validation_share_expect."""
    wrong = GPU.problems(gpu, GPU_TITLES) + SHARE.problems(share, SHARE_TITLES)
    for node, expect in node_gpus.items():
        wrong += [f"hpc_validation_node_gpus, {node}: {told}" for told in GPU.problems(expect, GPU_TITLES)]
    if wrong:
        raise ExpectError("invalid expectations:\n" + "\n".join(wrong))
