# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the share's speed on the nodes of a preflight, measured on many at once, with each other. PRIVATE."""

from __future__ import annotations

import statistics
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.facts import at
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.judging import judge

Json = dict[str, t.Any]
FIGURES = ("write_direct_mib_s", "write_buffered_mib_s", "read_direct_mib_s", "read_buffered_mib_s")
LEAST_NODES = 4  # among fewer, one slow node moves the median


class Speeds:
    """The throughputs that each node measured."""

    def __init__(self) -> None:
        self._speeds: dict[str, tuple[float, ...]] = {}

    def add(self, node: str, facts: t.Any) -> None:
        """Note the share facts of a node. Where a figure is missing, the node's own findings say so."""
        figures = [at(facts, "speed", figure) for figure in FIGURES]
        if all(map(scalars.is_number, figures)):
            self._speeds[node] = tuple(map(scalars.number, figures))

    def findings(self, expect: t.Any, share_type: str) -> t.Iterator[Json]:
        """Yield a finding for each node if there are enough. Raise ExpectError if the expectations are malformed.

        Other jobs, and the other nodes, may slow a node's figures one by one; a slow link or route slows them all. So
        the best of a node's figures counts, each as a part of its median.
        """
        if len(self._speeds) < LEAST_NODES:
            return
        medians = [statistics.median(figures) for figures in zip(*self._speeds.values())]
        judging = judge(expect, share_type, {})
        for node, figures in self._speeds.items():
            parts = [figure / median for figure, median in zip(figures, medians) if median > 0]
            told = ", ".join(f"{figure:g} of {median:g}" for figure, median in zip(figures, medians))
            yield judging.check(
                "share.node_speed",
                "ge",
                judging.expect["node_speed_ratio"],
                round(max(parts), 3) if parts else None,
                "kit share",
                unit="of the median",
                missing="no speed is above 0",
                detail=f"MiB/s of direct and buffered writes and reads: {told}",
                node=node,
            )
