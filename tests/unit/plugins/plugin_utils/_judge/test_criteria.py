"""The judge: every test with a pass, a fail and what it must not decide."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import spec
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import verdicts as judge_verdicts

from tests.unit.plugins.plugin_utils._judge.criteria_fake import EACH, END, REFERENCES, TODAY, log, one, whole


@pytest.fixture
def evidence():
    return whole()


CASES = [
    # comparisons
    ({"query": "metrics.accuracy", "gt": 0.95}, "pass"),
    ({"query": "metrics.accuracy", "gt": 0.97}, "fail"),
    ({"query": "metrics.accuracy", "ge": 0.97}, "pass"),
    ({"query": "metrics.accuracy", "ge": 0.98}, "fail"),
    ({"query": "metrics.accuracy", "lt": 0.98}, "pass"),
    ({"query": "metrics.accuracy", "lt": 0.97}, "fail"),
    ({"query": "metrics.accuracy", "le": 0.97}, "pass"),
    ({"query": "metrics.accuracy", "le": 0.96}, "fail"),
    *[
        ({"query": f"metrics.{name}", test: bound}, "undetermined")
        for name in ("nothing", "text", "true", "nan", "kit_nan", "empty", "loss", "gone", "accuracy.deep")
        for test, bound in (("gt", -1e9), ("ge", 0), ("lt", 1e9), ("le", 1), ("between", [-1e9, 1e9]))
    ],
    ({"query": "lost.accuracy", "gt": 0}, "undetermined"),
    ({"query": "never.accuracy", "gt": 0}, "undetermined"),
    # eq
    ({"query": "metrics.zero", "eq": 0}, "pass"),
    ({"query": "metrics.accuracy", "eq": 1}, "fail"),
    ({"query": "metrics.true", "eq": True}, "pass"),
    ({"query": "metrics.true", "eq": False}, "fail"),
    ({"query": "metrics.true", "eq": 1}, "undetermined"),
    ({"query": "metrics.zero", "eq": False}, "undetermined"),
    ({"query": "metrics.device", "eq": "cuda"}, "pass"),
    ({"query": "metrics.device", "eq": "cpu"}, "fail"),
    ({"query": "metrics.nothing", "eq": "cuda"}, "undetermined"),
    ({"query": "metrics.text", "eq": 0.99}, "undetermined"),
    # between, within
    ({"query": "metrics.accuracy", "between": [0.97, 1]}, "pass"),
    ({"query": "metrics.accuracy", "between": [0.98, 1]}, "fail"),
    ({"query": "metrics.throughput", "within": {"reference": 200, "tolerance": 0.1}}, "pass"),
    ({"query": "metrics.throughput", "within": {"reference": 200, "tolerance": 0.05}}, "fail"),
    ({"query": "metrics.text", "within": {"reference": 1, "absolute": 9}}, "undetermined"),
    ({"query": "metrics.throughput", "within": {"reference": 0, "absolute": 180}}, "pass"),
    ({"query": "metrics.throughput", "within": {"from": "by_model", "absolute": 0}}, "pass"),
    ({"query": "metrics.throughput", "within": {"from": "fixed", "tolerance": 0.5}}, "fail"),
    ({"query": "metrics.throughput", "within": {"from": "elsewhere", "absolute": 9}}, "undetermined"),
    ({"query": "metrics.throughput", "within": {"from": "twice", "absolute": 1e9}}, "undetermined"),
    ({"query": "metrics.throughput", "within": {"from": "unknown", "absolute": 1e9}}, "undetermined"),
    # ratios
    ({"query": "metrics.throughput", "ratio_ge": {"bound": 1.7, "to": "metrics.throughput"}}, "pass"),
    ({"query": "metrics.throughput", "ratio_ge": {"bound": 1.9, "to": "metrics.throughput"}}, "fail"),
    ({"query": "metrics.throughput", "ratio_ge": {"bound": 0.1, "to": "metrics.zero"}}, "undetermined"),
    ({"query": "metrics.throughput", "ratio_ge": {"bound": 0.1, "to": "metrics.text"}}, "undetermined"),
    ({"query": "metrics.throughput", "ratio_ge": {"bound": 0.1, "to": "metrics.gone"}}, "undetermined"),
    ({"query": "metrics.throughput", "ratio_le": {"bound": 3, "to": "job.run_seconds", "of": "own"}}, "pass"),
    ({"query": "metrics.throughput", "ratio_le": {"bound": 2, "to": "job.run_seconds", "of": "own"}}, "fail"),
    ({"query": "metrics.throughput", "ratio_le": {"bound": 2, "to": "metrics.zero", "of": "own"}}, "undetermined"),
    # decreasing
    ({"query": "metrics.loss", "decreasing": True}, "pass"),
    ({"query": "metrics.loss", "decreasing": {"min_drop": 0.5}}, "pass"),
    ({"query": "metrics.loss", "decreasing": {"min_drop": 0.9}}, "fail"),
    ({"query": "metrics.rising", "decreasing": {}}, "fail"),
    ({"query": "metrics.flat", "decreasing": True}, "fail"),
    ({"query": "metrics.halved", "decreasing": {"min_drop": 0.5}}, "pass"),
    ({"query": "metrics.below_zero", "decreasing": True}, "pass"),
    ({"query": "metrics.below_zero", "decreasing": {"min_drop": 0.1}}, "undetermined"),
    ({"query": "metrics.nan_loss", "decreasing": True}, "undetermined"),
    ({"query": "metrics.null_loss", "decreasing": True}, "undetermined"),
    ({"query": "metrics.loss[:1]", "decreasing": True}, "undetermined"),
    ({"query": "metrics.empty", "decreasing": True}, "undetermined"),
    ({"query": "metrics.accuracy", "decreasing": True}, "undetermined"),
    ({"query": "progress.fields.loss", "decreasing": {"min_drop": 0.4}}, "pass"),
    ({"query": "progress.fields.loss", "decreasing": {"min_drop": 0.6}}, "fail"),
    ({"query": "progress.fields.up", "decreasing": True}, "fail"),
    ({"query": "progress.fields.nan", "decreasing": True}, "undetermined"),
    ({"query": "progress.fields", "decreasing": True}, "undetermined"),
    ({"query": "torn.fields.loss", "decreasing": True}, "undetermined"),
    # finite
    ({"query": "metrics.loss", "finite": True}, "pass"),
    ({"query": "metrics.[loss, rising]", "finite": True}, "pass"),
    ({"query": "metrics.nan_loss", "finite": True}, "fail"),
    ({"query": "metrics.kit_nan", "finite": True}, "fail"),
    ({"query": "metrics.null_loss", "finite": True}, "undetermined"),
    ({"query": "metrics.empty", "finite": True}, "undetermined"),
    ({"query": "metrics.[loss, empty]", "finite": True}, "undetermined"),
    ({"query": "metrics.true", "finite": True}, "undetermined"),
    ({"query": "progress.fields.loss", "finite": True}, "pass"),
    ({"query": "progress.fields.nan", "finite": True}, "fail"),
    # present
    ({"query": "metrics.accuracy", "present": True}, "pass"),
    ({"query": "metrics.device", "present": True}, "pass"),
    ({"query": "metrics.true", "present": True}, "pass"),
    ({"query": "metrics.nan", "present": True}, "undetermined"),
    ({"query": "metrics.{a: accuracy, b: nothing}", "present": True}, "undetermined"),
    ({"query": "metrics.[accuracy, loss]", "present": True}, "pass"),
    ({"query": "metrics.gone", "present": True}, "fail"),
    ({"query": "metrics.[accuracy, gone]", "present": True}, "fail"),
    ({"query": "metrics.nothing", "present": True}, "undetermined"),
    ({"query": "metrics.[accuracy, nothing]", "present": True}, "undetermined"),
    ({"query": "metrics.empty", "present": True}, "undetermined"),
    ({"query": "lost.accuracy", "present": True}, "undetermined"),
    ({"query": "never.accuracy", "present": True}, "undetermined"),
    # each
    ({"each": {**EACH, "gt": 70}}, "pass"),
    ({"each": {**EACH, "gt": 77}}, "fail"),
    ({"each": {**EACH, "count": 3, "gt": 70}}, "undetermined"),
    ({"each": {**EACH, "count": 1, "gt": 70}}, "undetermined"),
    ({"each": {**EACH, "count": 3, "gt": 70}}, "undetermined"),
    ({"each": {"over": "gpu.groups", "query": "fields.util.mean", "at_least": 1, "gt": 70}}, "pass"),
    ({"each": {"over": "gpu.groups", "query": "fields.util.mean", "at_least": "job.gpus", "gt": 70}}, "pass"),
    ({"each": {"over": "gpu.groups", "query": "fields.util.mean", "at_least": 3, "gt": 70}}, "undetermined"),
    ({"each": {**EACH, "count": "metrics.text", "gt": 70}}, "undetermined"),
    ({"each": {**EACH, "count": "metrics.zero", "gt": 70}}, "undetermined"),
    ({"each": {**EACH, "count": "metrics.gone", "gt": 70}}, "undetermined"),
    ({"each": {**EACH, "count": "metrics.true", "gt": 70}}, "undetermined"),
    ({"each": {**EACH, "count": "metrics.two", "gt": 70}}, "undetermined"),
    ({"each": {**EACH, "query": "fields.gone.mean", "gt": 70}}, "undetermined"),
    ({"each": {**EACH, "query": "fields.gone.mean", "present": True}}, "fail"),
    ({"each": {**EACH, "query": "fields.util.mean", "present": True}}, "pass"),
    ({"each": {"over": "metrics.mixed", "query": "util", "count": 2, "present": True}}, "undetermined"),
    ({"each": {**EACH, "ratio_ge": {"bound": 0.7, "to": "metrics.throughput"}}}, "pass"),
    ({"each": {**EACH, "ratio_ge": {"bound": 0.78, "to": "metrics.throughput"}}}, "fail"),
    ({"each": {**EACH, "ratio_le": {"bound": 40, "to": "job.gpus", "of": "own"}}}, "pass"),
    ({"each": {**EACH, "ratio_le": {"bound": 39, "to": "job.gpus", "of": "own"}}}, "fail"),
    ({"each": {**EACH, "within": {"from": "fixed", "absolute": 25}}}, "pass"),
    ({"each": {**EACH, "within": {"from": "fixed", "absolute": 24}}}, "fail"),
    ({"each": {**EACH, "over": "gpu.rows", "gt": 70}}, "undetermined"),
    ({"each": {"over": "metrics.gpus", "query": "util", "count": 2, "gt": 70}}, "pass"),
    ({"each": {"over": "metrics.gpus[*].util", "query": "@", "count": 2, "between": [80, 90]}}, "pass"),
    ({"each": {"over": "metrics.mixed", "query": "util", "count": 2, "gt": 70}}, "undetermined"),
    ({"each": {"over": "metrics.mixed", "query": "util", "count": 2, "gt": 85}}, "fail"),
    ({"each": {"over": "metrics.mixed[*].util", "query": "@", "count": 2, "gt": 70}}, "undetermined"),
    ({"each": {"over": "metrics.empty", "query": "util", "count": 1, "gt": 70}}, "undetermined"),
    # artifacts
    ({"artifact": "model.pt", "exists": True}, "pass"),
    ({"artifact": "model.pt", "exists": {"min_bytes": 100}}, "pass"),
    ({"artifact": "model.pt", "exists": {"min_bytes": 101}}, "fail"),
    ({"artifact": "gone.pt", "exists": True}, "fail"),
    ({"artifact": "link.pt", "exists": True}, "undetermined"),
    ({"artifact": "never-asked-for.pt", "exists": True}, "undetermined"),
    # logs
    ({"log": ["stdout", "stderr"], "absent": "cuda_errors"}, "pass"),
    ({"log": ["stdout"], "absent": "other_set"}, "undetermined"),
    ({"log": ["stdout"], "present": "cuda_errors"}, "fail"),
    # applies_when
    ({"query": "metrics.accuracy", "gt": 1, "applies_when": {"accelerator": ["cpu", "simulated"]}}, "not_applicable"),
    ({"query": "metrics.accuracy", "gt": 0, "applies_when": {"accelerator": ["cuda"], "gpu_count": [2]}}, "pass"),
    ({"query": "metrics.accuracy", "gt": 0, "applies_when": {"cooling": ["water"]}}, "undetermined"),
    # what has a test of its own is not to be had by a query
    ({"query": "logs.stdout.counts.cuda_errors", "eq": 0}, "undetermined"),
    ({"query": "baseline.metrics.throughput", "gt": 0}, "undetermined"),
    ({"query": "torn.malformed", "le": 1}, "pass"),
    ({"query": "torn.[malformed, rows] | [1]", "gt": 0}, "undetermined"),
    # recorded never gates
    ({"query": "metrics.accuracy", "gt": 1, "severity": "record"}, "recorded"),
    ({"query": "metrics.gone", "gt": 1, "severity": "record"}, "recorded"),
]


@pytest.mark.parametrize(("criterion", "verdict"), CASES, ids=[f"{case[0]} {case[1]}" for case in CASES])
def test_a_criterion_gets_its_verdict(evidence, criterion, verdict):
    judged = one(evidence, REFERENCES, **criterion)
    assert judged["verdict"] == verdict, judged["why"]
    assert judged["why"]
    assert "judging it failed" not in judged["why"]
    assert judged["bound"]


def test_a_problem_with_a_file_is_the_reason_of_every_criterion_that_needs_it(evidence):
    judged = one(evidence, query="lost.accuracy", gt=0)
    assert judged["why"] == "/out/lost.json: truncated: line 1"
    assert judged["remedy"]


def test_a_document_of_another_job_or_with_a_problem_is_not_relied_on(evidence):
    evidence["metrics"]["job_id"] = "13"
    assert "another job" in one(evidence, query="metrics.accuracy", gt=0)["why"]
    evidence["metrics"]["job_id"] = "12"
    evidence["problems"].append({"source": "metrics", "path": "/m", "problem": "changed", "detail": "d"})
    assert one(evidence, query="metrics.accuracy", gt=0)["why"] == "/m: changed: d"


def test_the_source_names_query_and_file(evidence):
    assert one(evidence, query="metrics.accuracy", gt=0)["source"] == "metrics.accuracy in /out/metrics.json"


def test_a_hit_in_a_log_fails_and_is_quoted_with_its_line_and_remedy(evidence):
    evidence["logs"]["stderr"] = log("/jobs/12.err", {"cuda_errors": 2})
    judged = one(evidence, log=["stdout", "stderr"], absent="cuda_errors")
    assert judged["verdict"] == "fail"
    assert 'stderr line 1: "line 0"' in judged["why"]
    assert judged["remedy"] == "look"
    assert one(evidence, log=["stderr"], present="cuda_errors")["verdict"] == "pass"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"end": None}, "no end marker"),
        ({"end": None, "bytes": 0}, "empty"),
        ({"end": {**END, "job_id": "13"}}, "of job"),
        ({"end": {**END, "attempt": 1}}, "of job"),
        ({"end": {**END, "attempt": False}}, "of job"),
        ({"end": {**END, "exit_code": 1}}, "exit code 1"),
        ({"end": {**END, "exit_code": None}}, "exit code null"),
        ({"counts": {}}, "not searched"),
        ({"hits": None}, "not searched"),
    ],
)
@pytest.mark.parametrize("test", ["absent", "present"])
def test_a_log_that_is_not_wholly_this_jobs_decides_nothing(evidence, change, why, test):
    evidence["logs"]["stderr"].update(change)
    judged = one(evidence, log=["stdout", "stderr"], **{test: "cuda_errors"})
    assert judged["verdict"] == "undetermined"
    assert why in judged["why"]


def test_a_hit_in_another_jobs_log_is_not_this_jobs_failure(evidence):
    evidence["logs"]["stdout"] = log("/jobs/12.out", {"cuda_errors": 1}, end={**END, "job_id": "13"})
    assert one(evidence, log=["stdout"], absent="cuda_errors")["verdict"] == "undetermined"


def test_a_hit_in_a_log_that_was_cut_off_is_a_failure(evidence):
    evidence["logs"]["stdout"] = log("/jobs/12.out", {"cuda_errors": 1}, end=None)
    assert one(evidence, log=["stdout"], absent="cuda_errors")["verdict"] == "fail"
    assert one(evidence, log=["stdout"], present="cuda_errors")["verdict"] == "undetermined"


def test_an_unread_log_decides_nothing(evidence):
    del evidence["logs"]["stdout"]
    assert one(evidence, log=["stdout"], absent="cuda_errors")["verdict"] == "undetermined"
    evidence["problems"].append({"source": "logs.stdout", "path": "/x", "problem": "timeout", "detail": ""})
    assert "timeout" in one(evidence, log=["stdout"], absent="cuda_errors")["why"]


def test_a_baseline_of_a_failed_job_is_no_measure(evidence):
    evidence["baseline"]["runs"][0]["job"]["state"] = "FAILED"
    judged = one(evidence, query="metrics.throughput", ratio_ge={"bound": 1, "to": "metrics.throughput"})
    assert judged["verdict"] == "undetermined"
    del evidence["baseline"]
    judged = one(evidence, query="metrics.throughput", ratio_ge={"bound": 1, "to": "metrics.throughput"})
    assert judged["verdict"] == "undetermined"


def test_the_most_specific_reference_is_taken_and_named(evidence):
    judged = one(evidence, REFERENCES, query="metrics.throughput", within={"from": "by_model", "absolute": 0})
    assert judged["bound_from"] == "reference"
    assert "180" in judged["why"]


def test_nothing_collected_leaves_everything_undetermined(evidence):
    evidence["problems"].append({"source": "*", "path": "", "problem": "not_collected", "detail": "unreachable"})
    for criterion in ({"query": "job.run_seconds", "lt": 180}, {"artifact": "gone.pt", "exists": True}):
        judged = one(evidence, **criterion)
        assert (judged["verdict"], judged["why"]) == ("undetermined", "not collected: unreachable")


@pytest.mark.parametrize("broken", [{"path": "/out/model.pt"}, {"size": True}, {"size": "100"}, "model.pt", None])
def test_an_artifact_without_a_size_decides_nothing(evidence, broken):
    evidence["artifacts"]["model.pt"] = broken
    judged = one(evidence, artifact="model.pt", exists=True)
    assert (judged["verdict"], judged["why"]) == ("undetermined", "the evidence has no artifact model.pt")


def test_a_reference_that_is_no_number_is_not_taken(evidence):
    read = spec.read(
        [{"id": "X", "title": "t", "query": "metrics.accuracy", "within": {"from": "r", "absolute": 9}}], workload="W"
    )
    for references in (*({"r": value} for value in (True, float("nan"), None, "1")), {}, None):
        judged = judge_verdicts.judge(evidence, read, references=references, today=TODAY)
        assert judged[1]["verdict"] == "undetermined"
        assert judged[1]["why"] == "the inventory has no reference 'r' for this hardware"


# The job itself


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "pass"),
        ({"steps": None}, "pass"),
        ({"derived_exit_code": None}, "undetermined"),
        ({"signal": None}, "undetermined"),
        ({"exit_code": 1}, "fail"),
        ({"exit_code": None}, "undetermined"),
        ({"exit_code": False}, "undetermined"),
        ({"signal": 9}, "fail"),
        ({"derived_exit_code": 2}, "fail"),
        ({"steps": [{"id": "0", "state": "FAILED", "exit_code": 1}]}, "fail"),
        ({"steps": [{"id": "0", "state": "OUT_OF_MEMORY", "exit_code": 0}]}, "fail"),
        ({"steps": [{"id": "0", "state": "COMPLETED", "exit_code": 3}]}, "fail"),
        ({"steps": [{"id": "0", "state": "RUNNING", "exit_code": 0}]}, "undetermined"),
        ({"steps": ["batch"]}, "undetermined"),
        ({"steps": "batch"}, "undetermined"),
        ({"flags": ["COMPLETING"]}, "undetermined"),
        *[({"state": s}, "fail") for s in ("FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL")],
        *[
            ({"state": s}, "undetermined")
            for s in ("PENDING", "RUNNING", "CANCELLED", "PREEMPTED", "DEADLINE", "UNKNOWN", "REVOKED", "SUSPENDED")
        ],
        *[({"state": s}, "undetermined") for s in (None, "", "completed", 0, ["COMPLETED"], {})],
    ],
)
def test_the_job_is_judged_first(evidence, change, verdict):
    evidence["job"].update(change)
    judged = judge_verdicts.judge(evidence, [], today=TODAY)
    assert [entry["id"] for entry in judged] == ["JOB"]
    assert judged[0]["verdict"] == verdict, judged[0]["why"]
    if verdict == "fail":
        assert judged[0]["remedy"]
        assert "compute01" in judged[0]["why"]


@pytest.mark.parametrize("junk", [None, "", [], 1, {"job": None}, {"job": []}, {"job": {}}, {"problems": "none"}])
def test_evidence_that_is_none_passes_nothing(junk):
    criteria = spec.read(
        [
            {"id": "Q", "title": "t", "query": "metrics.accuracy", "ge": 0},
            {"id": "L", "title": "t", "log": ["stdout"], "absent": "cuda_errors"},
            {"id": "A", "title": "t", "artifact": "a", "exists": True},
            {"id": "E", "title": "t", "each": {**EACH, "ge": 0}},
        ],
        workload="W",
    )
    judged = judge_verdicts.judge(junk, criteria, today=TODAY)
    assert {entry["verdict"] for entry in judged} == {"undetermined"}
    assert not [entry["why"] for entry in judged if "judging it failed" in entry["why"]]
    assert judge_verdicts.overall(judged) == "undetermined"


# Overrides and waivers


def test_an_override_moves_the_bound_and_the_report_says_so(evidence):
    judged = one(evidence, override={"gt": 0.9999}, query="metrics.accuracy", gt=0.95)
    assert (judged["verdict"], judged["bound"], judged["bound_from"]) == ("fail", "> 0.9999", "override")


def test_an_override_is_merged_deeply(evidence):
    judged = one(evidence, override={"each": {"gt": 77}}, each={**EACH, "gt": 70})
    assert judged["verdict"] == "fail"
    judged = one(
        evidence,
        override={"within": {"tolerance": 0.2}},
        query="metrics.throughput",
        within={"reference": 200, "tolerance": 0.01},
    )
    assert judged["verdict"] == "pass"


def test_a_waiver_turns_a_failure_and_nothing_else_until_it_expires(evidence):
    waive = {"reason": "fan replaced on Monday", "expires": "2026-11-21"}
    judged = one(evidence, override={"waive": waive}, query="metrics.accuracy", gt=0.99)
    assert judged["verdict"] == "waived"
    assert "fan replaced" in judged["why"]
    assert one(evidence, override={"waive": waive}, query="metrics.gone", gt=0.99)["verdict"] == "undetermined"
    assert one(evidence, override={"waive": waive}, query="metrics.accuracy", gt=0.9)["verdict"] == "pass"
    expired = one(evidence, override={"waive": {**waive, "expires": "2026-11-20"}}, query="metrics.accuracy", gt=0.99)
    assert expired["verdict"] == "fail"
    assert "expired on 2026-11-20" in expired["why"]


# The verdict over all


def entries(*verdicts, job="pass"):
    made = [{"id": "JOB", "verdict": job, "severity": "gate"}]
    return made + [
        {"id": str(n), "verdict": v, "severity": "record" if v == "recorded" else "gate"}
        for n, v in enumerate(verdicts)
    ]


@pytest.mark.parametrize(
    ("judged", "verdict"),
    [
        (entries("pass", "pass"), "pass"),
        (entries("pass", "not_applicable", "waived", "recorded"), "pass"),
        (entries("pass", "fail", "undetermined"), "fail"),
        (entries("pass", "undetermined"), "undetermined"),
        (entries("pass", job="undetermined"), "undetermined"),
        (entries("pass", job="fail"), "fail"),
        (entries(), "undetermined"),
        (entries("not_applicable", "recorded"), "undetermined"),
        (entries("waived"), "undetermined"),
        (entries("pass", "recorded"), "pass"),
        (entries("pass", "something new"), "undetermined"),
        ([], "undetermined"),
        ([{"id": "a", "severity": "gate"}], "undetermined"),
    ],
)
def test_the_verdict_over_all(judged, verdict):
    assert judge_verdicts.overall(judged) == verdict


def test_judging_leaves_the_evidence_alone_and_is_repeatable(evidence):
    before = copy.deepcopy(evidence)
    first = one(evidence, each={**EACH, "gt": 70})
    assert one(evidence, each={**EACH, "gt": 70}) == first
    assert evidence == before


@pytest.mark.parametrize(
    ("criterion", "bound"),
    [
        ({"query": "m.v", "gt": 0.95}, "> 0.95"),
        ({"query": "m.v", "ge": 1}, ">= 1"),
        ({"query": "m.v", "lt": 1}, "< 1"),
        ({"query": "m.v", "le": 1}, "<= 1"),
        ({"query": "m.v", "eq": "cuda"}, '= "cuda"'),
        ({"query": "m.v", "between": [1, 2]}, "1 to 2"),
        ({"query": "m.v", "within": {"reference": 100, "tolerance": 0.05}}, "100 ± 5 %"),
        ({"query": "m.v", "within": {"from": "speed", "absolute": 5}}, "reference speed ± 5"),
        ({"query": "m.v", "ratio_ge": {"bound": 1.7, "to": "m.v"}}, ">= 1.7 x baseline's m.v"),
        ({"query": "m.v", "ratio_le": {"bound": 1.1, "to": "m.w", "of": "own"}}, "<= 1.1 x own m.w"),
        ({"query": "m.v", "decreasing": True}, "decreasing"),
        ({"query": "m.v", "decreasing": {"min_drop": 0.2}}, "decreasing by at least 20 %"),
        ({"query": "m.v", "finite": True}, "all numbers finite"),
        ({"query": "m.v", "present": True}, "present"),
        ({"log": ["stdout"], "absent": "oom"}, "no oom"),
        ({"log": ["stdout"], "present": "oom"}, "has oom"),
        ({"artifact": "a", "exists": True}, "exists and is not empty"),
        ({"artifact": "a", "exists": {"min_bytes": 9}}, "exists, at least 9 bytes"),
        ({"each": {**EACH, "gt": 70}}, "each of job.gpus: > 70"),
        ({"each": {"over": "m.v", "query": "@", "at_least": "job.gpus", "gt": 70}}, "each of at least job.gpus: > 70"),
        ({"each": {"over": "m.v", "query": "@", "at_least": 2, "le": 1}}, "each of at least 2: <= 1"),
        ({"each": {"over": "m.v", "query": "@", "count": 2, "le": 1}}, "each of 2: <= 1"),
    ],
)
def test_a_bound_reads_like_one(evidence, criterion, bound):
    assert one(evidence, **criterion)["bound"] == bound


@pytest.mark.parametrize(
    ("criterion", "against"),
    [
        ({"query": "m.v", "ratio_ge": {"bound": 1.7, "to": "m.v"}}, True),
        ({"query": "m.v", "ratio_le": {"bound": 2, "to": "m.v", "of": "baseline"}}, True),
        ({"query": "m.v", "ratio_le": {"bound": 1.1, "to": "m.w", "of": "own"}}, False),
        ({"each": {**EACH, "ratio_ge": {"bound": 1, "to": "m.v"}}}, True),
        ({"each": {**EACH, "ratio_ge": {"bound": 1, "to": "m.v", "of": "own"}}}, False),
        ({"each": {**EACH, "gt": 70}}, False),
        ({"query": "m.v", "eq": "baseline's"}, False),
        ({"query": "m.v", "finite": True}, False),
        ({"artifact": "a", "exists": True}, False),
    ],
)
def test_a_ratio_to_a_baseline_is_marked_as_one(evidence, criterion, against):
    assert one(evidence, **criterion)["against_baseline"] is against


def test_what_is_recorded_and_well_has_no_remedy(evidence):
    well = one(evidence, query="metrics.accuracy", gt=0, severity="record", remedy="do")
    ill = one(evidence, query="metrics.accuracy", gt=1, severity="record", remedy="do")
    assert (well["verdict"], well["remedy"], ill["verdict"], ill["remedy"]) == ("recorded", None, "recorded", "do")
