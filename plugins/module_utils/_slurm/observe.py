# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One bounded look at any number of jobs: hold while watching their markers, then query Slurm if there is reason to."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import Runner
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.identity import Identity
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import has_ended
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.markers import (
    KINDS,
    Marker,
    expand,
    read,
    read_all,
    tail,
    watch,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.nodes import (
    NODE_ARGV,
    job_argv,
    parse_needs,
    parse_nodes,
    why_blocked,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.query import ask

HOLD_LIMIT = 20.0
# A job ends some tenths of a second after its script does. Asking at once would mean asking twice.
SETTLE_SECONDS = 0.6
_BLOCKED_LOOKS = 4


@dataclass(frozen=True)
class Watched:
    """One job, where its markers are, and which of them the caller has already seen."""

    identity: Identity
    paths: dict[str, str]
    seen: frozenset[str] = frozenset()
    attempt: int = 0

    @staticmethod
    def of(spec: Mapping[str, object]) -> Watched:
        """Return the job described by one entry of the module's jobs option."""
        job_id = str(spec["job_id"])
        submitted, by = spec.get("submitted"), spec.get("submitted_by")
        paths = {kind: expand(str(spec.get(f"{kind}_marker") or ""), job_id) for kind in KINDS}
        seen = spec.get("seen")
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
        )


@dataclass(frozen=True)
class Request:
    """What to do in one look. hold and confirm_after are seconds from its start."""

    jobs: list[Watched]
    user: str
    hold: float = 0.0
    query: bool = True
    confirm_after: float = 0.0
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
    early = watch(news.any, hold, news.count, clock=world.clock, sleep=world.sleep) if hold > 0 else news.any()
    query = request.query and not early
    if news.ended:
        confirm = max(world.clock() - start + request.settle, request.confirm_after)
        query = confirm <= max(hold, request.settle)
        if query:
            world.sleep(max(0.0, confirm - (world.clock() - start)))
    result: dict[str, object] = {
        "markers": {
            each.identity.job_id: read_all(each.paths, each.identity, each.attempt)
            for each in request.jobs
            if each.paths
        },
        "asked": query,
        "jobs": [],
        "controller": "not_asked",
        "error": "",
        "accounting": "not_asked",
        "accounting_error": "",
        "blocked": {},
    }
    if query:
        _ask(request, world, result)
    result["time"] = world.now()
    return result


class _News:
    """Begin and end markers that appeared since the caller last looked."""

    def __init__(self, jobs: list[Watched]) -> None:
        self._waiting = [
            (each, kind, each.paths[kind])
            for each in jobs
            for kind in ("begin", "end")
            if kind in each.paths and kind not in each.seen
        ]
        self._ignored: dict[str, tuple[int, int]] = {}
        self.ended = False
        self.count = len(self._waiting)

    def any(self) -> bool:
        found = False
        for each, kind, path in self._waiting:
            if self._is_new(each, path):
                found = True
                self.ended = self.ended or kind == "end"
        return found

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


def _ask(request: Request, world: World, result: dict[str, object]) -> None:
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


def _blocked(world: World, job_ids: list[str]) -> dict[str, str]:
    """Return why each of these pending jobs can never start; jobs that can, or might, are left out."""
    needs = {job_id: parse_needs(world.run(job_argv(job_id)).text) for job_id in job_ids}
    asked = {job_id: need for job_id, need in needs.items() if need is not None}
    nodes = parse_nodes(world.run(NODE_ARGV).text) if asked else []
    reasons = {job_id: why_blocked(need, nodes) for job_id, need in asked.items()}
    return {job_id: reason for job_id, reason in reasons.items() if reason}
