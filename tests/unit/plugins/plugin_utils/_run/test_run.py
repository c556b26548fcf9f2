from __future__ import annotations

import hashlib
import json
from xml.etree import ElementTree

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.presentable import presentable
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import findings as judge_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import summary
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import readback, records, runs
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import verdict as run_verdict
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run.runs import RunError


@pytest.fixture
def folder(tmp_path, example):
    """A run that has begun with the one workload of the example manifest."""
    plan = {"title": "Category 1", "accelerator": "simulated", "workloads": [example("manifest")]}
    return runs.start(tmp_path / "results", plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})


@pytest.fixture
def workload(example):
    """A recorded workload that passed."""
    judged = {**example("judged"), "verdict": "pass", "severity": "gate"}
    criteria = [judged, {**judged, "id": "JOB"}]
    return {"id": "MLOPS-1.1", "job": example("job"), "data": {"mnist": "stand-in digits"}, "criteria": criteria}


def planned_of(judged):
    """What the plan says of a criterion that was judged so."""
    condition = {"applies_when": {"accelerator": ["cuda"]}} if judged["verdict"] == "not_applicable" else {}
    return {"id": judged["id"], "severity": judged["severity"], **condition}


def as_planned(folder, workload):
    """Record it where just its criteria were planned."""
    path = folder / "plan.json"
    plan = json.loads(path.read_text())
    (manifest,) = [each for each in plan["workloads"] if each["id"] == workload["id"]]
    manifest["criteria"] = [planned_of(each) for each in workload["criteria"] if each["id"] != "JOB"]
    path.write_text(json.dumps(plan))
    runs.record(folder, "workload", workload)


def finding(verdict):
    failed = judge_findings.step_failed(
        "stage", "Install the environment", "No space left on device", {"host": "login"}
    )
    return {**failed, "verdict": verdict}


def on_disk(folder):
    verdict = json.loads((folder / "verdict.json").read_text())
    assert schema.problems("verdict", verdict) == []
    suites = ElementTree.parse(folder / "junit.xml").getroot()
    return verdict, suites


def test_a_run_that_began_and_died_leaves_an_honest_file(folder):
    verdict, suites = on_disk(folder)
    assert verdict["verdict"] == "undetermined"
    assert verdict["finished"] is None
    assert "did not finish" in verdict["why"]
    assert suites.find(".//error") is not None


def test_a_pass_needs_every_workload_recorded(folder, workload):
    assert runs.finish(folder)["verdict"] == "undetermined"
    as_planned(folder, workload)
    verdict = runs.finish(folder)
    assert verdict["verdict"] == "pass"
    assert on_disk(folder)[0] == verdict


@pytest.mark.parametrize("verdict", ["fail", "undetermined"])
def test_one_criterion_decides(folder, workload, verdict, example):
    other = {**example("judged"), "id": "S0-99", "verdict": verdict, "severity": "gate"}
    workload["criteria"].append(other)
    as_planned(folder, workload)
    assert runs.finish(folder)["verdict"] == verdict
    assert runs.finish(folder)["why"].startswith("MLOPS-1.1: S0-99")


def test_a_recorded_criterion_decides_nothing(folder, workload, example):
    workload["criteria"].append({**example("judged"), "id": "S0-99", "verdict": "recorded", "severity": "record"})
    as_planned(folder, workload)
    assert runs.finish(folder)["verdict"] == "pass"


def test_a_workload_whose_criteria_all_do_not_apply_is_undetermined(folder, workload):
    workload["criteria"][0]["verdict"] = "not_applicable"
    as_planned(folder, workload)
    assert runs.finish(folder)["verdict"] == "undetermined"


@pytest.mark.parametrize(
    ("found", "expected"), [("pass", "pass"), ("recorded", "pass"), ("undetermined", "undetermined"), ("fail", "fail")]
)
def test_findings_decide_too(folder, workload, found, expected):
    as_planned(folder, workload)
    runs.record(folder, "findings", [finding(found)])
    assert runs.finish(folder)["verdict"] == expected


def test_findings_alone_never_pass(folder):
    runs.record(folder, "findings", [finding("pass")])
    assert runs.finish(folder)["verdict"] == "undetermined"


