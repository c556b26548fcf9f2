# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the inventory's settings and the criteria before anything is submitted. PRIVATE to the collection."""

from __future__ import annotations

import difflib
import importlib.util
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import strict_yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import log_patterns, spec
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.manifests import WorkloadError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.plan import WORKLOAD

TRAININGS = ("pretraining", "profile")


def check_criteria(
    selected: list[dict[str, t.Any]],
    workloads: list[dict[str, t.Any]],
    overrides: dict[str, t.Any],
    references: dict[str, t.Any],
) -> None:
    """Reject malformed criteria and overrides before anything is submitted.

    Raise WorkloadError naming workload, criterion and key, also for an override of a workload that does not exist.
    """
    if importlib.util.find_spec("jmespath") is None:
        raise WorkloadError(
            "the Python package jmespath is missing on the controller; install it into the Python that runs "
            "ansible-playbook (ansible --version names it): python3 -m pip install jmespath"
        )
    known = [workload["id"] for workload in workloads]
    for name, changes in overrides.items():
        if name not in known:
            raise WorkloadError(f"hpc_validation_overrides: unknown workload '{name}'; available: {', '.join(known)}")
        if not isinstance(changes, dict):
            raise WorkloadError(
                f"hpc_validation_overrides.{name}: expected a mapping of criterion IDs to changes, found {changes!r}"
            )
    _check_reference_names(references, [*(workload["criteria"] for workload in workloads), overrides])
    patterns = log_patterns.load()
    for workload in selected:
        try:
            spec.read(
                workload["criteria"],
                overrides.get(workload["id"], {}),
                workload=workload["id"],
                pattern_sets=patterns,
                references=references,
            )
        except spec.CriteriaError as exc:
            raise WorkloadError(
                f"the criteria of {workload['id']} or hpc_validation_overrides are malformed: {exc}"
            ) from exc


def _check_reference_names(references: t.Any, criteria: t.Any) -> None:
    """Reject a reference that no criterion uses: with a misspelt name, a criterion would be left out."""
    asked = sorted(set(_reference_names(criteria)))
    for name in references if isinstance(references, dict) else ():
        if name not in asked:
            near = difflib.get_close_matches(str(name), asked, n=1)
            hint = f"did you mean {near[0]}?" if near else f"available: {', '.join(asked) or 'none'}"
            raise WorkloadError(f"hpc_validation_references: no criterion uses {name} ({hint})")


def _reference_names(value: t.Any) -> t.Iterator[str]:
    """Yield the names of references in criteria and in overrides."""
    if isinstance(value, dict):
        within = value.get("within")
        if isinstance(within, dict) and isinstance(within.get("from"), str):
            yield within["from"]
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _reference_names(item)


def check_settings(names: list[str], known: list[str]) -> None:
    """Raise WorkloadError if a setting does not exist: it would be silently ignored."""
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "see ansible-doc -t role mlops.hpc_validation.hpc_validation"
            raise WorkloadError(f"unknown setting {name} ({hint})")


def check_ids(by_workload: dict[str, t.Any], known: list[str]) -> None:
    """Raise WorkloadError if a setting is for a workload that does not exist: it would be silently ignored.

    `by_workload` has the settings that are by workload, without their prefix. Those of `TRAININGS` are for all of its
    kind, and below an ID for that one.
    """
    for name, given in by_workload.items():
        for key in given if isinstance(given, dict) else ():
            is_id = name not in TRAININGS or WORKLOAD.fullmatch(str(key))
            if is_id and key not in known:
                near = difflib.get_close_matches(str(key), known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"available: {', '.join(known) or 'none'}"
                raise WorkloadError(f"hpc_validation_{name}: unknown workload {key} ({hint})")


def check_needs_days(days: int) -> None:
    """Raise WorkloadError for a negative number of days."""
    if days < 0:
        raise WorkloadError(f"hpc_validation_needs_days is {days}; expected a number of days, or 0 for no earlier pass")


def check_window(window: int, node_grace: float) -> None:
    """Raise WorkloadError for a window that takes no job, or no time for a node."""
    if window < 1:
        raise WorkloadError(f"hpc_validation_window is {window}; expected a number of jobs, at least 1")
    if not node_grace > 0:
        raise WorkloadError(f"hpc_validation_node_grace is {node_grace}; expected seconds, more than 0")


def public_settings(collection: Path) -> list[str]:
    """Return the names of all public settings of the collection at `collection`."""
    defaults = collection / "roles" / "hpc_validation" / "defaults" / "main.yml"
    return sorted(strict_yaml.read(defaults))


def collection_version(root: Path) -> str | None:
    """Return the version of the collection at `root`, from galaxy.yml of a checkout or MANIFEST.json if installed."""
    for name, keys in (("galaxy.yml", ["version"]), ("MANIFEST.json", ["collection_info", "version"])):
        path = root / name
        if path.is_file():
            value = strict_yaml.read(path)
            for key in keys:
                value = value.get(key) if isinstance(value, dict) else None
            return str(value) if value is not None else None
    return None
