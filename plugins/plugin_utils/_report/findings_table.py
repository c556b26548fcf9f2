# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Format findings for people: where the faulty part is and what is wrong; the rest in numbers."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import groups, places
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.findings import SILENT
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import criteria_table

Json = dict[str, t.Any]
AMISS = ("fail", "undetermined", "waived")
_SHOWN = 20


def placed(finding: Json) -> Json:
    """Return the finding with a title that begins with where it is."""
    name = places.name(finding["where"])
    at = finding.get("at", f"{name}: " if name else "")
    return {**finding, "title": f"{at}{finding['title']}"}


def lines(findings: list[Json]) -> list[str]:
    """Return the findings that did not pass, as `faults` does, and how many there are of each verdict."""
    return [*faults(findings), f"{len(findings)} findings: {groups.counts(findings)}"]


def faults(findings: list[Json]) -> list[str]:
    """Return the findings that did not pass: one line for a fault at many places, one for a GPU that does not answer.

    The worst come first, each with reason and remedy.
    """
    amiss = [finding for finding in findings if finding["verdict"] in AMISS]
    silent = [finding for finding in amiss if SILENT in finding["why"]]
    shown = [placed(fault) for fault in groups.grouped(each for each in amiss if SILENT not in each["why"])]
    told = criteria_table.render("", "", shown[:_SHOWN]).splitlines()[1:]
    if len(shown) > _SHOWN:
        told.append(f"… and {len(shown) - _SHOWN} more, see the findings")
    if silent:
        told.append(f"undetermined   {len(silent)} more checks, since {SILENT}")
    return told
