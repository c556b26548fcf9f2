from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import _findings, _run, _schema, _summary
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import RunError


@pytest.fixture
def folder(tmp_path, example):
    """A run that has begun with the one workload of the example manifest."""
    plan = {"title": "Category 1", "accelerator": "simulated", "workloads": [example("manifest")]}
    return _run.start(tmp_path / "results", plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})


@pytest.fixture
def workload(example):
    """A recorded workload that passed."""
    judged = {**example("judged"), "verdict": "pass", "severity": "gate"}
    criteria = [judged, {**judged, "id": "JOB"}]
    return {"id": "MLOPS-1.1", "job": example("job"), "data": {"mnist": "stand-in digits"}, "criteria": criteria}


def as_planned(folder, workload):
    """Record it where just its criteria were planned."""
    path = folder / "plan.json"
    plan = json.loads(path.read_text())
    (manifest,) = [each for each in plan["workloads"] if each["id"] == workload["id"]]
    manifest["criteria"] = [{"id": each["id"]} for each in workload["criteria"] if each["id"] != "JOB"]
    path.write_text(json.dumps(plan))
    _run.record(folder, "workload", workload)


def finding(verdict):
    failed = _findings.step_failed("stage", "Install the environment", "No space left on device", {"host": "login"})
    return {**failed, "verdict": verdict}


def on_disk(folder):
    verdict = json.loads((folder / "verdict.json").read_text())
    assert _schema.problems("verdict", verdict) == []
    suites = ElementTree.parse(folder / "junit.xml").getroot()
    return verdict, suites


def test_a_run_that_began_and_died_leaves_an_honest_file(folder):
    verdict, suites = on_disk(folder)
    assert verdict["verdict"] == "undetermined"
    assert verdict["finished"] is None
    assert "did not finish" in verdict["why"]
    assert suites.find(".//error") is not None


def test_a_pass_needs_every_workload_recorded(folder, workload):
    assert _run.finish(folder)["verdict"] == "undetermined"
    as_planned(folder, workload)
    verdict = _run.finish(folder)
    assert verdict["verdict"] == "pass"
    assert on_disk(folder)[0] == verdict


@pytest.mark.parametrize("verdict", ["fail", "undetermined"])
def test_one_criterion_decides(folder, workload, verdict, example):
    other = {**example("judged"), "id": "S0-99", "verdict": verdict, "severity": "gate"}
    workload["criteria"].append(other)
    as_planned(folder, workload)
    assert _run.finish(folder)["verdict"] == verdict
    assert _run.finish(folder)["why"].startswith("MLOPS-1.1: S0-99")


def test_a_recorded_criterion_decides_nothing(folder, workload, example):
    workload["criteria"].append({**example("judged"), "id": "S0-99", "verdict": "recorded", "severity": "record"})
    as_planned(folder, workload)
    assert _run.finish(folder)["verdict"] == "pass"


def test_a_workload_whose_criteria_all_do_not_apply_is_undetermined(folder, workload):
    workload["criteria"][0]["verdict"] = "not_applicable"
    as_planned(folder, workload)
    assert _run.finish(folder)["verdict"] == "undetermined"


@pytest.mark.parametrize(
    ("found", "expected"), [("pass", "pass"), ("recorded", "pass"), ("undetermined", "undetermined"), ("fail", "fail")]
)
def test_findings_decide_too(folder, workload, found, expected):
    as_planned(folder, workload)
    _run.record(folder, "findings", [finding(found)])
    assert _run.finish(folder)["verdict"] == expected


def test_findings_alone_never_pass(folder):
    _run.record(folder, "findings", [finding("pass")])
    assert _run.finish(folder)["verdict"] == "undetermined"


@pytest.mark.parametrize("content", ["", "{", "[]", "null"])
def test_a_damaged_record_is_undetermined(folder, workload, content):
    as_planned(folder, workload)
    (folder / "workloads" / "MLOPS-1.1.json").write_text(content)
    try:
        assert _run.finish(folder)["verdict"] == "undetermined"
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
        _run.record(folder, kind, document)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="is not the folder of a run"):
        _run.finish(tmp_path)


def test_results_that_cannot_be_written_say_so(tmp_path, example):
    (tmp_path / "results").write_text("a file")
    with pytest.raises(RunError, match="hpc_validation_results"):
        _run.start(tmp_path / "results", {"title": "t", "accelerator": "cpu", "workloads": [example("manifest")]}, {})


