# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's job states and pending reasons, as data and in words. Pure."""

from __future__ import annotations

from typing import NamedTuple

LIVE = frozenset({"PENDING", "RUNNING", "SUSPENDED"})
TERMINAL = frozenset(
    {
        "COMPLETED",
        "CANCELLED",
        "FAILED",
        "TIMEOUT",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "DEADLINE",
        "OUT_OF_MEMORY",
        "REVOKED",
    }
)
UNKNOWN = "UNKNOWN"
STATES = LIVE | TERMINAL | {UNKNOWN}

# The text forms print one word, and a flag hides the base state. What the job is underneath, as far as waiting goes:
# none of them is an end.
FLAGS = {
    "COMPLETING": "RUNNING",
    "STAGE_OUT": "RUNNING",
    "CONFIGURING": "RUNNING",
    "EXPEDITING": "RUNNING",
    "RESIZING": "RUNNING",
    "SIGNALING": "RUNNING",
    "POWER_UP_NODE": "RUNNING",
    "STOPPED": "SUSPENDED",
    "REQUEUED": "PENDING",
    "REQUEUE_FED": "PENDING",
    "REQUEUE_HOLD": "PENDING",
    "SPECIAL_EXIT": "PENDING",
    "RESV_DEL_HOLD": "PENDING",
    "LAUNCH_FAILED": "PENDING",
    "RECONFIG_FAIL": "PENDING",
    "GETENV_FAILED": "PENDING",
    "UPDATE_DB": "PENDING",
}


def split_state(word: str) -> tuple[str, list[str]]:
    """Return (base state, flags) of squeue's or sacct's state word ('CANCELLED by 0'); UNKNOWN for any other word."""
    parts = word.strip(" \n").split(" ")
    first = parts[0] if parts else ""
    if first in FLAGS:
        return FLAGS[first], [first]
    # Only "by <uid>" may follow: a terminal state is never read out of garbage.
    if first in STATES and (len(parts) == 1 or (first == "CANCELLED" and len(parts) == 3 and parts[1] == "by")):
        return first, []
    return UNKNOWN, []


def is_terminal(state: str, flags: list[str]) -> bool:
    """True where the job has ended for good."""
    return state in TERMINAL and not flags


class Reason(NamedTuple):
    """A pending reason: words, whether the job can never start as it is, and what to do then."""

    words: str
    never: bool = False
    remedy: str = ""


_RELEASE = "release it with: scontrol release {job_id}"
_ACCOUNT = "ask who administers Slurm, or name an allowed account, partition and QOS in hpc_validation_slurm"
_SMALLER = "ask for less (nodes, CPUs, memory, GPUs, time), or name an account or QOS that allows it"

