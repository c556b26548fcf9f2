# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Group equal faults at many places, such as an ECC error of three GPUs on two nodes, into one line for people."""

from __future__ import annotations

import typing as t
from collections import Counter

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import places

Json = dict[str, t.Any]
_ORDER = ("fail", "undetermined", "waived")


def grouped(findings: t.Iterable[Json]) -> list[Json]:
    """Return one finding for each fault, the worst first, with `at`, its places in words, and `count`, how many it is.

    Findings of a check have the same fault if they have the same verdict and the same remedy but for their places.
    """
    groups: dict[tuple[str, str, str], list[Json]] = {}
    for finding in findings:
        told = (finding["id"], finding["verdict"], _without_places(finding["remedy"] or "", finding["where"]))
        groups.setdefault(told, []).append(finding)
    merged = [_merged(group) for group in groups.values()]
    return sorted(merged, key=lambda group: (_ORDER.index(group["verdict"]), -group["count"]))


def by_part(verdict: Json) -> dict[str, dict[str, tuple[list[Json], list[Json]]]]:
    """Return the findings of a verdict and its entries of the others, by check, and those by part, such as gpu."""
    parts: dict[str, dict[str, tuple[list[Json], list[Json]]]] = {}
    for kind in (1, 0):  # what was folded is nearly all, and in the order of checking
        for each in verdict[("findings", "checks")[kind]]:
            checks = parts.setdefault(each["id"].partition(".")[0], {})
            checks.setdefault(each["id"], ([], []))[kind].append(each)
    return parts


def counts(findings: t.Iterable[Json]) -> str:
    """Return the number of findings of each verdict; an entry counts as many as it stands for."""
    found: Counter[str] = Counter()
    for finding in findings:
        found[finding["verdict"]] += finding.get("count", 1)
    return ", ".join(f"{number} {verdict}" for verdict, number in found.most_common())


def _merged(group: list[Json]) -> Json:
    first = group[0]
    where = places.parts([finding["where"] for finding in group])
    return {
        **first,
        "at": f"{where}: " if where else "",
        "value": _values([finding["value"] for finding in group]),
        "bound": _most([finding["bound"] for finding in group], "bound"),
        "why": _most([finding["why"] for finding in group], "reason"),
        "remedy": _remedy(group),
        "count": len(group),
    }


def _remedy(group: list[Json]) -> str | None:
    told = {finding["remedy"] for finding in group}
    remedy: str | None = group[0]["remedy"]
    return remedy if len(told) == 1 else f"{remedy} (and likewise for {len(group) - 1} more)"


def _without_places(text: str, where: Json) -> str:
    for key, name in sorted(where.items(), key=lambda item: -len(item[1])):
        text = text.replace(name, f"<{key}>")
    return text


def _values(values: list[t.Any]) -> t.Any:
    """Return the value that all have, the range of numbers, or the most frequent one and how many others there are."""
    if all(map(scalars.is_number, values)) and min(values) != max(values):
        return f"{scalars.show(min(values))} to {scalars.show(max(values))}"
    shown = Counter(scalars.show(value) for value in values)
    return values[0] if len(shown) == 1 else _most(list(map(scalars.show, values)), "value")


def _most(texts: list[str], noun: str) -> str:
    """Return the most frequent text, and how many others there are."""
    known = Counter(texts)
    text = known.most_common()[0][0]
    others = len(known) - 1
    return f"{text} (and {others} other {noun}{'s' * (others > 1)})" if others else text
