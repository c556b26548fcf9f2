# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run is a measure for another only if nothing but the number of GPUs differs."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import baseline
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import UndeterminedError

from tests.unit.plugins.plugin_utils._judge.criteria_fake import DATA, provenance, whole, with_stored
from tests.unit.plugins.plugin_utils._judge.criteria_fake import one as judged_alone

DAY = 86400


@pytest.fixture
def evidence():
    return whole()


def put(document, value, *path):
    """Set what stands at `path`."""
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


def refused(call, *arguments):
    with pytest.raises(UndeterminedError) as raised:
        call(*arguments)
    return str(raised.value)


def compare(own):
    for run in baseline.runs(own):
        baseline.require_comparable(own, run)


def why_not(own):
    return refused(compare, own)


# The runs


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, "there is no baseline to compare with: the job must run its legs"),
        ([], "the baseline does not say which runs it is made of"),
        ({}, "the baseline does not say which runs it is made of"),
        ({"source": "legs"}, "the baseline does not say which runs it is made of"),
        ({"source": "legs", "runs": []}, "the baseline does not say which runs it is made of"),
        ({"source": "legs", "runs": {"before": {}}}, "the baseline does not say which runs it is made of"),
        ({"source": "guessed", "runs": [{}]}, "the baseline does not say which runs it is made of"),
        ({"source": None, "runs": [{}]}, "the baseline does not say which runs it is made of"),
        ({"runs": [{}]}, "the baseline does not say which runs it is made of"),
        ({"source": "stored", "runs": [{}, None]}, "one of the baseline's runs is not evidence"),
    ],
)
def test_a_baseline_that_is_none_has_no_runs(found, why):
    assert refused(baseline.runs, {"baseline": found}).startswith(why)


def test_a_missing_baseline_says_where_one_may_come_from():
    assert refused(baseline.runs, {}).endswith("or you must give the saved evidence of an earlier run")


def legs(*names):
    return [{"leg": {"name": name}} for name in names]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("legs", legs("before", "after")),
        ("legs", legs("after", "before")),
        ("stored", legs("before", "after")),
        ("stored", [{"job": 1}]),
    ],
)
def test_a_baseline_has_its_runs(source, found):
    assert baseline.runs({"baseline": {"source": source, "runs": found}}) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("legs", legs("before")),
        ("legs", legs("after")),
        ("legs", legs("before", "before")),
        ("legs", legs("before", "after", "after")),
        ("legs", legs("before", "measured")),
        ("legs", [{"job": 1}]),
        ("legs", [{"leg": None}, {"leg": {}}]),
        ("stored", legs("before")),
        ("stored", legs("after", "after")),
        ("stored", [*legs("before"), {"job": 1}]),
        ("stored", [{"job": 1}, {"job": 1}]),
    ],
)
def test_no_leg_is_there_twice_or_alone(source, found):
    why = refused(baseline.runs, {"baseline": {"source": source, "runs": found}})
    assert "not before and after" in why or "not one" in why


def test_runs_of_which_one_alone_is_a_leg_are_no_stored_run():
    mixed = {"baseline": {"source": "stored", "runs": [*legs("before"), {"job": 1}]}}
    assert "before and after" in refused(baseline.runs, mixed)


def test_a_leg_is_called_by_its_name():
    assert baseline.title({"leg": {"name": "before"}}) == "the baseline's leg before"
    assert baseline.title({"leg": {"name": "a\x1bb"}}) == "the baseline's leg a\ufffdb"
    assert baseline.title({"leg": {}}) == baseline.title({}) == baseline.title({"leg": None}) == "the baseline"


# Whether they can be compared


def test_legs_and_a_stored_run_of_the_same_kind_can_be_compared(evidence):
    compare(evidence)
    compare(with_stored(evidence))


def test_the_example_of_evidence_with_legs_can_be_compared(example):
    compare(example("evidence-legs"))


