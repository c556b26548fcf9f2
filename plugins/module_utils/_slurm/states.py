# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's job states and pending reasons: what each means for a job, and what to do. Pure."""

from __future__ import annotations

from typing import NamedTuple


class State(NamedTuple):
    """One of Slurm's words for the state of a job.

    kind: live (a base state that is not an end), end, flag (printed by the text formats in place of the base state
    `base`), or unknown. verdict is what the state alone implies for the job; a pass needs more. advice says what to do,
    as a phrase that can begin a sentence or be an item of a list, with {job_id} and {node} to fill in.
    """

    name: str
    kind: str
    verdict: str = "undetermined"
    advice: str = ""
    base: str = ""


UNKNOWN = "UNKNOWN"

# Waiting, judging and all messages about a state use this table. In Slurm's output a flag hides the base state; `base`
# is the state to assume while waiting, and is never an end.
TABLE = (
    State("PENDING", "live"),
    State("RUNNING", "live"),
    State("SUSPENDED", "live"),
    State("COMPLETED", "end", "pass"),
    State("FAILED", "end", "fail", "read the end of the job's stderr: the program itself stopped with an error"),
    State(
        "TIMEOUT",
        "end",
        "fail",
        "ask for more time, if the log shows that it made progress and was not blocked",
    ),
    State("OUT_OF_MEMORY", "end", "fail", "ask for more memory (--mem), or use less, with a smaller batch for example"),
    State(
        "NODE_FAIL",
        "end",
        "fail",
        "run scontrol show node {node} and sinfo -R to see what happened to the node, and read its slurmd log",
    ),
    State("BOOT_FAIL", "end", "fail", "run scontrol show node {node} and sinfo -R to see why the node did not boot"),
    State(
        "PREEMPTED",
        "end",
        advice="run it again, or in a partition or QOS that is not preempted (hpc_validation_slurm)",
    ),
    State("CANCELLED", "end", advice="run sacct -j {job_id} --format=JobID,State%30 to see who cancelled it"),
    State("DEADLINE", "end", advice="its deadline passed: give it more time, or submit it earlier"),
    State("REVOKED", "end", advice="look for it on the cluster of the federation that started it instead"),
    State(UNKNOWN, "unknown"),
    State("COMPLETING", "flag", base="RUNNING"),
    State("STAGE_OUT", "flag", base="RUNNING"),
    State("CONFIGURING", "flag", base="RUNNING"),
    State("EXPEDITING", "flag", base="RUNNING"),
    State("RESIZING", "flag", base="RUNNING"),
    State("SIGNALING", "flag", base="RUNNING"),
    State("POWER_UP_NODE", "flag", base="RUNNING"),
    State("STOPPED", "flag", base="SUSPENDED"),
    State("REQUEUED", "flag", base="PENDING"),
    State("REQUEUE_FED", "flag", base="PENDING"),
    State("REQUEUE_HOLD", "flag", base="PENDING"),
    State("SPECIAL_EXIT", "flag", base="PENDING"),
    State("RESV_DEL_HOLD", "flag", base="PENDING"),
    State("LAUNCH_FAILED", "flag", base="PENDING"),
    State("RECONFIG_FAIL", "flag", base="PENDING"),
    State("GETENV_FAILED", "flag", base="PENDING"),
    State("UPDATE_DB", "flag", base="PENDING"),
)

_BY_NAME = {state.name: state for state in TABLE}
LIVE = frozenset(state.name for state in TABLE if state.kind == "live")
TERMINAL = frozenset(state.name for state in TABLE if state.kind == "end")
STATES = LIVE | TERMINAL | {UNKNOWN}
FLAGS = {state.name: state.base for state in TABLE if state.kind == "flag"}


def describe_state(name: object) -> State:
    """Return the table's entry for a state by its name; UNKNOWN's for a word that is not Slurm's."""
    return _BY_NAME.get(str(name), _BY_NAME[UNKNOWN])


def split_state(word: str) -> tuple[str, list[str]]:
    """Return (base state, flags) of squeue's or sacct's state word ('CANCELLED by 0'); UNKNOWN for any other word."""
    parts = word.strip(" \n").split(" ")
    first = parts[0]
    if first in FLAGS:
        return FLAGS[first], [first]
    # Only "by <uid>" may follow: a terminal state must never be read from garbage.
    if first in STATES and (len(parts) == 1 or (first == "CANCELLED" and len(parts) == 3 and parts[1] == "by")):
        return first, []
    return UNKNOWN, []


def is_terminal(state: str, flags: list[str]) -> bool:
    """Return whether the job has ended for good."""
    return state in TERMINAL and not flags


class Reason(NamedTuple):
    """A pending reason: its description, whether the job can never start as it is, and what to do then."""

    words: str
    never: bool = False
    remedy: str = ""


_RELEASE = "release it with: scontrol release {job_id}"
_ACCOUNT = "ask your Slurm administrator, or name an allowed account, partition and QOS in hpc_validation_slurm"
_SMALLER = "ask for less (nodes, CPUs, memory, GPUs, time), or name an account or QOS that allows it"

REASONS = {
    "None": Reason("the scheduler has not looked at it yet"),
    "Priority": Reason("jobs with a higher priority go first"),
    "Resources": Reason("waiting for nodes to become free"),
    "BeginTime": Reason("its start time has not been reached yet (a requeued job waits about two minutes)"),
    "Dependency": Reason("waiting for the job it depends on"),
    "Licenses": Reason("waiting for a licence"),
    "Reservation": Reason("waiting for its reservation to begin"),
    "Prolog": Reason("the node's prolog is running"),
    "Cleaning": Reason("its previous run is being cleaned up"),
    "JobArrayTaskLimit": Reason("the array's own limit of running tasks is reached"),
    "MaxPoweredUpNodes": Reason("the limit of powered-up nodes is reached"),
    "SchedDefer": Reason("the scheduler defers it"),
    "ReqNodeNotAvail": Reason("a node it needs is not available now"),
    "PartitionDown": Reason(
        "its partition is down", True, "bring it up again: scontrol update PartitionName={partition} State=UP"
    ),
    "PartitionInactive": Reason(
        "its partition is inactive", True, "bring it up again: scontrol update PartitionName={partition} State=UP"
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
    "NodeDown": Reason("one of its nodes went down"),
    "DeadLine": Reason("its deadline was reached"),
    "SystemFailure": Reason("Slurm itself failed"),
    "InactiveLimit": Reason("it was inactive too long"),
}


def describe_reason(reason: str) -> Reason:
    """Describe squeue's reason, including whole sentences ('Nodes required for job are DOWN …')."""
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
    """Return whether only the nodes' states show if the job is waiting or can never start."""
    return reason.startswith(("ReqNodeNotAvail", "Resources", "Nodes required", "Priority", "BadConstraints"))
