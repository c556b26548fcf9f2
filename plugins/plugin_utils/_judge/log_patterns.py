# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the log pattern sets of the collection. PRIVATE to the collection."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import strict_yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import remedies

FOLDER = FILES / "log_patterns"


class PatternSetError(Exception):
    """A pattern set cannot be read; the message names the file."""


def load(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Return the sets of `folder` by name, in the form that a search needs; raise PatternSetError."""
    sets = {}
    for path in sorted(folder.glob("*.yml")):
        try:
            content = strict_yaml.read(path)
            sets[content["name"]] = {
                "patterns": [
                    {
                        "id": entry["id"],
                        "texts": entry["texts"],
                        "regex": _joined(entry["regex"]),
                        "remedy": _remedy(entry),
                    }
                    for entry in content["patterns"]
                ],
                "except": [{"regex": _joined(entry["regex"])} for entry in content["except"]],
            }
        except (OSError, strict_yaml.YAMLError, KeyError, TypeError, remedies.RemedyError) as exc:
            raise PatternSetError(f"{path}: {type(exc).__name__}: {exc}") from exc
    if not sets:
        raise PatternSetError(f"{folder} has no pattern sets; is the collection installed completely?")
    return sets


def with_own(shipped: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return both; raise PatternSetError if a set of the user would replace a shipped one."""
    taken = sorted(set(shipped) & set(own))
    if taken:
        raise PatternSetError(f"patterns: {', '.join(taken)}: the collection ships a set of this name; rename yours")
    return {**shipped, **own}


def remedy_of(text: str) -> str | None:
    """Return the remedy for a message, the same as for this line in a job's log, or None if the message is unknown."""
    lines = text.splitlines()
    for each in load().values():
        excepted = [re.compile(entry["regex"]) for entry in each["except"]]
        for pattern in each["patterns"]:
            found = re.compile(pattern["regex"])
            if any(found.search(line) and not any(no.search(line) for no in excepted) for line in lines):
                return str(pattern["remedy"])
    return None


def _remedy(entry: dict[str, Any]) -> str:
    """Return a pattern's own remedy, or that of the symptom that probes also report."""
    return remedies.remedy(entry["symptom"]) if "symptom" in entry else str(entry["remedy"])


def _joined(regex: str | list[str]) -> str:
    return regex if isinstance(regex, str) else "|".join(regex)
