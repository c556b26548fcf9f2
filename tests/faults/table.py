# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the rows came to: docs/faults.json, and docs/faults.md for people.

docs/faults.json: {"measured": {date, machine, releases, minutes}, "rows": {id: result},
"clean": {runs, passed, seconds}, "reframe": {id: {answer, says}}}; each target renews its own part, and of the rows
those that it played.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import re
import statistics
import typing as t
from collections import Counter
from pathlib import Path

from tests.faults.rows import APART, GROUPS, Row, load
from tests.integration.conftest import ROOT, cluster

DOCUMENT = ROOT / "docs/faults.json"
PAGE = ROOT / "docs/faults.md"
Json = dict[str, t.Any]


def _all() -> list[Row]:
    return [*load(), *(row for path in APART.values() for row in load(path))]


def result(row: Row, problems: list[str], seconds: float) -> Json:
    """What is kept of one row."""
    return {
        "group": row.group,
        "fault": row.fault,
        "when": row.when,
        "verdict": row.expect.verdict or "refused",
        "second": row.expect.second,
        "names": [*(names.id for names in row.expect.names), *(["why"] if row.expect.why else [])],
        "caught": not problems,
        "problems": problems,
        "seconds": round(seconds, 1),
        "date": datetime.date.today().isoformat(),
    }


def measured(minutes: float | None = None) -> Json:
    """On what and when; how long it took, where all rows were played at once."""
    kib = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, {round(int(kib[1]) / 2**20) if kib else '?'} GiB",
        "slurm": cluster("login", "sinfo", "--version").split()[-1],
        "ansible": importlib.metadata.version("ansible-core"),
        "minutes": minutes and round(minutes, 1),
    }


def renew(parts: Json, document: Path = DOCUMENT, page: Path = PAGE) -> None:
    """Write these parts of the document anew, and the page from all of it."""
    before = json.loads(document.read_text(encoding="utf-8")) if document.exists() else {}
    whole = {**before, **parts}
    if "rows" in whole:
        known = {row.id for row in _all()}
        played = {**before.get("rows", {}), **parts.get("rows", {})}
        whole["rows"] = {identity: row for identity, row in played.items() if identity in known}
    document.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if "rows" in whole:  # otherwise only the clean runs are there yet
        page.write_text(markdown(whole), encoding="utf-8")


def _caught(whole: Json, identities: set[str]) -> str:
    """How many of these rows were caught; one that was never played was not."""
    caught = sum(row["caught"] for identity, row in whole["rows"].items() if identity in identities)
    return f"{caught} of {len(identities)}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _summary(whole: Json) -> list[str]:
    rows = list(whole["rows"].values())
    seconds = [row["seconds"] for row in rows]
    never = sorted({row.id for row in _all()} - set(whole["rows"]))
    minutes = whole["measured"].get("minutes")
    at_once = f", all at once in {minutes:g} min" if minutes else ""
    lines = [
        f"- rows caught with the right name: {_caught(whole, {row.id for row in load()})}{at_once}",
        *(f"- of the group {group}: {_caught(whole, {row.id for row in load(path)})}" for group, path in APART.items()),
        f"- each row as it last came out, the oldest on {min(row['date'] for row in rows)}",
        *([f"- never played: {', '.join(never)}"] if never else []),
        f"- from the fault to the verdict: median {statistics.median(seconds):.0f} s, worst {max(seconds):.0f} s",
    ]
    clean = whole.get("clean")
    if clean:
        lines.append(f"- false failures: {clean['runs'] - clean['passed']} of {clean['runs']} clean runs in a row")
    reframe = whole.get("reframe")
    if reframe:
        harmless = {identity for identity, row in whole["rows"].items() if row["verdict"] == "pass"}
        asked = {identity: told for identity, told in reframe["rows"].items() if identity in whole["rows"]}
        answers = Counter(told["answer"] for identity, told in asked.items() if identity not in harmless)
        lines.append(
            f"- ReFrame {reframe['version']}, of the {answers.total()} faults that it can express and that must not "
            f"pass: {answers['fail']} fail, {answers['pass']} pass, {answers['hangs']} are without an answer after two "
            f"minutes, {answers['error']} end in an error of its own"
        )
    return lines


def markdown(whole: Json) -> str:
    """Return the page."""
    measured = whole["measured"]
    lines = [
        "# Faults",
        "",
        "Written by `make faults`, `make clean-runs` and `make faults-reframe` from `tests/faults/faults.yml`.",
        "Each fault is put into the live local cluster, or into the files on its share, while a play of a canary",
        "runs, of one process or of two ranks; the verdict must be the one stated, name the part at fault, and come in",
        f"time. `make faults` plays them all, and `make faults GROUP=judge` one group: {', '.join(GROUPS[:-1])} or",
        f"{GROUPS[-1]}. Those of a training with its real trainer are in `tests/faults/pretraining.yml` and",
        "`tests/faults/profiles.yml`, and played by `make faults GROUP=pretraining` and `GROUP=profiles` only.",
        "Preflight has faults of its own in `tests/faults/preflight.yml`",
        "(`make faults-preflight`), and a fleet of 20 nodes those of `tests/faults/fleet.yml` (`make faults-fleet`).",
        "",
        f"{measured['date']}, {measured['machine']}, Slurm {measured['slurm']}, ansible-core {measured['ansible']}:",
        "",
        *_summary(whole),
        "",
    ]
    answers = whole.get("reframe", {}).get("rows", {})
    for group in (*GROUPS, *APART):
        rows = {identity: row for identity, row in whole["rows"].items() if row["group"] == group}
        if not rows:
            continue
        lines += [f"## {group.capitalize()}", ""]
        lines += ["| fault | when | verdict | names | s | came out | ReFrame |", "|---|---|---|---|---|---|---|"]
        for identity, row in sorted(rows.items()):
            verdict = row["verdict"] + (f", then {row['second']}" if row["second"] else "")
            names = ", ".join(f"`{name}`" for name in row["names"]) or "on the screen"
            out = "as stated" if row["caught"] else f"**{'; '.join(row['problems'])[:200]}**"
            cells = [row["fault"], row["when"], verdict, names, f"{row['seconds']:.0f}", out]
            cells.append(answers.get(identity, {}).get("answer", ""))
            lines.append(f"| {' | '.join(map(_cell, cells))} |")
        lines.append("")
    return "\n".join(lines)
