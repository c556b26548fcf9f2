# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the judge says of logs, artifacts, baselines and references that are there, and of those that are not."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import ValueTest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.references import needs_of
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import Missing, UndeterminedError

from tests.unit.plugins.plugin_utils._judge.criteria_fake import (
    EACH,
    REFERENCES,
    alone,
    log,
    one,
    provenance,
    whole,
    with_stored,
)


@pytest.fixture
def evidence():
    return whole()


# Logs


@pytest.mark.parametrize(("count", "more"), [(1, None), (3, None), (4, "; and 1 more"), (9, "; and 6 more")])
def test_three_lines_are_quoted_and_the_rest_counted(evidence, count, more):
    evidence["logs"]["stdout"] = log("/jobs/12.out", {"cuda_errors": count})
    for test, verdict in (("absent", "fail"), ("present", "pass")):
        judged = one(evidence, log=["stdout"], **{test: "cuda_errors"})
        assert (judged["verdict"], judged["value"]) == (verdict, count)
        assert judged["why"].count('"line ') == min(count, 3)
        assert judged["why"].endswith(more or '"')


def test_a_log_without_a_hit_says_so(evidence):
    absent = one(evidence, log=["stdout", "stderr"], absent="cuda_errors")
    assert (absent["value"], absent["why"]) == (0, "none in stdout and stderr, read to the job's end marker")
    present = one(evidence, log=["stdout", "stderr"], present="cuda_errors")
    assert (present["verdict"], present["value"], present["why"]) == ("fail", 0, "none in stdout and stderr")
    assert absent["source"] == "log /jobs/12.out and /jobs/12.err"


def test_a_hit_without_a_remedy_leaves_the_criterions(evidence):
    evidence["logs"]["stdout"] = log("/jobs/12.out", {"cuda_errors": 2})
    hits = evidence["logs"]["stdout"]["hits"]["cuda_errors"]
    hits[0]["remedy"] = ""
    assert one(evidence, log=["stdout"], absent="cuda_errors", remedy="own")["remedy"] == "look"
    hits[1]["remedy"] = None
    assert one(evidence, log=["stdout"], absent="cuda_errors", remedy="own")["remedy"] == "own"


@pytest.mark.parametrize("logs", [None, [], {}, {"stdout": None}, {"stdout": "text"}])
def test_a_log_that_is_not_there_is_named(evidence, logs):
    evidence["logs"] = logs
    judged = one(evidence, log=["stdout"], absent="cuda_errors")
    assert (judged["verdict"], judged["why"]) == ("undetermined", "the evidence has no log stdout")
    assert judged["source"] == "log stdout"


def test_a_log_that_is_missing_is_a_doubt_and_no_answer(evidence):
    del evidence["logs"]["stdout"]
    evidence["problems"].append({"source": "logs.stdout", "path": "/x", "problem": "missing", "detail": "d"})
    judged = one(evidence, log=["stdout"], absent="cuda_errors")
    assert (judged["verdict"], judged["why"]) == ("undetermined", "/x: missing: d")


@pytest.mark.parametrize(("told", "code"), [(False, 0), (0, False), (None, None), ("0", "0"), (0.0, 0.0), (1, 0)])
def test_the_end_marker_and_slurm_must_name_one_whole_number(evidence, told, code):
    evidence["logs"]["stdout"]["end"] = {"job_id": "12", "attempt": 0, "exit_code": told}
    evidence["job"]["exit_code"] = code
    judged = one(evidence, log=["stdout"], absent="cuda_errors")
    assert judged["verdict"] == "undetermined"
    assert "ends with exit code" in judged["why"]


@pytest.mark.parametrize(
    ("versions", "end", "verdict"),
    [
        ({"end_line": 2}, {"after": None}, "pass"),
        ({"end_line": 2}, {"after": {"line": 9, "text": "step 2"}}, "undetermined"),
        ({"end_line": 2}, {"after": "step 2"}, "undetermined"),
        ({"end_line": 2}, {}, "undetermined"),
        ({"end_line": 3}, {"after": None}, "undetermined"),
        ({}, {"after": None}, "undetermined"),
        (None, {"after": None}, "undetermined"),
        ("absent", {}, "pass"),
    ],
)
def test_only_evidence_from_before_does_not_say_what_follows_the_end(evidence, versions, end, verdict):
    for each in evidence["logs"].values():
        each["end"] = {"job_id": "12", "attempt": 0, "exit_code": 0, **end}
    if versions == "absent":
        evidence.pop("versions", None)
    else:
        evidence["versions"] = versions
    assert one(evidence, log=["stdout", "stderr"], absent="cuda_errors")["verdict"] == verdict