@pytest.mark.parametrize("content", ["", "{", "[]", "null"])
def test_a_damaged_record_is_undetermined(folder, workload, content):
    as_planned(folder, workload)
    (folder / "workloads" / "MLOPS-1.1.json").write_text(content)
    try:
        assert runs.finish(folder)["verdict"] == "undetermined"
    except RunError:
        assert on_disk(folder)[0]["verdict"] == "undetermined"


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("findings", [{"id": "x"}]),
        ("workload", {"id": "MLOPS-9.9", "criteria": []}),
        ("workload", {"id": "MLOPS-1.1", "criteria": [{}]}),
        ("other", {}),
    ],
)
def test_what_does_not_fit_is_refused(folder, kind, document):
    with pytest.raises(RunError):
        runs.record(folder, kind, document)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="is not the folder of a run"):
        runs.finish(tmp_path)


def test_results_that_cannot_be_written_say_so(tmp_path, example):
    (tmp_path / "results").write_text("a file")
    with pytest.raises(RunError, match="hpc_validation_results"):
        runs.start(tmp_path / "results", {"title": "t", "accelerator": "cpu", "workloads": [example("manifest")]}, {})


def test_junit_and_verdict_agree(folder, workload, example):
    workload["criteria"] += [
        {**example("judged"), "id": f"S0-{n}", "verdict": verdict, "severity": "gate"}
        for n, verdict in enumerate(["fail", "undetermined", "not_applicable", "waived"], 90)
    ]
    as_planned(folder, workload)
    runs.finish(folder)
    verdict, suites = on_disk(folder)
    suite = suites.find("testsuite")
    assert int(suite.get("tests")) == len(verdict["workloads"][0]["criteria"])
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("1", "1", "2")


def test_hostile_text_keeps_the_report_well_formed(folder, workload):
    workload["criteria"][0].update(verdict="fail", why="\x1b[31m<b>&\x00 ]]>", value="\ud800"[:0] + "é")
    as_planned(folder, workload)
    runs.finish(folder)
    assert "\x1b" not in (folder / "junit.xml").read_text()
    on_disk(folder)


def test_coverage_says_what_was_left_out(folder, workload):
    workload["job"]["nodes"] = ["compute01"]
    nodes = [
        {"name": "compute01", "state": "idle", "reason": None, "gres": {"gpu": 2}},
        {"name": "compute02", "state": "down", "reason": "bad DIMM", "gres": {"gpu": 2}},
        {"name": "login", "state": "idle", "reason": None, "gres": {}},
    ]
    as_planned(folder, workload)
    runs.record(folder, "cluster", {"version": "24.11.5", "nodes": nodes})
    runs.record(folder, "probed", {"scope": SCOPE, "nodes": []})
    (folder / "evidence").mkdir()
    (folder / "evidence" / "MLOPS-1.1.json").write_text(json.dumps({"gpu": {"groups": {"GPU-1": {}}}}))
    coverage = runs.finish(folder)["coverage"]
    assert coverage["nodes"] == {"exercised": "compute01", "count": 1, "in_scope": 2}
    assert coverage["gpus"] == {"count": 1, "in_scope": 4}
    assert coverage["left_out"] == [{"name": "compute02", "count": 1, "why": "down: bad DIMM"}]


def test_the_verdict_says_what_the_run_cost(folder, workload):
    workload["job"].update(gpus=2, run_seconds=900.0)
    as_planned(folder, workload)
    verdict = runs.finish(folder)
    assert verdict["gpu_hours"] == 0.5
    assert "  cost: 0.50 GPU-hours" in summary.summary(verdict, folder)


@pytest.mark.parametrize("unknown", [{"gpus": None}, {"run_seconds": None}])
def test_a_cost_that_is_not_known_is_not_guessed(folder, workload, unknown):
    workload["job"].update({"gpus": 2, "run_seconds": 900.0, **unknown})
    as_planned(folder, workload)
    verdict = runs.finish(folder)
    assert verdict["gpu_hours"] is None
    assert "  cost: an unknown number of GPU-hours" in summary.summary(verdict, folder)


