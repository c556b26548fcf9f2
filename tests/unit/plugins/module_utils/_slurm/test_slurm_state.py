# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm's words: no word and no combination of words is an end, let alone a success, but the words for it alone."""

from __future__ import annotations

import json
import string

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import states
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import from_row, has_ended
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.states import (
    describe_reason,
    describe_state,
    is_terminal,
    nodes_may_be_gone,
    split_state,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.job import came_to_an_end, judge_job
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.messages import next_commands
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.conftest import ROOT
from tests.unit.plugins.plugin_utils._judge.criteria_fake import is_whole, whole

# As Slurm's own documentation lists them (squeue, JOB STATE CODES); written out, so that none can get lost.
ENDS = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
}
LIVES = {"PENDING", "RUNNING", "SUSPENDED"}
FLAGS_OVER = {
    "RUNNING": {
        "COMPLETING",
        "CONFIGURING",
        "EXPEDITING",
        "POWER_UP_NODE",
        "RESIZING",
        "SIGNALING",
        "STAGE_OUT",
    },
    "SUSPENDED": {"STOPPED"},
    "PENDING": {
        "GETENV_FAILED",
        "LAUNCH_FAILED",
        "RECONFIG_FAIL",
        "REQUEUED",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "RESV_DEL_HOLD",
        "SPECIAL_EXIT",
        "UPDATE_DB",
    },
}
FAILURES = {"BOOT_FAIL", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}
NEVER = {
    "AccountNotAllowed",
    "BadConstraints",
    "DependencyNeverSatisfied",
    "InvalidAccount",
    "InvalidQOS",
    "JobHeldAdmin",
    "JobHeldUser",
    "JobHoldMaxRequeue",
    "PartitionConfig",
    "PartitionDown",
    "PartitionInactive",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "QOSNotAllowed",
    "ReservationDeleted",
    "ReservationInvalid",
}
LATER = {
    "AccountingPolicy",
    "AssocMaxJobsLimit",
    "BeginTime",
    "Cleaning",
    "DeadLine",
    "Dependency",
    "InactiveLimit",
    "JobArrayTaskLimit",
    "JobLaunchFailure",
    "Licenses",
    "MaxPoweredUpNodes",
    "NodeDown",
    "NonZeroExitCode",
    "None",
    "OutOfMemory",
    "Priority",
    "Prolog",
    "QOSMaxJobsPerUserLimit",
    "RaisedSignal",
    "ReqNodeNotAvail",
    "Reservation",
    "Resources",
    "SchedDefer",
    "SystemFailure",
    "TimeLimit",
}
LIMIT = "a limit of its account or QOS is reached"


# States


def test_the_states_are_slurms():
    assert ENDS == states.TERMINAL
    assert LIVES == states.LIVE
    assert ENDS | LIVES | {"UNKNOWN"} == states.STATES
    assert {flag: base for base, flags in FLAGS_OVER.items() for flag in flags} == states.FLAGS


def test_the_schema_of_a_job_names_every_state():
    schema = json.loads((ROOT / "files/schemas/job.json").read_text())["properties"]
    assert set(schema["state"]["enum"]) == states.STATES
    assert set(schema["steps"]["items"]["properties"]["state"]["enum"]) == states.STATES


def test_no_state_stands_twice():
    assert len({state.name for state in states.TABLE}) == len(states.TABLE)


@pytest.mark.parametrize("state", states.TABLE, ids=lambda state: state.name)
def test_every_state_has_its_verdict_and_says_what_to_do(state):
    expected = "pass" if state.name == "COMPLETED" else "fail" if state.name in FAILURES else "undetermined"
    assert state.verdict == expected
    assert describe_state(state.name) == state
    job = {**whole()["job"], "state": state.name, "stdout": "", "stderr": "", "nodes": ["n1"]}
    judged = judge_job(job)
    assert judged["verdict"] == expected
    assert came_to_an_end(job) == (expected != "undetermined")
    assert bool(state.advice) == (state.kind == "end" and expected != "pass")
    assert {field for _text, field, _spec, _conversion in string.Formatter().parse(state.advice) if field} <= {
        "job_id",
        "node",
    }
    words = state.advice.format(job_id="12", node="n1")
    commands = next_commands(job, "ended", "", cancelled=False)
    assert commands == [*([words] if words else []), "scontrol show job 12 || sacct -j 12"]
    if words:
        # one wording: what is typed on the screen is what the report says
        assert words[1:] in judged["remedy"]
        assert judged["remedy"].startswith(f"{words[0].upper()}{words[1:]}.")
        assert ";" not in words  # which stands between what to do next
        assert not words.endswith(".")
    if state.kind == "flag":
        assert state.base in LIVES


