# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of docs/preflight.md that says what is found in each recorded state of BeeGFS 7.4.7, and in what time."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import yaml

from tests.unit.conftest import ROOT

PAGE = ROOT / "docs/preflight.md"
STATES: dict[str, dict[str, t.Any]] = yaml.safe_load((Path(__file__).parent / "states.yml").read_text())
HEADING = "| state of the system | verdict | found | s |\n|---|---|---|---|\n"


def row(state: str, seconds: str) -> str:
    """Return the line of a state."""
    found: dict[str, list[str]] = {}
    for finding in STATES[state]["finds"]:
        verdict, identity, target, _symptom = re.fullmatch(r"(\w+) (\S+), (.+), (\S+)", finding).groups()
        named = f"`{identity}`" if verdict == STATES[state]["verdict"] else f"`{identity}` ({verdict})"
        found.setdefault(named, []).append(target)
    what = "; ".join(
        named + ("" if targets == ["-"] else f": {', '.join(targets)}") for named, targets in found.items()
    )
    return f"| {state} | `{STATES[state]['verdict']}` | {what or '-'} | {seconds} |\n"


def seconds_of() -> dict[str, str]:
    """Return the seconds that the page has, by state."""
    rows = re.findall(r"^\| ([a-z0-9-]+) \| `\w+` \| .* \| ([0-9.]+) \|$", PAGE.read_text(), re.MULTILINE)
    return dict(rows)


def table(seconds: t.Mapping[str, str]) -> str:
    """Return the whole table."""
    return HEADING + "".join(row(state, seconds.get(state, "-")) for state in STATES)


def renew(seconds: t.Mapping[str, str]) -> None:
    """Put the table with these seconds into the page."""
    text = PAGE.read_text()
    before, rest = text.split(HEADING, 1)
    after = re.sub(r"\A(?:\|.*\n)*", "", rest)
    PAGE.write_text(before + table(seconds) + after)
