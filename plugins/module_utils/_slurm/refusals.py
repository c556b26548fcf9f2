# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sbatch prints when it does not take a job: for good, with what to do about it, or only for now. Pure."""

from __future__ import annotations

import re

# Each refusal, and what to do about it.
_REMEDIES = (
    (r"invalid partition|Invalid partition name", "see the partitions: sinfo --summarize; name one as partition"),
    (
        r"Requested node configuration is not available",
        "no node has what is asked for together (GRES, CPUs, memory): compare with: sinfo -N -o '%N %G %c %m %f'",
    ),
    (r"Invalid generic resource", "see the nodes' GRES: sinfo -o '%N %G'"),
    (
        r"Invalid account|account/partition",
        "see your accounts: sacctmgr show associations user=$USER; name one as account",
    ),
    (r"Invalid qos", "see your QOS: sacctmgr show associations user=$USER format=account,qos; name one as qos"),
    (
        r"time limit is invalid|Requested time limit|Invalid job time limit",
        "ask for less time, or see: scontrol show partition",
    ),
    (r"Access/permission denied|Permission denied", "ask your Slurm administrator to allow this user to submit there"),
    (r"Invalid node name", "see the nodes: sinfo -N; correct nodelist or exclude"),
    (
        r"Unable to open (batch )?script|unable to open",
        "check that the script's path is readable by the submitting user",
    ),
    (
        r"(Assoc|QOS)\w*SubmitJob|MaxSubmitJobs|job submit limit",
        "wait for earlier jobs, or raise the limit of submitted jobs",
    ),
    (
        r"temporarily unable to accept job|job queue full|MaxJobCount|Resource temporarily unavailable|Rate limit",
        "wait for earlier jobs, or see: scontrol show config (MaxJobCount, SlurmctldParameters)",
    ),
    (r"unrecognized option|invalid option", "correct the options: they are sbatch's long options without the dashes"),
    (
        r"Invalid feature|Requested reservation|reservation is invalid",
        "see: scontrol show node; scontrol show reservation",
    ),
)

# Limits on how many jobs may be in the queue, as sbatch names them before "Job violates accounting/QOS policy"
# (job_state_reason.c of Slurm 22.05 to 26.05).
_COUNTED = re.compile(r"\b(?:Assoc|QOS)\w*SubmitJobs?\w*Limit\b|\bMaxSubmitJobsPerAccount\b")
# slurmctld takes no more jobs for now: MaxJobCount until 25.11 and from 26.05 on, and the limit of RPCs from 24.05 on
# beyond which sbatch no longer retries by itself (sbatch.c, slurm_errno.c).
_FULL = re.compile(
    r"Slurm temporarily unable to accept job|Slurm job queue full|MaxJobCount limit reached"
    r"|submission failed: Resource temporarily unavailable|Rate limit exceeded"
)
# With another limit's name before it, this means that the job itself is too large.
_POLICY = "Job violates accounting/QOS policy"
_NAMED = re.compile(r"\b(?:Assoc|QOS|Max)[A-Z]\w+")


def is_for_now(text: str) -> bool:
    """Return whether sbatch may take the same job later, when others have ended."""
    if _COUNTED.search(text) or _FULL.search(text):
        return True
    return _POLICY in text and not _NAMED.search(text)


def remedy(text: str) -> str | None:
    """Return what to do about a refusal; None if nothing is known about it."""
    return next((advice for pattern, advice in _REMEDIES if re.search(pattern, text, re.IGNORECASE)), None)
