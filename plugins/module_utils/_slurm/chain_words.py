# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people read of a chain of jobs. Pure. PRIVATE to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.chain import IDLE, Looked
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import LIVE
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import clean

SHOWN = 12  # links, the last ones


def lines(found: Looked) -> list[str]:
    """Return the chain in lines: what it is, its last links, its last checkpoint, and the notes."""
    record, live = found.record, found.live
    if found.complete is not None:
        state = f"complete at step {found.complete.get('step')}"
    elif record["state"] == "stopped":
        state = "stopped" if not live else "stopping"
    else:
        state = "going" if live else "no link of it waits or runs"
    running = sum(link["slurm"] != "PENDING" for link in live)
    counted = f"{len(record['links'])} links, {running} running, {len(live) - running} waiting"
    shown = [f"chain {record['name']} of {record['user']}: {state}; {counted}"]
    hidden = max(0, len(found.links) - SHOWN)
    if hidden:
        shown.append(f"  … {hidden} earlier")
    shown += [_link(link) for link in found.links[hidden:]]
    shown.append(f"last checkpoint: {found.checkpoint or 'none yet'}")
    if found.complete is not None:
        shown.append(f"exported to {clean(found.complete.get('export'))}")
        left = found.complete.get("not_uploaded", "none")  # an older version says nothing of it
        if left != "none":
            shown.append(f"not in the bucket: {clean(left, 300)}. Once that is repaired, upload it with: -e go_on=true")
    return shown + [f"note: {note}" for note in found.notes]


def _link(link: Mapping[str, Any]) -> str:
    job = f"job {link['job_id']}" if link["job_id"] else "not known whether it was submitted"
    words = [f"  {link['number']:>3}  {job}  {link['slurm']}"]
    if link["slurm"] == "PENDING" and link["reason"]:
        words.append(f"({link['reason']})")
    return " ".join(words) + _said(link)


def _said(link: Mapping[str, Any]) -> str:
    """Return what the job said of itself: where it began, and how it ended."""
    said = link["said"]
    outcome = said.get("outcome")
    if outcome is None:
        return ""
    if outcome == IDLE:
        return f": had nothing to do, {clean(said.get('why'), 200)}"
    began = f": from step {said.get('from_step')}"
    back = f"; {clean(said['why'], 200)}" if said.get("why") else ""  # why not from a newer checkpoint
    if said.get("last_step") is not None:
        return f"{began} to {said['last_step']}, {clean(outcome, 200)}{back}"
    return f"{began}{'' if link['slurm'] in LIVE else ', cut off'}{back}"


def current(found: Looked) -> str | None:
    """Return the ID of the job to watch: of the last link that trains or trained; None without one."""
    trained = [str(link["job_id"]) for link in found.links if link["said"] and link["said"].get("outcome") != IDLE]
    return trained[-1] if trained else None
