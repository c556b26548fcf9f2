# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What beegfs-ctl 7.4.7 answers in each recorded state (tests/fixtures/beegfs/states_7.4.7.jsonl).

Not every question was recorded in every state. What was not is put together from what was, in the same state: a table
with fewer columns; the members of mirror groups from the groups and the table of targets; the same answer where all of
them fail alike. With limited time-outs a row of a frozen server takes 7 s and has zeros, as in the two states in which
that was recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

STATES = Path(__file__).resolve().parents[2] / "fixtures" / "beegfs" / "states_7.4.7.jsonl"
KINDS = ("meta", "storage")
LIMITED = "--connMessagingTimeouts=3000,3000,3000"
LIMITED_SECONDS = 7
HELD_FROM = 60  # seconds: no state but a frozen server takes so long
SLOW_FROM = 5  # seconds: a host that is away takes 10 s for each target
FOREVER = 3600
NO_META = " [ERROR: No metadata servers found]\n"
GROUP_COLUMNS = ("MirrorGroupID", "MGMemberType")
ZEROS = ["0.0GiB", "0.0GiB", "0%", "0.0M", "0.0M", "0%"]
SPACE = ["Total", "Free", "%", "ITotal", "IFree", "%"]
# Of this state only what a frozen server holds was recorded; the management daemon answered as in the other.
BORROWED = {"frozen-how-long": "both-mirrored-healthy"}
Answer = dict[str, Any]


@cache
def recorded() -> dict[str, dict[str, Any]]:
    """Return each state with its note and rows."""
    return {state["state"]: state for state in map(json.loads, STATES.read_text().splitlines())}


def answers(state: str) -> list[Answer]:
    """Return the answers of a state: all recorded ones first, then those that are put together."""
    rows = recorded()[state]["rows"]
    if state in BORROWED:
        rows = rows + [row for row in recorded()[BORROWED[state]]["rows"] if _is_of_management(row["argv"])]
    return _State(rows).answers()


def _is_of_management(argv: list[str]) -> bool:
    return argv[0] in ("--listtargets", "--listmirrorgroups") and "--spaceinfo" not in argv


def edited(found: Iterable[Answer], kind: str, number: int, changes: dict[str, str]) -> list[Answer]:
    """Return answers in which words of one target's rows are others, right-justified as the tool does."""
    pattern = re.compile(rf"^((?: +\d+ +[a-z]+)? +){number}( .*beegfs-{kind} .*)$", re.MULTILINE)

    def change(match: re.Match[str]) -> str:
        rest = match[2]
        for old, new in changes.items():
            rest = re.sub(rf" +{re.escape(old)}(?= )", f" {new.rjust(len(old))}", rest)
        return f"{match[1]}{number}{rest}"

    return [
        {**answer, **{key: pattern.sub(change, answer[key]) for key in ("at_once", "out") if key in answer}}
        for answer in found
    ]


