# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time limits of waiting: those that the user sets, and those tuned on real clusters. All in seconds."""

from __future__ import annotations

from dataclasses import dataclass

# The longest time that one slurm_job_info watches markers before it answers.
HOLD = 20.0

# A job usually starts within this time; its begin marker shows that without a query.
START_GRACE = 1.5

# The longer a job queues, the less often Slurm is asked about it; rarely if another job of the task runs anyway. When
# that one has ended, the job may start at once, however long it has queued behind it.
QUEUE_LEAST, QUEUE_LEAST_BEHIND, QUEUE_MOST = 2.0, 10.0, 60.0

# Slurm is asked about a running job that leaves an end marker only in case it dies without one, and right after
# its time limit.
MARKED_LEAST, MARKED_SHARE, MARKED_MOST = 20.0, 0.1, 60.0
AFTER_TIME_LIMIT = 2.0
# A job without an end marker can only be asked about.
UNMARKED_LEAST, UNMARKED_SHARE, UNMARKED_MOST = 1.5, 0.02, 30.0

# Slurm confirms the end of a script some hundredths of a second after its last action (24.11, nothing else running),
# later where it has to clean up: pauses between checks for that.
CONFIRM_PAUSES = (0.0, 0.5, 1.0, 2.0, 2.0, 5.0, 10.0)
# With other jobs still running, one query serves all the ends of these seconds.
CONFIRM_SPACING = 2.2
# How long to wait after an end marker before Slurm is asked: for one job, and to collect several ends.
SETTLE, GATHER = 0.2, 1.4

# With more than a few jobs Slurm is asked at most this often, until the last script has ended: squeue is two queries of
# slurmctld, so that this makes fewer than five a minute. It is asked sooner where a job's only node may be gone. New
# markers are gathered for some seconds, since each answer costs a module's start.
MANY_SPACING, MANY_GRACE_SPACING, MANY_GATHER = 26.0, 12.0, 3.0
# Lines on many jobs come at least this often.
MANY_INTERVAL = 10.0
MANY_TAIL = 5

# A job that sbatch refuses for now is tried again when another has ended, and this often in any case.
HELD_EVERY = 15.0

# A job unknown to all parts of Slurm is lost after so many checks and seconds: accounting lags, slurmctld restarts.
LOST_LOOKS, LOST_SECONDS = 3, 30.0

# COMPLETING ends within seconds; after minutes, a process cannot be killed and the state will not end.
COMPLETING_LEAST, COMPLETING_MOST = 1.0, 10.0
COMPLETING_SECONDS = 300.0

# A scheduler that has just started may be wrong at first: it is asked again about a job that "can never start".
DOOMED_CONFIRM = 2.0

# With these reasons only the nodes distinguish a job that waits from one that never starts; querying them is expensive.
NODES_AFTER, NODES_EVERY = 15.0, 60.0

# While Slurm does not answer, the pause between queries grows up to this.
SILENCE_MOST = 20.0


@dataclass(frozen=True)
class Limits:
    """What the user set for the whole task."""

    controller_timeout: float = 300.0
    progress_interval: float = 30.0
    tail: int = 20
    node_grace: float | None = None