def test_junit_and_verdict_agree(folder, workload, example):
    workload["criteria"] += [
        {**example("judged"), "id": f"S0-{n}", "verdict": verdict, "severity": "gate"}
        for n, verdict in enumerate(["fail", "undetermined", "not_applicable", "waived"], 90)
    ]
    as_planned(folder, workload)
    _run.finish(folder)
    verdict, suites = on_disk(folder)
    suite = suites.find("testsuite")
    assert int(suite.get("tests")) == len(verdict["workloads"][0]["criteria"])
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("1", "1", "2")


def test_hostile_text_keeps_the_report_well_formed(folder, workload):
    workload["criteria"][0].update(verdict="fail", why="\x1b[31m<b>&\x00 ]]>", value="\ud800"[:0] + "é")
    as_planned(folder, workload)
    _run.finish(folder)
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
    _run.record(folder, "cluster", {"version": "24.11.5", "nodes": nodes})
    (folder / "evidence").mkdir()
    (folder / "evidence" / "MLOPS-1.1.json").write_text(json.dumps({"gpu": {"groups": {"GPU-1": {}}}}))
    coverage = _run.finish(folder)["coverage"]
    assert coverage["nodes"] == {"exercised": ["compute01"], "in_scope": 2}
    assert coverage["gpus"] == {"exercised": ["GPU-1"], "in_scope": 4}
    assert coverage["left_out"] == [{"name": "compute02", "why": "down: bad DIMM"}]


def test_the_verdict_says_what_the_run_cost(folder, workload):
    workload["job"].update(gpus=2, run_seconds=900.0)
    as_planned(folder, workload)
    verdict = _run.finish(folder)
    assert verdict["gpu_hours"] == 0.5
    assert "  cost: 0.50 GPU-hours" in _summary.summary(verdict, folder)


@pytest.mark.parametrize("unknown", [{"gpus": None}, {"run_seconds": None}])
def test_a_cost_that_is_not_known_is_not_guessed(folder, workload, unknown):
    workload["job"].update({"gpus": 2, "run_seconds": 900.0, **unknown})
    as_planned(folder, workload)
    verdict = _run.finish(folder)
    assert verdict["gpu_hours"] is None
    assert "  cost: an unknown number of GPU-hours" in _summary.summary(verdict, folder)


def test_a_speed_up_is_told_in_the_summary(folder, workload, example):
    well = {**example("judged"), "verdict": "pass", "value": 1.93, "why": "1.93 (1.9 to 1.96)"}
    workload["criteria"] = [
        {**well, "id": "S2-20", "against_baseline": True},
        {**well, "id": "S2-18"},
        {**well, "id": "JOB"},
    ]
    as_planned(folder, workload)
    lines = _summary.summary(_run.finish(folder), folder)
    assert [line for line in lines if "S2-20" in line and "1.93" in line]
    assert [line.strip() for line in lines if "why:" in line] == ["why: 1.93 (1.9 to 1.96)"]
    assert not [line for line in lines if "S2-18" in line]


def test_a_run_without_jobs_costs_nothing(folder):
    assert _run.finish(folder)["gpu_hours"] == 0


def test_unknown_scope_is_said_to_be_unknown(folder, workload):
    as_planned(folder, workload)
    assert _run.finish(folder)["coverage"]["nodes"]["in_scope"] is None


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
    text = "\n".join(_summary.summary(_run.finish(folder), folder))
    for expected in ("VERDICT: FAIL", "S0-13", "0.5  [> 0.95]", "do:  look at the loss", str(folder), "next:"):
        assert expected in text


def test_simulated_hardware_says_so(folder, workload):
    as_planned(folder, workload)
    assert "simulated" in "\n".join(_summary.summary(_run.finish(folder), folder)).splitlines()[1]


# -- a preflight alone


@pytest.fixture
def probes(tmp_path):
    """A run without workloads that has begun."""
    plan = {"title": "Preflight", "accelerator": "simulated", "workloads": [], "probes_only": True}
    folder = _run.start(tmp_path / "results", plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})
    _run.record(folder, "cluster", {"version": "24.11.5", "nodes": NODES})
    return folder


NODES = [{"name": name, "state": "idle", "gres": {"gpu": 2}} for name in ("compute01", "compute02")]
PROBED = {"nodes": ["compute01", "compute02"], "gpus": ["GPU-1", "GPU-2"], "left_out": []}


def about(verdict, identity="gpu.pcie_width", **where):
    found = _findings.judged(identity, "PCIe width is the card's own", "eq", 16, 8, source="NVML", where=where)
    return {**found, "verdict": verdict}