def test_a_speed_up_is_told_in_the_summary(folder, workload, example):
    well = {**example("judged"), "verdict": "pass", "value": 1.93, "why": "1.93 (1.9 to 1.96)"}
    workload["criteria"] = [
        {**well, "id": "S2-20", "against_baseline": True},
        {**well, "id": "S2-18"},
        {**well, "id": "JOB"},
    ]
    as_planned(folder, workload)
    lines = summary.summary(runs.finish(folder), folder)
    assert [line for line in lines if "S2-20" in line and "1.93" in line]
    assert [line.strip() for line in lines if "why:" in line] == ["why: 1.93 (1.9 to 1.96)"]
    assert not [line for line in lines if "S2-18" in line]


def test_a_run_without_jobs_costs_nothing(folder):
    assert runs.finish(folder)["gpu_hours"] == 0


def test_unknown_scope_is_said_to_be_unknown(folder, workload):
    as_planned(folder, workload)
    assert runs.finish(folder)["coverage"]["nodes"]["in_scope"] is None


def test_the_screen_names_what_failed_with_value_bound_and_remedy(folder, workload, example):
    odd = {
        **example("judged"),
        "id": "S0-13",
        "verdict": "fail",
        "severity": "gate",
        "value": 0.5,
        "bound": "> 0.95",
        "unit": None,
        "why": "0.5 is not > 0.95",
        "remedy": "look at the loss",
    }
    workload["criteria"].append(odd)
    as_planned(folder, workload)
    text = "\n".join(summary.summary(runs.finish(folder), folder))
    for expected in ("VERDICT: FAIL", "S0-13", "0.5  [> 0.95]", "do:  look at the loss", str(folder), "next:"):
        assert expected in text


def test_simulated_hardware_says_so(folder, workload):
    as_planned(folder, workload)
    assert "simulated" in "\n".join(summary.summary(runs.finish(folder), folder)).splitlines()[1]


# -- a preflight alone


@pytest.fixture
def probes(tmp_path):
    """A run without workloads that has begun."""
    plan = {"title": "Preflight", "accelerator": "simulated", "workloads": [], "probes_only": True}
    folder = runs.start(tmp_path / "results", plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})
    runs.record(folder, "cluster", {"version": "24.11.5", "nodes": NODES})
    return folder


NODES = [{"name": name, "state": "idle", "gres": {"gpu": 2}} for name in ("compute01", "compute02")]
SCOPE = [{"name": "compute01", "gpus": 2}, {"name": "compute02", "gpus": 2}]
PROBED = {"scope": SCOPE, "nodes": ["compute01", "compute02"], "gpus": ["GPU-1", "GPU-2"], "left_out": []}
RAN = [f"compute0{number}" for number in (1, 2)]


def about(verdict, identity="gpu.pcie_width", **where):
    found = judge_findings.judged(identity, "PCIe width is that of the card", "eq", 16, 8, source="NVML", where=where)
    return {**found, "verdict": verdict}


def test_findings_about_nodes_that_were_looked_at_make_a_pass(probes):
    runs.record(probes, "findings", [about("pass", "node.job", node=node) for node in RAN])
    runs.record(probes, "probed", PROBED)
    verdict = runs.finish(probes)
    assert (verdict["verdict"], verdict["why"]) == ("pass", "no problem in 2 findings")
    assert verdict["coverage"]["nodes"] == {"exercised": "compute[01-02]", "count": 2, "in_scope": 2}
    assert verdict["coverage"]["gpus"] == {"count": 2, "in_scope": 4}
    assert on_disk(probes)[0] == verdict


@pytest.mark.parametrize("probed", [None, {**PROBED, "nodes": []}])
def test_without_a_node_looked_at_nothing_passes(probes, probed):
    runs.record(probes, "findings", [about("pass", "login.munge", host="login")])
    if probed:
        runs.record(probes, "probed", probed)
    assert runs.finish(probes)["verdict"] == "undetermined"


@pytest.mark.parametrize(
    ("found", "expected"), [("fail", "fail"), ("undetermined", "undetermined"), ("recorded", "pass")]
)
def test_one_finding_decides(probes, found, expected):
    runs.record(probes, "findings", [about("pass", "node.job", node=node) for node in RAN])
    runs.record(probes, "findings", [about("pass", node="compute01"), about(found, node="compute02")])
    runs.record(probes, "probed", PROBED)
    assert runs.finish(probes)["verdict"] == expected


