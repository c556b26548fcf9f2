from __future__ import annotations

import re

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import manifests, selection, settings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.manifests import WorkloadError


@pytest.fixture
def folder(tmp_path, example):
    """Makes a workload folder out of the example manifest; returns a function (changes) → folder of workloads."""

    def make(name="mnist_single_gpu", script=True, **changes):
        manifest = {**example("manifest"), "name": name, **changes}
        home = tmp_path / "workloads" / name
        home.mkdir(parents=True)
        (home / "workload.yml").write_text(yaml.safe_dump(manifest))
        if script:
            (home / manifest["command"][1]).write_text("print()\n")
        return str(home.parent)

    return make


def test_the_collections_own_workloads_are_valid(root):
    ids = [workload["id"] for workload in manifests.find_workloads([str(root / "files/workloads")])]
    assert "MLOPS-1.1" in ids


def test_a_manifest_is_loaded_with_its_folder(folder):
    (workload,) = manifests.find_workloads([folder()])
    assert workload["id"] == "MLOPS-1.1"
    assert workload["folder"].endswith("/mnist_single_gpu")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"resorces": {}}, "unknown key 'resorces'"),
        ({"id": "mnist"}, "id: 'mnist' does not match"),
        ({"criteria": []}, "criteria"),
        ({"limits": {"queue": 0, "run": 1}}, "limits.queue"),
        ({"output": {"directory": "models/mnist", "metrics": "metrics.json"}}, "output.directory"),
        ({"output": {"directory": "../../etc/%j", "metrics": "metrics.json"}}, "output.directory"),
        ({"output": {"directory": "models/%j", "metrics": "/etc/passwd"}}, "output.metrics"),
        ({"title": "two\nlines"}, "title"),
        ({"title": "a line break at the end\n"}, "title"),
        ({"command": ["python", "mnist_single_gpu.py", "--x\n"]}, "command"),
    ],
)
def test_a_bad_manifest_names_file_and_key(folder, changes, expected):
    path = folder(**changes)
    with pytest.raises(WorkloadError) as caught:
        manifests.find_workloads([path])
    assert expected in str(caught.value)
    assert "workload.yml" in str(caught.value)


def test_a_name_that_is_not_the_folders_is_refused(folder, tmp_path):
    path = folder()
    (tmp_path / "workloads" / "mnist_single_gpu").rename(tmp_path / "workloads" / "other")
    with pytest.raises(WorkloadError, match="expected the folder's name"):
        manifests.find_workloads([path])


