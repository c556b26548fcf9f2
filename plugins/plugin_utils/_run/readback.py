# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read back what the steps of a run recorded. A record that cannot be read back becomes a finding. PRIVATE."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import cluster_facts
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import read_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings.columns import Table
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import findings as judge_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import records

Json = dict[str, t.Any]


def findings(folder: Path) -> Table:
    """Return all findings in the order of recording, with one finding for each list that cannot be read."""
    found = Table()
    try:
        names = records.names_of_findings(folder)
    except (OSError, ValueError) as exc:
        return Table([_unread(folder / records.INDEX, exc)])
    for name in names:
        try:
            found.merge(records.read_findings(folder, name))
        except (OSError, ValueError) as exc:
            found.add(_unread(folder / name, exc))
    return found


def cluster(folder: Path) -> tuple[Json | None, list[Json]]:
    """Return the facts of the cluster, or None if there are none, and a finding if they cannot be read."""
    return _facts(folder / "cluster.json", lambda facts: cluster_facts.read(facts, cluster_facts.COUNTED)[1])


def probed(folder: Path) -> tuple[Json | None, list[Json]]:
    """Return what preflight looked at, or None if that was not recorded, and a finding if it cannot be read."""
    return _facts(folder / "probed.json", _probed_amiss)


def evidence(folder: Path, identity: str) -> t.Any:
    """Return what the criteria of a workload were judged on, or None if it cannot be read."""
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
    """Return the values in preflight's record that have a wrong type."""
    if not isinstance(facts, dict):
        return [f"expected an object, found {scalars.describe(facts)}"]
    kinds = {"nodes": str, "gpus": str, "left_out": dict, "scope": dict}
    lists = {key: facts.get(key) or [] for key in kinds}
    wrong = [
        f"{key}: expected a list of {kind.__name__}, found {scalars.show(facts[key])}"
        for key, kind in kinds.items()
        if not isinstance(lists[key], list) or not all(isinstance(entry, kind) for entry in lists[key])
    ]
    if wrong:
        return wrong
    return [
        f"left_out: expected name and why, both text, found {scalars.show(left)}"
        for left in lists["left_out"]
        if not all(isinstance(left.get(key), str) for key in ("name", "why"))
    ] + [
        f"scope: expected name as text and gpus as a number, found {scalars.show(node)}"
        for node in lists["scope"]
        if not isinstance(node.get("name"), str) or not _is_count(node.get("gpus"))
    ]


def _is_count(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _unread(path: Path, exc: Exception) -> Json:
    return judge_findings.step_failed("report", "A record of this run is read back", str(exc), {"path": str(path)})