def test_a_damaged_record_of_what_was_looked_at_is_no_pass(probes):
    runs.record(probes, "findings", [about("pass", node="compute01")])
    (probes / "probed.json").write_text('{"nodes": ["compute01"')
    assert runs.finish(probes)["verdict"] == "undetermined"


def test_coverage_names_nodes_and_checks_that_were_left_out(probes):
    runs.record(probes, "findings", [about("not_applicable", "gpu.xid", node=f"compute0{n}") for n in (1, 2)])
    runs.record(
        probes,
        "probed",
        {
            "nodes": ["compute01"],
            "gpus": [],
            "left_out": [{"name": "compute02", "why": "not among hpc_validation_nodes"}],
        },
    )
    coverage = runs.finish(probes)["coverage"]
    assert [left["name"] for left in coverage["left_out"]] == ["checks gpu.xid"]
    assert coverage["outside"] == [{"name": "compute02", "count": 1, "why": "not among hpc_validation_nodes"}]


def test_the_screen_has_a_line_a_group_and_names_the_part_at_fault(probes):
    runs.record(probes, "findings", [about("pass", "login.munge", host="login")])
    runs.record(probes, "findings", [about("pass", node="compute01"), about("fail", node="compute02", gpu="GPU 1")])
    lines = summary.summary(runs.finish(probes), probes)
    assert any(line.split() == ["login", "pass", "1", "pass"] for line in lines)
    assert any(line.split() == ["gpu", "FAIL", "1", "fail,", "1", "pass"] for line in lines)
    assert any("compute02, GPU 1: PCIe width is that of the card: 8  [= 16]" in line for line in lines)
    suites = on_disk(probes)[1]
    assert [suite.get("name") for suite in suites] == ["preflight login", "preflight gpu"]


@pytest.fixture
def pair(tmp_path, example):
    """A run of two workloads, of which the second needs the first."""
    second = {**example("manifest"), "id": "MLOPS-1.2", "needs": ["MLOPS-1.1"]}
    plan = {"title": "Category 1", "accelerator": "simulated", "workloads": [example("manifest"), second]}
    return runs.start(tmp_path / "results", plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})


@pytest.mark.parametrize(
    ("verdict", "why", "whole"),
    [
        ("fail", "not_run: MLOPS-1.1 failed", "fail"),
        ("undetermined", "not_run: MLOPS-1.1 is undetermined", "undetermined"),
        ("pass", "not_run: the run ended before it was judged, see the findings", "undetermined"),
    ],
)
def test_a_workload_that_was_not_run_says_which_one_that_it_needs_did_not_pass(pair, workload, verdict, why, whole):
    workload["criteria"][0]["verdict"] = verdict
    as_planned(pair, workload)
    assert runs.passed(pair) == (["MLOPS-1.1"] if verdict == "pass" else [])
    finished = runs.finish(pair)
    assert [(each["verdict"], each["why"]) for each in finished["workloads"]][1] == ("undetermined", why)
    assert finished["verdict"] == whole
    assert "MLOPS-1.2: UNDETERMINED" in "\n".join(summary.summary(finished, pair))


def test_a_workload_whose_need_is_not_part_of_the_run_owes_it_nothing(tmp_path, example, workload):
    alone = {**example("manifest"), "id": "MLOPS-1.2", "needs": ["MLOPS-1.1"]}
    plan = {"title": "Category 1", "accelerator": "simulated", "workloads": [alone]}
    folder = runs.start(tmp_path / "results", plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})
    as_planned(folder, {**workload, "id": "MLOPS-1.2"})
    assert (runs.passed(folder), runs.finish(folder)["verdict"]) == (["MLOPS-1.2"], "pass")


def test_runs_are_counted_from_one(folder):
    plan = json.loads((folder / "plan.json").read_text())
    assert (plan["number"], runs.number(folder)) == (1, 1)
    given = {key: plan[key] for key in ("title", "accelerator", "workloads")}
    second = runs.start(folder.parent, given, plan["versions"])
    assert runs.number(second) == 2


