# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The questions to BeeGFS's servers, their order, and the resulting facts. PRIVATE to the collection.

First what the management daemon answers by itself, then what a server may delay, with space and quota last and apart:
a frozen server blocks beegfs-ctl for 20 minutes per question, and must hide nothing about the others.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from functools import partial
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import ctl_v7, json_v8
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.cli import Answer, Cli, Question
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.model import TYPES, Parsed, Row, entry
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.output import Said, said
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.run import Result

NDJSON = ("--columns", "all", "--output", "ndjson")
# A server that does not answer is recognised after 3 s.
REACHABLE_SECONDS = 4.0
# A management daemon that has just started reports all targets as probably offline for about 10 s.
SETTLES_SECONDS = 12.0
Facts = dict[str, Any]


def servers(cli: Cli, user: str | None) -> Facts:
    """Return targets, nodes, mirror groups and the user's quota; None for what was not reported.

    `problems` are by part and type: targets, states, space, nodes, mirrors, quota. If the cause affects every
    question, nothing more is asked and it is reported once.
    """
    answers = _version_8(cli, user) if cli.tool == "beegfs" else _version_7(cli, user)
    by_part: dict[str, list[Answer]] = {}
    for answer in answers:
        by_part.setdefault(answer.question.part, []).append(answer)
    return {
        "tool": cli.tool,
        "targets": _targets(by_part),
        "nodes": _rows(by_part.get("nodes", [])),
        "mirrors": _rows(by_part.get("mirrors", [])),
        "quota": _rows(by_part.get("quota", [])),
        "problems": [problem for answer in answers for problem in answer.told()],
    }


def _rows(answers: list[Answer]) -> list[Row] | None:
    """Return all rows; None if no question was answered."""
    if not any(answer.rows or not answer.problems for answer in answers):
        return None
    return [row for answer in answers for row in answer.rows]


def _targets(by_part: dict[str, list[Answer]]) -> list[Row] | None:
    """Return each target once, merged from the listings; later ones take precedence."""
    listings = [answer for part in ("targets", "states", "space") for answer in by_part.get(part, [])]
    if _rows(listings) is None:
        return None
    found: dict[tuple[str, int], Row] = {}
    for answer in listings:
        for row in answer.rows:
            known = found.setdefault((row["type"], row["id"]), dict(row))
            known.update({key: value for key, value in row.items() if value is not None and _is_of(key, answer)})
    return list(found.values())


def _is_of(key: str, answer: Answer) -> bool:
    """Return whether this listing is used for that key: states from the slow listing of space may be outdated."""
    return answer.question.part != "space" or key not in ("reachability", "consistency", "pool")


def _version_7(cli: Cli, user: str | None) -> list[Answer]:
    table = ("--longnodes", "--pools")
    alone = [
        question
        for kind in TYPES
        for question in (
            _ctl("nodes", kind, ctl_v7.nodes, "--listnodes", "--reachable", "--errorcodes"),
            _ctl("targets", kind, ctl_v7.listing, "--listtargets", *table),
            _ctl("mirrors", kind, ctl_v7.mirrors, "--listtargets", "--mirrorgroups", *table),
        )
    ]
    answers = cli.together(alone, 0.5, REACHABLE_SECONDS)
    hopeless = _hopeless(answers)
    if hopeless:
        return [hopeless]
    answers = _mirrors_otherwise(cli, answers)
    kinds = [kind for kind in TYPES if not _is_empty(answers, kind)]
    states = [_ctl("states", kind, ctl_v7.listing, "--listtargets", "--state", *table) for kind in kinds]
    answers += _settled(cli, states, answers)
    words = ("--listtargets", "--state", *table, "--spaceinfo")
    last = [_ctl("space", kind, ctl_v7.listing, *words, limited=True) for kind in kinds]
    number = user or str(os.geteuid())
    last.append(_ctl("quota", None, _quota_7, "--getquota", "--uid", number, "--csv", limited=True))
    return answers + cli.together(last)


def _hopeless(answers: list[Answer]) -> Answer | None:
    """Return the answer that shows why no question will be answered, or None."""
    if any(answer.rows for answer in answers):
        return None
    if all(answer.silent for answer in answers):
        return answers[0]
    return next((answer for answer in answers if answer.general), None)


def _ctl(
    part: str, kind: str | None, parse: Callable[[Any, Said], Parsed], mode: str, *words: str, limited: bool = False
) -> Question:
    """Return a question to beegfs-ctl, whose exit code counts unless the rows explain it."""

    def read(result: Result) -> Parsed:
        heard = said(result.out, result.err)
        parsed = parse(kind, heard)
        if result.rc not in (0, None) and not ctl_v7.is_explained(result.rc, heard, parsed):
            parsed.problems = [_failure(result, heard), *(parsed.problems if parsed.rows else [])]
        return parsed

    node_type = [f"--nodetype={kind}"] if kind else []
    return Question(part, kind, (mode, *node_type, *words), read, limited)


