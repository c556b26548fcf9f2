"""A workload that is only needed runs, unless its newest run is known to stand; each reason to doubt that is tried."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import shutil
from xml.etree import ElementTree

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import summary
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import evidence, recall, runs
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run.runs import RunError

from tests.unit.plugins.plugin_utils._judge.criteria_fake import provenance, whole

DAY = 86400
NOW = 1795500000.0
THEN = NOW - 2.5 * DAY
NEEDED, ASKED = "MLOPS-1.1", "MLOPS-2.1"
CRITERIA = [
    {"id": "S0-13", "title": "It has learned", "query": "metrics.accuracy", "gt": 0.95},
    {
        "id": "S0-13.cuda",
        "title": "On the GPU",
        "query": "metrics.device",
        "eq": "cuda",
        "applies_when": {"fast": [True]},
    },
]


def day(moment):
    return datetime.datetime.fromtimestamp(moment, tz=datetime.timezone.utc).date().isoformat()


def cluster(*nodes):
    return {
        "version": "24.11.5",
        "cluster_name": "alps",
        "nodes": [{"name": name, "gres": {"gpu": 2}} for name in nodes],
    }


def probed(**drivers):
    """What preflight saw: the nodes with their drivers, and two GPUs in each."""
    gpus = sorted(f"GPU-{node}-{index}" for node in drivers for index in (0, 1))
    return {"nodes": sorted(drivers), "gpus": gpus, "left_out": [], "drivers": drivers}


class Scene:
    """A run that passed, and one that now asks for it. Tests change one or the other before they are written."""

    def __init__(self, results, example):
        self.results = results
        manifest = {**example("manifest"), "criteria": CRITERIA}
        needed, asked = {**manifest, "asked": True}, {**manifest, "id": ASKED, "needs": [NEEDED], "asked": True}
        self.then = {"title": "t", "accelerator": "cuda", "workloads": [needed], "needs_days": 7}
        self.plan = {**self.then, "workloads": [{**needed, "asked": False}, asked]}
        self.versions_then, self.versions = {"collection": "0.3.0"}, {"collection": "0.3.0"}
        self.cluster_then, self.cluster = cluster("compute01", "compute02"), cluster("compute02", "compute01")
        self.probed_then = probed(compute01="570.1", compute02="570.1")
        self.probed = probed(compute01="570.1", compute02="570.1")
        self.evidence = whole()
        self.judged = {**example("judged"), "verdict": "pass", "severity": "gate"}
        self.job = example("job")
        self.script = self.job["script_sha256"]
        self.judging = {"overrides": {}, "references": {}, "context": {"fast": True}}

    def ran(self, began=THEN, finished=THEN, judged="pass"):
        """The folder of a run that had the workload to run."""
        folder = runs.start(self.results, self.then, self.versions_then, now=began)
        runs.record(folder, "cluster", self.cluster_then)
        runs.record(folder, "probed", self.probed_then)
        evidence.save(self.evidence, str(folder / f"evidence/{NEEDED}.json"))
        document = {"id": NEEDED, "job": self.job, "data": {}, "criteria": self.all_judged(judged)}
        runs.record(folder, "workload", document)
        if finished is not None:
            runs.finish(folder, now=finished)
        return folder

    def all_judged(self, verdict):
        """What was planned, judged alike."""
        return [{**self.judged, "id": each, "verdict": verdict} for each in ("JOB", "S0-13", "S0-13.cuda")]

    def asks(self):
        """The folder of the run that asks, which has been through its preflight."""
        folder = runs.start(self.results, self.plan, self.versions, now=NOW - 60)
        runs.record(folder, "cluster", self.cluster)
        runs.record(folder, "probed", self.probed)
        return folder

    def recalled(self):
        """What it is told; it leaves no folder, which would be the newest run of the workload."""
        folder = self.asks()
        told = recall.recall(folder, NEEDED, self.script, self.judging, now=NOW)
        shutil.rmtree(folder)
        return told


@pytest.fixture
def scene(tmp_path, example):
    return Scene(tmp_path / "results", example)


def test_a_pass_of_the_same_on_the_same_stands(scene):
    ran = scene.ran()
    earlier, line = scene.recalled()
    assert line == f"MLOPS-1.1: passed 2 days ago in run {ran.name}, not run again"
    sha256 = hashlib.sha256((ran / "verdict.json").read_bytes()).hexdigest()
    assert earlier == {"run": ran.name, "finished": THEN, "sha256": sha256}
    assert schema.problems("earlier", earlier) == []


def test_a_pass_in_the_form_of_older_versions_stands(scene):
    scene.then["verdict_schema"] = 1
    ran = scene.ran()
    assert json.loads((ran / "verdict.json").read_text())["schema"] == 1
    assert scene.recalled()[0]["run"] == ran.name


@pytest.mark.parametrize(
    ("age", "told"), [(0, "less than a day ago"), (1.5 * DAY, "1 day ago"), (7 * DAY, "7 days ago")]
)
def test_its_age_is_told(scene, age, told):
    scene.ran(began=NOW - 8 * DAY, finished=NOW - age)
    assert told in scene.recalled()[1]
    assert scene.recalled()[0]


def change(part, **changes):
    return lambda scene: getattr(scene, part).update(changes)


def replace(part, value):
    return lambda scene: setattr(scene, part, value)


CHANGES = {
    "never": (change("plan", needs_days=0), "hpc_validation_needs_days is 0"),
    "too_few_days": (change("plan", needs_days=2), "it passed 2 days ago, and hpc_validation_needs_days is 2"),
    "accelerator": (change("plan", accelerator="simulated"), "accelerator cuda then, simulated now"),
    "collection": (change("versions", collection="0.4.0"), "collection 0.3.0 then, 0.4.0 now"),
    "collection_unknown": (change("versions_then", collection=None), "collection unknown then, 0.3.0 now"),
    "cluster": (change("cluster", cluster_name="jura"), "cluster alps then, jura now"),
    "cluster_unknown": (change("cluster_then", cluster_name=None), "cluster unknown then, alps now"),
    "a_node_more": (
        replace("cluster", cluster("compute01", "compute02", "compute03")),
        r"nodes compute\[01-02\] gpu:2 then, compute\[01-03\] gpu:2 now",
    ),
    "no_nodes": (replace("cluster_then", cluster()), "nodes unknown then"),
    "script": (replace("script", "0" * 64), r"job script 3845dfca\w+ then, 0{64} now"),
    "no_script": (lambda scene: scene.job.update(script_sha256=None), "job script unknown then"),
    "driver": (
        replace("probed", probed(compute01="575.51", compute02="575.51")),
        "driver 570.1 then, 575.51 now",
    ),
    "one_driver": (replace("probed", probed(compute01="570.1", compute02="575.51")), "570.1 then, 570.1, 575.51 now"),
    "driver_unread": (replace("probed", probed(compute01="570.1", compute02=None)), "driver 570.1 then, unknown now"),
    "node_silent": (
        replace("probed", {**probed(compute01="570.1"), "nodes": ["compute01", "compute02"]}),
        "driver 570.1 then, unknown now",
    ),
    "no_node": (replace("probed", probed()), "driver 570.1 then, unknown now"),
    "driver_unknown": (
        lambda scene: scene.evidence.update(provenance=provenance(driver_version=None)),
        "driver unknown then, 570.1 now",
    ),
    "no_driver_known": (
        lambda scene: (
            scene.evidence.update(provenance=provenance(driver_version=None)),
            setattr(scene, "probed", probed(compute01=None, compute02=None)),
        ),
        "driver unknown then, unknown now",
    ),
    "another_gpu": (
        lambda scene: scene.probed["gpus"].__setitem__(2, "GPU-new"),
        "GPUs GPU-compute02-0 then, GPU-new now in their place",
    ),
    "a_gpu_more": (lambda scene: scene.probed["gpus"].append("GPU-new"), "GPUs none then, GPU-new now"),
    "a_gpu_less": (lambda scene: scene.probed["gpus"].pop(), "GPUs GPU-compute02-1 then, none now"),
    "no_gpus_known": (
        lambda scene: (scene.probed["gpus"].clear(), scene.probed_then["gpus"].clear()),
        "GPUs none then, none now",
    ),
    "all_gpus": (
        lambda scene: scene.probed.update(gpus=["GPU-new"]),
        r"GPUs GPU-compute01-0, GPU-compute01-1, GPU-compute02-0 and 1 more then, GPU-new now",
    ),
    "not_looked_at_then": (
        lambda scene: scene.probed_then["nodes"].clear(),
        "the GPUs of .* were not checked then",
    ),
    "no_nodes_ran": (lambda scene: scene.job.update(nodes=[]), "the GPUs of its nodes were not checked then"),
    "no_cluster_known": (
        lambda scene: [each.update(cluster_name=None) for each in (scene.cluster_then, scene.cluster)],
        "cluster unknown then, unknown now",
    ),
    "no_provenance": (lambda scene: scene.evidence.pop("provenance"), "looking for an earlier run failed: KeyError"),
    "override": (
        lambda scene: scene.judging.update(overrides={NEEDED: {"S0-13": {"gt": 0.98}}}),
        r"by today's criteria it does not pass: S0-13: 0\.97 is not > 0\.98",
    ),
    "waiver": (
        lambda scene: scene.judging.update(
            overrides={NEEDED: {"S0-13": {"gt": 0.98, "waive": {"reason": "ticket", "expires": day(NOW - DAY)}}}}
        ),
        "the waiver expired on",
    ),
    "context": (
        lambda scene: scene.judging.update(context={}),
        "S0-13.cuda: whether it applies depends on fast, which the inventory does not give",
    ),
    "bad_override": (
        lambda scene: scene.judging.update(overrides={NEEDED: {"S0-99": {"gt": 1}}}),
        "looking for an earlier run failed: CriteriaError",
    ),
    "stored_baseline": (
        lambda scene: scene.evidence["baseline"].update(source="stored"),
        "its speed-up is relative to stored evidence",
    ),
    "job_failed": (lambda scene: scene.evidence["job"].update(state="FAILED", exit_code=1), "does not pass: JOB: "),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_has_changed_makes_it_run(scene, name):
    make, why = CHANGES[name]
    make(scene)
    scene.ran()
    assert_runs_first(scene, why)


def assert_runs_first(scene, why):
    earlier, line = scene.recalled()
    assert earlier is None
    assert line.startswith("MLOPS-1.1: runs first: ")
    assert re.search(why, line), line
    assert line.isprintable()


def test_a_thousand_nodes_do_not_make_a_long_line(scene):
    names = [f"n{number:04d}" for number in range(1, 1001)]
    scene.cluster_then, scene.cluster = cluster(*names), cluster(*names[:-1])
    scene.ran()
    assert_runs_first(scene, r"nodes n\[0001-1000\] gpu:2 then, n\[0001-0999\] gpu:2 now$")


def test_without_a_driver_of_a_cpu_it_is_not_asked(scene):
    scene.then["accelerator"] = scene.plan["accelerator"] = "cpu"
    scene.probed = probed(compute01=None, compute02=None)
    scene.ran()
    assert scene.recalled()[0]


def test_a_waiver_that_holds_lets_it_stand(scene):
    waive = {"reason": "ticket 4711", "expires": day(NOW)}
    scene.judging["overrides"] = {NEEDED: {"S0-13": {"gt": 0.98, "waive": waive}}}
    scene.ran()
    assert scene.recalled()[0]


def test_without_an_earlier_run_it_runs(scene):
    assert_runs_first(scene, " has no earlier run of it")


@pytest.mark.parametrize(
    ("finished", "why"),
    [
        (NOW + 1, "it passed at a time in the future"),
        (NOW - 7 * DAY - 1, "it passed 7 days ago, and hpc_validation_needs_days is 7"),
    ],
)
def test_a_pass_of_another_time_does_not_stand(scene, finished, why):
    scene.ran(began=NOW - 8 * DAY, finished=finished)
    assert_runs_first(scene, why)


@pytest.mark.parametrize("finished", [None, "pass"])
@pytest.mark.parametrize("judged", ["fail", "undetermined"])
def test_only_its_newest_run_counts(scene, judged, finished):
    scene.ran()
    newer = scene.ran(began=THEN + 60, finished=finished and THEN + 120, judged=judged)
    assert_runs_first(scene, f"run {newer.name} did not finish" if finished is None else "it did not pass in run ")
    scene.ran(began=THEN + 180, finished=THEN + 240)
    assert scene.recalled()[0]


@pytest.mark.parametrize("judged", ["fail", "undetermined"])
def test_a_clock_that_was_set_back_does_not_make_an_older_pass_the_newest(scene, judged):
    """By name and by time the pass is the newest; the run that failed was begun after it all the same."""
    scene.ran(began=THEN, finished=THEN + 60)
    failed = scene.ran(began=THEN - 3600, finished=THEN - 3500, judged=judged)
    assert_runs_first(scene, f"run {failed.name} began last .*, or a clock was set back")


def test_a_clock_that_was_ahead_when_a_run_began_does_not_make_it_the_newest(scene):
    """Its name is of the future, and another run failed since."""
    scene.ran(began=NOW + 400 * DAY, finished=THEN)
    failed = scene.ran(began=THEN + 60, finished=THEN + 120, judged="fail")
    assert_runs_first(scene, f"it did not pass in run {failed.name}")
    scene.ran(began=THEN + 180, finished=THEN + 240)
    assert scene.recalled()[0]


def test_of_two_runs_that_overlapped_a_failure_that_ended_last_is_the_reason(scene):
    failed = scene.ran(began=THEN, finished=THEN + 500, judged="fail")
    scene.ran(began=THEN + 60, finished=THEN + 120)
    assert_runs_first(scene, f"it did not pass in run {failed.name}")


def test_runs_of_versions_that_did_not_count_are_told_apart_by_name(scene):
    ran = [scene.ran(), scene.ran(began=THEN + 60, finished=THEN + 120)]
    for folder in ran:
        plan = json.loads((folder / "plan.json").read_text())
        del plan["number"]
        (folder / "plan.json").write_text(json.dumps(plan))
    assert scene.recalled()[0]["run"] == ran[1].name


def test_a_verdict_that_cannot_be_read_matters_as_long_as_it_may_be_the_newest(scene):
    damaged = scene.ran(began=THEN - DAY, finished=THEN - DAY)
    (damaged / "verdict.json").write_text("{")
    ran = scene.ran()
    for path, when, stands in ((damaged, THEN - DAY, True), (damaged / "verdict.json", NOW, False)):
        os.utime(damaged / "verdict.json", (when, when))
        os.utime(damaged, (THEN - DAY, THEN - DAY))
        assert bool(scene.recalled()[0]) is stands, path
    assert ran.exists()


def test_a_run_in_which_it_was_recalled_itself_is_none_of_it(scene):
    ran = scene.ran()
    between = runs.start(scene.results, scene.plan, scene.versions, now=THEN + 60)  # and is killed
    runs.record(between, "workload", {"id": NEEDED, "earlier": {"run": ran.name, "finished": THEN, "sha256": "0" * 64}})
    assert scene.recalled()[0]["run"] == ran.name


def test_a_run_that_did_not_get_to_it_is_its_newest_all_the_same(scene):
    scene.ran()
    between = scene.asks()
    assert_runs_first(scene, f"run {between.name} did not finish")
    runs.finish(between, now=NOW - 30)
    assert_runs_first(scene, "it did not pass in run .*: not_run: the run ended before it was judged")


def test_other_folders_and_runs_of_other_workloads_are_passed_over(scene):
    scene.ran()
    (scene.results / "notes").mkdir()
    scene.then["workloads"] = [{**scene.then["workloads"][0], "id": ASKED}]
    runs.start(scene.results, scene.then, scene.versions, now=THEN + 60)
    assert scene.recalled()[0]


def test_a_run_that_left_it_out_is_none_of_it(scene):
    ran = scene.ran()
    told = {"id": NEEDED, "name": "mnist_single_gpu", "title": "MNIST", "why": "not here"}
    other = {**scene.then["workloads"][0], "id": ASKED}
    between = runs.start(
        scene.results, {**scene.then, "workloads": [other], "left_out": [told]}, scene.versions, now=THEN
    )
    runs.finish(between, now=THEN + 60)
    assert scene.recalled()[0]["run"] == ran.name


DAMAGES = {
    "verdict_gone": ("verdict.json", lambda _old: None, "the verdict of run .* cannot be read"),
    "verdict_cut": ("verdict.json", lambda old: old[:-100], "the verdict of run .* cannot be read"),
    "verdict_is_a_list": ("verdict.json", lambda _old: b"[]", "the verdict of run .* cannot be read"),
    "verdict_of_another_schema": (
        "verdict.json",
        lambda old: old.replace(b'"schema": 2', b'"schema": 3'),
        "cannot be read: .* schema: 2 was expected",
    ),
    "probed_gone": ("probed.json", lambda _old: None, "failed: FileNotFoundError"),
    "probed_altered": ("probed.json", lambda old: old + b" ", "is not the one that its verdict lists"),
    "finished_when": (
        "verdict.json",
        lambda old: old.replace(f'"finished": {THEN}'.encode(), b'"finished": NaN'),
        "it passed nan days ago",
    ),
    "no_job": (
        "verdict.json",
        lambda old: json.dumps(without_job(json.loads(old))).encode(),
        "looking for an earlier run failed: TypeError",
    ),
    "evidence_gone": (f"evidence/{NEEDED}.json", lambda _old: None, "failed: FileNotFoundError"),
    "evidence_altered": (
        f"evidence/{NEEDED}.json",
        lambda old: old.replace(b"0.97", b"0.99"),
        "is not the one that its verdict lists",
    ),
    "evidence_not_listed": (
        "verdict.json",
        lambda old: old.replace(f"evidence/{NEEDED}.json".encode(), b"evidence/other.json"),
        "is not the one that its verdict lists",
    ),
}


def without_job(verdict):
    verdict["workloads"][0]["job"] = None
    return verdict


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_damaged_or_missing_makes_it_run(scene, name):
    file, damage, why = DAMAGES[name]
    path = scene.ran() / file
    old = path.read_bytes()
    new = damage(old)
    assert new != old
    path.unlink()
    if new is not None:
        path.write_bytes(new)
    assert_runs_first(scene, why)


@pytest.mark.parametrize("name", ["plan.json", "cluster.json", "probed.json"])
def test_a_run_that_does_not_know_itself_recalls_nothing(scene, name):
    scene.ran()
    asking = scene.asks()
    (asking / name).unlink()
    earlier, line = recall.recall(asking, NEEDED, scene.script, scene.judging, now=NOW)
    assert earlier is None
    assert "looking for an earlier run failed: " in line
    assert name in line


# -- what becomes of it in the run that asked


@pytest.fixture
def asking(scene):
    """A run in which the earlier pass was recorded."""
    scene.ran()
    folder = scene.asks()
    earlier, _line = recall.recall(folder, NEEDED, scene.script, scene.judging, now=NOW)
    runs.record(folder, "workload", {"id": NEEDED, "earlier": earlier})
    return folder


def test_it_lets_others_run_and_is_told_at_once(asking):
    assert runs.passed(asking) == [NEEDED]
    verdict = json.loads((asking / "verdict.json").read_text())
    assert schema.problems("verdict", verdict) == []
    assert [each["verdict"] for each in verdict["workloads"]] == ["recorded", "undetermined"]
    assert verdict["finished"] is None


def test_it_is_no_pass_of_the_run(asking):
    verdict = runs.finish(asking)
    assert verdict["verdict"] == "undetermined"
    needed, asked = verdict["workloads"]
    assert (needed["verdict"], needed["job"], needed["criteria"]) == ("recorded", None, [])
    assert asked["why"] == "not_run: the run ended before it was judged, see the findings"


def test_beside_a_pass_it_adds_nothing(scene, asking):
    own = {"id": ASKED, "job": scene.job, "data": {}, "criteria": scene.all_judged("pass")}
    runs.record(asking, "workload", own)
    verdict = runs.finish(asking, now=NOW)
    assert (verdict["verdict"], verdict["why"]) == ("pass", "1 of 1 workloads passed")
    assert verdict["gpu_hours"] == pytest.approx(scene.job["gpus"] * scene.job["run_seconds"] / 3600)
    assert verdict["coverage"]["nodes"]["exercised"] == ",".join(scene.job["nodes"])
    assert verdict["coverage"]["gpus"]["count"] == 0
    first = ElementTree.parse(asking / "junit.xml").getroot().find("testsuite")
    assert [first.get(key) for key in ("tests", "skipped", "failures", "errors")] == ["1", "1", "0", "0"]
    run = verdict["workloads"][0]["earlier"]["run"]
    assert f"  passed in run {run}, not run again" in summary.summary(verdict, asking)


def test_a_recalled_pass_has_no_record_for_people(scene):
    scene.plan["workloads"] = [{**scene.plan["workloads"][0], "name": "sft_single_gpu"}]
    folder = scene.asks()
    runs.finish(folder)
    assert (folder / "record.md").exists()
    (folder / "record.md").unlink()
    earlier = {"run": folder.name, "finished": THEN, "sha256": "0" * 64}
    runs.record(folder, "workload", {"id": NEEDED, "earlier": earlier})
    runs.finish(folder)
    assert not (folder / "record.md").exists()


@pytest.mark.parametrize(
    ("identity", "earlier", "why"),
    [
        (ASKED, {"run": "20261121T035035Z-6f784b", "finished": THEN, "sha256": "0" * 64}, "was selected"),
        (NEEDED, {"run": "20261121T035035Z-6f784b", "finished": THEN}, "sha256"),
        (NEEDED, None, "is not a valid earlier"),
        ("MLOPS-9.9", {}, "is not in the plan"),
    ],
)
def test_what_is_no_earlier_pass_is_refused(scene, identity, earlier, why):
    folder = scene.asks()
    with pytest.raises(RunError, match=why):
        runs.record(folder, "workload", {"id": identity, "earlier": earlier})
    assert runs.passed(folder) == []


def test_a_damaged_record_of_it_lets_nobody_run(asking):
    (asking / f"workloads/{NEEDED}.json").write_text('{"earlier": {"run": "any"}}')
    assert runs.passed(asking) == []
    assert runs.finish(asking)["workloads"][0]["verdict"] == "undetermined"


@pytest.mark.parametrize(
    "changes",
    [{"verdict": "pass"}, {"verdict": "fail"}, {"criteria": ["judged"]}, {"job": "job"}],
)
def test_a_verdict_in_which_it_claims_more_is_refused(asking, example, changes):
    verdict = runs.finish(asking)
    for key, value in changes.items():
        changes[key] = [example("judged")] if key == "criteria" else example("job") if key == "job" else value
    verdict["workloads"][0].update(changes)
    assert schema.problems("verdict", verdict)


def test_only_an_earlier_pass_is_recorded(example):
    verdict = example("verdict")
    verdict["workloads"][0]["verdict"] = "recorded"
    assert schema.problems("verdict", verdict)


# -- at the bounds of what stands


def test_with_no_days_not_even_a_pass_of_this_moment_stands(scene):
    scene.plan["needs_days"] = 0
    scene.ran(finished=NOW)
    assert_runs_first(scene, "runs first: hpc_validation_needs_days is 0$")


def test_with_one_day_a_pass_of_today_stands(scene):
    scene.plan["needs_days"] = 1
    scene.ran(finished=NOW - DAY)
    assert scene.recalled()[0]


def test_without_a_time_it_is_the_present_that_counts(scene, monkeypatch):
    scene.ran()
    asking = scene.asks()
    monkeypatch.setattr(recall.time, "time", lambda: NOW)
    assert "passed 2 days ago" in recall.recall(asking, NEEDED, scene.script, scene.judging)[1]
    monkeypatch.setattr(recall.time, "time", lambda: NOW + 30 * DAY)
    assert "it passed 32 days ago" in recall.recall(asking, NEEDED, scene.script, scene.judging)[1]
    assert "passed 2 days ago" in recall.recall(asking, NEEDED, scene.script, scene.judging, now=NOW)[1]


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_run_that_ended_nobody_knows_when_may_be_the_newest(scene, monkeypatch, newest_first):
    damaged = scene.ran(began=THEN - DAY, finished=THEN - DAY)
    old = (damaged / "verdict.json").read_text()
    (damaged / "verdict.json").write_text(old.replace(f'"finished": {THEN - DAY}', '"finished": NaN'))
    ran = scene.ran()
    order = [ran, damaged] if newest_first else [damaged, ran]
    monkeypatch.setattr(runs, "runs", lambda _results: order)
    asking = scene.results / "20261124T050000Z-ffffff"
    with pytest.raises(recall.StaleError, match=f"run {damaged.name} ended last"):
        recall._newest(asking, NEEDED)


def test_a_criterion_that_is_only_recorded_is_no_reason(scene):
    noted = {**CRITERIA[0], "id": "S0-14", "severity": "record", "gt": 0.99}
    for plan in (scene.then, scene.plan):
        for each in plan["workloads"]:
            each["criteria"] = [noted, *CRITERIA]
    scene.judging["overrides"] = {NEEDED: {"S0-13": {"gt": 0.98}}}
    scene.all_judged = lambda verdict: [
        {**scene.judged, "id": each, "verdict": verdict} for each in ("JOB", "S0-13", "S0-13.cuda", "S0-14")
    ]
    scene.ran()
    assert_runs_first(scene, r"it does not pass: S0-13: 0\.97 is not > 0\.98$")


@pytest.mark.parametrize(
    ("uuids", "told"),
    [
        (set(), "none"),
        ({"b", "a"}, "a, b"),
        ({"c", "b", "a"}, "a, b, c"),
        ({"d", "c", "b", "a"}, "a, b, c and 1 more"),
    ],
)
def test_a_few_gpus_are_named(uuids, told):
    assert recall._some(uuids) == told
