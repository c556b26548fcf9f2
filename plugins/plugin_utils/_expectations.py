# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses what the inventory expects of GPUs and share in words that no check knows, before anything is looked at."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import _gpu_findings, _share_expect, _share_findings

Json = dict[str, t.Any]


class ExpectationError(Exception):
    """An expectation is malformed; the message names the setting and the key."""


def check(gpu: Json, node_gpus: Json, share: Json) -> None:
    """Raise ExpectationError for hpc_validation_gpu, hpc_validation_node_gpus or hpc_validation_share_expect."""
    wrong = [f"hpc_validation_gpu: {problem}" for problem in _gpu_findings.problems(gpu)]
    for node, expect in node_gpus.items():
        wrong += [f"hpc_validation_node_gpus.{node}: {problem}" for problem in _gpu_findings.problems(expect)]
    problems = _share_expect.problems(share, _share_findings.TITLES)
    wrong += [f"hpc_validation_share_expect: {problem}" for problem in problems]
    if wrong:
        raise ExpectationError("malformed expectations:\n" + "\n".join(wrong))
