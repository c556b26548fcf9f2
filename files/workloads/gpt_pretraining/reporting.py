# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people read after a training: what it costs, its card, and the list of its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError
from kit.files import METRICS_FILE, sha256, write_atomic, write_json
from kit.pretraining import alerts, checkpoint_list, checkpoints, cost, cost_page, job_folder, run_card
from kit.pretraining.records import PERFORMANCE
from kit.pretraining.rows import read as read_rows


def write(job: Path, data: Path) -> dict[str, Any]:
    """Write cost.json, cost.md, run_card.md and checkpoints.json into a job's folder; return the cost's two lines.

    Without a measured speed they are None: nothing is known of the cost.
    """
    report = cost.report(job_folder.read(job))
    write_json(job / "cost.json", report)
    _write(job / "cost.md", cost_page.page(report))
    settings, metrics = strict_json.read(job / "settings.json"), strict_json.read(job / METRICS_FILE)
    earlier = metrics.get("resumed_from")
    card = run_card.page(
        settings,
        metrics,
        list(read_rows(job / job_folder.ROWS)),
        strict_json.read(data / "manifest.json"),
        [earlier] if earlier else [],
    )
    _write(job / "run_card.md", card)
    write_json(job / "checkpoints.json", checkpoint_list.document(_found(job, metrics), settings["batch"]))
    lines = None if report["measured"] is None else list(cost.verdict_lines(report))
    return {"lines": lines, "missing": report["missing"]}


def alerts_of(job: Path, checkpoint_every: int) -> str | None:
    """Return the names of the alerts that monitoring's rules find in a training's rows, or ``none``.

    None if there are none of one kind, or they cannot be read.
    """
    try:
        rows, performance = (list(read_rows(job / name)) for name in (job_folder.ROWS, PERFORMANCE))
        fired = alerts.replay(rows, performance, checkpoint_every=checkpoint_every)
    except (KitError, OSError, ValueError, TypeError):
        return None
    if not rows or not performance:
        return None
    return ", ".join(sorted({each.alert for each in fired})) or "none"


def _found(job: Path, metrics: Mapping[str, Any]) -> list[checkpoint_list.Found]:
    """Return the job's own checkpoints that are whole, as the training has verified them."""
    uploads = metrics.get("uploads") or {}
    found = []
    for name, entry in metrics["checkpoints"].items():
        path = job / "checkpoints" / name / checkpoints.MANIFEST
        if entry.get("verified") is True:
            copy = uploads.get(name) or {}
            address = copy["url"] if copy.get("uploaded") else None
            found.append(checkpoint_list.Found(strict_json.read(path), sha256(path), True, address, True))
    return found


def _write(path: Path, text: str) -> None:
    write_atomic(path, lambda stream: stream.write(text.encode()))