@pytest.mark.parametrize("number", [None, 0, -1, True, 1.5, "2", [1]])
def test_a_run_that_counts_otherwise_is_number_zero(folder, number):
    plan = json.loads((folder / "plan.json").read_text())
    for changed in ({**plan, "number": number}, {key: plan[key] for key in plan if key != "number"}, [plan]):
        (folder / "plan.json").write_text(json.dumps(changed))
        assert runs.number(folder) == 0
    (folder / "plan.json").write_text("{")
    assert runs.number(folder) == 0
    (folder / "plan.json").unlink()
    assert runs.number(folder) == 0


# -- what is refused, and what is told


def test_only_a_folder_that_is_named_and_planned_as_a_run_is_one(folder, tmp_path):
    other = tmp_path / "notes"
    other.mkdir()
    (other / "plan.json").write_bytes((folder / "plan.json").read_bytes())
    (folder / "plan.json").unlink()
    for path in (other, folder):
        with pytest.raises(RunError, match="is not the folder of a run"):
            runs.record(path, "findings", [])
        with pytest.raises(RunError, match="is not the folder of a run"):
            runs.finish(path)


def test_a_verdict_that_does_not_fit_its_schema_is_not_written(folder):
    before = (folder / "verdict.json").read_bytes()
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps({**plan, "title": 5}))
    with pytest.raises(RunError, match="cannot be written"):
        runs.finish(folder)
    assert (folder / "verdict.json").read_bytes() == before


def test_a_verdict_that_cannot_be_written_is_an_error(folder):
    (folder / "verdict.json").unlink()
    (folder / "verdict.json").mkdir()
    with pytest.raises(RunError, match="cannot be written"):
        runs.finish(folder)


def test_a_workload_is_asked_for_unless_the_plan_says_otherwise(folder):
    earlier = {"run": "20261121T035035Z-6f784b", "finished": 1795500000.0, "sha256": "0" * 64}
    with pytest.raises(RunError, match="was selected"):
        runs.record(folder, "workload", {"id": "MLOPS-1.1", "earlier": earlier})


def test_a_workload_without_a_job_is_recorded_and_the_verdict_waits_for_the_end(folder, workload):
    before = (folder / "verdict.json").read_bytes()
    as_planned(folder, {**workload, "job": None})
    assert (folder / "verdict.json").read_bytes() == before
    verdict = runs.finish(folder)
    assert (verdict["workloads"][0]["job"], verdict["coverage"]["nodes"]["exercised"]) == (None, "")


@pytest.mark.parametrize(
    "changes",
    [
        {"earlier": {"run": "20261121T035035Z-6f784b", "finished": 1795500000.0}},
        {"criteria": [{"id": "JOB", "verdict": "pass", "severity": "gate"}]},
    ],
)
def test_a_record_that_does_not_fit_its_schema_is_no_pass(folder, workload, changes):
    plan = json.loads((folder / "plan.json").read_text())
    plan["workloads"][0]["criteria"] = []
    (folder / "plan.json").write_text(json.dumps(plan))
    records.add(folder, "workloads/MLOPS-1.1.json", {**workload, **changes})
    assert runs.passed(folder) == []
    (told,) = runs.finish(folder)["workloads"]
    assert told["verdict"] == "undetermined"
    assert "cannot be read back" in told["why"]


def test_why_a_workload_has_its_verdict_is_told(folder, workload):
    (told,) = on_disk(folder)[0]["workloads"]
    assert told["why"] == run_verdict.NOT_FINISHED
    as_planned(folder, workload)
    assert runs.finish(folder)["workloads"][0]["why"] == "every applicable criterion passed"


def test_why_a_workload_failed_is_told(folder, workload, example):
    odd = {**example("judged"), "verdict": "fail", "why": "too low"}
    gate, noted = {**odd, "id": "S0-98", "severity": "gate"}, {**odd, "id": "S0-99", "severity": "record"}
    as_planned(folder, {**workload, "criteria": [*workload["criteria"], noted, gate]})
    assert runs.finish(folder)["workloads"][0]["why"] == "S0-98: too low"


def test_why_a_workload_is_undetermined_is_told(folder, workload):
    workload["criteria"][0]["verdict"] = "not_applicable"
    as_planned(folder, workload)
    assert runs.finish(folder)["workloads"][0]["why"] == "nothing was judged"