def test_a_missing_script_is_named(folder):
    with pytest.raises(WorkloadError, match=r"mnist_single_gpu\.py"):
        manifests.find_workloads([folder(script=False)])


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a: [", b"- 1\n", b"", b"a: &a [*a]\n" * 2, b"x" * 300_000])
def test_what_is_no_manifest_is_refused(tmp_path, content):
    home = tmp_path / "w" / "x"
    home.mkdir(parents=True)
    (home / "workload.yml").write_bytes(content)
    with pytest.raises(WorkloadError, match=r"workload\.yml"):
        manifests.find_workloads([str(tmp_path / "w")])


def test_a_missing_folder_and_equal_ids_are_refused(folder, tmp_path):
    with pytest.raises(WorkloadError, match="does not exist"):
        manifests.find_workloads([str(tmp_path / "nowhere")])
    folder()
    with pytest.raises(WorkloadError, match="already the id"):
        manifests.find_workloads([folder(name="second")])


WORKLOADS = [
    {"id": "MLOPS-1.1", "category": 1, "needs": []},
    {"id": "MLOPS-1.2", "category": 1, "needs": ["MLOPS-1.1"]},
    {"id": "MLOPS-2.1", "category": 2, "needs": []},
    {"id": "MLOPS-3.1", "category": 3, "needs": ["MLOPS-1.2"]},
]


@pytest.mark.parametrize(
    ("categories", "only", "tags", "expected"),
    [
        ([1], [], ["all"], ["MLOPS-1.1", "MLOPS-1.2"]),
        ([1], ["MLOPS-2.1"], ["all"], ["MLOPS-2.1"]),
        ([1], [], ["MLOPS-1.2"], ["MLOPS-1.2"]),
        ([1, 2], ["MLOPS-1.1", "MLOPS-2.1"], ["MLOPS-2.1"], ["MLOPS-2.1"]),
    ],
)
def test_selection(categories, only, tags, expected):
    chosen = selection.select(WORKLOADS, categories, only, tags).run
    assert [w["id"] for w in chosen] == expected
    assert all(w["asked"] is True for w in chosen)


@pytest.mark.parametrize(
    ("categories", "asked"),
    [
        ([3], {"MLOPS-1.1": False, "MLOPS-1.2": False, "MLOPS-3.1": True}),
        ([1, 3], {"MLOPS-1.1": True, "MLOPS-1.2": True, "MLOPS-3.1": True}),
    ],
)
def test_a_category_comes_with_all_that_it_needs(categories, asked):
    chosen = selection.select(WORKLOADS, categories, [], ["all"]).run
    assert {w["id"]: w["asked"] for w in chosen} == asked
    assert [w["id"] for w in chosen] == sorted(asked)


@pytest.mark.parametrize("by", [{"only": ["MLOPS-3.1"], "tags": ["all"]}, {"only": [], "tags": ["MLOPS-3.1"]}])
def test_who_names_ids_gets_nothing_else(by):
    (chosen,) = selection.select(WORKLOADS, [3], by["only"], by["tags"]).run
    assert (chosen["id"], chosen["asked"]) == ("MLOPS-3.1", True)


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ({"A-1": ["A-3"], "A-2": [], "A-3": []}, ["A-2", "A-3", "A-1"]),
        ({"A-1": [], "A-2": ["A-1"], "B-1": [], "B-2": ["A-2", "B-1"]}, ["A-1", "A-2", "B-1", "B-2"]),
    ],
)
def test_each_workload_comes_after_those_it_needs_else_by_id(needs, expected):
    workloads = {name: {"id": name, "needs": needed, "folder": "/f"} for name, needed in needs.items()}
    assert [workload["id"] for workload in manifests.in_order(workloads)] == expected


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ({"A-1": ["A-9"]}, "/f/workload.yml: needs: unknown workload A-9"),
        ({"A-1": ["A-2"], "A-2": ["A-1"]}, "circular needs: A-[12] needs A-[12] needs A-[12]"),
        ({"A-1": ["A-1"]}, "circular needs: A-1 needs A-1"),
    ],
)
def test_needs_that_cannot_be_met_are_refused(needs, expected):
    workloads = {name: {"id": name, "needs": needed, "manifest": "/f/workload.yml"} for name, needed in needs.items()}
    with pytest.raises(WorkloadError, match=expected):
        manifests.in_order(workloads)


@pytest.mark.parametrize(
    ("categories", "only", "tags", "expected"),
    [
        ([4], [], ["all"], "no workload is selected"),
        ([1], ["MLOPS-9.9"], ["all"], "hpc_validation_only: unknown workload MLOPS-9.9"),
        ([1], [], ["mnist"], "--tags mnist"),
        ([1], [], ["MLOPS-1.1", "MLOPS-1.7"], "MLOPS-1.7"),
        ([1], ["MLOPS-1.1"], ["MLOPS-1.2"], "no workload is selected"),
    ],
)
def test_a_selection_of_nothing_is_refused(categories, only, tags, expected):
    with pytest.raises(WorkloadError, match=expected):
        selection.select(WORKLOADS, categories, only, tags)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"MLOPS-9": {}}, "unknown workload 'MLOPS-9'"),
        ({"MLOPS-1.1": {"S0-99": {"gt": 1}}}, "S0-99"),
        ({"MLOPS-1.1": {"S0-13": {"lt": 1}}}, "S0-13"),
        ({"MLOPS-1.1": 3}, "expected a mapping of criterion IDs to changes"),
    ],
)
def test_overrides_of_nothing_are_refused(overrides, expected, example):
    with pytest.raises(WorkloadError, match=expected):
        settings.check_criteria([example("manifest")], [example("manifest")], overrides, {})


