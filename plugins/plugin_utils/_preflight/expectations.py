# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses what the inventory expects of GPUs and share in words that no check knows, before anything is looked at."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import _gpu_judge, _share_judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._expect import ExpectError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu_expect import GPU
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share_expect import SHARE

Json = dict[str, t.Any]


def check(gpu: Json, node_gpus: Json, share: Json) -> None:
    """Raise ExpectError for hpc_validation_gpu, hpc_validation_node_gpus or hpc_validation_share_expect."""
    wrong = GPU.problems(gpu, _gpu_judge.TITLES) + SHARE.problems(share, _share_judge.TITLES)
    for node, expect in node_gpus.items():
        wrong += [f"hpc_validation_node_gpus, {node}: {told}" for told in GPU.problems(expect, _gpu_judge.TITLES)]
    if wrong:
        raise ExpectError("malformed expectations:\n" + "\n".join(wrong))
