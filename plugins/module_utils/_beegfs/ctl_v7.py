# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of beegfs-ctl 7.x. Pure. PRIVATE to the collection.

Every parser takes the content of the two streams (output.py). A command that prints nothing about what it was asked
for has a problem, unless the tool has words for "there is none": those are an answer.
"""

from __future__ import annotations

import re

from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.model import (
    Parsed,
    Row,
    count,
    entry,
    narrowed,
    short,
    size,
    target,
    whole,
    word,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.output import Said

NO_MIRRORS = "No mirror buddy groups defined."
NO_META = "[ERROR: No metadata servers found]"
SKIPPED = "Some IDs were skipped"
UNLIMITED = "unlimited"
_HEADINGS = {
    "targetid": "id",
    "reachability": "reachability",
    "consistency": "consistency",
    "st. pool": "storage_pool",
    "cap. pool": "pool",
    "total": "total",
    "free": "free",
    "itotal": "inodes",
    "ifree": "inodes_free",
    "mirrorgroupid": "group",
    "mgmembertype": "member",
    "nodeid": "node",
    "%": "percent",
}
_HEADING = re.compile(r"(?:St|Cap)\. Pool|\S+")
_NODE = re.compile(r"(?:beegfs-\w+ )?(\S.*?) \[ID: (\d+)\]")
# With --longnodes, the last value is the only one with spaces in it.
_LONG_NODE = re.compile(r"(.*?)\s(beegfs-\w+ \S.*? \[ID: \d+\])\s*")
_INVALID = "<invalid_value>"  # printed once for both states: the management daemon has none for the target
_ERROR_FROM = re.compile(r"\[ERROR from (?:beegfs-\w+ )?(\S.*?) \[ID: \d+\]: .*\]")
# With --errorcodes: a server not reachable, a target not online, a target not good.
TOLD_BY_ROWS = (5, 6, 7)
RUNTIME_ERROR = 3
POOLS = ("normal", "low", "emergency", "unknown")
_AMOUNT_COLUMNS = ("total", "free", "percent", "inodes", "inodes_free", "inodes_percent")


def is_explained(code: int, said: Said, parsed: Parsed) -> bool:
    """Return whether the rows, or words for there being none, explain an exit code other than 0."""
    if parsed.problems:
        return False
    if code in TOLD_BY_ROWS:
        return bool(parsed.rows)
    if code != RUNTIME_ERROR:
        return False
    if said.messages == (NO_META,):
        return not parsed.rows
    if said.messages:  # a server that did not answer: its rows are printed without space
        return any(row.get("space_told") is False and row.get("space_why") for row in parsed.rows)
    return any(row.get("pool") == "unknown" for row in parsed.rows)


def listing(kind: str, said: Said) -> Parsed:
    """Parse --listtargets with any columns, including an empty table. Columns may be missing in the middle of a row."""
    parsed = _parsed(said)
    columns: list[str] = []
    for line in said.lines:
        if not columns:
            columns = _columns(line)
            if not columns:
                parsed.problems.append(f"expected a heading, found: {short(line)}")
        elif not set(line) <= {"=", " "}:
            row = _target(kind, columns, line)
            if row is None:
                parsed.problems.append(f"unrecognised row: {short(line)}")
            else:
                parsed.rows.append(row)
    if not columns and not parsed.problems:
        parsed.problems.append(said.reason() if said.messages else "no list of targets was printed")
    unanswered = {match[1]: match[0] for match in map(_ERROR_FROM.fullmatch, said.messages) if match}
    for row in parsed.rows:
        row["space_why"] = unanswered.get(str(row["node"])) if row["space_told"] is False else None
    return parsed


def _parsed(said: Said) -> Parsed:
    return Parsed(problems=["the output ends in the middle of a line"] if said.cut else [])


def _columns(line: str) -> list[str]:
    names = [_HEADINGS.get(found.lower()) for found in _HEADING.findall(line)]
    # Only the last column's values may hold spaces, so a heading after NodeID, or an unknown one, cannot be read.
    if None in names or "id" not in names or "node" in names[:-1]:
        return []
    if names.count("percent") == 2:
        names[len(names) - 1 - names[::-1].index("percent")] = "inodes_percent"
    return [str(name) for name in names] if len(set(names)) == len(names) else []


def _target(kind: str, columns: list[str], line: str) -> Row | None:
    """Return a row's target; None if a value does not fit its column.

    If something is wrong with a row, the tool leaves out the remaining columns, but not the server at the end.
    """
    words, server = line.split(), None
    if columns[-1] == "node":
        long = _LONG_NODE.fullmatch(line)
        words, server = (long[1].split(), long[2]) if long else (words[:-1], words[-1])
        columns = columns[:-1]
        if not long and whole(server) is None:
            return None
    if _INVALID in words:
        words[words.index(_INVALID) : words.index(_INVALID) + 1] = ["", ""]
    values = dict(zip(columns, words))
    number = whole(values.get("id"))
    shortest = max(columns.index(name) for name in ("consistency", "reachability", "id") if name in columns) + 1
    if number is None or not shortest <= len(words) <= len(columns):
        return None
    space = _space(values)
    if space is None or values.get("pool", "normal").lower() not in POOLS:
        return None
    whose = _NODE.fullmatch(server) if server else None
    row = target(
        kind,
        number,
        node=whose[1] if whose else server,
        reachability=word(values.get("reachability")),
        consistency=word(values.get("consistency")),
        pool=word(values.get("pool")),
        **space,
    )
    return {**row, **{key: values[key].lower() for key in ("group", "member") if key in values}}


def _space(values: dict[str, str]) -> Row | None:
    """Return the amounts of a row, empty if it has none; None if one of them is not an amount.

    A server that does not answer is printed with all zeros, which means that no space or inodes were reported.
    """
    printed = {key: values[key] for key in _AMOUNT_COLUMNS if key in values}
    if not printed:
        return {}
    total, free = size(printed.get("total")), size(printed.get("free"))
    inodes, inodes_free = count(printed.get("inodes")), count(printed.get("inodes_free"))
    percent, inodes_percent = (whole(printed.get(key, "").rstrip("%")) for key in ("percent", "inodes_percent"))
    if not (total and free and inodes and inodes_free) or percent is None or inodes_percent is None:
        return None
    if not any((total.value, free.value, inodes.value, inodes_free.value, percent, inodes_percent)):
        return {"space_told": False}
    return {
        "space_told": True,
        "total": total,
        "free": narrowed(free, total, percent),
        "inodes": inodes,
        "inodes_free": narrowed(inodes_free, inodes, inodes_percent),
    }


def nodes(kind: str, said: Said) -> Parsed:
    """Parse --listnodes with --reachable. Empty output is an answer: the management daemon knows no node."""
    parsed = _parsed(said)
    for line in said.lines:
        head = _NODE.fullmatch(line)
        if head:
            parsed.rows.append({"type": kind, "name": head[1], "id": int(head[2]), "reachable": None})
        elif parsed.rows and re.fullmatch(r"\s+Reachable: <(?:yes|no)>\s*", line):
            parsed.rows[-1]["reachable"] = "<yes>" in line
        elif re.fullmatch(r"Number of nodes: \d{1,9}", line.strip()):
            if int(line.rpartition(" ")[2]) != len(parsed.rows):
                parsed.problems.append(f"{short(line)}, but {len(parsed.rows)} are listed")
        elif not (parsed.rows and (line.startswith(" ") or re.fullmatch(r"Root: \S+", line.strip()))):
            parsed.problems.append(f"unrecognised line: {short(line)}")
    if not parsed.rows and not parsed.problems and said.messages:
        parsed.problems.append(said.reason())
    return parsed


def mirrors(kind: str, said: Said) -> Parsed:
    """Parse --listtargets --mirrorgroups: groups with both their members. An empty table is an answer."""
    parsed = listing(kind, said)
    groups: dict[int, Row] = {}
    for row in parsed.rows:
        number, member = whole(row.get("group")), row.get("member")
        if number is None or member not in ("primary", "secondary"):
            parsed.problems.append(f"a row without group or role: {kind} target {row['id']}")
            continue
        group = groups.setdefault(number, {"type": kind, "group": number, "primary": None, "secondary": None})
        if group[member] is not None:
            parsed.problems.append(f"{kind} mirror group {number} has two {member} members")
        group[member] = row["id"]
    for number, group in groups.items():
        if None in group.values():
            parsed.problems.append(f"{kind} mirror group {number} is listed with one member")
    parsed.rows = list(groups.values())
    return parsed


def mirror_groups(kind: str, said: Said) -> Parsed:
    """Parse --listmirrorgroups, which reports none on the error stream, and whose headings differ by kind."""
    parsed = _parsed(said)
    if not said.lines and said.messages == (NO_MIRRORS,):
        return parsed
    headings = [["BuddyGroupID", f"Primary{what}ID", f"Secondary{what}ID"] for what in ("Target", "Node")]
    if not said.lines or said.lines[0].split() not in headings:
        parsed.problems.append(f"no list of mirror groups: {short(said.lines[0]) if said.lines else said.reason()}")
        return parsed
    for line in said.lines[1:]:
        numbers = [whole(text) for text in line.split()]
        if set(line) <= {"=", " "}:
            continue
        if len(numbers) != 3 or None in numbers:
            parsed.problems.append(f"unrecognised row: {short(line)}")
            continue
        parsed.rows.append({"type": kind, "group": numbers[0], "primary": numbers[1], "secondary": numbers[2]})
    if not parsed.rows and not parsed.problems:
        parsed.problems.append("neither mirror groups nor their absence was reported")
    return parsed


def quota(said: Said) -> Parsed:
    """Parse --getquota --csv: a row for each storage pool. A limit of None was not reported."""
    parsed = _parsed(said)
    pool, headed = None, False
    for line in said.lines:
        named = re.fullmatch(r"Quota information for storage pool (.*):", line.strip())
        fields = line.strip().split(",")
        if named:
            pool = named[1]
        elif fields == ["name", "id", "size", "hard", "files", "hard"]:
            headed = True
        elif headed and len(fields) == 6:
            row = _quota_row(pool, fields)
            if row is None:
                parsed.problems.append(f"unrecognised row: {short(line)}")
            else:
                parsed.rows.append(row)
        else:
            parsed.problems.append(f"unrecognised line: {short(line)}")
    parsed.problems += [message for message in said.messages if message.startswith(SKIPPED)]
    if not parsed.rows and not parsed.problems:
        parsed.problems.append(said.reason() if said.messages else "no quota was printed")
    return parsed


def _quota_row(pool: str | None, fields: list[str]) -> Row | None:
    """Return a row of quota. The file count is '-' if no disk keeps one, and 'N+' if only some do."""
    used = whole(fields[2])
    files = whole(fields[4])
    partly = whole(fields[4][:-1]) if fields[4].endswith("+") else None
    limits = {key: whole(fields[at]) for key, at in (("size_limit", 3), ("files_limit", 5))}
    unread = [
        key for key, at in (("size_limit", 3), ("files_limit", 5)) if limits[key] is None and fields[at] != UNLIMITED
    ]
    if used is None or unread or (files is None and partly is None and fields[4] != "-"):
        return None
    return {"pool": pool, "size": used, "files": files, "files_at_least": partly, **limits}


def striping(said: Said) -> Row:
    """Parse --getentryinfo (and `beegfs entry info --retro`). Targets are a file's actual ones, else desired."""
    text = "\n".join(said.lines)
    kind = re.search(r"^\+ Type: (.+?)\s*$", text, re.MULTILINE)
    chunk = re.search(r"^\+ Chunksize: (\S+)\s*$", text, re.MULTILINE)
    wanted = re.search(
        r"^\+ Number of storage targets: desired: (\d{1,6})(?:; actual: (\d{1,6}))?\s*$", text, re.MULTILINE
    )
    chunk_size = size(chunk[1]) if chunk else None
    if not kind or not chunk_size or not chunk_size.value or not wanted or not text.startswith("Entry type: "):
        what = short(text) if text and not said.messages else said.reason()
        return entry(error=f"no entry information: {what}")
    return entry(
        pattern=kind[1].lower(),
        chunk_kib=chunk_size.value // 1024,
        targets=int(wanted[2] or wanted[1]),
        source="beegfs-ctl",
    )
