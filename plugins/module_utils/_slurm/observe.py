# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One bounded look at any number of jobs: hold while watching their markers, then query Slurm if there is reason to."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import Runner
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import expand_nodes
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.identity import Identity
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import Job, has_ended
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.markers import (
    KINDS,
    Marker,
    expand,
    present,
    read,
    read_all,
    tail,
    watch,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.nodes import (
    NODE_ARGV,
    job_argv,
    node_argv,
    parse_needs,
    parse_nodes,
    why_blocked,
    why_stuck,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.query import ask
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import LIVE

HOLD_LIMIT = 20.0
# A job ends a moment after its script does. Asking at once would mean asking twice.
SETTLE_SECONDS = 0.2
# With an end to be confirmed, this is how long the answer waits for the time at which Slurm may be asked.
_CONFIRM_WAITS = 3.0
_BLOCKED_LOOKS = 4


@dataclass(frozen=True)
class Watched:
    """One job, where its markers are, and which of them the caller has already seen.

    `needs` are the nodes without which it cannot run, as Slurm writes them; after `stuck_after` seconds the nodes are
    looked at if it has not begun by then.
    """

    identity: Identity
    paths: dict[str, str]
    seen: frozenset[str] = frozenset()
    attempt: int = 0
    needs: str = ""
    stuck_after: float | None = None

    @property
    def unseen(self) -> dict[str, str]:
        """Return the paths of the markers that the caller has not seen; progress is always new."""
        return {kind: path for kind, path in self.paths.items() if kind not in self.seen}

    @staticmethod
    def of(spec: Mapping[str, object]) -> Watched:
        """Return the job described by one entry of the module's jobs option."""
        job_id = str(spec["job_id"])
        submitted, by = spec.get("submitted"), spec.get("submitted_by")
        paths = {kind: expand(str(spec.get(f"{kind}_marker") or ""), job_id) for kind in KINDS}
        seen, after = spec.get("seen"), spec.get("stuck_after")
        return Watched(
            Identity(
                job_id,
                str(spec.get("comment") or ""),
                float(submitted) if isinstance(submitted, (int, float)) else None,
                float(by) if isinstance(by, (int, float)) else None,
            ),
            {kind: path for kind, path in paths.items() if path},
            frozenset(str(kind) for kind in seen) if isinstance(seen, list) else frozenset(),
            int(str(spec.get("attempt") or 0)),
            str(spec.get("needs") or ""),
            float(after) if isinstance(after, (int, float)) else None,
        )


@dataclass(frozen=True)
class Request:
    """What to do in one look. hold and confirm_after are seconds from its start, gather from the first new marker."""

    jobs: list[Watched]
    user: str
    hold: float = 0.0
    query: bool = True
    confirm_after: float = 0.0
    gather: float = 0.0
    settle: float = SETTLE_SECONDS
    steps: bool = True
    tail: int = 0
    nodes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class World:
    """Clocks and commands; tests replace them."""

    run: Runner
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def observe(request: Request, world: World) -> dict[str, object]:
    """Return all jobs' markers and, if Slurm was asked, its answer. This takes at most `hold` plus Slurm's own time."""
    start = world.clock()
    hold = min(request.hold, HOLD_LIMIT)
    news = _News(request.jobs)

    def passed() -> float:
        return world.clock() - start

    def watched(changed: Callable[[], bool], seconds: float) -> bool:
        return watch(changed, max(0.0, seconds), news.count, clock=world.clock, sleep=world.sleep)

    early = watched(news.any, hold)
    if early and request.gather:
        watched(news.whole, min(request.gather, hold - passed()))
    # Where Slurm is due now, a stream of new markers does not put it off.
    query = request.query and not (early and hold > 0)
    if news.ended and not query:
        confirm = max(passed() + request.settle, request.confirm_after)
        query = confirm <= max(hold, request.settle) and confirm - passed() <= _CONFIRM_WAITS
        if query:
            world.sleep(max(0.0, confirm - passed()))
    result: dict[str, object] = {
        "markers": _markers(request.jobs),
        "asked": query,
        "jobs": [],
        "controller": "not_asked",
        "error": "",
        "accounting": "not_asked",
        "accounting_error": "",
        "blocked": {},
        "stuck": {},
        "nodes_looked": [],
    }
    if query:
        _ask(request, world, result, passed())
    result["time"] = world.now()
    return result


def _markers(jobs: Sequence[Watched]) -> dict[str, dict[str, Marker]]:
    """Return the markers that the caller has not seen, by job and kind."""
    there = present(path for each in jobs for path in each.unseen.values())
    return {
        each.identity.job_id: read_all(
            {kind: path for kind, path in each.unseen.items() if path in there}, each.identity, each.attempt
        )
        for each in jobs
        if each.paths
    }


class _News:
    """Begin and end markers that appeared since the caller last looked."""

    def __init__(self, jobs: list[Watched]) -> None:
        self._waiting = [
            (each, kind, path) for each in jobs for kind, path in each.unseen.items() if kind in ("begin", "end")
        ]
        self._ignored: dict[str, tuple[int, int]] = {}
        self.ended = False
        self.count = len(self._waiting)

    def any(self) -> bool:
        """Return whether there are new markers."""
        there = present(path for _each, _kind, path in self._waiting)
        found = [one for one in self._waiting if one[2] in there and self._is_new(one[0], one[2])]
        self._waiting = [one for one in self._waiting if one not in found]
        self.ended = self.ended or any(kind == "end" for _each, kind, _path in found)
        return bool(found)

    def whole(self) -> bool:
        """Take note of further markers, and return whether none is left to wait for."""
        self.any()
        return not self._waiting

    def _is_new(self, each: Watched, path: str) -> bool:
        try:
            status = os.stat(path)
        except OSError:
            return False
        signature = (status.st_mtime_ns, status.st_ino)
        if self._ignored.get(path) == signature:
            return False
        marker: Marker | None = read(path, each.identity, each.attempt)
        if marker is None:
            self._ignored[path] = signature  # left by an earlier job with this ID, or not a marker
        return marker is not None


def _ask(request: Request, world: World, result: dict[str, object], passed: float) -> None:
    answer = ask(
        world.run,
        [each.identity for each in request.jobs],
        request.user,
        steps=request.steps,
        now=world.now,
        sleep=world.sleep,
    )
    jobs = list(answer.jobs.values())
    for job in jobs:
        if request.tail and has_ended(job) and job["state"] != "COMPLETED":
            job["tail"] = tail(str(job["stderr"]), request.tail) or tail(str(job["stdout"]), request.tail)
    pending = [str(job["job_id"]) for job in jobs if job["state"] == "PENDING" and job["job_id"] in request.nodes]
    result.update(
        controller=answer.controller,
        error=answer.error,
        accounting=answer.accounting,
        accounting_error=answer.accounting_error,
        jobs=jobs,
        blocked=_blocked(world, pending[:_BLOCKED_LOOKS]),
    )
    told = [(each, answer.jobs[each.identity.job_id]) for each in request.jobs if each.identity.job_id in answer.jobs]
    suspects = [(each, job) for each, job in told if _is_suspect(each, job, passed)]
    if suspects:
        result.update(
            nodes_looked=[each.identity.job_id for each, _job in suspects],
            stuck=_stuck(world, suspects),
        )


def _is_suspect(each: Watched, job: Job, passed: float) -> bool:
    """Return whether the nodes have to be looked at to tell why a job has not begun."""
    if not each.needs or job["state"] not in LIVE:
        return False
    completing = job["flags"] == ["COMPLETING"]
    if job["attempt"] and (job["state"] == "PENDING" or (completing and "begin" in each.unseen)):
        return True
    late = each.stuck_after is not None and passed >= each.stuck_after
    # Only its begin marker tells whether a job that runs has begun.
    return late and (job["state"] == "PENDING" or (not completing and "begin" in each.unseen))


def _stuck(world: World, suspects: Sequence[tuple[Watched, Job]]) -> dict[str, str]:
    """Return why these jobs have not begun; those that may just have to wait are left out."""
    needs = {each.identity.job_id: expand_nodes(each.needs) for each, _job in suspects}
    names = {name for needed in needs.values() for name in needed}
    nodes = parse_nodes(world.run(node_argv(names)).text)
    known = {node["name"] for node in nodes}
    reasons = {
        each.identity.job_id: why_stuck(job, needs[each.identity.job_id], nodes)
        for each, job in suspects
        if known.issuperset(needs[each.identity.job_id])
    }
    return {job_id: reason for job_id, reason in reasons.items() if reason}


def _blocked(world: World, job_ids: list[str]) -> dict[str, str]:
    """Return why each of these pending jobs can never start; jobs that can, or might, are left out."""
    needs = {job_id: parse_needs(world.run(job_argv(job_id)).text) for job_id in job_ids}
    asked = {job_id: need for job_id, need in needs.items() if need is not None}
    nodes = parse_nodes(world.run(NODE_ARGV).text) if asked else []
    reasons = {job_id: why_blocked(need, nodes) for job_id, need in asked.items()}
    return {job_id: reason for job_id, reason in reasons.items() if reason}
