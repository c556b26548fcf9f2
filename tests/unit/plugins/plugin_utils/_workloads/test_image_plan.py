# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where images come from, and which settings of them cannot be followed."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import images as workloads_images
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import staging
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.staging import StagePlanError

SHARE = "/mnt/beegfs"
MNIST = {"id": "MLOPS-1.1", "runtime": "pytorch", "data": ["mnist"], "models": []}
SMOLLM = {"id": "MLOPS-1.2", "runtime": "oumi", "data": ["no_robots"], "models": ["smollm_135m"]}
STAND_IN = {"mnist": {"source": "stand-in"}}
DIGEST = "ab" * 32


def plan(images=None, *, runtime="apptainer", by_workload=None):
    settings = {"datasets": STAND_IN, "images": images, "runtime": runtime, "workload_runtime": by_workload}
    return staging.plan([MNIST, SMOLLM], settings, SHARE)


def image(images=None):
    return plan(images)["runtimes"][1]


def test_an_image_is_looked_for_where_the_document_has_it():
    assert image() == {
        "key": "oumi.sif",
        "name": "oumi",
        "kind": "apptainer",
        "locked": True,
        "path": "/mnt/beegfs/containers/oumi_latest.sif",
        "copied": None,
        "incoming": None,
        "sha256": None,
        "base": None,
        "python": "/opt/hpc_validation/runtime/bin/python",
    }


def test_what_workloads_read_is_staged_from_within_their_image():
    planned = plan()
    assert [runtime["key"] for runtime in planned["runtimes"]] == ["pytorch.sif", "oumi.sif", "standin"]
    assert {source["name"]: source["runtime"] for source in planned["sources"]} == {
        "mnist": "standin",
        "no_robots": "oumi.sif",
        "smollm_135m": "oumi.sif",
    }


def test_a_workload_may_run_in_another_kind_than_the_rest():
    assert plan(by_workload={"MLOPS-1.1": "venv"})["by_workload"] == {"MLOPS-1.1": "pytorch", "MLOPS-1.2": "oumi.sif"}
    assert plan(runtime="venv", by_workload={"MLOPS-1.2": "apptainer"})["by_workload"] == {
        "MLOPS-1.1": "pytorch",
        "MLOPS-1.2": "oumi.sif",
    }


def test_a_file_of_the_controller_is_copied_and_one_on_the_share_is_not(tmp_path):
    mine = tmp_path / "mine.sif"
    mine.write_text("x")
    found = image({"oumi": {"path": str(mine), "sha256": DIGEST}})
    assert (found["copied"], found["incoming"]) == (str(mine), "/mnt/beegfs/containers/.incoming/oumi.sif")
    assert found["path"] == "/mnt/beegfs/containers/oumi_latest.sif"
    found = image({"oumi": {"path": "/mnt/beegfs/images/site.sif", "python": "/usr/bin/python"}})
    assert (found["path"], found["copied"], found["python"]) == ("/mnt/beegfs/images/site.sif", None, "/usr/bin/python")
    assert found["locked"] is False  # an image of another maker holds no lock of ours


def test_an_image_is_built_on_a_base():
    assert image({"oumi": {"source": "build"}})["base"] == workloads_images.BASE
    assert image({"oumi": {"source": "build", "base": "localimage:/x.sif"}})["base"] == "localimage:/x.sif"


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        ({"oumi": {"path": "/nowhere/x.sif"}}, "oumi.path: expected a local file or one below /mnt/beegfs"),
        ({"oumi": {"path": __file__}}, r"oumi.sha256 is missing: .* \(sha256sum /"),
    ],
)
def test_a_file_that_is_not_there_or_not_named_by_its_hash_is_refused(images, expected):
    with pytest.raises(StagePlanError, match=expected):
        plan(images)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"images": {"ouml": {}}},
            r"images\.ouml: unknown environment; available: deepspeed, oumi, oumi_deepspeed",
        ),
        (
            {"images": {"oumi": "build"}},
            r"images\.oumi: expected a mapping with some of the keys base, path, python, sha256, source, found 'build'",
        ),
        ({"images": {"oumi": {"file": "x"}}}, "expected a mapping with some of the keys base, path"),
        ({"images": {"oumi": {"source": "pull"}}}, "oumi.source: expected one of path, build, found 'pull'"),
        ({"images": {"oumi": {"source": "build", "path": "/x"}}}, "oumi.path does not belong to source: build"),
        ({"images": {"oumi": {"base": "docker://x"}}}, "oumi.base does not belong to source: path"),
        ({"images": {"oumi": {"sha256": "abc"}}}, "oumi.sha256: expected 64 lower-case hexadecimal digits"),
        ({"images": {"oumi": {"path": 7}}}, "oumi.path: expected a path, found 7"),
        ({"images": {"oumi": {"python": "python"}}}, "oumi.python: expected an absolute path in the image"),
        ({"images": {"oumi": {"source": "build", "base": "x:1 --y"}}}, "oumi.base: expected an Apptainer image source"),
        ({"runtime": "docker"}, "hpc_validation_runtime: expected one of venv, apptainer, found 'docker'"),
        ({"workload_runtime": {"MLOPS-1.2": "conda"}}, r"workload_runtime\.MLOPS-1\.2: expected one of"),
        ({"workload_runtime": {"MLOPS-1-2": "venv"}}, r"unknown workload 'MLOPS-1-2'; available: MLOPS-1\.1"),
        ({"binds": "/scratch"}, "binds: expected a list of absolute paths, found '/scratch'"),
        ({"binds": ["scratch"]}, "binds: expected a list of absolute paths"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused(settings, expected):
    with pytest.raises(workloads_images.ImagePlanError, match=expected):
        workloads_images.check(settings, ["MLOPS-1.1", "MLOPS-1.2"])


def test_settings_that_can_be_followed_are_not():
    images = {"oumi": {"source": "build"}, "pytorch": {"path": "/x.sif", "sha256": DIGEST, "python": "/usr/bin/python"}}
    workloads_images.check({}, [])
    workloads_images.check({"runtime": "apptainer", "images": images, "binds": ["/scratch"]}, [])