def test_so_can_the_legs_of_an_earlier_job(evidence):
    runs = evidence["baseline"]["runs"]
    evidence["baseline"]["source"] = "stored"
    for run in runs:
        run["job"]["job_id"] = "11"
    compare(evidence)
    del runs[1]["leg"]["exit_code"]
    assert why_not(evidence) == "its exit code is null, not 0"


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("job", "state"), "FAILED", "its job did not pass: on compute01: FAILED"),
        (("job", "state"), "TIMEOUT", "its job did not pass: on compute01: TIMEOUT"),
        (("job", "exit_code"), 1, "its job did not pass: on compute01: its exit code is 1"),
        (("job",), None, "its job did not pass: there is no job"),
        (("job", "job_id"), "11", "it is not a leg of this job"),
        (("job", "attempt"), 1, "it is not a leg of this job"),
        (("leg", "exit_code"), 1, "its exit code is 1, not 0"),
        (("leg", "exit_code"), -9, "its exit code is -9, not 0"),
        (("leg", "exit_code"), None, "its exit code is null, not 0"),
        (("leg", "exit_code"), False, "its exit code is false, a boolean, not 0"),
        (("leg", "exit_code"), 0.0, "its exit code is 0, not 0"),
        (("leg", "exit_code"), "0", 'its exit code is the text "0", not 0'),
        (("leg", "nodes"), ["compute02"], "it ran on compute02 and this job on compute01"),
        (("leg", "nodes"), ["compute01", "compute02"], "it ran on compute01, compute02 and this job on compute01"),
        (("leg", "nodes"), [], "which node it ran on is unknown: an empty list"),
        (("leg", "nodes"), None, "which node it ran on is unknown: null"),
        (("leg", "nodes"), "compute01", "which node it ran on is unknown: the text"),
        (("leg", "nodes"), [None], "which node it ran on is unknown: a list of 1"),
        (("leg", "nodes"), [""], "which node it ran on is unknown: a list of 1"),
        (("metrics", "gpu_uuids"), ["GPU-c"], 'its GPUs are ["GPU-c"] and this job\'s ["GPU-a", "GPU-b"]'),
        (("metrics", "gpu_uuids"), ["GPU-a", "GPU-c"], 'its GPUs are ["GPU-a", "GPU-c"] and this job\'s'),
        (("metrics", "gpu_uuids"), [], 'its GPUs are [] and this job\'s ["GPU-a", "GPU-b"]'),
        (("metrics", "gpu_uuids"), None, "which GPUs it ran on is unknown: null"),
        (("metrics", "gpu_uuids"), [5], "which GPUs it ran on is unknown: a list of 1"),
        (("metrics",), None, "its world_size is null, not a whole number of at least 1"),
        (("provenance", "driver_version"), "580.1", 'its driver is "580.1" and this job\'s "570.1"'),
        (("provenance", "driver_version"), None, 'its driver is null and this job\'s "570.1"'),
        (("provenance", "container"), {"sha256": "aa"}, 'its container is "aa" and this job\'s null'),
        (("provenance", "container"), {"sha256": None}, "neither its container is known nor this job's"),
        (("provenance", "runtime", "lock_sha256"), "2d", 'its lock is "2d" and this job\'s "1c"'),
        (("provenance", "runtime"), None, 'its lock is null and this job\'s "1c"'),
        (("provenance",), None, 'its driver is null and this job\'s "570.1"'),
        (("metrics", "data"), {"sha256": "aa"}, 'its data is "aa" and this job\'s null'),
        (
            ("provenance", "data", "files"),
            {"train.bin": {"size": 9, "sha256": "d2"}},
            'its data are {train.bin: {size: 9, sha256: "d2"}} and this job\'s {train.bin: {size: 9, sha256: "d1"}}',
        ),
        (("provenance", "data", "files"), {**DATA, "x": None}, "its data are {x: null} and this job's {}"),
        (("provenance", "data", "files"), {"a": 1}, "its data are {a: 1} and this job's {}"),
        (("provenance", "data", "files"), {"z": 1}, "its data are {} and this job's {train.bin: "),
        (("provenance", "data", "files"), {}, "its data are null and this job's {train.bin: "),
        (("provenance", "data"), None, "its data are null and this job's {train.bin: "),
    ],
)
def test_a_leg_that_differs_is_no_measure(evidence, number, path, value, why):
    evidence["baseline"]["runs"][number]["provenance"] = provenance(data={"files": DATA}, runtime={"lock_sha256": "1c"})
    put(evidence["baseline"]["runs"][number], value, *path)
    assert why_not(evidence).startswith(why)


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("job", "nodes"), [], "which node this job ran on is unknown: a list of 1"),
        (("job", "nodes"), ["compute02"], "it ran on compute01 and this job on compute02"),
        (("metrics", "gpu_uuids"), None, "which GPUs this job ran on is unknown: null"),
        (("metrics", "gpu_uuids"), "GPU-a", "which GPUs this job ran on is unknown: the text"),
        (("metrics", "gpu_uuids"), [], 'its GPUs are ["GPU-a"] and this job\'s []'),
        (("provenance", "container"), {"sha256": "aa"}, 'its container is null and this job\'s "aa"'),
        (("provenance", "data"), None, "its data are {train.bin: "),
        (("provenance", "runtime"), {}, 'its lock is "1c" and this job\'s null'),
    ],
)
def test_it_is_this_job_that_is_not_known(evidence, path, value, why):
    with_stored(evidence)
    del evidence["provenance"]["node"]
    put(evidence, value, *path)
    assert why_not(evidence).startswith(why)