@pytest.mark.parametrize(
    ("verdict", "workloads", "findings", "why"),
    [
        ("pass", [], ["pass", "recorded"], "no problem in 2 findings"),
        ("pass", ["pass", "pass"], ["pass"], "2 of 2 workloads passed"),
        ("pass", ["pass", "earlier"], [], "1 of 1 workloads passed"),
        ("fail", [], ["pass", "fail"], "F1: finding 1"),
        ("fail", ["pass", "fail"], ["undetermined", "fail"], "F1: finding 1; W1: workload 1"),
        ("undetermined", ["undetermined", "pass"], ["pass"], "W0: workload 0"),
        ("undetermined", [], ["pass"], "nothing was judged"),
        ("undetermined", ["earlier"], [], "nothing was judged"),
    ],
)
def test_why_a_run_has_its_verdict_is_told(verdict, workloads, findings, why):
    ran = [
        {"id": f"W{n}", "why": f"workload {n}", "verdict": "recorded", "earlier": {}}
        if each == "earlier"
        else {"id": f"W{n}", "why": f"workload {n}", "verdict": each}
        for n, each in enumerate(workloads)
    ]
    found = [{**finding(each), "id": f"F{n}", "why": f"finding {n}", "where": {}} for n, each in enumerate(findings)]
    assert run_verdict._why(verdict, ran, [each for each in found if each["verdict"] != "pass"], len(found)) == why


def test_one_that_it_does_not_need_is_not_named(tmp_path, example, workload):
    other = {**example("manifest"), "id": "MLOPS-1.2", "needs": []}
    plan = {"title": "Category 1", "accelerator": "simulated", "workloads": [example("manifest"), other]}
    folder = runs.start(tmp_path / "results", plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})
    workload["criteria"][0]["verdict"] = "fail"
    as_planned(folder, workload)
    assert runs.finish(folder)["workloads"][1]["why"].startswith("not_run: the run ended before")


@pytest.mark.parametrize(("version", "told"), [("24.11.5", "24.11.5"), (None, None), (5, None)])
def test_the_version_of_slurm_is_told_where_it_is_one(folder, version, told):
    runs.record(folder, "cluster", {"version": version, "nodes": []})
    assert runs.finish(folder)["versions"]["slurm"] == told


def test_what_a_terminal_would_act_on_is_taken_out_at_any_depth():
    document = {"a\x1b[1m": ["\x1b[31m", {"b": "\x1b"}, 1.5, None, True, float("nan"), float("-inf")]}
    told = presentable(document)
    assert "u001b" not in json.dumps(told, allow_nan=False)
    ((name, values),) = told.items()
    assert name.startswith("a")
    assert values[2:5] == [1.5, None, True]
    assert [type(value) for value in values[5:]] == [str, str]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, []),
        ({"nodes": None, "gpus": None, "left_out": None}, []),
        ({"nodes": ["a"], "gpus": ["b"], "left_out": [{"name": "c", "why": "d"}]}, []),
        ([], ["expected an object"]),
        (None, ["expected an object"]),
        ({"nodes": "a"}, ["nodes: expected a list of str"]),
        ({"nodes": ["a", 5]}, ["nodes: expected a list of str"]),
        ({"gpus": {"a": 1}}, ["gpus: expected a list of str"]),
        ({"left_out": ["a"]}, ["left_out: expected a list of dict"]),
        ({"left_out": [{"name": "a", "why": "b"}, {"name": "a"}]}, ["left_out: expected name and why"]),
        ({"left_out": [{"name": 5, "why": "b"}]}, ["left_out: expected name and why"]),
        ({"scope": [{"name": "a", "gpus": 0}]}, []),
        ({"scope": ["a"]}, ["scope: expected a list of dict"]),
        ({"scope": [{"name": "a"}, {"gpus": 1}]}, ["scope: expected name as text"] * 2),
        ({"scope": [{"name": "a", "gpus": True}]}, ["scope: expected name as text"]),
        ({"nodes": [5], "left_out": [{}]}, ["nodes: expected a list of str"]),
        ({"nodes": [5], "gpus": 7}, ["nodes: expected a list of str", "gpus: expected a list of str"]),
    ],
)
def test_what_preflight_noted_is_of_its_kind(facts, words):
    found = readback._probed_amiss(facts)
    assert len(found) == len(words)
    for told, expected in zip(found, words):
        assert told.startswith(expected)


