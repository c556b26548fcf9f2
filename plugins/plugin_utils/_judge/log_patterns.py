# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the log pattern sets that ship with the collection. PRIVATE to the collection."""

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
    """Return the sets of `folder` by name, with what a search needs of them; raise PatternSetError."""
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
        raise PatternSetError(f"{folder}: no pattern set is there; is the collection installed whole?")
    return sets


def with_own(shipped: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return both; raise PatternSetError where a set of one's own would take the place of one that ships."""
    taken = sorted(set(shipped) & set(own))
    if taken:
        raise PatternSetError(f"patterns: {', '.join(taken)}: a set of this name ships; give your own another name")
    return {**shipped, **own}


def remedy_of(text: str) -> str | None:
    """Return what to do about a message, as it would be said of the same line in a job's log; None if it is unknown."""
    lines = text.splitlines()
    for each in load().values():
        excepted = [re.compile(entry["regex"]) for entry in each["except"]]
        for pattern in each["patterns"]:
            found = re.compile(pattern["regex"])
            if any(found.search(line) and not any(no.search(line) for no in excepted) for line in lines):
                return str(pattern["remedy"])
    return None


def _remedy(entry: dict[str, Any]) -> str:
    """A pattern's own remedy, or that of the symptom which a probe finds as well."""
    return remedies.remedy(entry["symptom"]) if "symptom" in entry else str(entry["remedy"])


def _joined(regex: str | list[str]) -> str:
    return regex if isinstance(regex, str) else "|".join(regex)
