# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A manifest is checked without a cluster: each fault with file, line and key, all of them at once."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import strict_yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import checking, manifests, surroundings

GOOD = """\
---
id: TEST-1
name: triad
title: A workload
category: 99
needs: []
runtime: pytorch
resources: {nodes: 1, ntasks_per_node: 1, cpus_per_task: 1, mem: 1G, time: "00:05:00"}
limits: {queue: 60, run: 60}
data: [mnist]
command: [python, triad.py]
output:
  directory: models/triad/job-%j
  metrics: metrics.json
  artifacts: [model.bin]
criteria:
  - {id: T-1, title: It is right, query: metrics.score, gt: 0.9}
  - id: T-2
    title: The model is there
    artifact: model.bin
    exists: true
"""


@pytest.fixture
def faults(tmp_path):
    """(what is replaced by what) → the faults of such a manifest, as (line, key, why)."""

    def check(*changes, folders=()):
        folder = tmp_path / "workloads/triad"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "triad.py").touch()
        text = GOOD
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (folder / "workload.yml").write_text(text)
        found = checking.check(folder / "workload.yml", folders)
        assert {fault.file for fault in found} <= {str(folder / "workload.yml")}
        return [(fault.line, fault.key, fault.why) for fault in found]

    return check


def places(found):
    return [(line, key) for line, key, _why in found]


def test_a_good_manifest_has_no_faults(faults):
    assert faults() == []


def test_the_collections_own_workloads_have_no_faults(root):
    found = checking.manifests_in(str(root / "files/workloads"))
    assert len(found) >= 5
    assert [fault for path in found for fault in checking.check(path)] == []


def test_a_fault_is_one_line_with_file_line_and_key(faults, tmp_path):
    faults(("queue: 60", "queue: soon"))
    (fault,) = checking.check(tmp_path / "workloads/triad/workload.yml")
    assert str(fault) == f"{fault.file}:9: limits.queue: 'soon' is not of type 'integer'"
    assert str(checking.Fault("f", 1, "", "w")) == "f:1: w"


