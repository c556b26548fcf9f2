# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages for waits that did not end in COMPLETED: what happened, where the logs are, what to type next. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import fold_nodes
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import describe_state
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import clean
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.progress import end_line

_FEW = 8


def happened(job: Mapping[str, object], outcome: str, why: str, cancelled: bool) -> str:
    """Return what happened to one job, as a sentence."""
    name = f"job {job['job_id']}" + (f" ({clean(job['name'], 60)})" if job["name"] else "")
    ending = "; it was cancelled" if cancelled else ""
    if outcome == "never_starts":
        return f"{name} can never start: {clean(why, 600)}{ending}"
    if outcome == "node_unavailable":
        return f"{name} did not begin: {clean(why, 600)}{ending}"
    if outcome == "queue_timeout":
        return f"{name} was not started: {clean(why, 600)}{ending}"
    if outcome == "run_timeout":
        return f"{name} did not end: {clean(why, 600)}{ending}"
    if outcome != "ended" or job["state"] == "UNKNOWN":
        return f"the state of {name} is unknown: {clean(why or job['reason_text'], 600)}"
    reason = clean(job["reason_text"], 200)
    return end_line(job) + (f": {reason}" if reason else "")


def next_commands(job: Mapping[str, object], outcome: str, remedy: str, cancelled: bool) -> list[str]:
    """Return what to type or do next."""
    job_id = str(job["job_id"])
    advice = [clean(remedy, 400)] if remedy else []
    nodes = job["nodes"] if isinstance(job["nodes"], list) else []
    if outcome == "ended":
        words = describe_state(job["state"]).advice
        if words:
            advice.append(words.format(job_id=job_id, node=nodes[0] if nodes else "<node>"))
        for path in dict.fromkeys((str(job["stderr"]), str(job["stdout"]))):
            if path:
                advice.append(f"tail -n 50 {shlex.quote(path)}")
    advice.append(f"scontrol show job {job_id} || sacct -j {job_id}")
    if outcome != "ended" and not cancelled:
        advice.append(f"scancel {job_id}")
    return advice


def message(jobs: list[Mapping[str, object]], outcomes: Mapping[str, Mapping[str, object]]) -> str:
    """Return the task's failure message for the jobs that did not complete."""
    bad = [job for job in jobs if job["state"] != "COMPLETED"]
    parts = [] if len(jobs) == 1 else [f"{len(bad)} of {len(jobs)} jobs did not complete."]
    for job in bad[:5]:
        how = outcomes.get(str(job["job_id"]), {})
        outcome, cancelled = str(how.get("outcome", "ended")), bool(how.get("cancelled"))
        sentence = happened(job, outcome, str(how.get("why", "")), cancelled)
        parts.append(sentence[0].upper() + sentence[1:] + ".")
        tail = job["tail"] if isinstance(job["tail"], list) else []
        if tail:
            parts.append(f"Its output ended with: {' | '.join(clean(line, 160) for line in tail[-3:])}.")
        parts.append("Next: " + "; ".join(next_commands(job, outcome, str(how.get("remedy", "")), cancelled)) + ".")
    if len(bad) > 5:
        parts.append("Also: " + ", ".join(f"{job['job_id']} {job['state']}" for job in bad[5:25]) + ".")
    return " ".join(parts)


def submitted_lines(entries: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the first lines on jobs: one for all that were submitted, and one for each of a few others."""
    entries = [entry for entry in entries if entry.get("later") is None]
    new = [entry for entry in entries if not entry.get("refused") and not entry["attached"]]
    others = [entry for entry in entries if entry not in new] if len(new) > 1 else list(entries)
    lines = [str(entry["refused"]) if entry.get("refused") else submitted_line(entry) for entry in others[:_FEW]]
    lines += [f"{len(others) - _FEW} more were attached to or refused"] if len(others) > _FEW else []
    if len(new) < 2:
        return lines
    ids = [str(entry["job_id"]) for entry in new]
    names = clean(fold_nodes(str(entry["name"]) for entry in new), 200)
    how = f"scancel {' '.join(ids)}" if len(new) <= _FEW else "Ctrl-C, or the playbook cleanup"
    return [f"jobs {ids[0]} to {ids[-1]} submitted: {names}; to cancel: {how}", *lines]


def window_line(left: int, size: int, why: str) -> str:
    """Return the line on jobs that are not submitted yet."""
    return f"{left} more are submitted as these end, at most {size} at a time" + (f" ({clean(why, 60)})" if why else "")


def submitted_line(entry: Mapping[str, object]) -> str:
    """Return the first line on a job."""
    name = clean(entry["name"], 60)
    if entry["attached"]:
        return f"job {entry['job_id']} {name}: attached to it (it is active, with the same script and options)"
    return f"job {entry['job_id']} {name}: submitted; to cancel it: scancel {entry['job_id']}"
