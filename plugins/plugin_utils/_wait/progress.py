# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress lines for people, one per job. Pure; all text from outside is cleaned."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import clean


def seconds(value: object) -> str:
    """Return a duration in words: 45 s, 3 min 20 s, 2 h 5 min."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < 1e9:
        return "?"
    whole = int(value)
    if whole < 100:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def nodes_text(nodes: object) -> str:
    """Return a few node names and the number of others."""
    names = [str(name) for name in nodes] if isinstance(nodes, list) else []
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def training_text(marker: Mapping[str, object]) -> str:
    """Return the leg, epoch, step, loss and time left of a progress marker, if it has them."""
    parts = [f"leg {marker['leg']}"] if "leg" in marker else []
    for key, of in (("epoch", "epochs"), ("step", "steps")):
        if key in marker:
            parts.append(f"{key} {marker[key]:g}" + (f"/{marker[of]:g}" if of in marker else ""))
    if "loss" in marker:
        parts.append(f"loss {marker['loss']:.4g}")
    if "eta_seconds" in marker:
        parts.append(f"about {seconds(marker['eta_seconds'])} left")
    return ", ".join(parts)


def job_line(
    job: Mapping[str, object], markers: Mapping[str, Mapping[str, object]], elapsed: float | None, limit: float | None
) -> str:
    """Return one line on a job. elapsed and limit are in seconds of the clock that is running: queue or run."""
    state, flags = str(job["state"]), job["flags"] if isinstance(job["flags"], list) else []
    words = "+".join([state, *map(str, flags)])
    line = f"job {job['job_id']} {clean(job['name'], 60)}: {words}".replace(" :", ":")
    if job.get("attempt"):
        line += f" (attempt {job['attempt']})"
    trains = state == "RUNNING" and bool(markers.get("progress"))
    if elapsed is not None and state in ("PENDING", "RUNNING", "SUSPENDED"):
        limit = None if trains else limit  # once it trains, how long is left is more than that
        line += f" for {seconds(elapsed)}" + (f" of at most {seconds(limit)}" if limit else "")
    if state == "PENDING":
        reason = clean(job["reason"], 120)
        return f"{line}: {clean(job['reason_text'], 200)}" + (f" ({reason})" if reason not in ("", "None") else "")
    where = nodes_text(job["nodes"]) or clean(markers.get("begin", {}).get("host", ""), 80)
    if where:
        line += f" on {where}"
    if state == "RUNNING" and "end" in markers:
        line += f", its script has ended with exit code {markers['end'].get('exit_code', '?')}"
    elif trains:
        line += f": {training_text(markers['progress'])}"
    return line


def end_line(job: Mapping[str, object]) -> str:
    """Return the last line on a job."""
    line = f"job {job['job_id']} {clean(job['name'], 60)}: {job['state']}".replace(" :", ":")
    if job["signal"]:
        line += f", signal {job['signal']}"
    elif job["exit_code"] is not None:
        line += f", exit code {job['exit_code']}"
    if isinstance(job["run_seconds"], (int, float)):
        line += f", after {seconds(job['run_seconds'])}"
    if isinstance(job["queued_seconds"], (int, float)):
        line += f" (queued {seconds(job['queued_seconds'])})"
    where = nodes_text(job["nodes"])
    return line + (f" on {where}" if where else "")