def test_a_log_whose_end_line_bears_another_jobs_name_is_not_this_jobs(evidence):
    evidence["logs"]["stdout"] = log("/jobs/12.out", {"cuda_errors": 1})
    evidence["logs"]["stdout"].update(end=None, other_end={"job_id": "11", "attempt": 0, "exit_code": 0})
    assert one(evidence, log=["stdout"], absent="cuda_errors")["verdict"] == "undetermined"


@pytest.mark.parametrize("change", [{"counts": {"cuda_errors": True}}, {"counts": None}, {"hits": {}}])
def test_a_search_that_was_not_made_is_no_answer(evidence, change):
    evidence["logs"]["stdout"].update(change)
    judged = one(evidence, log=["stdout"], absent="cuda_errors")
    assert (judged["verdict"], judged["why"]) == ("undetermined", "stdout was not searched for cuda_errors")


@pytest.mark.parametrize(("count", "quoted"), [(0, 1), (1, 2), (-1, 0), (-1, 1), (1, 0), (3, 0)])
@pytest.mark.parametrize("test", ["absent", "present"])
def test_a_search_whose_count_and_lines_do_not_agree_is_no_answer(evidence, count, quoted, test):
    evidence["logs"]["stdout"] = log("/jobs/12.out", {"cuda_errors": quoted})
    evidence["logs"]["stdout"]["counts"]["cuda_errors"] = count
    judged = one(evidence, log=["stdout"], **{test: "cuda_errors"})
    assert (judged["verdict"], judged["why"]) == (
        "undetermined",
        f"stdout is said to have {count} lines of cuda_errors, and {quoted} are quoted",
    )


def test_counts_of_two_logs_do_not_cancel_each_other(evidence):
    for name, count in (("stdout", 1), ("stderr", -1)):
        evidence["logs"][name] = log(f"/jobs/12.{name}", {"cuda_errors": max(count, 0)})
        evidence["logs"][name]["counts"]["cuda_errors"] = count
    assert one(evidence, log=["stdout", "stderr"], absent="cuda_errors")["verdict"] == "fail"


def test_only_the_first_of_many_lines_are_quoted(evidence):
    evidence["logs"]["stdout"] = log("/jobs/12.out", {"cuda_errors": 2})
    evidence["logs"]["stdout"]["counts"]["cuda_errors"] = 900
    judged = one(evidence, log=["stdout"], absent="cuda_errors")
    assert (judged["verdict"], judged["value"]) == ("fail", 900)


# Artifacts


def test_an_artifact_is_told_by_its_path_and_size(evidence):
    judged = one(evidence, artifact="model.pt", exists={"min_bytes": 101})
    assert (judged["source"], judged["value"]) == ("artifact /out/model.pt", 100)
    assert judged["why"] == "it has 100 bytes, fewer than 101"
    assert one(evidence, artifact="model.pt", exists=True)["why"] == "it has 100 bytes"


def test_a_missing_artifact_is_named(evidence):
    judged = one(evidence, artifact="gone.pt", exists=True)
    assert (judged["source"], judged["why"]) == ("artifact gone.pt", "/out/gone.pt does not exist")


@pytest.mark.parametrize(
    ("state", "verdict"),
    [("COMPLETED", "fail"), ("FAILED", "fail"), ("CANCELLED", "undetermined"), ("UNKNOWN", "undetermined")],
)
def test_a_job_that_was_kept_from_its_end_did_not_fail_to_leave_an_artifact(evidence, state, verdict):
    evidence["job"]["state"] = state
    judged = one(evidence, artifact="gone.pt", exists=True)
    assert judged["verdict"] == verdict
    assert judged["why"].startswith("/out/gone.pt does not exist")


def test_another_problem_with_an_artifact_is_told(evidence):
    assert one(evidence, artifact="link.pt", exists=True)["why"] == "/out/link.pt: not regular: a link"


@pytest.mark.parametrize("artifacts", [None, [], {}])
def test_without_artifacts_none_exists(evidence, artifacts):
    evidence["artifacts"] = artifacts
    judged = one(evidence, artifact="model.pt", exists=True)
    assert (judged["verdict"], judged["why"]) == ("undetermined", "the evidence has no artifact model.pt")


# Baselines and references

AGAINST = {"query": "metrics.throughput", "ratio_ge": {"bound": 1, "to": "metrics.throughput"}}