def test_all_faults_are_named_at_once(faults):
    found = faults(
        ("id: TEST-1", "id: test"),
        ("category: 99", "category: 99\ncategory: 98"),
        ("runtime: pytorch", "runtime: torch"),
        ("nodes: 1,", "nods: 1,"),
        ("queue: 60, ", ""),
        ("[mnist]", "[mnist, imagenet]"),
        ("gt: 0.9", "gt: high"),
        ("query: metrics.score", "query: metric.score"),
        ("artifact: model.bin", "artifact: weights.bin"),
    )
    assert places(found) == [
        (2, "id"),
        (6, ""),
        (8, "runtime"),
        (9, "resources.nodes"),
        (9, "resources.nods"),
        (10, "limits.queue"),
        (11, "data[1]"),
        (18, "criteria.T-1.gt"),
        (21, "criteria.T-2.artifact"),
    ]
    why = dict(zip(places(found), (why for _line, _key, why in found), strict=True))
    assert why[6, ""] == "the key 'category' appears twice, on lines 5 and 6; keep one of them"
    assert "available: deepspeed, oumi" in why[8, "runtime"]
    assert "did you mean 'nodes'?" in why[9, "resources.nods"]
    assert "'queue' is a required property" in why[10, "limits.queue"]
    assert why[18, "criteria.T-1.gt"] == "expected a finite number, found 'high'"


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says"),
    [
        ("id: TEST-1", "id: MLOPS-1.1", 2, "id", "already the id of"),
        ("name: triad", "name: other", 3, "name", "expected the folder's name 'triad'"),
        ("needs: []", "needs: [TEST-1]", 6, "needs[0]", "needs itself"),
        ("needs: []", "needs: [MLOPS-1.1, TEST-9]", 6, "needs[1]", "available: BASELINE-1, MLOPS-1.1"),
        ("data: [mnist]", "models: [mnist]", 10, "models[0]", "'mnist' does not exist in files/models"),
        ("triad.py", "triad.sh", 11, "command", "the script 'triad.sh' is not in"),
        ("[python, triad.py]", "[bash, run.sh]", 11, "command[1]", "the script 'run.sh' is not in"),
        (
            "[python, triad.py]",
            "[./triad.py]",
            11,
            "command[0]",
            "name a program to run it, such as [bash, ./triad.py]",
        ),
        ("[python, triad.py]", "[bash, triad.py]\nlauncher: torchrun", 11, "command[0]", "expected python"),
        ("data: [mnist]", "config: triad.yaml", 10, "config", "'triad.yaml' is not in"),
        ("models/triad/job-%j", "models/triad", 13, "output.directory", "does not match"),
        (
            "query: metrics.score",
            "query: progress.fields.x.last",
            17,
            "criteria.T-1.query",
            "unknown document 'progress'",
        ),
        ("query: metrics.score", "query: legs.measured.ranks", 17, "criteria.T-1.query", "unknown document 'legs'"),
        ("query: metrics.score", "query: logs.stdout.bytes", 17, "criteria.T-1.query", "unknown document 'logs'"),
        ("query: metrics.score", "query: sum(", 17, "criteria.T-1.query", "not a JMESPath expression"),
        ("query: metrics.score", "log: [stdout]", 17, "criteria.T-1.gt", "cannot be used with log"),
        ("gt: 0.9", "gt: 0.9, lt: 1", 17, "criteria.T-1", "two tests, gt and lt"),
        (", gt: 0.9", "", 17, "criteria.T-1", "no test"),
        (", query: metrics.score", "", 17, "criteria.T-1", "expected exactly one of them, found none"),
        ("gt: 0.9", "ratio_ge: {bound: 1, to: job.gpus, whose: own}", 17, "criteria.T-1.ratio_ge.whose", "is unknown"),
        ("query: metrics.score, gt: 0.9", "log: [stdout], absent: cuda", 17, "criteria.T-1.absent", "cuda_errors"),
        ("id: T-2", "id: T-1", 18, "criteria.T-1.id", "T-1 appears twice"),
        ("id: T-2", "id: JOB", 18, "criteria.JOB.id", "JOB is reserved for the judge's own criterion"),
        ("id: T-2", "ids: T-2", 18, "criteria[1].ids", "is unknown"),
    ],
)
def test_a_fault_stands_where_it_is(faults, old, new, line, key, says):
    found = faults((old, new))
    assert (line, key) in places(found)
    assert any(says in why for at_line, at_key, why in found if (at_line, at_key) == (line, key)), found


def test_a_criterion_is_refused_by_its_reader_or_by_the_schema(faults):
    ((line, key, why),) = faults(("title: It is right", "title: It is right, severity: gate, unit: 3"))
    assert (line, key, why) == (17, "criteria.T-1.unit", "expected text, found 3")


@pytest.mark.parametrize(
    ("name", "says"), [("mnist_single_gpu", "is already the name of"), ("kit", "of the collection itself on the share")]
)
def test_a_name_that_is_taken_on_the_share_is_refused(tmp_path, name, says):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "triad.py").touch()
    (folder / "workload.yml").write_text(GOOD.replace("name: triad", f"name: {name}"))
    (fault,) = checking.check(folder / "workload.yml")
    assert (fault.line, fault.key) == (3, "name")
    assert says in fault.why


def test_workloads_beside_it_and_in_further_folders_are_known(faults, tmp_path):
    for folder, name in (("workloads/second", "TEST-2"), ("elsewhere/third", "TEST-3"), ("elsewhere/torn", "[")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "workload.yml").write_text(f"id: {name}\n")
    change = ("needs: []", "needs: [TEST-2, TEST-3]")
    assert places(faults(change)) == [(6, "needs[1]")]
    assert faults(change, folders=[str(tmp_path / "elsewhere")]) == []
    assert places(faults(("id: TEST-1", "id: TEST-2"))) == [(2, "id")]


