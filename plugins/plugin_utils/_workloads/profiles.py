# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with training profiles, as findings."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.findings import finding

Json = dict[str, t.Any]
IDENTITY = "S4-9"
TITLE = "The training profile can be used"
REMEDY = (
    "Mend the lines that are named, or what hpc_validation_profile changes; validate_config.py checks a file by hand."
)


def findings(documents: list[Json], workload: str) -> list[Json]:
    """Return a finding for each file with errors, of what `kit profile check --json` answers. KeyError, TypeError."""
    return [_of(document, workload) for document in documents if _errors(document)]


def _errors(document: Json) -> list[Json]:
    return [each for each in document["findings"] if each["severity"] == "error"]


def _of(document: Json, workload: str) -> Json:
    wrong = _errors(document)
    said = "; ".join(f"line {each['line']}: {each['key']}: {each['text']}" for each in wrong)
    return finding(
        IDENTITY,
        TITLE,
        "fail",
        value=len(wrong),
        bound="= 0 errors",
        source=scalars.printable(str(document["file"])),
        why=scalars.printable(said),
        remedy=REMEDY,
        where={"workload": workload},
    )
