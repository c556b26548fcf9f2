# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of beegfs-ctl 7.x. Pure. PRIVATE to the collection."""

from __future__ import annotations

import csv
import re

from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import (
    Parsed,
    Row,
    count,
    entry,
    short,
    size,
    target,
    whole,
    word,
)

# Columns whose names hold a space, and those whose name stands twice, as single words in their order.
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


def listing(kind: str, text: str) -> Parsed:
    """Parse --listtargets with whatever columns. An offline target's row ends after its states."""
    parsed = Parsed()
    columns: list[str] = []
    for line in _lines(text, parsed):
        words = line.split()
        if not columns:
            columns = _columns(line)
            if not columns:
                parsed.problems.append(f"no heading, but: {short(line)}")
        elif set(line) <= {"=", " "}:
            continue
        elif line.lstrip().startswith("["):
            parsed.problems.append(short(line))
        else:
            row = _target(kind, columns, words)
            if row is None:
                parsed.problems.append(f"a row of no known form: {short(line)}")
            else:
                parsed.rows.append(row)
    if not parsed.rows:
        parsed.problems.append(f"no {kind} target is listed")
    return parsed


def _lines(text: str, parsed: Parsed) -> list[str]:
    """The lines with something in them; a last one without an end was cut off, and the banner says nothing."""
    if text and not text.endswith("\n"):
        parsed.problems.append("the output breaks off in the middle of a line")
    return [line for line in text.splitlines() if line.strip() and not re.match(r"\|.*\|$|-{20,}$", line.strip())]


def _columns(line: str) -> list[str]:
    names = [_HEADINGS.get(found.lower()) for found in _HEADING.findall(line)]
    # Only the last column's values may hold spaces, so a heading after NodeID, or an unknown one, tells nothing.
    if None in names or "id" not in names or "node" in names[:-1]:
        return []
    return [str(name) for name in names]


def _target(kind: str, columns: list[str], words: list[str]) -> Row | None:
    last = len(columns) - 1
    values = dict(zip(columns, words[:last]))
    if len(words) > last:
        values[columns[last]] = " ".join(words[last:]) if columns[last] == "node" else words[last]
    number = whole(values.get("id"))
    # Rows that end early do so after the states.
    shortest = max(columns.index(name) for name in ("consistency", "reachability", "id") if name in columns) + 1
    if number is None or len(words) < shortest or (columns[last] != "node" and len(words) > len(columns)):
        return None
    whose = _NODE.fullmatch(values["node"]) if "node" in values else None
    row = target(
        kind,
        number,
        node=whose[1] if whose else values.get("node"),
        reachability=word(values.get("reachability")),
        consistency=word(values.get("consistency")),
        pool=word(values.get("pool")),
        total=size(values.get("total")),
        free=size(values.get("free")),
        inodes=count(values.get("inodes")),
        inodes_free=count(values.get("inodes_free")),
    )
    unread = [name for name in ("total", "free", "inodes", "inodes_free") if name in values and row[name] is None]
    return None if unread else {**row, **{key: values[key] for key in ("group", "member") if key in values}}


def nodes(kind: str, text: str) -> Parsed:
    """Parse --listnodes with --reachable."""
    parsed = Parsed()
    for line in _lines(text, parsed):
        head = _NODE.fullmatch(line) if not line.startswith(" ") else None
        if head:
            parsed.rows.append({"type": kind, "name": head[1], "id": int(head[2]), "reachable": None})
        elif parsed.rows and re.fullmatch(r"\s+Reachable: <(?:yes|no)>\s*", line):
            parsed.rows[-1]["reachable"] = "<yes>" in line
        elif re.fullmatch(r"Number of nodes: \d+", line.strip()):
            if int(line.rpartition(" ")[2]) != len(parsed.rows):
                parsed.problems.append(f"{short(line)}, but {len(parsed.rows)} are listed")
        elif not (parsed.rows and (line.startswith(" ") or re.fullmatch(r"Root: \S+", line.strip()))):
            parsed.problems.append(f"a line of no known form: {short(line)}")
    if not parsed.rows:
        parsed.problems.append(f"no {kind} node is listed")
    return parsed


def mirrors(kind: str, text: str) -> Parsed:
    """Parse --listmirrorgroups; to have none is an answer."""
    parsed = Parsed()
    lines = _lines(text, parsed)
    if [line.strip() for line in lines] == ["No mirror buddy groups defined."]:
        return parsed
    if not lines or lines[0].split() != ["BuddyGroupID", "PrimaryTargetID", "SecondaryTargetID"]:
        parsed.problems.append(f"no list of mirror groups: {short(lines[0]) if lines else 'nothing was printed'}")
        return parsed
    for line in lines[1:]:
        numbers = [whole(text) for text in line.split()]
        if set(line) <= {"=", " "}:
            continue
        if len(numbers) != 3 or None in numbers:
            parsed.problems.append(f"a row of no known form: {short(line)}")
            continue
        parsed.rows.append({"type": kind, "group": numbers[0], "primary": numbers[1], "secondary": numbers[2]})
    return parsed


def quota(text: str) -> Parsed:
    """Parse --getquota --csv: a row for each storage pool. A limit that is None is no limit."""
    parsed = Parsed()
    pool, headed = None, False
    for line in _lines(text, parsed):
        named = re.fullmatch(r"Quota information for storage pool (.*):", line.strip())
        fields = next(csv.reader([line]), [])
        if named:
            pool = named[1]
        elif fields == ["name", "id", "size", "hard", "files", "hard"]:
            headed = True
        elif headed and len(fields) == 6:
            row = {
                "pool": pool,
                "size": whole(fields[2]),
                "size_limit": whole(fields[3]),
                "files": whole(fields[4]),
                "files_limit": whole(fields[5]),
            }
            limits = [key for at, key in ((3, "size_limit"), (5, "files_limit")) if fields[at] != "unlimited"]
            if any(row[key] is None for key in ("size", "files", *limits)):
                parsed.problems.append(f"a row of no known form: {short(line)}")
            else:
                parsed.rows.append(row)
        else:
            parsed.problems.append(f"a line of no known form: {short(line)}")
    if not parsed.rows:
        parsed.problems.append("no quota is told")
    return parsed


def striping(text: str) -> Row:
    """Parse --getentryinfo (and `beegfs entry info --retro`). Targets are the actual ones of a file, else desired."""
    kind = re.search(r"^\+ Type: (.+?)\s*$", text, re.MULTILINE)
    chunk = re.search(r"^\+ Chunksize: (\S+)\s*$", text, re.MULTILINE)
    wanted = re.search(
        r"^\+ Number of storage targets: desired: (\d{1,6})(?:; actual: (\d{1,6}))?\s*$", text, re.MULTILINE
    )
    chunk_bytes = size(chunk[1]) if chunk else None
    if not kind or not chunk_bytes or not wanted or not text.startswith("Entry type: "):
        return entry(error=f"no entry information: {short(text) or 'nothing was printed'}")
    return entry(
        pattern=kind[1].lower(), chunk_kib=chunk_bytes // 1024, targets=int(wanted[2] or wanted[1]), source="beegfs-ctl"
    )