def test_a_misspelt_setting_is_refused_with_what_was_meant(root):
    known = settings.public_settings(root)
    settings.check_settings(["hpc_validation_overrides"], known)
    with pytest.raises(WorkloadError, match=r"hpc_validation_overides \(did you mean hpc_validation_overrides"):
        settings.check_settings(["hpc_validation_overides"], known)


CONTAINER = {"CONTAINER.entered", "CONTAINER.image", "CONTAINER.lock"}


def test_a_workload_that_asks_for_gpus_has_their_criteria_too(folder, example):
    (workload,) = manifests.find_workloads([folder()])
    common = {criterion["id"] for criterion in workload["criteria"][len(example("manifest")["criteria"]) :]}
    gpus = {f"GPU.{name}" for name in ("sampled", "samples", "lost", "answers", "slowdown", "ecc", "xid", "repair")}
    assert common == {*CONTAINER, "CONTAINER.gpus", *gpus}
    settings.check_criteria([workload], [workload], {"MLOPS-1.1": {"GPU.slowdown": {"each": {"le": 0.2}}}}, {})


def test_a_workload_without_gpus_has_none_of_theirs(folder, example):
    resources = {key: value for key, value in example("manifest")["resources"].items() if key != "gres"}
    (workload,) = manifests.find_workloads([folder(resources=resources)])
    own, common = workload["criteria"][: -len(CONTAINER)], workload["criteria"][-len(CONTAINER) :]
    assert own == example("manifest")["criteria"]
    assert {criterion["id"] for criterion in common} == CONTAINER


TWO_RANKS = {"nodes": 1, "ntasks_per_node": 2, "cpus_per_task": 4, "gres": "gpu:2", "mem": "8G", "time": "00:10:00"}


def test_a_workload_with_a_launcher_has_the_criteria_of_ranks(folder):
    (workload,) = manifests.find_workloads([folder(launcher="torchrun", resources=TWO_RANKS)])
    assert {"RANKS.first_failure", "RANKS.ended"} <= {criterion["id"] for criterion in workload["criteria"]}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"resources": TWO_RANKS, "baseline": {"ranks": 1, "work": "weak"}}, "baseline: needs a launcher"),
        (
            {"launcher": "torchrun", "resources": TWO_RANKS, "baseline": {"ranks": 2, "work": "weak"}},
            r"baseline\.ranks: expected fewer ranks than the workload's 2",
        ),
        (
            {"launcher": "torchrun", "baseline": {"ranks": 1, "work": "weak"}},
            "expected fewer ranks than the workload's 1",
        ),
        (
            {
                "launcher": "torchrun",
                "resources": {**TWO_RANKS, "nodes": 2},
                "baseline": {"ranks": 3, "work": "weak"},
            },
            r"baseline\.ranks: 3 ranks do not fill nodes with 2 each",
        ),
    ],
)
def test_a_baseline_that_is_none_is_refused(folder, changes, expected):
    with pytest.raises(WorkloadError, match=expected):
        manifests.find_workloads([folder(**changes)])


@pytest.mark.parametrize(("nodes", "ranks"), [(1, 1), (2, 1), (2, 2)])
def test_a_baseline_on_fewer_ranks_is_accepted(folder, nodes, ranks):
    resources = {**TWO_RANKS, "nodes": nodes}
    baseline = {"ranks": ranks, "work": "strong"}
    (workload,) = manifests.find_workloads([folder(launcher="torchrun", resources=resources, baseline=baseline)])
    assert workload["baseline"] == baseline