@pytest.mark.parametrize("nodes", [[], None])
def test_a_job_whose_nodes_slurm_forgot_ran_where_its_provenance_says(evidence, nodes):
    run = with_stored(evidence)["baseline"]["runs"][0]
    evidence["job"]["nodes"] = run["job"]["nodes"] = nodes
    compare(evidence)
    run["provenance"]["node"] = "compute02"
    assert why_not(evidence) == "it ran on compute02 and this job on compute01"


def test_a_leg_may_run_on_some_of_the_nodes(evidence):
    evidence["job"]["nodes"] = ["compute01", "compute02"]
    for run in evidence["baseline"]["runs"]:
        run["job"]["nodes"] = evidence["job"]["nodes"]
    compare(evidence)


def test_without_gpus_there_is_no_driver_either(evidence):
    for one in (evidence, *evidence["baseline"]["runs"]):
        one["metrics"]["gpu_uuids"] = []
    assert why_not(evidence) == "neither it nor this job names the GPUs that it ran on"
    evidence["context"]["accelerator"] = "cpu"
    compare(evidence)
    for one in (evidence, *evidence["baseline"]["runs"]):
        one["provenance"]["driver_version"] = None
    compare(evidence)
    evidence["context"]["accelerator"] = "cuda"
    for one in (evidence, *evidence["baseline"]["runs"]):
        one["metrics"]["gpu_uuids"] = ["GPU-a"]
    assert why_not(evidence) == "neither its driver is known nor this job's"


@pytest.mark.parametrize("driver", [5, "", ["570.1"]])
def test_what_is_no_text_names_no_driver(evidence, driver):
    for one in (evidence, *evidence["baseline"]["runs"]):
        one["provenance"]["driver_version"] = driver
    assert why_not(evidence).startswith("its driver is ")


def test_an_image_needs_no_lock_and_without_one_the_lock_is_needed(evidence):
    for one in (evidence, *evidence["baseline"]["runs"]):
        one["provenance"] = provenance(runtime=None, container={"sha256": "aa"})
    compare(evidence)
    evidence["baseline"]["runs"][1]["provenance"]["container"] = {"sha256": "bb"}
    assert why_not(evidence) == 'its container is "bb" and this job\'s "aa"'
    for one in (evidence, *evidence["baseline"]["runs"]):
        one["provenance"]["container"] = {"sha256": None}
    assert why_not(evidence) == "neither its container is known nor this job's"
    for one in (evidence, *evidence["baseline"]["runs"]):
        one["provenance"]["container"] = None
    assert why_not(evidence) == "neither its lock is known nor this job's"


