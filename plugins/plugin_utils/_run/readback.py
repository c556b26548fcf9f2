# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the steps of a run recorded, read back. What cannot be read back becomes a finding. PRIVATE."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import cluster_facts
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import read_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import findings as judge_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import records

Json = dict[str, t.Any]


def findings(folder: Path) -> list[Json]:
    """All findings, in the order of their recording; of those that cannot be read, one that says so."""
    found: list[Json] = []
    try:
        names = records.names_of_findings(folder)
    except (OSError, ValueError) as exc:
        return [_unread(folder / records.INDEX, exc)]
    for name in names:
        try:
            found += records.read(folder, name)
        except (OSError, ValueError) as exc:
            found.append(_unread(folder / name, exc))
    return found


def cluster(folder: Path) -> tuple[Json | None, list[Json]]:
    """The facts of the cluster, None where there are none, and the finding if they cannot be read."""
    return _facts(folder / "cluster.json", lambda facts: cluster_facts.read(facts, cluster_facts.COUNTED)[1])


def probed(folder: Path) -> tuple[Json | None, list[Json]]:
    """What preflight looked at, None where nothing says so, and the finding if it cannot be read."""
    return _facts(folder / "probed.json", _probed_amiss)


def evidence(folder: Path, identity: str) -> t.Any:
    """What the criteria of a workload were judged on; None where it cannot be read."""
    try:
        return read_json(folder / "evidence" / f"{identity}.json")
    except (OSError, ValueError):
        return None


def _facts(path: Path, amiss: t.Callable[[t.Any], list[str]]) -> tuple[Json | None, list[Json]]:
    try:
        facts = records.read(path.parent, path.name)
        wrong = amiss(facts)
        if wrong:
            raise ValueError("; ".join(wrong))
    except FileNotFoundError:
        return None, []
    except (OSError, ValueError, RecursionError) as exc:
        return None, [_unread(path, exc)]
    return facts, []


def _probed_amiss(facts: t.Any) -> list[str]:
    """Which of what preflight noted is of another kind than it can be."""
    if not isinstance(facts, dict):
        return [f"expected an object, not {scalars.describe(facts)}"]
    kinds = {"nodes": str, "gpus": str, "left_out": dict}
    lists = {key: facts.get(key) or [] for key in kinds}
    wrong = [
        f"{key}: expected a list of {kind.__name__}, not {scalars.show(facts[key])}"
        for key, kind in kinds.items()
        if not isinstance(lists[key], list) or not all(isinstance(entry, kind) for entry in lists[key])
    ]
    return wrong or [
        f"left_out: expected name and why, both texts, not {scalars.show(left)}"
        for left in lists["left_out"]
        if not all(isinstance(left.get(key), str) for key in ("name", "why"))
    ]


def _unread(path: Path, exc: Exception) -> Json:
    return judge_findings.step_failed("report", "A record of this run is read back", str(exc), {"path": str(path)})