LONG = {
    "title": "Ten times as long",
    "resources": {"time": "01:40:00"},
    "limits": {"run": 6000},
    "command": ["python", "mnist_single_gpu.py", "--epochs", "30"],
    "criteria": {
        "S0-12": {"lt": 1800},
        "S0-14": {"applies_when": {"option": ["none"]}},
        "S0-30": {"title": "Thirty epochs ran", "query": "metrics.epochs", "eq": 30},
    },
}


def test_an_option_changes_what_it_names_and_nothing_else(folder):
    path = folder(options={"long": LONG})
    (plain,) = manifests.find_workloads([path])
    (chosen,) = manifests.find_workloads([path], {"MLOPS-1.1": "long"})
    assert chosen["title"] == "Ten times as long"
    assert chosen["resources"] == {**plain["resources"], "time": "01:40:00"}
    assert chosen["limits"] == {"queue": 600, "run": 6000}
    assert chosen["command"][-1] == "30"
    before, after = ({c["id"]: c for c in workload["criteria"]} for workload in (plain, chosen))
    assert before["S0-12"]["lt"] == 180
    assert after["S0-12"] == {**before["S0-12"], "lt": 1800}
    assert after["S0-14"] == {
        **before["S0-14"],
        "applies_when": {**before["S0-14"].get("applies_when", {}), "option": ["none"]},
    }
    assert after["S0-30"] == {"id": "S0-30", **LONG["criteria"]["S0-30"]}
    assert after["S0-13"] == before["S0-13"]
    assert "options" not in plain
    assert "options" not in chosen
    assert (plain["option"], chosen["option"]) == ("none", "long")


def test_what_does_not_apply_with_an_option_may_be_overridden_all_the_same(folder):
    workloads = manifests.find_workloads([folder(options={"long": LONG})], {"MLOPS-1.1": "long"})
    settings.check_criteria(workloads, workloads, {"MLOPS-1.1": {"S0-14": {"severity": "gate"}}}, {})


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ({**LONG, "resources": {"time": "long"}}, r"workload\.yml: options\.long is not .*: resources\.time"),
        ({**LONG, "resources": {"cores": 4}}, r"options\.long is not .*: resources: unknown key 'cores'"),
        ({**LONG, "command": ["python", "other.py"]}, r"options\.long: command: the script 'other\.py'"),
        ({**LONG, "id": "MLOPS-9.9"}, "unknown key 'id'"),
        ({"resources": {}}, "title"),
        ({**LONG, "criteria": {"S0-14": None}}, r"criteria\.S0-14: None is not of type"),
        ({**LONG, "criteria": {"S0-13": {"gt": "0.9"}}}, r"options\.long is not .*: criteria\[1\]\.gt: '0\.9' is not"),
        ({**LONG, "criteria": {"S0-14": {"exists": 1}}}, r"options\.long is not .*: criteria\[2\]\.exists"),
        ({**LONG, "criteria": {"S0-30": {"title": "Epochs", "eq": 30}}}, r"options\.long is not .*: criteria\[\d+\]"),
        ({**LONG, "criteria": {"S0-13": {"id": "no id"}}}, r"options\.long is not .*: criteria\[1\]\.id: 'no id' does"),
    ],
)
def test_a_bad_option_is_refused_whether_it_is_chosen_or_not(folder, option, expected):
    with pytest.raises(WorkloadError, match=expected):
        manifests.find_workloads([folder(options={"long": option})])


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (
            {"MLOPS-1.1": "short"},
            "hpc_validation_workload_options: unknown option 'short' of MLOPS-1.1; available: long",
        ),
        ({"MLOPS-1.1": ["long"]}, r"unknown option \['long'\] of MLOPS-1.1"),
        ({"MLOPS-9.9": "long"}, "unknown workload MLOPS-9.9; available: MLOPS-1.1"),
    ],
)
def test_an_option_that_does_not_exist_is_refused(folder, chosen, expected):
    with pytest.raises(WorkloadError, match=expected):
        manifests.find_workloads([folder(options={"long": LONG})], chosen)