def test_what_was_looked_at_may_be_told_in_part(probes):
    runs.record(probes, "findings", [about("pass", node="compute01")])
    runs.record(probes, "probed", {"nodes": ["compute01"], "scope": SCOPE})
    coverage = runs.finish(probes)["coverage"]
    assert (coverage["nodes"]["exercised"], coverage["gpus"]["count"]) == ("compute01", 0)
    assert coverage["left_out"] == [
        {"name": "compute02", "count": 1, "why": "idle; no job of the preflight ended well there"}
    ]


def test_a_node_in_scope_without_a_result_is_lost_and_named(probes):
    runs.record(probes, "findings", [about("pass", "node.job", node="compute01")])
    runs.record(probes, "probed", {**PROBED, "nodes": ["compute01"]})
    verdict = runs.finish(probes)
    (lost,) = verdict["findings"]
    assert (verdict["verdict"], lost["id"], lost["where"]) == ("undetermined", "coverage.node", {"node": "compute02"})


def test_a_run_that_goes_on_has_lost_nothing_yet(probes):
    runs.record(probes, "probed", {**PROBED, "nodes": []})
    assert run_verdict.of_run(probes, finished=None)[0]["findings"] == []
    assert [each["id"] for each in run_verdict.of_run(probes, finished=1.0)[0]["findings"]] == ["coverage.node"]


@pytest.mark.parametrize(("faults", "told"), [(20, 20), (21, 21), (500, 21)])
def test_not_every_one_of_many_faults_is_a_reason(probes, faults, told):
    runs.record(probes, "findings", [{**about("fail"), "id": f"gpu.check_{number}"} for number in range(faults)])
    reasons = runs.finish(probes)["why"].split("; ")
    assert len(reasons) == told
    assert (reasons[-1] == f"and {faults - 20} more") is (faults > 20)


def test_a_lost_node_is_told_whatever_else_is_wrong(probes):
    runs.record(probes, "findings", [about("pass", "node.job", node="compute01"), about("fail", "login.munge")])
    runs.record(probes, "probed", {**PROBED, "nodes": ["compute01"]})
    assert {each["id"] for each in runs.finish(probes)["findings"]} == {"coverage.node", "login.munge"}


@pytest.mark.parametrize("verdict", ["fail", "undetermined"])
def test_nodes_that_no_job_was_to_reach_are_not_told_again(probes, verdict):
    runs.record(probes, "findings", [about(verdict, "share.mounted", host="login")])
    runs.record(probes, "probed", {**PROBED, "nodes": []})
    assert [each["id"] for each in runs.finish(probes)["findings"]] == ["share.mounted"]


def test_why_each_node_was_left_out_is_told(folder, workload):
    workload["job"]["nodes"] = ["n1", "n5"]
    nodes = [{"name": f"n{n}", "state": "idle", "reason": None, "gres": {"gpu": 1}} for n in (1, 2, 3)]
    nodes[1]["state"] = None
    nodes[2]["reason"] = "being repaired"
    as_planned(folder, workload)
    runs.record(folder, "cluster", {"version": "24.11.5", "nodes": nodes})
    left_out = [{"name": name, "why": f"{name} is out"} for name in ("n5", "n4")]
    scope = [{"name": f"n{n}", "gpus": 1} for n in (1, 2, 3)]
    runs.record(folder, "probed", {"nodes": [], "left_out": left_out, "scope": scope})
    coverage = runs.finish(folder)["coverage"]
    assert (coverage["nodes"]["count"], coverage["nodes"]["in_scope"]) == (1, 3)
    assert coverage["left_out"] == [
        {"name": "n2", "count": 1, "why": "unknown; no selected workload was placed there"},
        {"name": "n3", "count": 1, "why": "idle: being repaired"},
    ]
    assert coverage["outside"] == [
        {"name": "n5", "count": 1, "why": "a job ran there all the same"},
        {"name": "n4", "count": 1, "why": "n4 is out"},
    ]