OPTIONS = """\
options:
  fast:
    title: Faster
    limits: {run: 0}
    command: [python, fast.py]
    criteria:
      T-1: {gt: none}
      T-3: {title: New, query: nowhere.x, gt: 1}
  same: {title: Nothing else}
  wrong: 3
"""


def test_each_option_is_checked_where_it_stands(faults):
    found = faults(("criteria:\n", f"{OPTIONS}criteria:\n"))
    assert places(found) == [
        (19, "options.fast.limits.run"),
        (20, "options.fast.command"),
        (22, "options.fast.criteria.T-1.gt"),
        (23, "options.fast.criteria.T-3.query"),
        (25, "options.wrong"),
    ]


def test_a_fault_of_the_manifest_is_not_told_again_of_each_option(faults):
    found = faults(("runtime: pytorch", "runtime: torch"), ("criteria:\n", "options: {a: {title: A}}\ncriteria:\n"))
    assert places(found) == [(7, "runtime")]


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b"a: [", 1, "it is not YAML"),
        (b"id: x\nb: y: z\n", 2, "it is not YAML"),
        (b"a: 1\nb: \xff\n", 2, "byte 8 is not UTF-8"),
        (b"- 1\n", 1, "expected keys with values"),
        (b"#" * (manifests.MAX_BYTES + 1), 1, "larger than"),
    ],
)
def test_what_is_no_manifest_is_a_fault(tmp_path, content, line, says):
    (tmp_path / "workload.yml").write_bytes(content)
    (fault,) = checking.check(tmp_path / "workload.yml")
    assert (fault.line, fault.key) == (line, "")
    assert says in fault.why


def test_an_empty_manifest_is_a_fault(tmp_path):
    (tmp_path / "workload.yml").write_text("# nothing\n")
    assert [fault.why for fault in checking.check(tmp_path / "workload.yml")] == ["it is empty"]


def test_a_manifest_that_cannot_be_read_is_a_fault(tmp_path):
    (tmp_path / "workload.yml").mkdir()
    (fault,) = checking.check(tmp_path / "workload.yml")
    assert fault.why == "it cannot be read: Is a directory"


def test_a_folder_that_cannot_be_deployed_is_a_fault(faults, tmp_path):
    (tmp_path / "workloads/triad").mkdir(parents=True)
    (tmp_path / "workloads/triad/data").symlink_to(tmp_path)
    ((line, key, why),) = faults()
    assert (line, key) == (2, "")
    assert "data is a link, not a regular file" in why


def test_manifests_are_found_in_a_workloads_folder_and_in_a_folder_of_such(faults, tmp_path, monkeypatch):
    faults()
    one = tmp_path / "workloads/triad/workload.yml"
    assert checking.manifests_in(str(one.parent)) == [one]
    assert checking.manifests_in(str(tmp_path / "workloads")) == [one]
    monkeypatch.chdir(tmp_path)
    assert checking.manifests_in("workloads/triad") == [one]
    with pytest.raises(checking.CheckError, match=r"neither .* nor a folder in it has a workload\.yml"):
        checking.manifests_in(str(tmp_path))
    with pytest.raises(checking.CheckError, match="does not exist"):
        checking.manifests_in(str(tmp_path / "nowhere"))


def test_the_folders_that_are_taken_are_those_that_the_roles_deploy(root):
    tasks = strict_yaml.read(root / "roles/bootstrap/tasks/main.yml")
    (deployed,) = [
        task["mlops.hpc_validation.share_tree"] for task in tasks if "mlops.hpc_validation.share_tree" in task
    ]
    places = {each["dest"].removeprefix("{{ hpc_validation_share }}/scripts/") for each in deployed["also"]}
    assert places == set(surroundings.TAKEN)