OWN = {"job_id": "12", "attempt": 0, **alone()}


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ({"metrics": {**OWN, "throughput": "fast"}}, 'its metrics.throughput is the text "fast", not a finite number'),
        ({"metrics": OWN}, "metrics.throughput: there is no 'throughput'"),
        ({"problems": None}, "the evidence has no list of problems"),
        ({"problems": [{"source": "*", "problem": "not_collected", "detail": "d"}]}, "not collected: d"),
        ({"problems": [{"source": "metrics", "path": "/b", "problem": "truncated"}]}, "/b: truncated"),
        ({"problems": [{"source": "provenance", "path": "/p", "problem": "missing"}]}, "/p: missing"),
        ({"metrics": {**OWN, "throughput": 1.0, "job_id": "10"}}, "metrics is from another job or attempt"),
        ({"provenance": provenance(attempt=1)}, "provenance is from another job or attempt"),
    ],
)
@pytest.mark.parametrize("number", [0, 1])
def test_a_run_of_the_baseline_that_is_no_evidence_decides_nothing(evidence, number, run, why):
    evidence["baseline"]["runs"][number].update(run)
    judged = one(evidence, **AGAINST)
    assert judged["verdict"] == "undetermined"
    assert judged["why"].startswith(f"the baseline's leg {('before', 'after')[number]}: {why}")
    assert (
        one(evidence, query="metrics.throughput", ratio_ge={"bound": 1, "to": "job.gpus", "of": "own"})["value"] == 90
    )


@pytest.mark.parametrize("baseline", [whole, lambda: with_stored(whole())], ids=["legs", "stored"])
@pytest.mark.parametrize("root", ["metrics", "provenance", "legs"])
def test_what_a_baseline_is_compared_with_must_be_evidence_too(baseline, root):
    evidence, criterion = baseline(), {"query": "job.gpus", "ratio_ge": AGAINST["ratio_ge"]}
    assert one(evidence, **criterion)["verdict"] == "fail"
    evidence[root]["job_id"] = "10"
    judged = one(evidence, **criterion)
    assert (judged["verdict"], judged["why"]) == ("undetermined", f"{root} is from another job or attempt")
    evidence["problems"].append({"source": root, "path": "/m", "problem": "changed", "detail": "d"})
    judged = one(evidence, **criterion)
    assert (judged["verdict"], judged["why"]) == ("undetermined", "/m: changed: d")


@pytest.mark.parametrize("baseline", [whole, lambda: with_stored(whole())], ids=["legs", "stored"])
def test_without_the_document_legs_no_ratio_to_a_baseline_is_formed(baseline):
    evidence = baseline()
    del evidence["legs"]
    judged = one(evidence, **AGAINST)
    assert judged["verdict"] == "undetermined"
    assert judged["why"].endswith(": legs.json does not say which work stays equal: null")


def test_a_baseline_that_could_not_be_read_decides_nothing(evidence):
    evidence["problems"].append({"source": "baseline", "path": "/b", "problem": "unreadable", "detail": "d"})
    judged = one(evidence, **AGAINST)
    assert (judged["verdict"], judged["why"]) == ("undetermined", "/b: unreadable: d")


def test_a_ratio_to_the_legs_tells_its_range_and_one_to_what_is_stored_its_age(evidence):
    judged = one(evidence, **AGAINST)
    assert (judged["verdict"], judged["value"]) == ("pass", 1.8)
    assert judged["why"] == "180 / 100 = 1.8 (1.76 to 1.84) is >= 1"
    judged = one(with_stored(evidence), **AGAINST)
    assert (judged["verdict"], judged["value"]) == ("pass", 1.8)
    assert judged["why"] == "180 / 100 = 1.8 is >= 1; stored baseline of job 11, 1 day old"


def test_what_legs_json_says_of_a_leg_can_be_a_denominator_and_is_no_document(evidence):
    for run in evidence["baseline"]["runs"]:
        run["leg"].update(seconds=90.0, job_id="13")
    judged = one(evidence, query="metrics.throughput", ratio_ge={"bound": 2, "to": "leg.seconds"})
    assert (judged["verdict"], judged["value"]) == ("pass", 2)
    nested = one(evidence, query="metrics.throughput", ratio_ge={"bound": 2, "to": "baseline.runs[0].leg.seconds"})
    assert nested["verdict"] == "undetermined"


def test_a_reference_that_is_missing_says_where_to_add_it(evidence):
    judged = one(evidence, REFERENCES, query="metrics.accuracy", within={"from": "elsewhere", "absolute": 9})
    assert judged["why"] == "the inventory has no reference 'elsewhere' for this hardware"
    assert judged["remedy"].startswith("Add elsewhere for this hardware")


WHICH = "the inventory has a reference 'pace'"