@pytest.mark.parametrize(("seen", "told"), [(4, []), (5, ["1 GPU"]), (16, ["12 GPUs"])])
def test_never_more_gpus_were_looked_at_than_are_in_scope(probes, seen, told):
    runs.record(probes, "probed", {**PROBED, "gpus": [f"GPU-{number}" for number in range(seen)]})
    verdict = runs.finish(probes)
    assert verdict["coverage"]["gpus"] == {"count": 4, "in_scope": 4}
    assert [each["name"] for each in verdict["coverage"]["outside"]] == told
    why = "more than Slurm defines for the nodes in scope"
    assert [line for line in summary.summary(verdict, probes) if why in line] == [
        f"  out of scope: {name} ({why})" for name in told
    ]


def test_only_checks_that_do_not_apply_are_left_out(probes):
    runs.record(probes, "findings", [about("not_applicable", "gpu.xid"), about("pass")])
    runs.record(probes, "probed", PROBED)
    (left,) = runs.finish(probes)["coverage"]["left_out"]
    assert left["name"] == "checks gpu.xid"


@pytest.mark.parametrize("evidence", [{}, {"gpu": None}, {"gpu": {}}, {"gpu": {"groups": None}}, None])
def test_evidence_without_gpus_tells_of_none(folder, workload, evidence):
    as_planned(folder, workload)
    (folder / "evidence").mkdir()
    (folder / "evidence/MLOPS-1.1.json").write_text(json.dumps(evidence))
    assert runs.finish(folder)["coverage"]["gpus"]["count"] == 0


def test_the_inventory_names_what_the_verdict_was_made_of(folder, workload):
    as_planned(folder, workload)
    (folder / "record.md").write_text("of before")
    (folder / ".hidden").write_text("half a file")
    files = {each["path"]: each for each in runs.finish(folder)["evidence"]}
    assert set(files) == {"plan.json", "recorded.json", "workloads/MLOPS-1.1.json"}
    content = (folder / "plan.json").read_bytes()
    assert files["plan.json"] == {
        "path": "plan.json",
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def test_no_record_for_people_is_made_of_a_workload_that_has_none(folder, workload):
    as_planned(folder, workload)
    runs.finish(folder)
    assert not (folder / "record.md").exists()


@pytest.mark.parametrize("document", ["[1]", '"x"', "{", "{}", '{"gpu": [1]}', '{"gpu": {"groups": ["GPU-a"]}}'])
def test_evidence_of_another_kind_names_no_gpus(folder, workload, document):
    (folder / "evidence").mkdir()
    (folder / "evidence/MLOPS-1.1.json").write_text(document)
    as_planned(folder, workload)
    assert runs.finish(folder)["coverage"]["gpus"]["count"] == 0


EARLIER = {"run": "20261121T035035Z-6f784b", "finished": 1795500000.0, "sha256": "0" * 64}


def test_a_run_of_which_all_has_passed_but_its_end_is_no_pass(pair, workload):
    plan = json.loads((pair / "plan.json").read_text())
    plan["workloads"][1]["asked"] = False
    (pair / "plan.json").write_text(json.dumps(plan))
    as_planned(pair, workload)
    runs.record(pair, "workload", {"id": "MLOPS-1.2", "earlier": EARLIER})
    verdict, _suites = on_disk(pair)
    assert [each["verdict"] for each in verdict["workloads"]] == ["pass", "recorded"]
    assert (verdict["verdict"], verdict["why"], verdict["finished"]) == (
        "undetermined",
        run_verdict.NOT_FINISHED,
        None,
    )
    assert runs.finish(pair)["verdict"] == "pass"


@pytest.mark.parametrize(
    ("kind", "facts", "words"),
    [
        ("cluster", {"version": "24.11.5", "nodes": 5}, "nodes"),
        ("cluster", [], "object"),
        ("probed", {"nodes": "compute01"}, "nodes: expected a list of str"),
        ("probed", {"nodes": [], "gpus": [5]}, "gpus: expected a list of str"),
    ],
)
def test_facts_of_another_kind_are_a_finding_and_no_pass(folder, workload, kind, facts, words):
    as_planned(folder, workload)
    runs.record(folder, kind, facts)
    verdict = runs.finish(folder)
    (found,) = verdict["findings"]
    assert (verdict["verdict"], found["verdict"]) == ("undetermined", "undetermined")
    assert found["where"] == {"step": "report", "path": str(folder / f"{kind}.json")}
    assert words in found["why"]
    assert verdict["cluster"] is None
    assert verdict["coverage"]["nodes"]["in_scope"] is None
