# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell jobs with the same ID apart: IDs restart if Slurm loses its state, and old files stay on the share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import SUBMIT_SECONDS

_SAME_SUBMISSION_SECONDS = 1.0  # Slurm reports whole seconds
# Between the clocks of this node and slurmctld. With more, a later job with the same ID could pass for this one.
_CLOCKS_APART_SECONDS = 0.5
# Between the clocks of this node and a compute node. Too little would hide a job's own marker for good.
_SKEW_SECONDS = 30.0


@dataclass(frozen=True)
class Identity:
    """A job's ID, and what distinguishes it from another job with that ID.

    comment marks what this collection submitted. submitted is Slurm's own time of submission; by is the latest it can
    have been, when sbatch had returned, until Slurm has been asked.
    """

    job_id: str
    comment: str = ""
    submitted: float | None = None
    by: float | None = None

    def matches(self, row: Mapping[str, object]) -> bool:
        """Return whether a row of squeue or sacct with this ID is about this job.

        squeue's rows have the comment. Accounting has none, and reports an ID's newest job: an earlier or later
        submission with this ID is another job.
        """
        if "comment" not in row:
            return self._is_submission(row["submitted"])
        if self.comment:
            return row["comment"] == self.comment
        # A requeued job is given a new submission time.
        return self.submitted is None or bool(row["attempt"]) or self._is_submission(row["submitted"])

    def wrote(self, job_id: object, marker: Mapping[str, object], attempt: int) -> bool:
        """Return whether a marker with this job ID was written by this job, in this attempt or a later one."""
        of, written = marker.get("attempt", 0), marker.get("time")
        if str(job_id) != self.job_id or not isinstance(of, (int, float)) or of < attempt:
            return False
        since = self.by if self.submitted is None else self.submitted
        return since is None or not isinstance(written, (int, float)) or written >= since - _SKEW_SECONDS

    def _is_submission(self, told: object) -> bool:
        if self.submitted is not None:
            return isinstance(told, float) and abs(told - self.submitted) < _SAME_SUBMISSION_SECONDS
        if self.by is None:
            return True
        return isinstance(told, float) and -SUBMIT_SECONDS < told - self.by < _CLOCKS_APART_SECONDS
