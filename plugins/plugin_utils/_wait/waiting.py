# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One job that is waited for: its phases, and what else is known of it. Pure.

    Queued <──> Doomed           Slurm gives a reason why it can never start: asked once more
      │
      v
    Running <──> Completing      it runs; then its nodes clean up
      │
      └──> Queued                requeued: clocks and markers start again

    any of them ──> Over         ended, never_starts, node_unavailable, queue_timeout, run_timeout, lost, undetermined,
                                 refused; final

In each phase two more things are known: what its script has reported in markers (Script), and since when no part of
Slurm has known it (Missing). transitions.py changes the phase; docs/waiting.md has a diagram.

All times are seconds of the controller's monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import Job, empty
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import UNKNOWN

Marker = dict[str, Any]


@dataclass(frozen=True)
class Queued:
    """The job has not started. The queue clock runs, except while another job of the task runs (behind)."""

    since: float
    behind: float = 0.0


@dataclass(frozen=True)
class Doomed(Queued):
    """The job queues for a reason that means it can never start; Slurm has reported it once."""


@dataclass(frozen=True)
class Running:
    """The job has started, according to Slurm or its begin marker. The run clock runs."""

    since: float


@dataclass(frozen=True)
class Completing(Running):
    """The job has stopped and its nodes clean up. The run clock has stopped; another clock runs."""

    cleaning_since: float


@dataclass(frozen=True)
class Over:
    """The wait is over, although the job may still be active. `last` is the phase before."""

    outcome: str
    why: str
    remedy: str
    last: Queued | Running


@dataclass(frozen=True)
class Missing:
    """No part of Slurm knows the job: since when, and for how many checks."""

    since: float
    looks: int


@dataclass
class Script:
    """What the script has reported, and how often Slurm was asked after its last action without confirming its end."""

    markers: dict[str, Marker] = field(default_factory=dict)
    unconfirmed: int = 0

    @property
    def has_begun(self) -> bool:
        return "begin" in self.markers

    @property
    def has_ended(self) -> bool:
        return "end" in self.markers


@dataclass
class Waiting:
    """One job that is waited for: what the caller gave, what Slurm reported last, and its phase."""

    job_id: str
    name: str = ""
    comment: str = ""
    script_sha256: str | None = None
    ours: bool = False
    queue_timeout: float | None = None
    run_timeout: float | None = None
    patterns: dict[str, str] = field(default_factory=dict)
    submitted_by: float | None = None
    key: str | None = None
    needs: str = ""  # the nodes without which it cannot run, as Slurm writes them

    job: Job = field(init=False)
    submitted: float | None = field(init=False, default=None)
    phase: Queued | Running | Over = field(init=False, default=Queued(0.0))
    script: Script = field(init=False, default_factory=Script)
    missing: Missing | None = field(init=False, default=None)
    nodes_asked: float | None = field(init=False, default=None)
    cancel_asked: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.job = empty(self.job_id)
        self.job.update(name=self.name, comment=self.comment, script_sha256=self.script_sha256)

    @property
    def state(self) -> str:
        """Return the state that Slurm reported last."""
        return str(self.job["state"])

    @property
    def outcome(self) -> str:
        """Return how the wait ended, or an empty text while it continues."""
        return self.phase.outcome if isinstance(self.phase, Over) else ""

    @property
    def why(self) -> str:
        """Return why the wait ended in this way."""
        return self.phase.why if isinstance(self.phase, Over) else ""

    @property
    def remedy(self) -> str:
        """Return what to do about it."""
        return self.phase.remedy if isinstance(self.phase, Over) else ""

    @property
    def has_run(self) -> bool:
        """Return whether it was running when last seen, according to Slurm or its markers."""
        last = self.phase.last if isinstance(self.phase, Over) else self.phase
        return isinstance(last, Running)

    @property
    def in_queue(self) -> bool:
        """Return whether it is in the queue or runs, as far as is known: a script that has ended is about to leave."""
        return not self.outcome and not self.script.has_ended

    def grace_ends(self, grace: float | None, every: float) -> float:
        """Return when the nodes it needs are to be looked at, since it has not begun by then; again after `every`."""
        phase = self.phase
        if isinstance(phase, (Over, Completing)) or not grace or not self.needs or self.script.has_begun:
            return float("inf")
        if isinstance(phase, Running) and "begin" not in self.patterns:
            return float("inf")  # nothing tells whether it has begun
        if isinstance(phase, Queued):
            grace = min(
                grace, self.queue_timeout or grace
            )  # so that a node that is down is named before it is called busy
        first = phase.since + grace
        return first if self.nodes_asked is None or self.nodes_asked < first else self.nodes_asked + every

    @property
    def deadline(self) -> float:
        """Return when the clock of its phase runs out."""
        if isinstance(self.phase, Queued) and self.queue_timeout:
            return self.phase.since + self.phase.behind + self.queue_timeout
        if isinstance(self.phase, Running) and self.run_timeout:
            return self.phase.since + self.run_timeout
        return float("inf")

    def refuse(self, why: str) -> None:
        """Record that sbatch rejected the job: there is nothing to wait for."""
        self.job.update(reason="refused", reason_text=why)
        self.give_up("refused", why)

    def give_up(self, outcome: str, why: str = "", remedy: str = "") -> None:
        """End the wait."""
        if not isinstance(self.phase, Over):
            self.phase = Over(outcome, why, remedy, self.phase)

    def take_cancelled(self, job: Job) -> None:
        """Replace the job by its state after it was cancelled, with the reason for that."""
        kept = {key: self.job[key] for key in ("reason", "reason_text", "name", "comment", "script_sha256", "attempt")}
        if self.why not in kept["reason_text"]:
            kept["reason_text"] = self.why
        self.job = {**job, **kept}

    def forget(self, why: str) -> None:
        """Set the state to unknown."""
        unknown = dict.fromkeys(("exit_code", "signal", "derived_exit_code"))
        self.job = {**self.job, **unknown, "state": UNKNOWN, "flags": [], "source": "none", "reason_text": why}

    def add_reason(self, text: str) -> None:
        """Append to the reason why the wait ended."""
        if isinstance(self.phase, Over):
            self.phase = replace(self.phase, why=self.phase.why + text)