def test_data_are_known_by_their_files_or_by_their_sum(evidence):
    for one in (evidence, *evidence["baseline"]["runs"]):
        one["metrics"]["data"] = {"sha256": "aa"}
    compare(evidence)
    for one in (evidence, *evidence["baseline"]["runs"]):
        one["provenance"]["data"] = None
    compare(evidence)
    evidence["metrics"]["data"] = {"sha256": "bb"}
    assert why_not(evidence) == 'its data is "aa" and this job\'s "bb"'
    for one in (evidence, *evidence["baseline"]["runs"]):
        one["metrics"]["data"] = {"name": "cifar10"}
    assert why_not(evidence) == "neither its data is known nor this job's"


def test_a_stored_run_needs_no_leg(evidence):
    with_stored(evidence)
    evidence["baseline"]["source"] = "legs"
    evidence["baseline"]["runs"][0]["job"] = evidence["job"]
    assert why_not(evidence) == "the baseline's legs are [null], not before and after"


# Its work


@pytest.fixture(params=["legs", "stored"])
def either(request):
    """Evidence with a baseline of either source."""
    return whole() if request.param == "legs" else with_stored(whole())


def test_a_stored_run_needs_nothing_of_the_own_legs_but_their_rules(evidence):
    with_stored(evidence)
    del evidence["legs"]["measured"]
    assert set(evidence["legs"]) == {"job_id", "attempt", "work", "steady_seconds"}
    compare(evidence)


@pytest.mark.parametrize(
    ("its", "mine", "why"),
    [
        ("training", "tuning", 'its workload is "training" and this job\'s "tuning"'),
        ("training", None, 'its workload is "training" and this job\'s null'),
        (None, "training", 'its workload is null and this job\'s "training"'),
        (None, None, "neither its workload is known nor this job's"),
        ("", "", 'its workload is "" and this job\'s ""'),
    ],
)
def test_another_workload_is_no_measure(evidence, its, mine, why):
    with_stored(evidence, job={"name": its})
    evidence["job"]["name"] = mine
    assert why_not(evidence) == why


def test_a_job_without_a_name_is_no_workload_for_its_legs_either(evidence):
    for run in (evidence, *evidence["baseline"]["runs"]):
        del run["job"]["name"]
    assert why_not(evidence) == "neither its workload is known nor this job's"


@pytest.mark.parametrize(
    ("its", "mine", "why"),
    [
        (1, 2, None),
        (7, 8, None),
        (2, 2, "it ran on 2 ranks, no fewer than this job's 2"),
        (3, 2, "it ran on 3 ranks, no fewer than this job's 2"),
        (1, 1, "it ran on 1 ranks, no fewer than this job's 1"),
    ],
)
def test_a_baseline_has_fewer_ranks(either, its, mine, why):
    either["metrics"]["world_size"] = mine
    for run in either["baseline"]["runs"]:
        run["metrics"]["world_size"] = its
    if why is None:
        compare(either)
    else:
        assert why_not(either) == why


@pytest.mark.parametrize(("work", "name"), [("weak", "batch_per_rank"), ("strong", "batch")])
def test_the_batch_that_the_rule_names_is_equal_and_the_other_need_not_be(either, work, name):
    either["legs"]["work"] = work
    other = {"batch_per_rank": "batch", "batch": "batch_per_rank"}[name]
    for number, run in enumerate((either, *either["baseline"]["runs"])):
        run["metrics"].update({name: 32, other: number + 1})
    compare(either)
    either["metrics"][name] = 33
    assert why_not(either) == f"its {name} is 32 and this job's 33"


COUNTS = [("weak", "world_size"), ("weak", "batch_per_rank"), ("strong", "batch")]