REASONS = {
    "None": Reason("the scheduler has not looked at it yet"),
    "Priority": Reason("jobs with a higher priority go first"),
    "Resources": Reason("waiting for nodes to become free"),
    "BeginTime": Reason("its start time is not reached yet (a requeued job waits about two minutes)"),
    "Dependency": Reason("waiting for the job it depends on"),
    "Licenses": Reason("waiting for a licence"),
    "Reservation": Reason("waiting for its reservation to begin"),
    "Prolog": Reason("the node's prolog is running"),
    "Cleaning": Reason("an earlier run of it is being cleaned up"),
    "JobArrayTaskLimit": Reason("the array's own limit of running tasks is reached"),
    "MaxPoweredUpNodes": Reason("the limit of powered-up nodes is reached"),
    "SchedDefer": Reason("the scheduler defers it"),
    "ReqNodeNotAvail": Reason("a node it needs is not available now"),
    "PartitionDown": Reason(
        "its partition is down", True, "set it up again: scontrol update PartitionName={partition} State=UP"
    ),
    "PartitionInactive": Reason(
        "its partition is inactive", True, "set it up again: scontrol update PartitionName={partition} State=UP"
    ),
    "PartitionConfig": Reason(
        "it asks for more than its partition allows or has (nodes, time, CPUs or memory)",
        True,
        "compare: scontrol show partition {partition}; scontrol show job {job_id}",
    ),
    "PartitionTimeLimit": Reason(
        "its time limit is longer than its partition allows",
        True,
        "ask for less time, or compare: scontrol show partition {partition} (MaxTime)",
    ),
    "PartitionNodeLimit": Reason(
        "it asks for more, or fewer, nodes than its partition allows",
        True,
        "ask for other nodes, or compare: scontrol show partition {partition} (MinNodes, MaxNodes)",
    ),
    "DependencyNeverSatisfied": Reason(
        "the job it depends on did not end as required", True, "look at the job named by: scontrol show job {job_id}"
    ),
    "BadConstraints": Reason(
        "no node can ever meet its constraints", True, "compare the features and GRES in: scontrol show node"
    ),
    "JobHeldUser": Reason("it is held by its owner", True, _RELEASE),
    "JobHeldAdmin": Reason(
        "it is held by an administrator", True, "only an administrator can release it: scontrol release {job_id}"
    ),
    "JobHoldMaxRequeue": Reason("it was requeued too often and is held", True, _RELEASE),
    "InvalidAccount": Reason("its account is not valid", True, _ACCOUNT),
    "InvalidQOS": Reason("its QOS is not valid", True, _ACCOUNT),
    "AccountNotAllowed": Reason("its account may not use this partition", True, _ACCOUNT),
    "QOSNotAllowed": Reason("its QOS may not be used with this partition or account", True, _ACCOUNT),
    "ReservationDeleted": Reason("its reservation was deleted", True, "name another reservation, or none"),
    "ReservationInvalid": Reason("its reservation is not valid", True, "name another reservation, or none"),
    "AccountingPolicy": Reason("a limit of its account or QOS is reached"),
    "AssocMaxJobsLimit": Reason("its user's limit of running jobs is reached"),
    "QOSMaxJobsPerUserLimit": Reason("its QOS's limit of running jobs per user is reached"),
    "NonZeroExitCode": Reason("the script ended with a non-zero exit code"),
    "JobLaunchFailure": Reason("the script was killed or could not be launched"),
    "RaisedSignal": Reason("the script was killed by a signal"),
    "OutOfMemory": Reason("it used more memory than it asked for"),
    "TimeLimit": Reason("it reached its time limit"),
    "NodeDown": Reason("a node went down under it"),
    "DeadLine": Reason("its deadline was reached"),
    "SystemFailure": Reason("Slurm itself failed"),
    "InactiveLimit": Reason("it was inactive too long"),
}


def describe_reason(reason: str) -> Reason:
    """Return words for squeue's reason, also where it is a whole sentence ('Nodes required for job are DOWN …')."""
    key = reason.strip("() ").split(",")[0].split(":")[0].split("(")[0].strip()
    known = REASONS.get(key)
    if known:
        # ReqNodeNotAvail, Reserved for maintenance; ReqNodeNotAvail, UnavailableNodes:n[1-2]
        rest = reason.strip("() ").partition(", ")[2]
        return known._replace(words=f"{known.words}: {rest}") if rest else known
    if key.startswith(("AssocMax", "QOSMax")) and ("PerJob" in key or key.endswith("PerNode")):
        return Reason(f"it asks for more than its account or QOS allows a job ({key})", True, _SMALLER)
    if key.startswith("QOSMin"):
        return Reason(f"it asks for less than its QOS requires of a job ({key})", True, _SMALLER)
    if key.startswith(("Assoc", "QOS", "Max")):
        return Reason(f"a limit of its account or QOS is reached ({key})")
    if "held state" in reason or reason.endswith("requeued held"):
        return Reason("it was requeued and is held", True, _RELEASE)
    return Reason(reason or "no reason given")


def nodes_may_be_gone(reason: str) -> bool:
    """True where only a look at the nodes tells a job that waits from one that can never start."""
    return reason.startswith(("ReqNodeNotAvail", "Resources", "Nodes required", "Priority", "BadConstraints"))
