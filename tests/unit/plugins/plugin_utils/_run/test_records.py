# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was recorded is counted, and what the plan names is there once: a record that is less is no pass."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import shutil
import stat

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import records, runs
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run.runs import RunError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run.verdict import verdict_of

VERSIONS = {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"}
PLANNED = ("JOB", "S0-12", "S0-13", "S0-16")


@pytest.fixture
def manifest(example):
    criteria = [{"id": name} for name in PLANNED if name != "JOB"]
    return {**example("manifest"), "criteria": criteria}


@pytest.fixture
def folder(tmp_path, manifest):
    plan = {"title": "t", "accelerator": "simulated", "workloads": [manifest]}
    return runs.start(tmp_path / "results", plan, VERSIONS)


@pytest.fixture
def workload(example):
    """(ids, verdict) → the record of a workload with these criteria."""

    def make(ids=PLANNED, verdict="pass", **changes):
        judged = {**example("judged"), "verdict": verdict, "severity": "gate"}
        criteria = [{**judged, "id": name} for name in ids]
        return {"id": "MLOPS-1.1", "job": example("job"), "data": {}, "criteria": criteria, **changes}

    return make


def finding(verdict="fail", step="stage"):
    failed = findings.step_failed(step, "Install the environment", "No space left on device", {"host": "login"})
    return {**failed, "verdict": verdict}


def test_all_that_was_planned_and_once_is_a_pass(folder, workload):
    runs.record(folder, "workload", workload())
    assert (runs.passed(folder), runs.finish(folder)["verdict"]) == (["MLOPS-1.1"], "pass")


@pytest.mark.parametrize(
    ("ids", "named"),
    [
        (("S0-12",), "JOB"),
        (("JOB", "S0-12"), "S0-13"),
        (("JOB", "S0-12", "S0-13"), "S0-16"),
        (("S0-12", "S0-13", "S0-16"), "JOB"),
        ((*PLANNED, "S0-12"), "S0-12"),
        ((*PLANNED, "JOB"), "JOB"),
        (("JOB", "S0-12", "S0-12", "S0-16"), "S0-13"),
        ((*PLANNED, "S0-99"), "S0-99"),
        ((), "S0-12"),
    ],
)
def test_other_criteria_than_were_planned_are_no_pass(folder, workload, ids, named):
    runs.record(folder, "workload", workload(ids))
    assert runs.passed(folder) == []
    verdict = runs.finish(folder)
    assert (verdict["verdict"], verdict["workloads"][0]["verdict"]) == ("undetermined", "undetermined")
    assert named in verdict["workloads"][0]["why"]
    assert [each["id"] for each in verdict["workloads"][0]["criteria"]] == list(ids)


def test_what_failed_among_too_few_is_still_a_failure(folder, workload):
    runs.record(folder, "workload", workload(("S0-12",), "fail"))
    verdict = runs.finish(folder)
    assert verdict["verdict"] == "fail"
    assert "S0-12" in verdict["why"]
    assert "JOB" in verdict["why"]


@pytest.mark.parametrize("lacking", ["id", "job", "data", "criteria"])
def test_a_record_that_lacks_a_part_is_refused(folder, workload, lacking):
    document = {key: value for key, value in workload().items() if key != lacking}
    with pytest.raises(RunError):
        runs.record(folder, "workload", document)
    assert runs.finish(folder)["verdict"] == "undetermined"


@pytest.mark.parametrize(
    ("kind", "document"),
    [("findings", {}), ("findings", None), ("findings", "x"), ("workload", []), ("workload", None), ("cluster", {1j})],
)
def test_what_is_no_record_is_refused(folder, kind, document):
    with pytest.raises(RunError):
        runs.record(folder, kind, document)


def test_a_job_that_is_none_is_refused(folder, workload):
    with pytest.raises(RunError, match="job"):
        runs.record(folder, "workload", workload(job={}))


def test_a_workload_that_is_planned_twice_is_refused(tmp_path, manifest):
    with pytest.raises(RunError, match=r"MLOPS-1\.1"):
        runs.start(tmp_path, {"title": "t", "accelerator": "cpu", "workloads": [manifest, manifest]}, VERSIONS)


TORN = ["", "{}", "[]", "null", "[", '"x"', "[{}]", '[{"verdict": "pass"}]', "\x00"]


@pytest.mark.parametrize("content", TORN)
@pytest.mark.parametrize("which", ["000", "001"])
def test_findings_that_are_torn_or_exchanged_do_not_vanish(folder, workload, content, which):
    runs.record(folder, "workload", workload())
    for verdict in ("fail", "pass"):
        runs.record(folder, "findings", [finding(verdict)])
    (folder / f"findings/{which}.json.gz").write_text(content)
    assert runs.amiss(folder) >= 1
    verdict = runs.finish(folder)
    assert verdict["verdict"] == ("fail" if which == "001" else "undetermined")
    (told,) = [each for each in verdict["findings"] if each["id"] == "step.report"]
    assert (told["verdict"], told["where"]["path"]) == ("undetermined", str(folder / f"findings/{which}.json.gz"))


@pytest.mark.parametrize("gone", ["findings", "findings/000.json.gz", "recorded.json"])
def test_findings_that_have_gone_are_missed(folder, workload, gone):
    runs.record(folder, "workload", workload())
    runs.record(folder, "findings", [finding("fail")])
    path = folder / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert runs.amiss(folder) >= 1
    assert runs.finish(folder)["verdict"] == "undetermined"


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", '{"findings/000.json.gz": 1}', '{"a": "b", "a": "c"}'])
def test_a_list_of_records_that_is_torn_or_exchanged_is_no_pass(folder, workload, content):
    runs.record(folder, "workload", workload())
    runs.record(folder, "findings", [finding("pass")])
    (folder / "recorded.json").write_text(content)
    assert runs.passed(folder) == []
    assert runs.finish(folder)["verdict"] == "undetermined"


def test_a_list_of_records_that_is_torn_lets_nothing_be_recorded(folder, workload):
    (folder / "recorded.json").write_text("{")
    with pytest.raises(RunError, match=r"recorded\.json"):
        runs.record(folder, "workload", workload())


def test_findings_that_nobody_recorded_are_no_pass(folder, workload):
    runs.record(folder, "workload", workload())
    runs.record(folder, "findings", [finding("pass")])
    shutil.copy(folder / "findings/000.json.gz", folder / "findings/001.json.gz")
    assert runs.finish(folder)["verdict"] == "undetermined"


@pytest.mark.parametrize("name", ["cluster", "probed"])
@pytest.mark.parametrize("content", [None, "{}", '{"nodes": []}'])
def test_facts_that_are_not_what_was_recorded_are_no_pass(folder, workload, name, content):
    runs.record(folder, "workload", workload())
    runs.record(folder, name, {"nodes": [], "version": "24.11.5"})
    assert runs.finish(folder)["verdict"] == "pass"
    path = folder / f"{name}.json"
    path.unlink() if content is None else path.write_text(content)
    verdict = runs.finish(folder)
    assert (verdict["verdict"], [each["where"]["path"] for each in verdict["findings"]]) == (
        "undetermined",
        [str(path)],
    )


@pytest.mark.parametrize("content", [None, "{}", "[]"])
def test_a_workloads_record_that_has_gone_or_was_exchanged_is_no_pass(folder, workload, content):
    runs.record(folder, "workload", workload())
    path = folder / "workloads/MLOPS-1.1.json"
    path.unlink() if content is None else path.write_text(content)
    assert runs.passed(folder) == []
    verdict = runs.finish(folder)
    assert verdict["workloads"][0]["verdict"] == "undetermined"
    assert str(path) in verdict["workloads"][0]["why"]


def test_a_record_that_nobody_recorded_is_no_pass(folder, workload):
    path = folder / "workloads/MLOPS-1.1.json"
    path.parent.mkdir()
    path.write_text(json.dumps(workload()))
    (told,) = runs.finish(folder)["workloads"]
    assert told["verdict"] == "undetermined"
    assert str(path) in told["why"]


def test_facts_that_nobody_recorded_are_no_pass(folder, workload):
    runs.record(folder, "workload", workload())
    (folder / "probed.json").write_text("{}")
    assert runs.finish(folder)["verdict"] == "undetermined"


def test_a_workload_is_recorded_once(folder, workload):
    runs.record(folder, "workload", workload(verdict="fail"))
    with pytest.raises(RunError, match=r"workloads/MLOPS-1\.1\.json was recorded already"):
        runs.record(folder, "workload", workload())
    assert runs.finish(folder)["verdict"] == "fail"


def test_facts_may_be_recorded_again(folder, workload):
    runs.record(folder, "workload", workload())
    for version in ("24.05", "24.11.5"):
        runs.record(folder, "cluster", {"nodes": [], "version": version})
    assert runs.finish(folder)["versions"]["slurm"] == "24.11.5"


@pytest.mark.parametrize(
    ("part", "value"),
    [("criteria", {}), ("criteria", None), ("data", []), ("data", {"mnist": 1}), ("job", []), ("job", "12")],
)
def test_a_record_with_a_part_of_another_kind_is_refused(folder, workload, part, value):
    with pytest.raises(RunError, match=part):
        runs.record(folder, "workload", workload(**{part: value}))
    assert runs.finish(folder)["verdict"] == "undetermined"


@pytest.mark.parametrize(("part", "value"), [("criteria", {}), ("data", []), ("job", {})])
def test_what_was_recorded_of_another_kind_is_undetermined(folder, workload, part, value):
    records.add(folder, "workloads/MLOPS-1.1.json", workload(**{part: value}))
    (told,) = runs.finish(folder)["workloads"]
    assert (told["verdict"], told["criteria"]) == ("undetermined", [])
    assert part in told["why"]


def test_records_are_read_back_in_the_order_in_which_they_were_made(folder):
    for number in range(12):
        runs.record(folder, "findings", [finding("pass", f"s{number}")])
    assert [each["id"] for each in runs.finish(folder)["checks"]] == [f"step.s{number}" for number in range(12)]
    assert records.names_of_findings(folder)[-1] == "findings/011.json.gz"


def _many(folder, barrier, who):
    barrier.wait(30)
    for number in range(8):
        runs.record(folder, "findings", [finding("pass", f"p{who}_{number}")])


def test_processes_that_record_at_once_lose_nothing(folder):
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(4)
    processes = [context.Process(target=_many, args=(folder, barrier, who)) for who in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 4
    found = {each["id"] for each in runs.finish(folder)["checks"]}
    assert found == {f"step.p{who}_{number}" for who in range(4) for number in range(8)}


# -- how a run begins


def test_its_folders_are_made_for_everybody_to_read_and_nobody_else_to_write(tmp_path, manifest):
    plan = {"title": "t", "accelerator": "cpu", "workloads": [manifest]}
    results = tmp_path / "a" / "results"
    before = os.umask(0)
    try:
        first = runs.start(results, plan, VERSIONS)
        second = runs.start(results, plan, VERSIONS)
    finally:
        os.umask(before)
    assert first != second
    assert [stat.S_IMODE(path.stat().st_mode) for path in (results, first, second)] == [0o755] * 3


def test_a_folder_that_is_there_is_never_another_runs(tmp_path, manifest, monkeypatch):
    plan = {"title": "t", "accelerator": "cpu", "workloads": [manifest]}
    monkeypatch.setattr(runs.secrets, "token_hex", lambda count: "ab" * count)
    first = runs.start(tmp_path, plan, VERSIONS, now=1795500000.0)
    assert first.name == "20261124T060000Z-ababab"
    content = (first / "plan.json").read_bytes()
    with pytest.raises(RunError, match="hpc_validation_results"):
        runs.start(tmp_path, {**plan, "title": "other"}, VERSIONS, now=1795500000.0)
    assert (first / "plan.json").read_bytes() == content


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        (["pass", "fail", "undetermined"], "fail"),
        (["pass", "undetermined"], "undetermined"),
        (["pass", "recorded"], "pass"),
        (["recorded", "not_applicable"], "undetermined"),
        ([], "undetermined"),
    ],
)
def test_one_verdict_of_many(verdicts, verdict):
    assert verdict_of(verdicts) == verdict
    assert verdict_of(reversed(verdicts)) == verdict


def test_a_criterion_that_is_none_is_refused(folder, workload):
    document = workload()
    document["criteria"][0]["verdict"] = "perhaps"
    with pytest.raises(RunError, match="verdict"):
        runs.record(folder, "workload", document)


@pytest.mark.parametrize(("verdict", "count"), [("pass", 0), ("recorded", 0), ("undetermined", 1), ("fail", 1)])
def test_findings_that_are_amiss_are_counted(folder, verdict, count):
    runs.record(folder, "findings", [finding(verdict)])
    assert runs.amiss(folder) == count


def test_nothing_is_recorded_outside_of_a_run(tmp_path):
    with pytest.raises(RunError, match="is not the folder of a run"):
        runs.record(tmp_path, "findings", [finding("pass")])
    assert list(tmp_path.iterdir()) == []


def test_while_one_records_no_other_does(folder):
    with records._alone(folder), (folder / "plan.json").open("r+b") as plan, pytest.raises(BlockingIOError):
        fcntl.flock(plan, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (folder / "plan.json").open("r+b") as plan:
        fcntl.flock(plan, fcntl.LOCK_EX | fcntl.LOCK_NB)