@pytest.mark.parametrize(("work", "name"), COUNTS)
@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0, "0"),
        (-1, "-1"),
        (None, "null"),
        (True, "true, a boolean"),
        (1.0, "1"),
        ("1", 'the text "1"'),
        ([1], "a list of 1"),
        ({"non_finite": "NaN"}, "NaN"),
    ],
)
def test_what_is_no_count_says_nothing_of_the_work(either, work, name, value, told):
    either["legs"]["work"] = work
    for run in either["baseline"]["runs"]:
        run["metrics"]["batch"] = either["metrics"]["batch"]
    compare(either)
    for one, whose in ((either, "this job's"), (either["baseline"]["runs"][0], "its")):
        one["metrics"][name] = value
        assert why_not(either) == f"{whose} {name} is {told}, not a whole number of at least 1"


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (None, "null"),
        ("", 'the text ""'),
        ("Weak", 'the text "Weak"'),
        ("batch", 'the text "batch"'),
        (True, "true, a boolean"),
        (["weak"], "a list of 1"),
        ({"weak": 1}, "an object with 1 keys"),
    ],
)
def test_a_rule_that_is_none_leaves_the_work_unknown(either, work, told):
    either["legs"]["work"] = work
    assert why_not(either) == f"legs.json does not say which work stays equal: {told}"


@pytest.mark.parametrize("legs", [None, {}, [], "weak"])
def test_without_legs_json_there_is_no_rule(either, legs):
    either["legs"] = legs
    assert why_not(either) == "legs.json does not say which work stays equal: null"
    del either["legs"]
    assert why_not(either) == "legs.json does not say which work stays equal: null"


@pytest.mark.parametrize(
    ("found", "least", "why"),
    [
        (30, 30, None),
        (30.0, 30, None),
        (29.999, 30, "29.999 s, and 30 s"),
        (30, 30.5, "30 s, and 30.5 s"),
        (None, 30, "null s, and 30 s"),
        (True, 1, "true s, and 1 s"),
        ("30", 30, '"30" s, and 30 s'),
        (float("inf"), 30, "inf s, and 30 s"),
        ({"non_finite": "Infinity"}, 30, "Infinity s, and 30 s"),
        (30.5, None, "30.5 s, and null s"),
        (30.5, True, "30.5 s, and true s"),
        (30.5, "30", '30.5 s, and "30" s'),
        (30.5, "NaN", "30.5 s, and NaN s"),
        (0, 0, "0 s, and 0 s"),
        (30, 0, "30 s, and 0 s"),
        (-1, -2, "-1 s, and -2 s"),
        (0.001, 0.001, None),
    ],
)
def test_its_speed_was_measured_for_as_long_as_the_job_says(either, found, least, why):
    either["legs"]["steady_seconds"] = least
    for run in either["baseline"]["runs"]:
        run["metrics"]["steady"] = {"seconds": found}
    if why is None:
        compare(either)
    else:
        assert why_not(either) == f"its speed was measured over {why} are needed"


@pytest.mark.parametrize("steady", [None, [], {}, 31.0])
def test_without_a_window_the_speed_is_no_measure(either, steady):
    either["baseline"]["runs"][-1]["metrics"]["steady"] = steady
    assert why_not(either) == "its speed was measured over null s, and 30 s are needed"


@pytest.mark.parametrize(
    ("steady", "shown"), [(None, "null"), ({}, "null"), ({"seconds": 0}, "0"), ({"seconds": 29.9}, "29.9")]
)
def test_the_speed_of_the_run_itself_was_measured_for_as_long(either, steady, shown):
    either["metrics"]["steady"] = steady
    assert why_not(either) == f"this job's speed was measured over {shown} s, and 30 s are needed"
    either["metrics"]["steady"] = {"seconds": 30}
    compare(either)


@pytest.mark.parametrize(
    ("code", "shown"), [(1, "1"), (None, "null"), (False, "false, a boolean"), ("0", 'the text "0"')]
)
def test_the_measured_leg_must_have_ended_well_too(evidence, code, shown):
    evidence["legs"]["measured"]["exit_code"] = code
    assert why_not(evidence) == f"the measured leg's exit code is {shown}, not 0"
    del evidence["legs"]["measured"]
    assert why_not(evidence) == "the measured leg's exit code is null, not 0"


