# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of docs/reference/preflight.md: each check with its title, and the remedies of files/remedies."""

from __future__ import annotations

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import strict_yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.checks import TITLES

from tests.docs.pages import ROOT, prose, table

# The groups in the order in which preflight looks at them.
GROUPS = {
    "controller": "The controller",
    "login": "The login node",
    "runtime": "Downloads and Apptainer, on the login node and on each node",
    "scheduler": "The scheduler",
    "share": "The share, from the login node and from each node",
    "node": "Each node",
    "gpu": "Each GPU",
    "coverage": "The scope",
    "edge": "Each edge host, if a workload is measured there",
}


def tables() -> str:
    """Return all tables."""
    remedies = read_remedies()
    parts = []
    for group, heading in GROUPS.items():
        parts.append(f"## {heading}: `{group}.…`")
        parts.append(table(["Check", "Title", "Remedy"], _rows(group, remedies)))
    parts.append("## Symptoms that several checks share")
    others = sorted(set(remedies) - {name for name in remedies if _check_of(name)})
    parts.append(table(["Symptom", "Remedy"], [[f"`{name}`", prose(remedies[name])] for name in others]))
    return "\n\n".join(parts)


def read_remedies() -> dict[str, str]:
    """Return what files/remedies says, by symptom."""
    files = sorted((ROOT / "files/remedies").glob("*.yml"))
    return {symptom: entry["remedy"] for path in files for symptom, entry in strict_yaml.read(path).items()}


def _rows(group: str, remedies: dict[str, str]) -> list[list[str]]:
    """Return a row for each check of the group, and one below it for each of its symptoms with a remedy of its own."""
    rows = []
    for check in [name for name in TITLES if name.startswith(f"{group}.")]:
        rows.append([f"`{check}`", prose(TITLES[check]), prose(remedies.get(check, "-"))])
        symptoms = [name for name in remedies if name != check and _check_of(name) == check]
        rows += [[f"`{symptom}`", "", prose(remedies[symptom])] for symptom in symptoms]
    return rows


def _check_of(symptom: str) -> str | None:
    """Return the check whose symptom it is: the longest id that it begins with."""
    parts = symptom.split(".")
    names = (".".join(parts[:count]) for count in range(len(parts), 1, -1))
    return next((name for name in names if name in TITLES), None)