def paced(evidence, context, *entries):
    """Judge a throughput of 180 by references, each a value with its conditions."""
    evidence["context"] = context
    references = {"pace": [{"when": when, "value": value} for value, when in entries]}
    return one(evidence, references, query="metrics.throughput", within={"from": "pace", "absolute": 1})


@pytest.mark.parametrize("context", [None, {}, {"gpu_count": None}])
def test_a_condition_on_what_the_inventory_does_not_give_decides_nothing(evidence, context):
    judged = paced(evidence, context, (180, {}), (1000, {"gpu_count": 2}))
    assert judged["verdict"] == "undetermined"
    assert judged["why"] == f"whether {WHICH} depends on gpu_count, which the inventory does not give"


@pytest.mark.parametrize(
    ("key", "wanted", "said"),
    [("gpu_count", 2, "2"), ("gpu_count", 2, " 2"), ("gpu_count", 2, True), ("ecc", True, "true"), ("fabric", "2", 2)],
)
def test_a_condition_on_a_value_of_another_kind_decides_nothing(evidence, key, wanted, said):
    judged = paced(evidence, {key: said}, (180, {}), (1000, {key: wanted}))
    assert (judged["verdict"], judged["why"].startswith(f"{WHICH} where {key} is ")) == ("undetermined", True)
    assert judged["remedy"].startswith(f"Give {key} in the inventory as ")


@pytest.mark.parametrize("said", ["infiniband", "InfiniBand", " INFINIBAND\n"])
def test_a_condition_on_text_holds_without_case_and_blanks(evidence, said):
    assert paced(evidence, {"fabric": said}, (1000, {}), (180, {"fabric": "InfiniBand"}))["verdict"] == "pass"


@pytest.mark.parametrize(
    ("conditions", "verdict"),
    [
        ({"gpu_model": "A100", "fabric": "ib"}, "pass"),  # it is for another model, whatever the fabric
        ({"fabric": "ib", "gpu_model": "A100"}, "pass"),
        ({"fabric": "ib"}, "pass"),  # with one condition it could not win
        ({"gpu_model": "H200", "fabric": "ib"}, "undetermined"),
        ({"fabric": "ib", "ecc": True}, "undetermined"),
    ],
)
def test_a_condition_that_is_unknown_matters_only_where_it_could_decide(evidence, conditions, verdict):
    context = {"gpu_model": "H200", "gpu_count": 2}
    assert paced(evidence, context, (180, context), (1000, conditions))["verdict"] == verdict


@pytest.mark.parametrize("references", [REFERENCES, {}, None])
def test_a_reference_that_is_left_to_the_inventory_need_not_be_there(evidence, references):
    within = {"from": "speed", "absolute": 9, "optional": True}
    for criterion in ({"query": "metrics.accuracy", "within": within}, {"each": {**EACH, "within": within}}):
        judged = one(evidence, references, **criterion)
        assert (judged["verdict"], judged["why"]) == ("not_applicable", "the inventory has no reference speed")
        assert judged["remedy"] is None


def test_a_reference_for_other_hardware_leaves_it_open_though_there_need_be_none(evidence):
    within = {"from": "elsewhere", "absolute": 9, "optional": True}
    judged = one(evidence, REFERENCES, query="metrics.accuracy", within=within)
    assert judged["verdict"] == "undetermined"
    assert judged["why"] == "the inventory has no reference 'elsewhere' for this hardware"
    within["from"] = "fixed"
    assert one(evidence, REFERENCES, query="metrics.accuracy", within=within)["verdict"] == "fail"


@pytest.mark.parametrize("references", [None, {}, {"other": 1}])
def test_a_reference_that_is_not_optional_is_needed(evidence, references):
    within = {"from": "speed", "absolute": 9}
    assert one(evidence, references, query="metrics.accuracy", within=within)["verdict"] == "undetermined"


def test_an_inventory_that_has_the_reference_makes_the_criterion_apply(evidence):
    within = {"from": "speed", "absolute": 9, "optional": True}
    judged = one(evidence, {"speed": 100}, query="metrics.accuracy", within=within)
    assert (judged["verdict"], judged["bound_from"]) == ("fail", "reference")


def test_whether_it_applies_here_comes_before_whether_there_is_a_reference(evidence):
    criterion = {"query": "metrics.accuracy", "within": {"from": "speed", "absolute": 9, "optional": True}}
    judged = one(evidence, None, **criterion, applies_when={"accelerator": ["cpu"]})
    assert judged["why"].startswith("it applies where accelerator is")