@pytest.mark.parametrize("days", [0, 7])
def test_days_for_which_a_pass_stands(days):
    settings.check_needs_days(days)


def test_a_pass_from_the_future_is_not_awaited():
    with pytest.raises(WorkloadError, match="hpc_validation_needs_days is -1; expected"):
        settings.check_needs_days(-1)


@pytest.mark.parametrize(("window", "grace"), [(1, 60.0), (200, 0.1)])
def test_a_window_takes_jobs_and_a_grace_time(window: int, grace: float) -> None:
    settings.check_window(window, grace)


@pytest.mark.parametrize(
    ("window", "grace", "name"),
    [
        (0, 60.0, "hpc_validation_window"),
        (-1, 60.0, "hpc_validation_window"),
        (1, 0.0, "hpc_validation_node_grace"),
        (1, float("nan"), "hpc_validation_node_grace"),
    ],
)
def test_a_window_for_no_job_and_a_grace_of_no_time_are_refused(window: int, grace: float, name: str) -> None:
    with pytest.raises(settings.WorkloadError, match=name):
        settings.check_window(window, grace)


def test_criteria_that_did_not_come_with_the_collection_are_missed(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(manifests, "COMMON", tmp_path)
    with pytest.raises(WorkloadError, match="installed completely"):
        manifests.find_workloads([folder()])


def test_a_configuration_that_is_not_there_is_refused(folder):
    with pytest.raises(WorkloadError, match=r"config: 'train\.yaml' is not in /"):
        manifests.find_workloads([folder(config="train.yaml")])


def test_logs_go_to_jobs_unless_the_manifest_says_otherwise(folder):
    assert manifests.find_workloads([folder()])[0]["output"]["logs"] == "jobs"


WITHIN = {"id": "S-1", "title": "As fast as this hardware", "query": "metrics.speed"}


def test_a_reference_that_no_criterion_asks_for_is_refused(folder):
    criterion = {**WITHIN, "within": {"from": "speed", "tolerance": 0.1}}
    known = manifests.find_workloads([folder(criteria=[criterion])])
    settings.check_criteria(known, known, {}, {"speed": [{"when": {}, "value": 1}]})
    with pytest.raises(
        WorkloadError, match=r"hpc_validation_references: no criterion uses sped \(did you mean speed\?"
    ):
        settings.check_criteria(known, known, {}, {"sped": [{"when": {}, "value": 1}]})


def wave_of(needs, alone=()):
    workloads = [{"id": name, "needs": needed, "alone": name in alone} for name, needed in needs.items()]
    return selection.waves(workloads)


@pytest.mark.parametrize(
    ("needs", "alone", "expected"),
    [
        ({"A-1": [], "A-2": [], "A-3": []}, [], [["A-1", "A-2", "A-3"]]),
        ({"A-1": [], "A-2": ["A-1"], "A-3": []}, [], [["A-1", "A-3"], ["A-2"]]),
        ({"A-1": [], "A-2": [], "A-3": []}, ["A-2"], [["A-1", "A-3"], ["A-2"]]),
        ({"A-1": [], "A-2": ["A-1"], "A-3": ["A-1"], "A-4": ["A-2"]}, ["A-3"], [["A-1"], ["A-2"], ["A-3"], ["A-4"]]),
        ({"A-1": [], "A-2": ["A-1"], "A-3": ["A-1", "A-2"]}, [], [["A-1"], ["A-2"], ["A-3"]]),
        ({"A-1": ["B-9"], "A-2": ["B-9"]}, [], [["A-1", "A-2"]]),  # B-9 is not of this run
        ({}, [], []),
    ],
)
def test_waves(needs, alone, expected):
    assert wave_of(needs, alone) == expected


def test_the_collections_workloads_that_judge_their_own_speed_are_alone(root):
    workloads = manifests.find_workloads([str(root / "files/workloads")])
    assert {each["id"] for each in workloads if each["alone"]} == {
        "BASELINE-1",
        "MLOPS-2.1",
        "MLOPS-2.2",
        "PRETRAIN-1",
        "PROFILE-EMBEDDED",
        "PROFILE-HPC",
    }


# -- what appears twice


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ("limits:", "limits: {queue: 1, run: 1}\nlimits:", "'limits'"),
        ("title:", "title: x\ntitle:", "'title'"),
        ("criteria:", "criteria: []\ncriteria:", "'criteria'"),
        ("title:", "<<: {needs: []}\ntitle:", "merge key"),
    ],
)
def test_a_key_that_stands_twice_is_refused_with_its_lines(folder, tmp_path, was, now, says):
    path = folder()
    manifest = tmp_path / "workloads/mnist_single_gpu/workload.yml"
    text = manifest.read_text()
    manifest.write_text(text.replace(f"\n{was}", f"\n{now}", 1))
    with pytest.raises(WorkloadError) as caught:
        manifests.find_workloads([path])
    assert says in str(caught.value)
    assert str(manifest) in str(caught.value)
    assert "line" in str(caught.value)