def test_no_gpu_is_named_twice(either):
    either["metrics"]["gpu_uuids"] = ["GPU-a", "GPU-a"]
    assert why_not(either) == 'this job names a GPU twice: ["GPU-a", "GPU-a"]'
    either["metrics"]["gpu_uuids"] = ["GPU-a", "GPU-b"]
    either["baseline"]["runs"][0]["metrics"]["gpu_uuids"] = ["GPU-b", "GPU-b"]
    assert why_not(either) == 'it names a GPU twice: ["GPU-b", "GPU-b"]'


# How old it is


@pytest.mark.parametrize(
    ("ended", "old"),
    [
        (1e6, "less than a day old"),
        (1e6 - DAY + 1, "less than a day old"),
        (1e6 - DAY, "1 day old"),
        (1e6 - 2 * DAY + 1, "1 day old"),
        (1e6 - 2 * DAY, "2 days old"),
        (1000000 - 10 * DAY - 5, "10 days old"),
        (1e6 - 90 * DAY + 1, "89 days old"),
    ],
)
def test_a_stored_baseline_is_as_old_as_its_end(evidence, ended, old):
    with_stored(evidence, job={"ended": ended})
    assert baseline.age(evidence, baseline.runs(evidence)) == f"stored baseline of job 11, {old}"


@pytest.mark.parametrize("days", [90, 91, 4000])
def test_a_baseline_that_is_too_old_is_no_measure(evidence, days):
    with_stored(evidence, job={"ended": 1e6 - days * DAY})
    why = refused(baseline.age, evidence, baseline.runs(evidence))
    assert why == f"the stored baseline of job 11 is {days} days old; it must be less than 90 days old"


def test_the_legs_are_as_old_as_the_run(evidence):
    assert baseline.age(evidence, baseline.runs(evidence)) is None


def test_of_several_runs_the_oldest_counts(evidence):
    runs = with_stored(evidence)["baseline"]["runs"]
    runs.append({"job": {"job_id": "10", "ended": 1e6 - 3 * DAY}})
    assert baseline.age(evidence, runs) == "stored baseline of job 10, 11, 3 days old"
    runs[1]["job"] = {"job_id": "11", "ended": 1e6 - 3 * DAY}
    assert baseline.age(evidence, runs) == "stored baseline of job 11, 3 days old"
    runs[1]["job"]["ended"] = 1e6 + 1
    assert refused(baseline.age, evidence, runs) == "the stored baseline of job 11 ended after this job began"


@pytest.mark.parametrize(("started", "ended"), [(None, 1.0), (1.0, None), ("1", 0.0), (1.0, True), (float("inf"), 0.0)])
def test_a_stored_baseline_of_unknown_age_is_no_measure(evidence, started, ended):
    with_stored(evidence, job={"ended": ended})
    evidence["job"]["started"] = started
    why = refused(baseline.age, evidence, baseline.runs(evidence))
    assert why.startswith("the age of the stored baseline of job 11 is unknown: it ended at ")


@pytest.mark.parametrize("document", ["metrics", "provenance"])
def test_a_run_is_compared_by_documents_of_its_own_whatever_is_measured(document):
    evidence = with_stored(whole())
    (run,) = evidence["baseline"]["runs"]
    for one_of, speed in ((evidence, 200.0), (run, 100.0)):
        one_of["other"] = {"job_id": one_of["job"]["job_id"], "attempt": 0, "speed": speed}
    criterion = {"query": "other.speed", "ratio_ge": {"bound": 1.8, "to": "other.speed"}}
    assert judged_alone(evidence, **criterion)["verdict"] == "pass"
    run[document]["job_id"] = "7"
    judged = judged_alone(evidence, **criterion)
    assert judged["verdict"] == "undetermined"
    assert f"{document} is from another job" in judged["why"]
