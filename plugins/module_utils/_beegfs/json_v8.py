# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON of beegfs 8.x. Pure. PRIVATE to the collection.

Up to 8.4, enumerations are numbers and space is text; a later branch prints words, and `json` prints several arrays
where `ndjson` prints lines. All of these are read.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.model import (
    TYPES,
    Parsed,
    Row,
    entry,
    exactly,
    short,
    size,
    target,
    whole,
    word,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import strict_json

_NODE_TYPES = {1: "client", 2: "meta", 3: "storage", 4: "management"}
_SHORT_TYPES: dict[str | None, str] = {
    "m": "meta",
    "s": "storage",
    "metadata": "meta",
    "mgmtd": "management",
    "c": "client",
}
NO_MIRRORS = "no mirrors configured"
UNMAPPED = "<unmapped>"
NO_QUOTA = "WARNING: No information found for the specified ID"
UNLIMITED = ("unlimited", "∞", str(2**63 - 1))  # the last is what --raw prints


def documents(text: str, parsed: Parsed) -> list[Row]:
    """Return the objects in JSON lines or in one or several arrays; anything else is a problem."""
    decoder, found, at = json.JSONDecoder(object_pairs_hook=strict_json.unique), [], 0
    text = re.sub(r"^(?:INFO|WARNING): .*$", "", text, flags=re.MULTILINE)
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            parsed.problems.append(f"not JSON: {short(text[at : at + 200])}")
            break
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                found.append(item)
            else:
                parsed.problems.append(f"expected an object, found: {short(str(item))}")
    return found


def node_type(value: Any) -> str | None:
    """Return meta, storage, … of 2, "storage", "s" or "node_type": 3."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return _NODE_TYPES.get(value)
    text = word(value)
    return _SHORT_TYPES.get(text, text)


def identity(value: Any) -> tuple[str | None, int | None]:
    """Return type and number of {"num_id": 101, "node_type": 3}, "s:101", "storage:101" or 101."""
    if isinstance(value, dict):
        return node_type(value.get("node_type")), whole(value.get("num_id"))
    if isinstance(value, str) and ":" in value:
        kind, _sep, number = value.partition(":")
        return node_type(kind), whole(number)
    return None, whole(value)


def name(value: Any) -> str | None:
    """Return an entity's alias, given alone or in an object."""
    if isinstance(value, dict):
        value = value.get("alias")
    return short(value) if isinstance(value, str) and value.strip() not in ("", UNMAPPED) else None


def targets(text: str) -> Parsed:
    """Parse `target list --state --capacity --raw --columns all`."""
    parsed = Parsed()
    for item in documents(text, parsed):
        kind, number = identity(item.get("id"))
        kind = node_type(item.get("type")) or kind
        if kind not in TYPES or number is None:
            parsed.problems.append(f"unrecognised target: {short(json.dumps(item))}")
            continue
        if item.get("node") == UNMAPPED:
            parsed.problems.append(f"{kind} target {number} belongs to no server")
        parsed.rows.append(
            target(
                kind,
                number,
                name=name(item.get("alias")),
                node=name(item.get("node")),
                reachability=word(item.get("reachability")),
                consistency=word(item.get("consistency")),
                sync_state=word(item.get("sync_state")),
                pool=word(item.get("cap_pool")),
                total=exactly(whole(item.get("space"))),
                free=exactly(whole(item.get("space_free"))),
                inodes=exactly(whole(item.get("inodes"))),
                inodes_free=exactly(whole(item.get("inodes_free"))),
            )
        )
    return parsed


def nodes(text: str) -> Parsed:
    """Parse `node list --reachability-check --columns all`; nics and reachable have one line for each network card."""
    parsed = Parsed()
    for item in documents(text, parsed):
        kind, number = identity(item.get("id"))
        kind = node_type(item.get("type")) or kind
        if kind is None or number is None:
            parsed.problems.append(f"unrecognised node: {short(json.dumps(item))}")
        elif kind != "client":
            said = item.get("reachable")
            words = said.split() if isinstance(said, str) else []
            reachable = ("yes" in words) if words and set(words) <= {"yes", "no"} else None
            parsed.rows.append(
                {
                    "type": kind,
                    "name": name(item.get("alias")),
                    "id": number,
                    "reachable": reachable,
                    "unreachable_by": _silent(item.get("nics"), words) if reachable else None,
                }
            )
    return parsed


def _silent(nics: Any, words: list[str]) -> str | None:
    """Return the network cards on which a server does not answer, or their number if they are not named."""
    if "no" not in words:
        return None
    names = nics.splitlines() if isinstance(nics, str) else []
    if len(names) != len(words):
        return f"{words.count('no')} of {len(words)} network cards"
    return short(", ".join(nic for nic, said in zip(names, words) if said == "no"))


def mirrors(text: str) -> Parsed:
    """Parse `mirror list --columns all`; that there are none is reported as an error (NO_MIRRORS)."""
    parsed = Parsed()
    for item in documents(text, parsed):
        kind, number = identity(item.get("id"))
        kind = node_type(item.get("type")) or kind
        primary, secondary = (identity(item.get(f"{which}_target"))[1] for which in ("primary", "secondary"))
        if kind not in TYPES or None in (number, primary, secondary):
            parsed.problems.append(f"unrecognised mirror group: {short(json.dumps(item))}")
            continue
        parsed.rows.append({"type": kind, "group": number, "primary": primary, "secondary": secondary})
    if not parsed.rows and not parsed.problems:
        parsed.problems.append("neither mirror groups nor their absence was reported")
    return parsed


def quota(text: str) -> Parsed:
    """Parse `quota list-usage --uids … --raw`: space and inode are 'used/limit'. A limit of None means no limit.

    If quota is not enabled there are no rows, only a warning on the error stream.
    """
    parsed = Parsed()
    for item in documents(text, parsed):
        row: Row = {"pool": name(item.get("pool"))}
        good = word(item.get("type")) == "user"
        for key, column in (("size", "space"), ("files", "inode")):
            used, _sep, limit = str(item.get(column)).partition("/")
            row[key], row[f"{key}_limit"] = whole(used), whole(limit)
            good = good and row[key] is not None and (row[f"{key}_limit"] is not None or limit in UNLIMITED)
        if good:
            parsed.rows.append(row)
        elif word(item.get("type")) != "group":
            parsed.problems.append(f"unrecognised row: {short(json.dumps(item))}")
    if not parsed.rows and not parsed.problems and re.search(rf"^{NO_QUOTA}", text, re.MULTILINE):
        parsed.problems.append("quota is not enabled: the servers record none for this user")
    elif not parsed.rows:
        parsed.problems.append("no quota was reported")
    return parsed


def striping(text: str) -> Row:
    """Parse `entry info` of one path, its keys in snake_case or camelCase."""
    parsed = Parsed()
    found = documents(text, parsed)
    if parsed.problems or len(found) != 1:
        return entry(error="; ".join(parsed.problems) or f"expected one entry, found {len(found)}")
    pattern = word(str(found[0].get("stripe_pattern", "")))
    # "RAID0 (4x512K)": desired targets and chunk size
    match = re.fullmatch(r"(.+?) \((\d{1,6})x([0-9.]+[kmg]?i?b?)\)", pattern or "")
    chunk = size(match[3]) if match else None
    if not match or not chunk or not chunk.value:
        return entry(error=f"unrecognised stripe pattern: {short(str(pattern))}")
    return entry(pattern=match[1], chunk_kib=chunk.value // 1024, targets=int(match[2]), source="beegfs")
