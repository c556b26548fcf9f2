# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of a training's checkpoints (`checkpoints.json`): what each holds, where it is, and who can go on from it.

Pure: it takes the checkpoints' own manifests and what somebody found out about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kit.errors import KitError
from kit.pretraining.checkpoints import format_of
from kit.pretraining.markdown import NOTHING, table, text
from kit.pretraining.shape import ranks_that_fit

SCHEMA = 1


@dataclass(frozen=True)
class Found:
    """A checkpoint's manifest with that file's SHA-256, and where the checkpoint is.

    ``remote`` is the address of its copy, or None. ``verified``: whether every file has the bytes and SHA-256 that the
    manifest states, None if nobody looked.
    """

    manifest: Mapping[str, Any]
    manifest_sha256: str
    is_local: bool
    remote: str | None
    verified: bool | None


def document(found: Iterable[Found], batch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the list, by step, for a training with ``settings.json``'s ``batch``. Raise KitError for a bad manifest.

    ``resumable_on`` are the numbers of ranks that can go on with the same batch; none for a checkpoint that was not
    verified.
    """
    rows = [_entry(each, batch) for each in found]
    return {"schema": SCHEMA, "checkpoints": sorted(rows, key=lambda row: (row["step"], row["name"]))}


def _entry(found: Found, batch: Mapping[str, Any]) -> dict[str, Any]:
    manifest = found.manifest
    try:
        name, ranks = str(manifest["name"]), int(manifest["ranks"])
        size = sum(int(file["bytes"]) for file in manifest["files"])
        step, tokens = int(manifest["step"]), int(manifest["tokens"])
        fitting = ranks_that_fit(int(batch["global"]), int(batch["micro"]))
    except (KeyError, TypeError, ValueError) as error:
        raise KitError(
            f"the manifest of checkpoint {manifest.get('name')!r} or the batch lacks a value: {error}"
        ) from error
    return {
        "name": name,
        "format": format_of(manifest),
        "step": step,
        "tokens": tokens,
        "bytes": size,
        "manifest_sha256": found.manifest_sha256,
        "local": found.is_local,
        "remote": found.remote,
        "verified": found.verified,
        "ranks": ranks,
        "resumable_on": fitting if found.verified else [],
    }


def page(listed: Mapping[str, Any]) -> str:
    """Return the list as a table in Markdown."""
    rows = [
        (
            text(row["name"]),
            f"{row['step']:,}",
            f"{row['tokens']:,}",
            f"{row['bytes'] / 1e9:,.2f}",
            f"`{row['manifest_sha256'][:12]}`",
            " and ".join([*(["here"] if row["local"] else []), *([text(row["remote"])] if row["remote"] else [])]),
            {True: "yes", False: "**damaged**", None: NOTHING}[row["verified"]],
            ", ".join(map(str, row["resumable_on"])) or "none",
        )
        for row in listed["checkpoints"]
    ]
    head = ("Checkpoint", "Step", "Tokens", "GB", "Manifest", "Where", "Verified", "Ranks that can go on")
    return "\n".join(["# Checkpoints", "", *table(head, rows)]) + "\n"