@pytest.mark.parametrize("word", ["", "COMPLETE", "completed", "COMPLETED ", "CANCELLED by 0", None, 0, ["COMPLETED"]])
def test_a_word_that_is_not_slurms_is_never_a_pass(word):
    assert describe_state(word) == describe_state("UNKNOWN")
    assert describe_state(word).verdict == "undetermined"
    assert judge_job({**whole()["job"], "state": word})["verdict"] == "undetermined"


@pytest.mark.parametrize("state", sorted(ENDS))
def test_an_end_is_one_word_without_a_flag(state):
    assert split_state(state) == (state, [])
    assert is_terminal(state, [])
    assert not is_terminal(state, ["COMPLETING"])


@pytest.mark.parametrize("state", sorted(LIVES | {"UNKNOWN", "", "COMPLETE", "CANCELLED by 0"}))
def test_nothing_else_is_an_end(state):
    assert not is_terminal(state, [])


@pytest.mark.parametrize(
    ("base", "flag"), [(base, flag) for base, flags in FLAGS_OVER.items() for flag in sorted(flags)]
)
def test_a_flag_is_never_an_end(base, flag):
    assert split_state(flag) == (base, [flag])
    assert not is_terminal(*split_state(flag))


@pytest.mark.parametrize("state", sorted((ENDS | LIVES) - {"CANCELLED"}))
@pytest.mark.parametrize("rest", ["by 0", "by", "+", "or so", "FAILED"])
def test_only_a_cancellation_names_who_did_it(state, rest):
    assert split_state(f"{state} {rest}") == ("UNKNOWN", [])


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("CANCELLED", "CANCELLED"),
        ("CANCELLED by 1000", "CANCELLED"),
        ("CANCELLED by", "UNKNOWN"),
        ("CANCELLED of 1000", "UNKNOWN"),
        ("CANCELLED by 1000 then", "UNKNOWN"),
        ("CANCELLED x", "UNKNOWN"),
        (" COMPLETED\n", "COMPLETED"),
        ("by COMPLETED", "UNKNOWN"),
        ("   ", "UNKNOWN"),
    ],
)
def test_a_state_is_read_whole_or_not_at_all(word, state):
    assert split_state(word) == (state, [])


words = st.lists(
    st.sampled_from([*sorted(states.STATES), *sorted(states.FLAGS), "by", "0", "+", "*", "COMPLET"])
    | st.text(max_size=12),
    max_size=4,
).flatmap(lambda parts: st.sampled_from([" ", "", "+", "|", "\t", ","]).map(lambda between: between.join(parts)))
codes = st.none() | st.integers(-1, 2) | st.booleans() | st.sampled_from(["0", 0.0])


@given(words)
def test_no_words_whatever_are_a_success_but_the_one(text):
    state, flags = split_state(text)
    assert state in ENDS | LIVES | {"UNKNOWN"}
    assert (state == "COMPLETED") == (text.split() == ["COMPLETED"])
    assert is_terminal(state, flags) == (state in ENDS)
    assert not flags or state in LIVES


@given(words, codes, codes, codes, st.none() | st.just([]) | st.lists(st.fixed_dictionaries({"state": words})))
def test_only_completed_with_every_code_zero_is_a_pass(text, code, signal, derived, steps):
    state, flags = split_state(text)
    row = {"job_id": "12", "state": state, "flags": flags, "nodes": ["a"], "reason": ""}
    job = from_row({**row, "exit_code": code, "signal": signal, "derived_exit_code": derived}, "squeue", 1.0)
    job["steps"] = steps
    clean = (
        text.split() == ["COMPLETED"]
        and all(is_whole(value) and value == 0 for value in (code, signal, derived))
        and all(step["state"] == "COMPLETED" for step in steps or [])
    )
    assert (judge_job(job)["verdict"] == "pass") == clean
    assert not clean or has_ended(job)