def test_findings_about_nodes_that_were_looked_at_make_a_pass(probes):
    _run.record(probes, "findings", [about("pass", node="compute01")])
    _run.record(probes, "probed", PROBED)
    verdict = _run.finish(probes)
    assert (verdict["verdict"], verdict["why"]) == ("pass", "nothing is amiss in 1 findings")
    assert verdict["coverage"]["nodes"] == {"exercised": ["compute01", "compute02"], "in_scope": 2}
    assert verdict["coverage"]["gpus"] == {"exercised": ["GPU-1", "GPU-2"], "in_scope": 4}
    assert on_disk(probes)[0] == verdict


@pytest.mark.parametrize("probed", [None, {**PROBED, "nodes": []}])
def test_without_a_node_looked_at_nothing_passes(probes, probed):
    _run.record(probes, "findings", [about("pass", "login.munge", host="login")])
    if probed:
        _run.record(probes, "probed", probed)
    assert _run.finish(probes)["verdict"] == "undetermined"


@pytest.mark.parametrize(
    ("found", "expected"), [("fail", "fail"), ("undetermined", "undetermined"), ("recorded", "pass")]
)
def test_one_finding_decides(probes, found, expected):
    _run.record(probes, "findings", [about("pass", node="compute01"), about(found, node="compute02")])
    _run.record(probes, "probed", PROBED)
    assert _run.finish(probes)["verdict"] == expected


def test_a_damaged_record_of_what_was_looked_at_is_no_pass(probes):
    _run.record(probes, "findings", [about("pass", node="compute01")])
    (probes / "probed.json").write_text('{"nodes": ["compute01"')
    assert _run.finish(probes)["verdict"] == "undetermined"


def test_coverage_names_nodes_and_checks_that_were_left_out(probes):
    _run.record(probes, "findings", [about("not_applicable", "gpu.xid", node=f"compute0{n}") for n in (1, 2)])
    _run.record(
        probes,
        "probed",
        {
            "nodes": ["compute01"],
            "gpus": [],
            "left_out": [{"name": "compute02", "why": "not among hpc_validation_nodes"}],
        },
    )
    left_out = _run.finish(probes)["coverage"]["left_out"]
    assert [left["name"] for left in left_out] == ["compute02", "checks gpu.xid"]
    assert "not among hpc_validation_nodes" in left_out[0]["why"]


def test_the_screen_has_a_line_a_group_and_names_the_part_at_fault(probes):
    _run.record(probes, "findings", [about("pass", "login.munge", host="login")])
    _run.record(probes, "findings", [about("pass", node="compute01"), about("fail", node="compute02", gpu="GPU 1")])
    lines = _summary.summary(_run.finish(probes), probes)
    assert any(line.split() == ["login", "pass", "1", "pass"] for line in lines)
    assert any(line.split() == ["gpu", "FAIL", "1", "pass,", "1", "fail"] for line in lines)
    assert any("compute02, GPU 1: PCIe width is the card's own: 8  [= 16]" in line for line in lines)
    suites = on_disk(probes)[1]
    assert [suite.get("name") for suite in suites] == ["preflight login", "preflight gpu"]


@pytest.fixture
def pair(tmp_path, example):
    """A run of two workloads, of which the second needs the first."""
    second = {**example("manifest"), "id": "MLOPS-1.2", "needs": ["MLOPS-1.1"]}
    plan = {"title": "Category 1", "accelerator": "simulated", "workloads": [example("manifest"), second]}
    return _run.start(tmp_path / "results", plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})


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
    assert _run.passed(pair) == (["MLOPS-1.1"] if verdict == "pass" else [])
    finished = _run.finish(pair)
    assert [(each["verdict"], each["why"]) for each in finished["workloads"]][1] == ("undetermined", why)
    assert finished["verdict"] == whole
    assert "MLOPS-1.2: UNDETERMINED" in "\n".join(_summary.summary(finished, pair))


def test_a_workload_whose_need_is_not_part_of_the_run_owes_it_nothing(tmp_path, example, workload):
    alone = {**example("manifest"), "id": "MLOPS-1.2", "needs": ["MLOPS-1.1"]}
    plan = {"title": "Category 1", "accelerator": "simulated", "workloads": [alone]}
    folder = _run.start(tmp_path / "results", plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})
    as_planned(folder, {**workload, "id": "MLOPS-1.2"})
    assert (_run.passed(folder), _run.finish(folder)["verdict"]) == (["MLOPS-1.2"], "pass")
