# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long to wait for what: what the user set, and what was tuned on real clusters. All in seconds."""

from __future__ import annotations

from dataclasses import dataclass

# The longest that one slurm_job_info watches markers before it answers.
HOLD = 20.0

# A job usually starts within this time, which its begin marker tells without asking.
START_GRACE = 1.5

# A queued job is asked about the less often the longer it queues; rarely where another job of the task runs anyway.
QUEUE_LEAST, QUEUE_LEAST_BEHIND, QUEUE_MOST = 2.0, 10.0, 60.0

# A running job that will leave an end marker is asked about only in case it dies without one, and right after its
# time limit.
MARKED_LEAST, MARKED_SHARE, MARKED_MOST = 20.0, 0.1, 60.0
AFTER_TIME_LIMIT = 2.0
# Asking is all there is of a job without one.
UNMARKED_LEAST, UNMARKED_SHARE, UNMARKED_MOST = 1.5, 0.02, 30.0

# Slurm confirms the end of a script some tenths of a second after its last act: pauses between looks for that.
CONFIRM_PAUSES = (0.0, 1.0, 1.0, 2.0, 2.0, 5.0, 10.0)
# With other jobs still running, one query serves all the ends of these seconds.
CONFIRM_SPACING = 2.2
# How long an end marker is left alone before Slurm is asked: for one job, and to gather several ends.
SETTLE, GATHER = 0.6, 1.4

# A job that no part of Slurm knows is lost after so many looks and seconds: accounting lags, and slurmctld restarts.
LOST_LOOKS, LOST_SECONDS = 3, 30.0

# COMPLETING ends within seconds; after minutes of it a process cannot be killed and the end will not come.
COMPLETING_LEAST, COMPLETING_MOST = 1.0, 10.0
COMPLETING_SECONDS = 300.0

# A scheduler that has just started may not know yet what it says: a job that "can never start" is asked about again.
DOOMED_CONFIRM = 2.0

# For these reasons only the nodes tell a job that waits from one that never starts; a look at them is expensive.
NODES_AFTER, NODES_EVERY = 15.0, 60.0

# While Slurm does not answer it is asked ever more rarely, up to this.
SILENCE_MOST = 20.0


@dataclass(frozen=True)
class Limits:
    """What the user set for the whole task."""

    controller_timeout: float = 300.0
    progress_interval: float = 30.0
    tail: int = 20
