# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the remedies: one entry in files/remedies for each symptom, whether a probe or a job's log shows it."""

from __future__ import annotations

import functools
import re
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import strict_yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES

FOLDER = FILES / "remedies"
# In a remedy, {node} is replaced by the finding's where.node, or by these words if it has none.
PLACEHOLDERS = {
    "host": "<host>",
    "node": "<node>",
    "gpu": "<gpu>",
    "path": "<path>",
    "target": "<target>",
    "number": "<number>",
}
_PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")


class RemedyError(Exception):
    """The remedies cannot be read, or have no entry for a symptom; the message says which."""


def load(folder: Path = FOLDER) -> dict[str, str]:
    """Return the remedies of `folder` by symptom. Raise RemedyError."""
    remedies: dict[str, str] = {}
    for path in sorted(folder.glob("*.yml")):
        try:
            content = strict_yaml.read(path)
            entries = {symptom: str(entry["remedy"]) for symptom, entry in content.items()}
        except (OSError, strict_yaml.YAMLError, KeyError, TypeError, AttributeError) as exc:
            raise RemedyError(f"{path}: {type(exc).__name__}: {exc}") from exc
        twice = sorted(set(entries) & set(remedies))
        if twice:
            raise RemedyError(f"{path}: {', '.join(twice)} appears twice, here and in another file")
        remedies.update(entries)
    if not remedies:
        raise RemedyError(f"{folder} has no remedies; is the collection installed completely?")
    return remedies


@functools.cache
def _shipped() -> dict[str, str]:
    return load()


def remedy(symptom: str, where: dict[str, t.Any] | None = None) -> str:
    """Return the remedy for `symptom`, with the names of `where` filled in. Raise RemedyError if there is none."""
    try:
        text = _shipped()[symptom]
    except KeyError:
        raise RemedyError(f"{symptom} has no remedy; add one to {FOLDER}") from None
    return _PLACEHOLDER.sub(lambda match: str((where or {}).get(match[1]) or PLACEHOLDERS[match[1]]), text)
