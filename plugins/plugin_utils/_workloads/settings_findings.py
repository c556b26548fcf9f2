# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with the settings of a training, as findings (requirements S3-9 and S4-9)."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.findings import finding

Json = dict[str, t.Any]
PROFILE = "profile"


class _Words(t.NamedTuple):
    usable: str
    doubtless: str
    remedy: str


WORDS = {  # by the findings' first word
    PROFILE: _Words(
        "The training profile can be used",
        "Nothing in the training profile is doubtful",
        "Mend the lines that are named, or what hpc_validation_profile changes; validate_config.py checks a file.",
    ),
    "settings": _Words(
        "The settings of the training can be used",
        "Nothing in the settings of the training is doubtful",
        "Mend what is named, in hpc_validation_{of} of the inventory or in the folder config of the workload.",
    ),
}


def findings(documents: list[Json], workload: str, of: str) -> list[Json]:
    """Return a finding for each file with errors, and one for each with warnings, of what `kit profile check` answers.

    `of`: the setting that they are of, without its prefix. KeyError, TypeError for what is no such answer.
    """
    found = [_of(document, workload, of) for document in documents]
    return [each for pair in found for each in pair if each]


def _of(document: Json, workload: str, of: str) -> tuple[Json | None, Json | None]:
    name = PROFILE if of == PROFILE else "settings"
    source, where = scalars.printable(str(document["file"])), {"workload": workload}
    if "unreadable" in document:
        why = str(document["unreadable"])
        wrong, doubtful = [f"line {why}" if why[:1].isdigit() else why], []
    else:
        wrong, doubtful = _said(document, "error"), _said(document, "warning")
    errors = finding(
        f"{name}.errors",
        WORDS[name].usable,
        "fail",
        value=len(wrong),
        bound="= 0 errors",
        source=source,
        why="; ".join(wrong),
        remedy=WORDS[name].remedy.format(of=of),
        where=where,
    )
    warnings = finding(
        f"{name}.warnings",
        WORDS[name].doubtless,
        "recorded",
        value=len(doubtful),
        bound="= 0 warnings",
        source=source,
        why="; ".join(doubtful),
        where=where,
    )
    return errors if wrong else None, warnings if doubtful else None


def _said(document: Json, severity: str) -> list[str]:
    those = [each for each in document["findings"] if each["severity"] == severity]
    return [scalars.printable(": ".join([f"line {each['line']}", *_key(each), each["text"]])) for each in those]


def _key(each: Json) -> list[str]:
    return [each["key"]] if each["key"] else []