@given(st.sampled_from(sorted(states.STATES)), st.lists(st.text(max_size=5), max_size=2))
def test_a_job_with_a_flag_has_not_ended_and_is_no_success(state, flags):
    job = {"job_id": "12", "attempt": 0, "state": state, "flags": flags, "exit_code": 0}
    assert has_ended(job) == (state in ENDS and not flags)
    if flags or state != "COMPLETED":
        assert judge_job(job)["verdict"] != "pass"


# Reasons


def test_all_reasons_are_sorted_into_never_and_later():
    assert set(states.REASONS) == NEVER | LATER


@pytest.mark.parametrize("reason", sorted(NEVER))
def test_what_never_starts_says_so_and_what_to_do(reason):
    for text in (reason, f"({reason})", f"{reason}, Priority", f"{reason}:x", f"{reason}(x)"):
        described = describe_reason(text)
        assert described.never
        assert described.remedy
        assert described.words != reason


@pytest.mark.parametrize("reason", sorted(LATER))
def test_what_may_still_start_is_waited_for(reason):
    described = describe_reason(reason)
    assert not described.never
    assert described.words not in ("", reason)
    assert LIMIT not in described.words or reason.endswith(("Policy", "Limit"))


@pytest.mark.parametrize(
    ("reason", "words", "never"),
    [
        ("AssocMaxCpuPerJobLimit", "it asks for more than its account or QOS allows a job", True),
        ("QOSMaxGRESPerJob", "it asks for more than its account or QOS allows a job", True),
        ("QOSMaxCpuPerNode", "it asks for more than its account or QOS allows a job", True),
        ("QOSMaxMemoryPerNodeExtra", LIMIT, False),
        ("MaxCpuPerJob", LIMIT, False),
        ("GrpPerNode", "GrpPerNode", False),
        ("AssocMaxCpuMinutes", LIMIT, False),
        ("AssocGrpGRES", LIMIT, False),
        ("QOSMaxJobsPerAccountLimit", LIMIT, False),
        ("QOSGrpNodeLimit", LIMIT, False),
        ("MaxMemPerLimit", LIMIT, False),
        ("QOSMinGRES", "it asks for less than its QOS requires of a job", True),
        ("MinGRES", "MinGRES", False),
        ("job requeued in held state", "it was requeued and is held", True),
        ("launch failed requeued held", "it was requeued and is held", True),
        ("ReqNodeNotAvail, Reserved for m", "a node it needs is not available now: Reserved for m", False),
        ("(ReqNodeNotAvail, UnavailableNodes:n[1,3])", "a node it needs is not available now: Unavail", False),
        ("Nodes required for job are DOWN", "Nodes required for job are DOWN", False),
        ("", "no reason given", False),
    ],
)
def test_reasons_of_a_family_and_of_no_family(reason, words, never):
    described = describe_reason(reason)
    assert described.words.startswith(words)
    assert described.never is never
    assert bool(described.remedy) is never
    if words == LIMIT or " or QOS allows" in words or "QOS requires" in words:
        assert described.words.endswith(f"({reason})")


def test_nothing_is_added_to_a_reason_that_says_no_more():
    for reason in ("ReqNodeNotAvail", "(ReqNodeNotAvail)", "ReqNodeNotAvail, "):
        assert describe_reason(reason).words == "a node it needs is not available now"


@pytest.mark.parametrize(
    "reason",
    ["ReqNodeNotAvail", "ReqNodeNotAvail, UnavailableNodes:a", "Resources", "Nodes required for", "Priority"],
)
def test_for_these_the_nodes_must_be_looked_at(reason):
    assert nodes_may_be_gone(reason)
    assert nodes_may_be_gone("BadConstraints")


@pytest.mark.parametrize("reason", ["", "None", "Licenses", "JobHeldUser", "Not Resources", "BeginTime"])
def test_for_others_the_nodes_say_nothing(reason):
    assert not nodes_may_be_gone(reason)