def test_two_references_that_fit_alike_decide_nothing_unless_they_agree(evidence):
    judged = one(evidence, REFERENCES, query="metrics.accuracy", within={"from": "twice", "absolute": 9})
    assert judged["why"] == "the inventory has 2 references 'twice' that match this hardware equally"
    agreed = {"r": [{"when": {"gpu_model": "H200"}, "value": 1}, {"when": {"fabric": "ib"}, "value": 1.0}]}
    assert one(evidence, agreed, query="metrics.accuracy", within={"from": "r", "absolute": 9})["verdict"] == "pass"


def test_what_is_not_to_be_had_by_a_query_says_how_to_have_it(evidence):
    assert "use log with absent" in one(evidence, query="logs.stdout.counts.cuda_errors", eq=0)["why"]
    assert "use ratio_ge" in one(evidence, query="baseline.metrics.throughput", gt=0)["why"]


@pytest.mark.parametrize(("exists", "least"), [(True, 1), ({}, 1), ({"min_bytes": 1}, 1), ({"min_bytes": 2}, 2)])
def test_a_file_must_hold_something(evidence, exists, least):
    for size, verdict in ((least - 1, "fail"), (least, "pass")):
        evidence["artifacts"]["model.pt"]["size"] = size
        judged = one(evidence, artifact="model.pt", exists=exists)
        words = f"exists, at least {least} bytes" if least > 1 else "exists and is not empty"
        assert (judged["verdict"], judged["bound"]) == (verdict, words)


def test_a_ratio_that_is_to_nothing_decides_nothing(evidence):
    needs = needs_of(ValueTest("ratio_ge", {"bound": 1, "to": "metrics.throughput"}), evidence, {}, Missing())
    with pytest.raises(UndeterminedError, match="does not say what ratio_ge divides by"):
        needs.denominator("metrics.throughput", "own")


@pytest.mark.parametrize(("count", "verdict"), [(2, "pass"), (8, "undetermined")])
def test_a_reference_fits_where_all_its_conditions_hold(evidence, count, verdict):
    references = {"pace": [{"when": {"gpu_model": "H200", "gpu_count": count}, "value": 180}]}
    within = {"from": "pace", "absolute": 1}
    assert one(evidence, references, query="metrics.throughput", within=within)["verdict"] == verdict


SILENT = {"source": "logs.stdout", "path": "/12.out", "problem": "timeout", "detail": ""}
FOREIGN = {"source": "logs.stderr", "path": "/12.err", "problem": "foreign", "detail": ""}
ODD = {"source": "logs.stderr", "path": "/12.err", "problem": "odd", "detail": ""}


@pytest.mark.parametrize(
    ("problems", "remedy"),
    [
        ([ODD], "own"),
        ([SILENT], "The share did not answer in time"),
        ([SILENT, ODD], "The share did not answer in time"),
        ([SILENT, FOREIGN], "The file was written by another job"),
    ],
)
@pytest.mark.parametrize("test", ["absent", "present"])
def test_what_makes_a_log_doubtful_says_what_to_do(evidence, test, problems, remedy):
    evidence["problems"] += problems
    judged = one(evidence, log=["stdout", "stderr"], remedy="own", **{test: "cuda_errors"})
    assert judged["verdict"] == "undetermined"
    assert judged["remedy"].startswith(remedy)


def test_a_hit_without_a_remedy_in_half_a_log_has_that_of_the_doubt(evidence):
    evidence["problems"].append(FOREIGN)
    evidence["logs"]["stdout"] = log("/12.out", {"cuda_errors": 1})
    for own, remedy in (("look", "look"), (None, "The file was written by another job")):
        evidence["logs"]["stdout"]["hits"]["cuda_errors"][0]["remedy"] = own
        judged = one(evidence, log=["stdout", "stderr"], absent="cuda_errors", remedy="own")
        assert (judged["verdict"], judged["remedy"].startswith(remedy)) == ("fail", True)


@pytest.mark.parametrize("utils", [[80.0, 90.0], [80.0, None], [None, 80.0]])
def test_what_makes_an_element_doubtful_says_what_to_do(evidence, utils):
    evidence["metrics"]["gpus"] = [{"util": util} for util in utils]
    evidence["problems"].append({"source": "baseline", "path": "/b", "problem": "unreadable", "detail": ""})
    each = {"over": "metrics.gpus", "query": "util", "count": 2, "ratio_ge": {"bound": 0.1, "to": "metrics.throughput"}}
    judged = one(evidence, each=each, remedy="own")
    assert judged["verdict"] == "undetermined"
    assert judged["remedy"].startswith("Check that the user that Ansible connects as")