@pytest.mark.parametrize("option", [None, "small"])
def test_a_criterion_id_that_stands_twice_is_refused_with_an_option_too(folder, example, option):
    criteria = example("manifest")["criteria"]
    loose = {**criteria[0], "title": "the same id again"}
    path = folder(criteria=[*criteria, loose], options={"small": {"title": "a smaller one"}})
    with pytest.raises(WorkloadError, match=rf"criteria: {criteria[0]['id']} appears twice"):
        manifests.find_workloads([path], {"MLOPS-1.1": option} if option else {})


def test_an_option_cannot_give_a_criterion_the_id_of_another(folder, example):
    first, second = [criterion["id"] for criterion in example("manifest")["criteria"][:2]]
    path = folder(options={"small": {"criteria": {first: {"id": second}}}})
    with pytest.raises(WorkloadError):
        manifests.find_workloads([path])


def test_a_criterion_cannot_have_the_id_of_one_that_all_have(folder, example):
    criteria = example("manifest")["criteria"]
    path = folder(criteria=[*criteria, {**criteria[0], "id": "GPU.answers"}])
    with pytest.raises(WorkloadError, match=r"GPU\.answers appears twice"):
        manifests.find_workloads([path])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"resume": {"PRETRAIN-2": 5}}, "hpc_validation_resume: unknown workload PRETRAIN-2 (did you mean PRET"),
        ({"workload_slurm": {"x": {}}}, "hpc_validation_workload_slurm: unknown workload x (available: A-1, "),
        ({"pretraining": {"PRETRAIN-2": {}}}, "hpc_validation_pretraining: unknown workload PRETRAIN-2 (did you mean"),
        ({"profile": {"Q-9": {}}}, "hpc_validation_profile: unknown workload Q-9 (available: A-1, PRETRAIN-1)"),
    ],
)
def test_a_setting_for_an_unknown_workload_is_refused(given, why):
    with pytest.raises(WorkloadError, match=f"^{re.escape(why)}"):
        settings.check_ids(given, ["A-1", "PRETRAIN-1"])


@pytest.mark.parametrize(
    "given",
    [
        {"resume": {"A-1": 5}, "baselines": {}},
        {"pretraining": {"training": {"steps": 3}, "PRETRAIN-1": {"model": {}}}},
        {"profile": "not looked at here"},
    ],
)
def test_settings_for_known_workloads_and_for_all_of_a_kind_are_taken(given):
    settings.check_ids(given, ["A-1", "PRETRAIN-1"])
