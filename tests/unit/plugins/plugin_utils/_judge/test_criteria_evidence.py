# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the judge says of evidence that is not there, not whole or not this job's, and what a report is told."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import collector
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import soundness, sources

from tests.unit.plugins.plugin_utils._judge.criteria_fake import EACH, field, one, whole


@pytest.fixture
def evidence():
    return whole()


ACCURATE = {"query": "metrics.accuracy", "gt": 0.95}


def test_all_that_a_report_is_told(evidence):
    assert one(evidence, **ACCURATE, unit="%", remedy="do", severity="gate") == {
        "id": "X",
        "title": "t",
        "verdict": "pass",
        "value": 0.97,
        "bound": "> 0.95",
        "unit": "%",
        "source": "metrics.accuracy in /out/metrics.json",
        "why": "0.97 is > 0.95",
        "remedy": None,
        "bound_from": "manifest",
        "severity": "gate",
        "against_baseline": False,
    }


def test_whatever_goes_wrong_in_judging_is_no_pass(evidence, monkeypatch):
    def broken(*_arguments):
        raise ZeroDivisionError("a\x1b[2Jb")

    monkeypatch.setattr(sources, "judge_value", broken)
    judged = one(evidence, **ACCURATE, remedy="do")
    assert (judged["verdict"], judged["value"], judged["remedy"]) == ("undetermined", 0.97, "do")
    assert judged["why"] == "judging it failed: ZeroDivisionError: a\ufffd[2Jb"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(["a"], '["a"]'), ("0.99", '"0.99"'), (True, "true")],
)
def test_the_value_that_could_not_be_judged_is_told(evidence, value, shown):
    evidence["metrics"]["accuracy"] = value
    judged = one(evidence, **ACCURATE)
    assert (judged["verdict"], judged["value"]) == ("undetermined", value)
    assert shown in judged["why"] or "list" in judged["why"]


# Where a criterion applies


@pytest.mark.parametrize("context", [None, [], {}, {"cooling": None}])
def test_an_inventory_that_is_silent_leaves_it_undetermined(evidence, context):
    evidence["context"] = context
    judged = one(evidence, **ACCURATE, applies_when={"cooling": ["water"]})
    assert judged["verdict"] == "undetermined"
    assert judged["why"] == "whether it applies depends on cooling, which the inventory does not give"


def test_what_does_not_apply_says_where_it_would_and_has_no_remedy(evidence):
    for severity in ("gate", "record"):
        judged = one(
            evidence,
            query="metrics.gone",
            gt=0,
            remedy="do",
            severity=severity,
            applies_when={"accelerator": ["cpu", 1]},
        )
        assert (judged["verdict"], judged["remedy"], judged["value"]) == ("not_applicable", None, None)
        assert judged["why"] == 'it applies where accelerator is "cpu" or 1; here it is "cuda"'


def test_it_must_apply_by_every_key(evidence):
    applies = {"accelerator": ["cuda"], "gpu_count": [4]}
    assert one(evidence, **ACCURATE, applies_when=applies)["verdict"] == "not_applicable"


def test_true_is_not_one_where_it_applies(evidence):
    evidence["context"]["gpu_count"] = True
    assert one(evidence, **ACCURATE, applies_when={"gpu_count": [1]})["verdict"] == "undetermined"


# Problems of collecting


@pytest.mark.parametrize(
    "kind",
    [
        *("missing", "foreign", "empty", "truncated", "not_json", "unreadable", "changed", "not_searchable"),
        *("timeout", "not_collected"),
    ],
)
def test_a_problem_of_reading_has_a_remedy_of_its_own(evidence, kind):
    evidence["problems"].append({"source": "metrics", "path": "/m", "problem": kind, "detail": "d"})
    judged = one(evidence, **ACCURATE, remedy="train longer")
    assert judged["verdict"] == "undetermined"
    assert judged["why"] == f"/m: {kind.replace('_', ' ')}: d"
    assert judged["remedy"] not in (None, "train longer")


def test_another_problem_has_the_criterions_remedy(evidence):
    evidence["problems"].append({"source": "metrics", "path": "/m", "problem": "too_large", "detail": "d"})
    assert one(evidence, **ACCURATE, remedy="train longer")["remedy"] == "train longer"


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        ({"source": "metrics", "problem": "changed", "detail": "d"}, "metrics: changed: d"),
        ({"source": "metrics", "path": "/m", "problem": "changed"}, "/m: changed"),
        ({"source": "*", "problem": "not_collected", "detail": "d"}, "not collected: d"),
        ({"source": "*", "path": "/e", "problem": "not_saved", "detail": "d"}, "/e: not saved: d"),
    ],
)
def test_a_problem_is_told_as_far_as_it_is_known(evidence, problem, why):
    evidence["problems"].append(problem)
    assert (one(evidence, **ACCURATE)["verdict"], one(evidence, **ACCURATE)["why"]) == ("undetermined", why)


@pytest.mark.parametrize("problems", [None, "none", {}])
def test_evidence_that_does_not_tell_its_problems_decides_nothing(evidence, problems):
    evidence["problems"] = problems
    judged = one(evidence, **ACCURATE)
    assert judged["verdict"] == "undetermined"
    assert "has no list of problems" in judged["why"]


# Documents


@pytest.mark.parametrize("part", ["job", "context", "artifacts", "files"])
def test_a_part_of_the_evidence_is_not_taken_for_a_document_of_another_job(evidence, part):
    evidence[part].pop("attempt", None)
    evidence[part]["job_id"] = "13"
    judged = one(evidence, query=f"{part}.job_id", eq="13")
    assert judged["verdict"] == "pass", judged["why"]


@pytest.mark.parametrize(
    "change",
    [{"job_id": "13"}, {"job_id": 12}, {"attempt": 1}, {"attempt": None}, {"attempt": False}, {"attempt": 0.0}],
)
def test_a_document_must_be_of_this_job_and_attempt(evidence, change):
    evidence["metrics"].update(change)
    judged = one(evidence, **ACCURATE)
    assert (judged["verdict"], judged["why"]) == ("undetermined", "metrics is from another job or attempt")


@pytest.mark.parametrize("job", [{"job_id": 12, "attempt": 0}, {"job_id": None, "attempt": 0}, {"job_id": "12"}])
def test_a_document_is_of_no_job_that_does_not_say_its_id(evidence, job):
    evidence["job"] = job
    evidence["metrics"].update({"attempt": None, **job})
    assert one(evidence, **ACCURATE)["verdict"] == "undetermined"


@pytest.mark.parametrize("job", [None, [], "12"])
def test_without_a_job_nothing_is_known_to_be_its(evidence, job):
    evidence["job"] = job
    for criterion in (ACCURATE, {"log": ["stdout"], "absent": "cuda_errors"}):
        judged = one(evidence, **criterion)
        assert (judged["verdict"], judged["why"]) == (
            "undetermined",
            "the evidence does not say which job it is from",
        )


@pytest.mark.parametrize("document", [None, 5, [1], "text"])
def test_a_document_that_is_no_object_answers_nothing(evidence, document):
    evidence["metrics"] = document
    for test in ({"gt": 0}, {"present": True}):
        judged = one(evidence, query="metrics.accuracy", **test)
        assert judged["verdict"] == "undetermined"
        assert "metrics does not say which job wrote it" in judged["why"]
    assert one(evidence, query="metrics", present=True)["verdict"] == "undetermined"


@pytest.mark.parametrize("key", ["job_id", "attempt"])
@pytest.mark.parametrize("part", ["metrics", "legs"])
def test_a_document_that_does_not_say_whose_it_is_is_nobodys(evidence, part, key):
    del evidence[part][key]
    for test in ({"query": "metrics.accuracy", "gt": 0.1}, {"query": "legs.work", "eq": "weak"}):
        named = part in test["query"]
        assert one(evidence, **test)["verdict"] == ("undetermined" if named else "pass")


@pytest.mark.parametrize("job", [None, {}, {"job_id": None}, {"job_id": ""}, {"job_id": " "}, {"job_id": 12}])
def test_evidence_that_does_not_say_which_job_it_is_of_is_nobodys(evidence, job):
    evidence["job"] = {**evidence["job"], **job} if job else job
    evidence["versions"] = {"end_line": 2}
    for criterion in (
        {"query": "metrics.accuracy", "gt": 0.1},
        {"query": "progress.fields.loss.last", "lt": 9},
        {"query": "files.metrics.size", "eq": 1},
        {"query": "job.run_seconds", "gt": 1},
        {"query": "context.gpu_count", "eq": 2},
        {"query": "length(problems)", "ge": 1},
        {"query": "versions.end_line", "eq": 2},
        {"artifact": "model.pt", "exists": True},
        {"log": ["stdout"], "absent": "cuda_errors"},
    ):
        assert one(evidence, **criterion)["verdict"] == "undetermined"


# All documents at once


@pytest.mark.parametrize(
    "query",
    [
        "values(@)[0].accuracy",
        "*.accuracy",
        "length(@) | {a: @}.a",
        "{a: @}.a.metrics.accuracy",
        "keys(@)[?@ == 'metrics'].a",
    ],
)
def test_what_is_made_of_the_whole_evidence_reads_each_document(evidence, query):
    evidence["problems"].append({"source": "metrics", "path": "/m", "problem": "foreign", "detail": "d"})
    assert one(evidence, query=query, present=True)["verdict"] == "undetermined"


def test_an_element_that_is_the_whole_evidence_reads_each_document(evidence):
    evidence["metrics"]["job_id"] = "13"
    each = {"over": "{a: @, b: metrics}", "query": "metrics.accuracy", "count": 2, "gt": 0.1}
    assert one(evidence, each=each)["verdict"] == "undetermined"


@pytest.mark.parametrize("key", ["rows", "fields"])
def test_a_document_with_one_word_of_a_reduction_is_none(evidence, key):
    evidence["metrics"][key] = 1
    assert one(evidence, **ACCURATE)["verdict"] == "pass"


@pytest.mark.parametrize("malformed", [1, None, "0", {}])
def test_rows_that_could_not_be_read_may_be_the_ones_that_mattered(evidence, malformed):
    evidence["progress"] = {"rows": 5, "malformed": malformed, "fields": {"loss": field()}}
    judged = one(evidence, query="progress.fields.loss.mean", gt=0)
    assert judged["verdict"] == "undetermined"
    assert "of its lines are malformed" in judged["why"]
    del evidence["progress"]["malformed"]
    assert one(evidence, query="progress.fields.loss.mean", gt=0)["verdict"] == "undetermined"


# Each


def test_no_more_than_five_of_many_are_told(evidence):
    evidence["metrics"]["gpus"] = [{"util": 1.0}] * 7 + [{"util": None}]
    each = {"over": "metrics.gpus", "query": "util", "count": 8, "gt": 70}
    failed = one(evidence, each=each)
    assert failed["verdict"] == "fail"
    assert failed["why"].count(" is not > 70") == 5
    assert failed["value"] == {**{str(n): 1.0 for n in range(7)}, "7": None}
    evidence["metrics"]["gpus"] = [{"util": None}] * 7
    doubted = one(evidence, each={**each, "count": 7})
    assert doubted["verdict"] == "undetermined"
    assert doubted["why"].count("null") == 5
    assert doubted["value"] == {str(n): None for n in range(7)}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"over": "gpu.rows"}, "gpu.rows is 9, not a list or an object"),
        ({"count": "metrics.true"}, "how many there must be (metrics.true) is true, a boolean"),
        ({"count": "metrics.two"}, "how many there must be (metrics.two) is 2"),
        ({"count": "metrics.text"}, "how many there must be (metrics.text) is the text"),
        ({"count": "metrics.zero"}, "how many there must be (metrics.zero) is 0"),
        ({"count": 3}, "number of elements of gpu.groups: expected 3, found 2"),
    ],
)
def test_why_each_could_not_be_asked(evidence, change, why):
    judged = one(evidence, each={**EACH, "gt": 70, **change})
    assert judged["verdict"] == "undetermined"
    assert why in judged["why"]


def test_all_that_pass_are_told_by_name(evidence):
    judged = one(evidence, each={**EACH, "gt": 70})
    assert (judged["value"], judged["why"]) == ({"GPU-a": 80.0, "GPU-b": 75.0}, "all 2 are > 70")
    assert judged["source"] == "fields.util.mean of each of gpu.groups"


@pytest.mark.parametrize("files", [None, [], {}, {"metrics": None}, {"metrics": {"size": 1}}])
def test_a_source_without_a_path_is_told_by_its_name(evidence, files):
    evidence["files"] = files
    del evidence["logs"]["stdout"]["path"]
    assert one(evidence, **ACCURATE)["source"] == "metrics.accuracy"
    assert one(evidence, log=["stdout"], absent="cuda_errors")["source"] == "log stdout"


# What is of another kind


def test_what_is_reserved_for_the_evidence_itself_is_the_same_to_who_collects_it():
    assert sorted(soundness.PARTS) == sorted(collector.RESERVED)


@pytest.mark.parametrize("problems", [None, {}, "x", ["x"], [None], [{"source": "other"}, 7]])
def test_problems_of_another_kind_leave_everything_undetermined(evidence, problems):
    evidence["problems"] = problems
    judged = one(evidence, **ACCURATE)
    assert judged["verdict"] == "undetermined"
    assert "no list of problems" in judged["why"]


