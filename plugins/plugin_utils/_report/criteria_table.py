# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Format judged criteria as a table for people. PRIVATE to the collection."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars

_WIDTH = 118
_VALUE_WIDTH = 80
_INDENT = "               "


def render(workload: str, verdict: str, judged: list[dict[str, Any]]) -> str:
    """Return the table: one line for each criterion, with reason and remedy if it did not pass or is a ratio.

    Criteria that follow one another for the same reason have it once, below the last.
    """
    width = max([2, *(len(entry["id"]) for entry in judged)])
    lines = [f"{_plain(workload)}: {verdict.upper()}"]
    for entry, following in zip(judged, [*judged[1:], None]):
        unit = f" {_plain(entry['unit'])}" if entry.get("unit") else ""
        value = "-" if entry["value"] is None else _value(entry["value"]) + unit
        bound = _plain(entry["bound"]) + unit
        head = f"{entry['verdict']:<14} {_plain(entry['id']):<{width}}  {_plain(entry['title'])}"
        changed = f"  ({entry['bound_from']})" if entry["bound_from"] != "manifest" else ""
        lines.append(f"{head}: {value}  [{bound}]{changed}")
        is_explained = entry["verdict"] != "pass" or entry.get("against_baseline")  # findings do not have this key
        if is_explained and not (following and _reason(entry) == _reason(following)):
            lines += _wrapped("why: ", entry["why"])
            if entry.get("remedy"):
                lines += _wrapped("do:  ", entry["remedy"])
    return "\n".join(lines)


def _reason(entry: dict[str, Any]) -> tuple[Any, ...]:
    return entry["verdict"], entry["why"], entry.get("remedy")


def brief(workload: str, verdict: str, judged: list[dict[str, Any]], seconds: Any = None) -> str:
    """Return one line with the number of criteria of each verdict, and whole those that did not pass."""
    counts = ", ".join(f"{number} {word}" for word, number in Counter(e["verdict"] for e in judged).most_common())
    took = f" in {seconds:.0f} s" if scalars.is_number(seconds) else ""
    head = f"{_plain(workload)}: {verdict.upper()}{took}, {len(judged)} criteria: {counts}"
    amiss = [entry for entry in judged if entry["verdict"] in ("fail", "undetermined", "waived")]
    return "\n".join([head, *render("", "", amiss).splitlines()[1:]])


def summary(workload: str, verdict: str, judged: list[dict[str, Any]]) -> str:
    """Return one line: the verdict, and each gate that did not pass with its value against its bound."""
    order = {"fail": 0, "undetermined": 1}
    blamed = sorted(
        (entry for entry in judged if entry["severity"] == "gate" and entry["verdict"] in order),
        key=lambda entry: order[entry["verdict"]],
    )
    named = []
    for entry in blamed[:5]:
        against = f"{_value(entry['value'])} against {_plain(entry['bound'])}" if entry["value"] is not None else ""
        detail = "; ".join(part for part in (against, _plain(entry["why"])) if part)
        named.append(f"{entry['id']} {entry['verdict']} ({_plain(entry['title'])}: {detail})")
    more = [f"and {len(blamed) - 5} more"] if len(blamed) > 5 else []
    if not blamed and verdict != "pass":
        named = ["no criterion was judged to pass"]
    return f"{_plain(workload)}: {verdict}. " + ". ".join(named + more)


def _value(value: Any) -> str:
    text = _plain(value) if isinstance(value, str) else scalars.show(value)
    return text if len(text) <= _VALUE_WIDTH else text[: _VALUE_WIDTH - 1] + "…"


def _plain(text: Any) -> str:
    return scalars.printable(str(text))


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        label + _plain(text),
        _WIDTH,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT + " " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )
