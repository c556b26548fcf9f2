# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A workload that runs another one's files (code); one that is measured on edge hosts before it is judged (edge)."""

from __future__ import annotations

import copy
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema, tree
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import (
    checking,
    edge_group,
    manifests,
    plan,
    selection,
    settings,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.manifests import WorkloadError

Json = dict[str, t.Any]
QUERY = {"id": "E-1", "title": "It is fast", "each": {"over": "edge.hosts", "query": "p99_ms", "count": 1, "lt": 5}}
# Each reads the document edge, in another place of a criterion.
READERS: list[Json] = [
    QUERY,
    {"id": "E-1", "title": "t", "query": "length(edge.hosts)", "eq": 1},
    {"id": "E-1", "title": "t", "query": "edge.expected", "gt": 0},
    {"id": "E-1", "title": "t", "query": "metrics.n", "ratio_le": {"bound": 1, "to": "edge.expected", "of": "own"}},
    {"id": "E-1", "title": "t", "each": {"over": "metrics.n", "query": "x", "count": "edge.expected", "lt": 5}},
]


@pytest.fixture
def make(tmp_path: Path, example: t.Callable[[str], t.Any]) -> t.Callable[..., Path]:
    """(name, changes of the example, files beside the manifest) → the manifest's path."""

    def made(name: str, files: t.Sequence[str] = (), **changes: t.Any) -> Path:
        home = tmp_path / "workloads" / name
        home.mkdir(parents=True)
        manifest = {**copy.deepcopy(example("manifest")), "name": name, **changes}
        (home / "workload.yml").write_text(yaml.safe_dump({k: v for k, v in manifest.items() if v is not None}))
        for file in files:
            (home / file).write_text("print()\n")
        return home / "workload.yml"

    return made


@pytest.fixture
def pair(make: t.Callable[..., Path]) -> t.Callable[..., Path]:
    """(changes) → the manifest of a workload that runs the files of the one beside it."""

    def made(**changes: t.Any) -> Path:
        make("trainer", ["train.py", "config.yml"], id="T-1", command=["python", "train.py"])
        own = {"id": "T-2", "code": "trainer", "command": ["python", "train.py"], **changes}
        return make("embedded", **own)

    return made


def test_the_files_are_those_of_the_other_folder_and_the_name_its_own(pair: t.Callable[..., Path]) -> None:
    path = pair(config="config.yml")
    loaded = manifests.load_manifest(path)
    assert loaded["folder"] == str(path.parent.parent / "trainer")
    assert (loaded["name"], loaded["manifest"], loaded["edge"]) == ("embedded", str(path), False)
    other = manifests.load_manifest(path.parent.parent / "trainer/workload.yml")
    assert (other["folder"], other["manifest"]) == (loaded["folder"], str(path.parent.parent / "trainer/workload.yml"))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"code": "nobody"}, "code: {root} has no folder 'nobody'"),
        ({"code": "embedded"}, "code: is its own folder; leave it out"),
        ({"code": "../trainer"}, "code: '../trainer' does not match"),
        ({"code": "/etc"}, "code: '/etc' does not match"),
        ({"code": 3}, "code: 3 is not of type 'string'"),
        ({"edge": "yes"}, "edge: 'yes' is not of type 'boolean'"),
        ({"command": ["python", "other.py"]}, "command: the script 'other.py' is not in {root}/trainer"),
        ({"config": "other.yml"}, "config: 'other.yml' is not in {root}/trainer"),
        ({"name": "trainer"}, "name: expected the folder's name 'embedded', found 'trainer'"),
    ],
)
def test_errors_name_the_manifests_own_file(pair: t.Callable[..., Path], changes: Json, says: str) -> None:
    path = pair(**{key: value for key, value in changes.items() if key != "name"})
    if "name" in changes:
        path.write_text(path.read_text().replace("name: embedded", f"name: {changes['name']}"))
    with pytest.raises(WorkloadError) as caught:
        manifests.load_manifest(path)
    text = str(caught.value)
    assert text.startswith((f"{path}: ", f"{path} is not a valid manifest: "))
    assert says.format(root=path.parent.parent) in text


def test_who_has_the_same_id_is_named_by_its_own_folder(pair: t.Callable[..., Path], make: t.Any) -> None:
    path = pair()
    make("zero", ["train.py"], id="T-2", command=["python", "train.py"])
    with pytest.raises(WorkloadError, match=f"T-2 is already the id of {path.parent}$"):
        manifests.find_workloads([str(path.parent.parent)])


def test_the_payload_is_what_is_deployed(pair: t.Callable[..., Path]) -> None:
    path = pair()
    before = {
        "check_mode": False,
        "selected": [],
        "passed": [],
        "planned": {"by_workload": {"T-1": "v", "T-2": "v"}},
        "runtimes": {"v": {"kind": "venv", "locked": True}},
        "missing_runtimes": [],
        "digests": {"mnist": "d"},
        "data": {},
    }
    names = ("slurm", "workload_slurm", "baselines", "context", "gpu", "resume")
    given = {"share": "/s", "accelerator": "cpu", "queue_timeout": 0, "run_timeout": 0, "nccl_tests": ""}
    given |= {name: {} for name in names}

    def planned() -> Json:
        return plan.plan(manifests.load_manifest(path), given, before, kit=path.parent)

    first = planned()
    assert first["home"] == "/s/scripts/embedded"
    assert first["configs"] == "/s/configs/embedded"
    assert set(tree.read_tree(Path(manifests.load_manifest(path)["folder"]))) == {
        "train.py",
        "config.yml",
        "workload.yml",
    }
    (path.parent.parent / "trainer/train.py").write_text("print(2)\n")
    assert planned()["payload"] != first["payload"]


def test_authors_hear_of_the_same(pair: t.Callable[..., Path]) -> None:
    path = pair(command=["bash", "other.sh"], data=[])
    assert [(each.key, each.why) for each in checking.check(path)] == [
        ("command[1]", f"the script 'other.sh' is not in {path.parent.parent / 'trainer'}")
    ]


# -- edge


def test_what_is_measured_on_edge_hosts_has_one_more_document(pair: t.Callable[..., Path]) -> None:
    path = pair(edge=True, criteria=[QUERY])
    loaded = manifests.load_manifest(path)
    assert loaded["edge"] is True
    assert plan.files(loaded)["edge"] == {"path": "edge/edge.json", "format": "json"}
    assert "edge" not in plan.files({**loaded, "edge": False})
    settings.check_criteria([loaded], [loaded], {}, {})
    assert [fault for fault in checking.check(path) if "edge" in fault.why] == []


@pytest.mark.parametrize("edge", [False, None])
@pytest.mark.parametrize("criterion", READERS, ids=range(len(READERS)))
def test_who_is_not_measured_there_cannot_ask_for_it(
    pair: t.Callable[..., Path], criterion: Json, edge: bool | None
) -> None:
    path = pair(edge=edge, criteria=[{"id": "A-1", "title": "t", "query": "metrics.x", "gt": 0}, criterion])
    with pytest.raises(
        WorkloadError, match=rf"^{path}: criteria\[1\].*: the document edge is there only with `edge: true`"
    ):
        manifests.load_manifest(path)
    assert [fault.why for fault in checking.check(path) if fault.key.startswith("criteria")] == [
        "the document edge is there only with `edge: true`"
    ]


def test_a_field_of_that_name_is_not_the_document(pair: t.Callable[..., Path]) -> None:
    path = pair(criteria=[{"id": "A-1", "title": "t", "query": "metrics.edge.hosts", "gt": 0}])
    assert manifests.load_manifest(path)["edge"] is False


def test_nothing_can_need_what_is_judged_last(pair: t.Callable[..., Path], make: t.Callable[..., Path]) -> None:
    path = pair(edge=True)
    late = make("late", ["train.py"], id="T-3", needs=["T-2"], command=["python", "train.py"])
    with pytest.raises(WorkloadError, match=f"^{late}: needs: T-2 is judged after all others"):
        manifests.find_workloads([str(path.parent.parent)])


def test_the_examples_still_match(example: t.Callable[[str], t.Any]) -> None:
    assert schema.problems("manifest", {**example("manifest"), "code": "a_b", "edge": True}) == []


# -- which hosts a run needs

WORKLOADS: list[Json] = [
    {"id": "A-1", "category": 1, "needs": [], "edge": False},
    {"id": "E-1", "category": 93, "needs": ["A-1"], "edge": True},
]


def select(categories: list[int] | None, hosts: t.Sequence[str], **more: t.Any) -> tuple[list[str], dict[str, str]]:
    found = selection.select(
        WORKLOADS, categories, more.get("only", []), more.get("tags", ["all"]), more.get("leave_out", {}), hosts
    )
    return [each["id"] for each in found.run], {each["id"]: each["why"] for each in found.left_out}


@pytest.mark.parametrize("by", [{"categories": [93]}, {"categories": None}])
def test_with_a_host_it_runs(by: Json) -> None:
    assert select(by["categories"], ["edge01"]) == (["A-1", "E-1"], {})


def test_without_one_it_is_not_applicable_among_all() -> None:
    assert select(None, []) == (["A-1"], {"E-1": "no host in the inventory's group edge"})


def test_the_inventorys_own_reason_is_told_first() -> None:
    assert select(None, [], leave_out={"E-1": "no board yet"}) == (["A-1"], {"E-1": "no board yet"})


@pytest.mark.parametrize(
    "by",
    [
        {"categories": [93]},
        {"categories": [1, 93]},
        {"categories": None, "only": ["E-1"]},
        {"categories": [1], "tags": ["E-1"]},
        {"categories": [1], "only": ["A-1", "E-1"]},
    ],
)
def test_without_one_it_is_refused_if_it_was_asked_for(by: Json) -> None:
    with pytest.raises(WorkloadError) as caught:
        select(by.pop("categories"), [], **by)
    assert str(caught.value).startswith(
        "E-1 is measured on the hosts of the inventory's group edge, which has none; add one"
    )
    assert yaml.safe_load(str(caught.value).split("such as ")[1])["edge"]["hosts"]


def test_a_run_looks_at_the_hosts_only_if_a_workload_is_measured_there() -> None:
    assert edge_group.of_run([{"id": "A-1"}, {"id": "E-1", "edge": {"model": "x"}}], iter(["edge01"])) == ["edge01"]
    assert edge_group.of_run([{"id": "A-1"}], ["edge01"]) == []


def test_others_do_not_need_one() -> None:
    assert select([1], []) == (["A-1"], {})
    assert select(None, [], only=["A-1"]) == (["A-1"], {})
