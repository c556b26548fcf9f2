# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Format findings for people: where the faulty part is and what is wrong; the rest in numbers."""

from __future__ import annotations

import typing as t
from collections import Counter

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.findings import SILENT
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import criteria_table

Json = dict[str, t.Any]
AMISS = ("fail", "undetermined", "waived")
_SHOWN = 20


def placed(finding: Json) -> Json:
    """Return the finding with a title that begins with what it is about: the workload, then the node and its part."""
    keys = ("workload", "node", "host", "gpu", "target", "path")
    names = [str(finding["where"][key]) for key in keys if finding["where"].get(key)]
    return {**finding, "title": f"{', '.join(names)}: {finding['title']}"} if names else finding


def lines(findings: list[Json]) -> list[str]:
    """Return the findings that did not pass, with reason and remedy; one line for a GPU that does not answer."""
    amiss = [finding for finding in findings if finding["verdict"] in AMISS]
    silent = [finding for finding in amiss if SILENT in finding["why"]]
    shown = [placed(finding) for finding in amiss if finding not in silent]
    told = criteria_table.render("", "", shown[:_SHOWN]).splitlines()[1:]
    if len(shown) > _SHOWN:
        told.append(f"… and {len(shown) - _SHOWN} more, see the findings")
    if silent:
        told.append(f"undetermined   {len(silent)} more checks, since {SILENT}")
    return [*told, f"{len(findings)} findings: {counts(findings)}"]


def counts(findings: list[Json]) -> str:
    """Return the number of findings of each verdict."""
    found = Counter(finding["verdict"] for finding in findings)
    return ", ".join(f"{number} {verdict}" for verdict, number in found.most_common())
