# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the job of a workload asks of Slurm, what it runs, and where it writes.

tests/unit/roles/test_job_script.py holds what a job script makes of it.
"""

from __future__ import annotations

import copy
import hashlib
import typing as t
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.mlops.hpc_validation.plugins.filter.job_paths import job_paths
from ansible_collections.mlops.hpc_validation.plugins.filter.workload_plan import workload_plan
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import tree
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.plan import WorkloadPlanError, paths, plan

Json = dict[str, t.Any]
RUNTIME = {
    "key": "pytorch",
    "name": "pytorch",
    "kind": "venv",
    "locked": True,
    "python": "/mnt/share/venvs/1/bin/python",
}
WORKLOAD: Json = {
    "id": "MLOPS-2.1",
    "name": "two_words",
    "needs": ["MLOPS-1.1"],
    "resources": {
        "nodes": 1,
        "ntasks_per_node": 2,
        "cpus_per_task": 4,
        "mem": "8G",
        "time": "00:10:00",
        "gres": "gpu:2",
    },
    "limits": {"queue": 600, "run": 900},
    "data": ["mnist"],
    "models": ["small"],
    "output": {"directory": "models/two/job-%j", "logs": "jobs", "metrics": "metrics.json"},
    "option": "none",
}
SETTINGS: Json = {
    "share": "/mnt/share",
    "accelerator": "cuda",
    "slurm": {},
    "workload_slurm": {},
    "queue_timeout": 0,
    "run_timeout": 0,
    "baselines": {},
    "context": {},
    "gpu": {},
    "nccl_tests": "",
    "pretraining": {},
    "resume": {},
}
BEFORE: Json = {
    "check_mode": False,
    "selected": ["MLOPS-1.1", "MLOPS-2.1"],
    "passed": ["MLOPS-1.1"],
    "planned": {"by_workload": {"MLOPS-2.1": "pytorch"}},
    "runtimes": {"pytorch": RUNTIME},
    "missing_runtimes": [],
    "digests": {"mnist": "d1", "small": "d2", "other": "d3"},
    "data": {"mnist": {"rows": 60000}, "other": {}},
}


@pytest.fixture
def folders(tmp_path: Path) -> Json:
    """The workload's folder and the kit's, as small as they can be."""
    for name in ("workload", "kit"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(name)
    return {"workload": tmp_path / "workload", "kit": tmp_path / "kit"}


@pytest.fixture
def planned(folders: Json) -> t.Callable[..., Json]:
    """(manifest, before, settings) → the plan; each a change of what is given above."""

    def make(manifest: Json | None = None, before: Json | None = None, **settings: t.Any) -> Json:
        workload = {**copy.deepcopy(WORKLOAD), "folder": str(folders["workload"]), **(manifest or {})}
        return plan(workload, {**SETTINGS, **settings}, {**BEFORE, **(before or {})}, kit=folders["kit"])

    return make


def test_a_whole_plan(planned: t.Callable[..., Json], folders: Json) -> None:
    digests = [tree.digest(folders["workload"]), tree.digest(folders["kit"]), "d1", "d2"]
    assert planned() == {
        "unmet": [],
        "label": "two-words",
        "home": "/mnt/share/scripts/two_words",
        "script": "/mnt/share/scripts/two_words/two_words.sbatch",
        "configs": "/mnt/share/configs/two_words",
        "output": "/mnt/share/models/two/job-%j",
        "logs": "/mnt/share/jobs/two-words-%j",
        "runtime": RUNTIME,
        "directives": {
            "nodes": 1,
            "ntasks-per-node": 2,
            "cpus-per-task": 4,
            "mem": "8G",
            "time": "00:10:00",
            "deadline": "now+8700seconds",
            "gres": "gpu:2",
        },
        "several_nodes": False,
        "legs": None,
        "runs": [],
        "baseline": None,
        "settings": None,
        "settings_file": "site.json",
        "check": None,
        "resume": None,
        "files": {
            "metrics": {"path": "metrics.json", "format": "json"},
            "provenance": {"path": "provenance.json", "format": "json"},
            "gpu": {"path": "gpu.jsonl", "format": "jsonl", "group_by": "uuid"},
        },
        "context": {
            "accelerator": "cuda",
            "ecc": True,
            "runtime": "venv",
            "locked": True,
            "option": "none",
            "nccl_tests": False,
            "resumed": False,
        },
        "payload": hashlib.sha256(" ".join(digests).encode()).hexdigest(),
        "data": {"mnist": {"rows": 60000}},
        "submit": {
            "begin_marker": "/mnt/share/jobs/.markers/%j.begin.json",
            "progress_marker": "/mnt/share/jobs/.markers/%j.progress.json",
            "end_marker": "/mnt/share/jobs/.markers/%j.end.json",
            "queue_timeout": 600,
            "run_timeout": 900,
        },
    }


@pytest.mark.parametrize(
    ("before", "unmet"),
    [
        ({"passed": []}, ["MLOPS-1.1"]),
        ({"digests": {"small": "d2"}}, ["mnist"]),
        ({"digests": {"mnist": "d1"}}, ["small"]),
        ({"missing_runtimes": ["pytorch"], "runtimes": {}}, ["pytorch"]),
        ({"passed": [], "digests": {}, "missing_runtimes": ["pytorch"]}, ["MLOPS-1.1", "mnist", "small", "pytorch"]),
    ],
)
def test_what_it_lacks_is_all_that_is_planned(planned: t.Callable[..., Json], before: Json, unmet: list[str]) -> None:
    assert planned(before=before) == {"unmet": unmet}
    if before.get("runtimes") != {}:
        assert planned(before={**before, "check_mode": True})["unmet"] == []


@pytest.mark.parametrize("before", [{"selected": ["MLOPS-2.1"], "passed": []}, {"missing_runtimes": ["oumi"]}])
def test_what_the_run_has_not_got_to_do_is_not_lacking(planned: t.Callable[..., Json], before: Json) -> None:
    assert planned(before=before)["unmet"] == []


def test_a_runtime_that_was_not_made_ready_is_refused(planned: t.Callable[..., Json]) -> None:
    with pytest.raises(WorkloadPlanError, match=r"MLOPS-2\.1 runs in pytorch"):
        planned(before={"runtimes": {}, "check_mode": True})


@pytest.mark.parametrize("value", [100, "100"])
def test_the_sites_clocks_come_before_the_manifests(planned: t.Callable[..., Json], value: t.Any) -> None:
    found = planned(queue_timeout=value)
    assert (found["submit"]["queue_timeout"], found["submit"]["run_timeout"]) == (100, 900)
    assert found["directives"]["deadline"] == "now+8200seconds"
    found = planned(run_timeout=value)
    assert (found["submit"]["queue_timeout"], found["submit"]["run_timeout"]) == (600, 100)
    assert found["directives"]["deadline"] == "now+7900seconds"


@pytest.mark.parametrize("value", ["soon", [1]])
def test_a_clock_that_is_no_number_is_refused(planned: t.Callable[..., Json], value: t.Any) -> None:
    with pytest.raises(WorkloadPlanError, match="hpc_validation_run_timeout"):
        planned(run_timeout=value)


@pytest.mark.parametrize("nothing", [0, "0", "", None])
def test_without_a_clock_the_manifests_stand(planned: t.Callable[..., Json], nothing: t.Any) -> None:
    assert planned(queue_timeout=nothing)["submit"]["queue_timeout"] == 600


def test_directives_of_site_and_workload(planned: t.Callable[..., Json]) -> None:
    found = planned(
        slurm={"account": "ops", "mem": None, "partition": "gpu", "gres_type": "h200", "extra": {"nice": 1}},
        workload_slurm={
            "MLOPS-2.1": {"account": "ml", "partition": False, "extra": {"x": True}},
            "other": {"qos": "q"},
        },
    )["directives"]
    assert list(found.items())[4:] == [
        ("deadline", "now+8700seconds"),
        ("gres", "gpu:h200:2"),
        ("account", "ml"),
        ("x", True),
    ]
    assert "mem" not in found
    assert planned(workload_slurm={"MLOPS-2.1": None})["directives"] == planned()["directives"]
    assert planned(slurm={"extra": None, "gres_type": None})["directives"] == planned()["directives"]


def test_a_gres_type_is_taken_as_it_is(planned: t.Callable[..., Json]) -> None:
    assert planned(slurm={"gres_type": r"a\1"})["directives"]["gres"] == r"gpu:a\1:2"


def test_what_has_no_gpus_asks_for_none(planned: t.Callable[..., Json]) -> None:
    resources = {key: value for key, value in WORKLOAD["resources"].items() if key != "gres"}
    assert "gres" not in planned(manifest={"resources": resources})["directives"]
    assert "gres" not in planned(accelerator="cpu")["directives"]
    assert planned(accelerator="simulated")["directives"]["gres"] == "gpu:2"


def test_ranks_have_legs_and_on_several_nodes_folders(planned: t.Callable[..., Json]) -> None:
    several = {**WORKLOAD["resources"], "nodes": 2}
    assert planned(manifest={"launcher": "torchrun", "resources": several})["several_nodes"] is True
    assert planned(manifest={"resources": several})["several_nodes"] is False
    one = planned(manifest={"launcher": "torchrun"})
    assert one["several_nodes"] is False
    assert one["files"]["legs"] == {"path": "legs.json", "format": "json"}


def test_a_baseline_is_run_unless_an_earlier_one_is_given(planned: t.Callable[..., Json]) -> None:
    manifest = {"baseline": {"ranks": 1, "work": "weak"}}
    legs = {"before": "baseline-before/metrics.json", "after": "baseline-after/metrics.json"}
    found = [planned(manifest=manifest, baselines=given) for given in ({}, {"MLOPS-2.1": ""}, {"MLOPS-2.1": "a.json"})]
    assert [(each["legs"], each["baseline"]) for each in found] == [(legs, None), (legs, None), (None, "a.json")]


def test_progress_is_read_where_the_manifest_has_some(planned: t.Callable[..., Json]) -> None:
    output = {**WORKLOAD["output"], "progress": "p.jsonl"}
    assert planned(manifest={"output": output})["files"]["progress"] == {"path": "p.jsonl", "format": "jsonl"}


def test_the_site_adds_to_the_context_and_changes_none_of_it(planned: t.Callable[..., Json]) -> None:
    found = planned(context={"site": "x", "accelerator": "y"}, gpu={"ecc": False}, nccl_tests="/opt/nccl")["context"]
    assert (found["site"], found["accelerator"]) == ("x", "cuda")
    assert (found["ecc"], found["nccl_tests"]) == (False, True)


def test_the_payload_changes_with_all_that_the_job_runs_and_reads(
    planned: t.Callable[..., Json], folders: Json
) -> None:
    seen = {planned()["payload"]}
    for digests in (
        {"mnist": "e", "small": "d2"},
        {"mnist": "d1", "small": "e"},
        {**BEFORE["digests"], "pytorch": "e"},
    ):
        seen.add(planned(before={"digests": digests})["payload"])
    for folder in folders.values():
        (folder / "a.py").write_text("changed")
        seen.add(planned()["payload"])
    assert len(seen) == 6
    assert planned(before={"digests": {**BEFORE["digests"], "unused": "e"}})["payload"] in seen


JOB = {"job_id": "12", "attempt": 0, "stdout": None, "stderr": None}


@pytest.mark.parametrize(
    ("job", "found"),
    [
        ({}, ("job-12", "/mnt/share/jobs/two-words-12.out", "/mnt/share/jobs/two-words-12.err")),
        ({"attempt": 2, "stdout": "/o"}, ("job-12.2", "/o", "/mnt/share/jobs/two-words-12.err")),
        ({"attempt": 1, "stderr": "/e"}, ("job-12.1", "/mnt/share/jobs/two-words-12.out", "/e")),
    ],
)
def test_where_a_job_wrote(planned: t.Callable[..., Json], job: Json, found: tuple[str, str, str]) -> None:
    output, stdout, stderr = found
    assert paths(planned(), {**JOB, **job}) == {
        "output": f"/mnt/share/models/two/{output}",
        "logs": {"stdout": stdout, "stderr": stderr},
        "end_marker": "/mnt/share/jobs/.markers/12.end.json",
    }


def test_the_filters_say_the_same(folders: Json) -> None:
    workload = {**WORKLOAD, "folder": str(folders["workload"])}
    found = workload_plan(workload, SETTINGS, BEFORE)
    assert found == plan(workload, SETTINGS, BEFORE)
    assert job_paths(found, JOB) == paths(found, JOB)


@pytest.mark.parametrize(
    ("change", "words"), [({"folder": "/nowhere"}, "/nowhere is not a folder"), ({}, "hpc_validation_queue_timeout")]
)
def test_what_cannot_be_planned_fails_the_filter(folders: Json, change: Json, words: str) -> None:
    workload = {**WORKLOAD, "folder": str(folders["workload"]), **change}
    with pytest.raises(AnsibleFilterError, match=words):
        workload_plan(workload, SETTINGS if change else {**SETTINGS, "queue_timeout": "x"}, BEFORE)


def test_the_inventorys_own_settings_are_handed_on_and_part_of_what_runs(planned: t.Callable[..., Json]) -> None:
    manifest = {"settings": "pretraining"}
    none, more, again = (
        planned(manifest, pretraining=own) for own in ({}, {"training": {"steps": 3}}, {"training": {"steps": 3}})
    )
    assert [each["settings"] for each in (none, more)] == [{}, {"training": {"steps": 3}}]
    assert none["payload"] != more["payload"] == again["payload"]
    orders = [{"steps": 3, "seed": 1}, {"seed": 1, "steps": 3}]
    assert len({planned(manifest, pretraining={"training": each})["payload"] for each in orders}) == 1


def test_what_is_said_below_an_id_is_for_that_workload_alone(planned: t.Callable[..., Json]) -> None:
    own = {
        "training": {"steps": 3, "seed": 1},
        WORKLOAD["id"]: {"training": {"steps": None}, "data": {"shuffle": True}},
        "OTHER-1": {"training": {"steps": 9}},
    }
    found = planned({"settings": "pretraining"}, pretraining=own)["settings"]
    assert found == {"training": {"steps": None, "seed": 1}, "data": {"shuffle": True}}


@pytest.mark.parametrize("wrong", ["steps=3", None, ["steps"]])
def test_own_settings_that_are_no_keys_and_values_are_refused(planned: t.Callable[..., Json], wrong: t.Any) -> None:
    with pytest.raises(WorkloadPlanError, match="hpc_validation_pretraining: expected keys and values"):
        planned({"settings": "pretraining"}, pretraining=wrong)


@pytest.mark.parametrize(
    ("given", "resume"),
    [
        (4711, "/mnt/share/models/two/job-4711"),
        ("4711", "/mnt/share/models/two/job-4711"),
        ("gs://bucket/run-3", "gs://bucket/run-3"),
    ],
)
def test_a_training_goes_on_from_a_job_or_a_bucket(planned: t.Callable[..., Json], given: t.Any, resume: str) -> None:
    found, other = planned(resume={"MLOPS-2.1": given}), planned(resume={"OTHER-1": given})
    assert (found["resume"], found["context"]["resumed"]) == (resume, True)
    assert (other["resume"], other["context"]["resumed"]) == (None, False)


def test_a_training_that_goes_on_runs_only_the_legs_that_can(planned: t.Callable[..., Json]) -> None:
    legs = ["shape:1", "plain", "measured", "killed::killed", "resumed", "resized:4", "export:1"]
    begun, going_on = planned({"legs": legs}), planned({"legs": legs}, resume={"MLOPS-2.1": 4711})
    assert begun["runs"] == legs
    assert going_on["runs"] == ["shape:1", "measured", "export:1"]
    assert planned({"legs": None}, resume={"MLOPS-2.1": 4711})["runs"] == []


@pytest.mark.parametrize("given", [0, -1, "../4711", "/mnt/share/checkpoints", "s3://b", "gs://b/$(id)", True, ["1"]])
def test_what_a_training_cannot_go_on_from_is_refused(planned: t.Callable[..., Json], given: t.Any) -> None:
    with pytest.raises(WorkloadPlanError, match=r"hpc_validation_resume\.MLOPS-2\.1: expected the number of a job"):
        planned(resume={"MLOPS-2.1": given})


def test_the_settings_of_a_training_are_checked_on_each_number_of_ranks(
    planned: t.Callable[..., Json], folders: Json
) -> None:
    manifest = {
        "settings": "pretraining",
        "legs": ["shape:1", "measured", "killed::killed", "resized:3"],
        "command": ["python", "train.py", "--profile", "mini"],
    }
    assert planned(manifest)["check"] is None  # nothing there that could
    script = folders["workload"] / "check_settings.py"
    script.write_text("")
    ranks = ["--ranks", "2", "--ranks", "1", "--ranks", "3"]
    assert planned(manifest)["check"] == ["-B", str(script), "--profile", "mini", *ranks]
    whole = {**manifest, "legs": [], "command": ["python", "train.py"]}
    assert planned(whole)["check"] == ["-B", str(script), "--ranks", "2"]
    assert planned({"settings": None, "command": ["python", "train.py"]})["check"] is None


@pytest.mark.parametrize(("edge", "devices"), [(False, []), (True, ["--devices"])])
def test_a_training_profile_is_checked_by_the_kit(
    planned: t.Callable[..., Json], folders: Json, edge: bool, devices: list[str]
) -> None:
    manifest = {"settings": "profile", "config": "a.yaml", "edge": edge}
    path = str(folders["workload"] / "a.yaml")
    expected = ["-m", "kit", "profile", "check", "--json", "--changes", "-", *devices, path]
    assert planned(manifest, profile={})["check"] == expected