def _failure(result: Result, heard: Said) -> str:
    return heard.reason() if heard.messages else f"exit code {result.rc} without a message"


def _quota_7(_kind: None, heard: Said) -> Parsed:
    return ctl_v7.quota(heard)


def _is_empty(answers: list[Answer], kind: str) -> bool:
    """Return whether the management daemon answered that it knows no target of that type."""
    return any(
        answer.question.part == "targets" and answer.question.kind == kind and not answer.rows and not answer.problems
        for answer in answers
    )


def _mirrors_otherwise(cli: Cli, answers: list[Answer]) -> list[Answer]:
    """Ask for mirror groups in the older way if the table of their members was refused or unreadable."""
    unread = [answer for answer in answers if answer.question.part == "mirrors" and answer.problems]
    asked = cli.together(
        [
            _ctl("mirrors", answer.question.kind, ctl_v7.mirror_groups, "--listmirrorgroups")
            for answer in unread
            if not answer.silent
        ],
        0.5,
    )
    better = {answer.question.kind: answer for answer in asked if not answer.problems}
    return [
        better.get(answer.question.kind, answer) if answer.question.part == "mirrors" else answer for answer in answers
    ]


def _settled(cli: Cli, questions: list[Question], answers: list[Answer]) -> list[Answer]:
    """Ask for states, and keep asking for a while if a newly started management daemon does not know them yet."""
    unreachable = {
        kind
        for kind in TYPES
        for answer in answers
        if answer.question.part == "nodes" and answer.question.kind == kind
        if answer.rows and not any(row["reachable"] for row in answer.rows)
    }
    patience = min(SETTLES_SECONDS, 0.4 * cli.deadline)
    until = cli.clock() + patience
    told = cli.together(questions, 0.5)
    while cli.clock() < until and any(_is_new(answer) and answer.question.kind not in unreachable for answer in told):
        cli.wait(patience / 6)
        told = [cli.ask(answer.question, 0.5 * cli.left()) if _is_new(answer) else answer for answer in told]
    return told


def _is_new(answer: Answer) -> bool:
    """Return whether the answer comes from a management daemon that has just started."""
    states = [row["reachability"] for row in answer.rows]
    return set(states) == {"probably-offline"} or "unknown" in [row["pool"] for row in answer.rows]


def _version_8(cli: Cli, user: str | None) -> list[Answer]:
    def asked(part: str, parse: Callable[[str], Parsed], *words: str) -> Question:
        return Question(part, None, (*words, *NDJSON), partial(_read_json, parse))

    answers = cli.together(
        [
            asked("targets", json_v8.targets, "target", "list", "--state", "--capacity", "--raw"),
            asked("nodes", json_v8.nodes, "node", "list", "--reachability-check"),
            asked("mirrors", json_v8.mirrors, "mirror", "list"),
        ],
        0.5,
        REACHABLE_SECONDS,
    )
    hopeless = _hopeless(answers)
    if hopeless:
        return [hopeless]
    return [*answers, _quota_8(cli, user)]


def _read_json(parse: Callable[[str], Parsed], result: Result) -> Parsed:
    parsed = parse(result.out)
    if result.rc in (0, None):
        return parsed
    heard = said("", result.err)
    if heard.messages and json_v8.NO_MIRRORS in heard.messages[0]:  # there are none, which it reports as an error
        return Parsed()
    return Parsed(parsed.rows, [_failure(result, heard), *(parsed.problems if parsed.rows else [])])


def _quota_8(cli: Cli, user: str | None) -> Answer:
    """Ask beegfs 8.x, which takes only numbers, and from non-root users only `current`; with sudo that is root."""
    words = ("quota", "list-usage", "--raw", *NDJSON, "--uids")

    def read(result: Result) -> Parsed:
        warnings = [line for line in result.err.split("\n") if line.startswith("WARNING:")]
        return _read_json(json_v8.quota, Result(result.rc, "\n".join([result.out, *warnings]), result.err))

    try:
        number = os.geteuid() if user is None else int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid
    except KeyError:
        unknown = f"user {user} does not exist on {os.uname().nodename}"
        return Answer(Question("quota", None, words, read), " ".join((cli.tool, *words)), [], [unknown])
    who = "current" if number == os.geteuid() and not cli.sudo else str(number)
    return cli.ask(Question("quota", None, (*words, who), read), cli.left())


def striping(cli: Cli, path: str) -> Row:
    """Return the striping of new files in a folder, as the tool reports it."""
    if cli.tool == "beegfs":
        result = cli.call(("entry", "info", path, "--raw", *NDJSON), cli.left())
        heard, told = said("", result.err), json_v8.striping(result.out)
    else:
        result = cli.call(("--getentryinfo", path), cli.left(), limited=True)
        heard = said(result.out, result.err)
        told = ctl_v7.striping(heard)
    if result.rc == 0:
        return {**told, "source": cli.tool}
    return entry(source=cli.tool, error=result.failure or _failure(result, heard))