class _State:
    """The recorded rows of one state, by their words."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = [
            {**row, "argv": [word for word in row["argv"] if not word.startswith("--cfgFile=")]} for row in rows
        ]

    def answers(self) -> list[Answer]:
        found = [_recorded(row) for row in self.rows]
        for kind in KINDS:
            found += self._listings(kind)
        quota = self._row("--getquota", "--uid", "0", "--csv")
        if quota:
            found.append(_limited_quota(quota))
            found += [
                {**each, "words": ["*" if word == "0" else word for word in each["words"]]}
                for each in found
                if each["words"][:3] == ["--getquota", "--uid", "0"]
            ]
        return found

    def _row(self, *words: str) -> dict[str, Any] | None:
        return next((row for row in self.rows if sorted(row["argv"]) == sorted(words)), None)

    def _listings(self, kind: str) -> list[Answer]:
        table = ["--listtargets", f"--nodetype={kind}", "--longnodes", "--pools"]
        space = self._row(*table, "--state", "--spaceinfo")
        if space is None:
            return []
        states = self._row(*table, "--state") or space
        groups = self._row(*table, "--state", "--mirrorgroups")
        if "TargetID" not in states["out"]:  # all questions fail alike
            alike = [
                table,
                [*table, "--state"],
                [*table, "--mirrorgroups"],
                [*table, "--state", "--spaceinfo", LIMITED],
            ]
            return [{**_recorded(states), "words": words} for words in alike]
        whole = _Table(states["out"])
        found = [
            _tabled(states, whole.without(SPACE), [*table, "--state"]),
            _tabled(states, whole.without([*SPACE, "Reachability", "Consistency"]), table),
            _limited_space(space, whole, self._frozen(kind, space), [*table, "--state", "--spaceinfo", LIMITED]),
            *([] if self._reachable(kind) else [self._nodes(kind, space)]),
        ]
        members = _Table(groups["out"]) if groups else whole.without(SPACE).grouped(self._groups(kind))
        return [*found, _tabled(states, members.without(["Reachability", "Consistency"]), [*table, "--mirrorgroups"])]

    def _groups(self, kind: str) -> list[list[str]]:
        row = self._row("--listmirrorgroups", f"--nodetype={kind}")
        lines = row["out"].splitlines()[2:] if row else []
        return [line.split() for line in lines]

    def _frozen(self, kind: str, space: dict[str, Any]) -> set[str]:
        """Return the servers that do not answer, by the list of servers, else by their targets having no space."""
        told = (self._reachable(kind) or self._nodes(kind, space))["out"]
        return set(re.findall(r"^(\S.*)\n +Reachable: <no>$", told, re.MULTILINE))

    def _reachable(self, kind: str) -> dict[str, Any] | None:
        return self._row("--listnodes", f"--nodetype={kind}", "--reachable", "--errorcodes")

    def _nodes(self, kind: str, space: dict[str, Any]) -> Answer:
        """Servers whose targets have no space do not answer."""
        found: dict[str, str] = {}
        for row in _Table(space["out"]).rows:
            node = row[-1].partition(" ")[2]
            found[node] = "no" if row[-7:-1] == ZEROS else "yes"
        out = "".join(f"{node}\n   Reachable: <{answer}>\n" for node, answer in found.items())
        dead = "no" in found.values()
        words = ["--listnodes", f"--nodetype={kind}", "--reachable", "--errorcodes"]
        seconds = 3.0 if dead else 0.5
        return {"words": words, "seconds": seconds, "out": out, "err": "", "rc": 5 if dead else 0}


class _Table:
    """A table of --listtargets: headings, and rows of as many values or fewer, the server last."""

    def __init__(self, text: str) -> None:
        lines = [line for line in text.splitlines() if not re.match(r"\(\d\) \d\d:", line)]
        heading = next((line for line in lines if "TargetID" in line), "")
        self.names = re.findall(r"(?:St|Cap)\. Pool|\S+", heading)
        after = lines[lines.index(heading) + 2 :] if heading else []
        self.rows = [[*line[: line.index("beegfs-")].split(), line[line.index("beegfs-") :]] for line in after if line]

    def without(self, names: list[str]) -> _Table:
        return self._selected([at for at, name in enumerate(self.names) if name not in names])

    def _selected(self, columns: list[int]) -> _Table:
        made = _Table("")
        made.names = [self.names[at] for at in columns]
        last = len(self.names) - 1
        made.rows = [
            [*(row[at] for at in columns if at < len(row) - 1 and at != last), row[-1]] for row in self.rows if row
        ]
        return made

    def grouped(self, groups: list[list[str]]) -> _Table:
        """Return the members of mirror groups, two rows each, with the columns of this table."""
        made = _Table("")
        made.names = [*GROUP_COLUMNS, *self.names]
        by_id = {row[0]: row for row in self.rows}
        made.rows = [
            [group, role, *by_id[number]]
            for group, primary, secondary in groups
            for role, number in (("primary", primary), ("secondary", secondary))
        ]
        return made

    def text(self) -> str:
        widths = [max(len(name), 13) for name in self.names]
        lines = [self.names, ["=" * len(name) for name in self.names], *self.rows]
        return "".join(
            " ".join(value.rjust(width) for value, width in zip(line[:-1], widths)) + f"   {line[-1]}\n"
            for line in lines
        )


def _recorded(row: dict[str, Any]) -> Answer:
    """Return a recorded answer. What stands before a server that kept it waiting was printed at once."""
    answer = {key: row[key] for key in ("out", "err", "rc", "seconds")}
    if row["seconds"] > SLOW_FROM:
        held = row["seconds"] > HELD_FROM or bool(row["killed"])
        kept = row["out"] if row["killed"] and row["seconds"] < HELD_FROM else _before_the_wait(row["out"])
        answer.update(at_once=kept, out=row["out"][len(kept) :], held=held)
        if row["killed"]:
            answer.update(seconds=FOREVER, rc=1)
    return {"words": row["argv"], **answer}


def _before_the_wait(out: str) -> str:
    return re.split(r"^(?=\(\d\) \d\d:| .* 0\.0GiB +0\.0GiB )", out, maxsplit=1, flags=re.MULTILINE)[0]


def _tabled(states: dict[str, Any], table: _Table, words: list[str]) -> Answer:
    """Return a table that the management daemon answers alone. Its exit code is that of the columns it has."""
    empty = not table.rows and "--nodetype=meta" in words and "--mirrorgroups" not in words
    unknown = any("unknown" in row for row in table.rows)
    err = NO_META if empty and states["err"] == NO_META else ""
    return {"words": words, "seconds": 0.02, "out": table.text(), "err": err, "rc": 3 if err or unknown else 0}


def _limited_space(space: dict[str, Any], whole: _Table, frozen: set[str], words: list[str]) -> Answer:
    """Return the table of space with limited time-outs: a server that would hold it costs time, and has zeros."""
    if not space["killed"] and space["seconds"] < HELD_FROM:
        return {**_recorded(space), "words": words}
    states = whole.without(SPACE)
    told = {row[0]: row[-7:-1] for row in [*_healthy_space(words), *_Table(_before_the_wait(space["out"])).rows]}
    made = _Table("")
    made.names = [*states.names[:-1], *SPACE, states.names[-1]]
    made.rows = [[*row[:-1], *(ZEROS if _server(row) in frozen else told[row[0]]), row[-1]] for row in states.rows]
    silent = [row for row in states.rows if _server(row) in frozen]
    text = made.text()
    at_once = _before_the_wait(text)
    return {
        "words": words,
        "at_once": at_once,
        "seconds": LIMITED_SECONDS * len(silent),
        "out": text[len(at_once) :],
        "err": "".join(f" [ERROR from {row[-1]}: Communication error]\n" for row in silent),
        "rc": 3,
    }


def _healthy_space(words: list[str]) -> list[list[str]]:
    """Return the rows of the healthy state: what a server has that the held command never came to."""
    asked = sorted(word for word in words if word != LIMITED)
    return next(
        _Table(row["out"]).rows for row in recorded()["healthy-no-mirrors"]["rows"] if sorted(row["argv"]) == asked
    )


def _server(row: list[str]) -> str:
    return row[-1].partition(" ")[2]


def _limited_quota(row: dict[str, Any]) -> Answer:
    words = [*row["argv"], LIMITED]
    if not row["killed"] and row["seconds"] < HELD_FROM:
        return {**_recorded(row), "words": words}
    refused = "Could not gather quota information from all storage nodes.\nRefusing to display incorrect information.\n"
    heading = _before_the_wait(row["out"])
    return {"words": words, "at_once": heading, "seconds": LIMITED_SECONDS, "out": "", "err": refused, "rc": 3}
