# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the inventory and criteria, checked before anything is submitted. PRIVATE to the collection."""

from __future__ import annotations

import difflib
import importlib.util
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import strict_yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import log_patterns, spec
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.manifests import WorkloadError


def check_criteria(
    selected: list[dict[str, t.Any]],
    workloads: list[dict[str, t.Any]],
    overrides: dict[str, t.Any],
    references: dict[str, t.Any],
) -> None:
    """Refuses malformed criteria and overrides before anything is submitted.

    Raises WorkloadError naming workload, criterion and key, also when an override is of a workload that does not exist.
    """
    if importlib.util.find_spec("jmespath") is None:
        raise WorkloadError(
            "the Python package jmespath is missing on the controller; install it into the Python that runs "
            "ansible-playbook (ansible --version names it): python3 -m pip install jmespath"
        )
    known = [workload["id"] for workload in workloads]
    for name, changes in overrides.items():
        if name not in known:
            raise WorkloadError(
                f"hpc_validation_overrides names {name}, which is no workload; known are {', '.join(known)}"
            )
        if not isinstance(changes, dict):
            raise WorkloadError(f"hpc_validation_overrides.{name} must map criterion ids, not {changes!r}")
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
    """Refuses a reference that no criterion asks for: misspelt, it would leave one out that is to be judged."""
    asked = sorted(set(_reference_names(criteria)))
    for name in references if isinstance(references, dict) else ():
        if name not in asked:
            near = difflib.get_close_matches(str(name), asked, n=1)
            hint = f"did you mean {near[0]}?" if near else f"they ask for {', '.join(asked) or 'none'}"
            raise WorkloadError(f"hpc_validation_references names {name}, which no criterion asks for ({hint})")


def _reference_names(value: t.Any) -> t.Iterator[str]:
    """The names of references in criteria and in changes to them."""
    if isinstance(value, dict):
        within = value.get("within")
        if isinstance(within, dict) and isinstance(within.get("from"), str):
            yield within["from"]
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _reference_names(item)


def check_settings(names: list[str], known: list[str]) -> None:
    """Raises WorkloadError when a setting does not exist: it would be ignored silently."""
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "see ansible-doc -t role mlops.hpc_validation.hpc_validation"
            raise WorkloadError(f"there is no setting {name} ({hint})")


def check_needs_days(days: int) -> None:
    """Raises WorkloadError for a pass that would have to come from the future."""
    if days < 0:
        raise WorkloadError(f"hpc_validation_needs_days is {days}; expected a number of days, or 0 for no earlier pass")


def public_settings(collection: Path) -> list[str]:
    """The names of all public settings of the collection at `collection`."""
    defaults = collection / "roles" / "hpc_validation" / "defaults" / "main.yml"
    return sorted(strict_yaml.read(defaults))


def collection_version(root: Path) -> str | None:
    """The version of the collection at `root`: a checkout has galaxy.yml, an installed artifact MANIFEST.json."""
    for name, keys in (("galaxy.yml", ["version"]), ("MANIFEST.json", ["collection_info", "version"])):
        path = root / name
        if path.is_file():
            value = strict_yaml.read(path)
            for key in keys:
                value = value.get(key) if isinstance(value, dict) else None
            return str(value) if value is not None else None
    return None