@pytest.mark.parametrize("hits", [None, {}, "x", ["x"], [None]])
def test_hits_of_another_kind_are_no_search(evidence, hits):
    evidence["logs"]["stdout"]["hits"]["cuda_errors"] = hits
    for test in ("absent", "present"):
        judged = one(evidence, log=["stdout"], **{test: "cuda_errors"})
        assert (judged["verdict"], judged["why"]) == ("undetermined", "stdout was not searched for cuda_errors")


@pytest.mark.parametrize("files", [None, [], "x", {"metrics": "x"}, {"metrics": None}])
def test_files_of_another_kind_tell_no_time(evidence, files):
    evidence["files"] = files
    assert one(evidence, **ACCURATE)["verdict"] == "pass"


@pytest.mark.parametrize("malformed", [1, None, False, 0.0, "0"])
def test_rows_of_which_some_may_be_unread_are_undetermined(evidence, malformed):
    evidence["gpu"]["malformed"] = malformed
    judged = one(evidence, query="gpu.rows", ge=1)
    assert judged["verdict"] == "undetermined"
    assert judged["why"].startswith(f"gpu: {malformed} of its lines are malformed")


def test_a_document_that_does_not_name_its_job_and_one_that_names_another(evidence):
    evidence["metrics"]["job_id"] = "11"
    assert one(evidence, **ACCURATE)["why"] == "metrics is from another job or attempt"
    del evidence["metrics"]["job_id"]
    assert one(evidence, **ACCURATE)["why"] == "metrics does not say which job wrote it"
    evidence["metrics"] = [1]
    assert one(evidence, **ACCURATE)["why"] == "metrics does not say which job wrote it"


def test_versions_need_a_job_with_a_name_though_none_that_began(evidence):
    evidence["versions"] = {"end_line": 2}
    criterion = {"query": "versions.end_line", "eq": 2}
    evidence["job"].update(state="PENDING", started=None)
    assert one(evidence, **criterion)["verdict"] == "pass"
    evidence["job"]["job_id"] = ""
    assert one(evidence, **criterion)["why"] == "the evidence does not say which job it is from"


@pytest.mark.parametrize("artifacts", [["x"], "x", None, 7])
def test_of_artifacts_of_another_kind_it_is_not_known_what_they_lack(evidence, artifacts):
    evidence["artifacts"] = artifacts
    assert one(evidence, query="artifacts.model", present=True)["verdict"] == "undetermined"
    evidence["artifacts"] = {}
    assert one(evidence, query="artifacts.model", present=True)["verdict"] == "fail"


def test_a_reference_of_the_manifests_own_may_be_optional_too(evidence):
    within = {"reference": 0.97, "absolute": 0.01, "optional": True}
    assert one(evidence, query="metrics.accuracy", within=within)["verdict"] == "pass"


def test_how_many_there_must_be_is_said_with_at_least(evidence):
    each = {"over": "gpu.groups", "query": "fields.util.mean", "gt": 0}
    assert (
        one(evidence, each={**each, "at_least": 3})["why"]
        == "number of elements of gpu.groups: expected at least 3, found 2"
    )
    assert one(evidence, each={**each, "count": 3})["why"] == "number of elements of gpu.groups: expected 3, found 2"
    assert one(evidence, each={**each, "at_least": 1})["verdict"] == "pass"


@pytest.mark.parametrize(
    ("versions", "end", "words"),
    [
        ("x", {"after": None}, "does not say what follows"),
        ({"end_line": 1}, {"after": None}, "does not say what follows"),
        ({"end_line": 2}, {}, "does not say what follows"),
        ({"end_line": 2}, {"after": {"line": 7, "text": "more"}}, 'in line 7: "more"'),
        ({"end_line": 2}, {"after": "more"}, 'in line null: "more"'),
        ({"end_line": 2}, {"after": None}, None),
        (None, {}, None),
    ],
)
def test_what_follows_the_end_line(evidence, versions, end, words):
    evidence["logs"]["stdout"]["end"] = {**evidence["logs"]["stdout"]["end"], **end}
    if versions is not None:
        evidence["versions"] = versions
    judged = one(evidence, log=["stdout"], absent="cuda_errors")
    assert judged["verdict"] == ("pass" if words is None else "undetermined")
    assert (words or "none in stdout") in judged["why"]


def test_that_one_of_two_documents_lacks_a_field_is_no_answer_where_the_other_is_none(evidence):
    for query, verdict in (("[metrics.accuracy, metrics.x]", "fail"), ("[metrics.accuracy, schema.x]", "undetermined")):
        assert one(evidence, query=query, present=True)["verdict"] == verdict
