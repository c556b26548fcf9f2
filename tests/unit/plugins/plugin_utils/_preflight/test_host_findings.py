# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judging a host's facts, and the controller's."""

from __future__ import annotations

import copy
import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import controller
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.host import login_findings, node_findings

Json = dict[str, t.Any]
IMAGE = {"required": True, "image": "/mnt/beegfs/containers/oumi_latest.sif"}


def verdicts(found: list[Json]) -> dict[str, str]:
    for finding in found:
        assert schema.problems("finding", finding) == []
        assert finding["remedy"] or finding["verdict"] not in ("fail", "undetermined")
    return {finding["id"]: finding["verdict"] for finding in found}


@pytest.fixture
def facts(example: t.Callable[[str], Json]) -> Json:
    return copy.deepcopy(example("host"))


def test_a_healthy_login_node_passes(facts: Json) -> None:
    assert verdicts(login_findings(facts, "login", no_downloads=None, apptainer={})) == {
        "login.commands": "pass",
        "login.munge": "pass",
        "login.python": "pass",
        "runtime.internet": "pass",
        "runtime.apptainer": "recorded",
    }


@pytest.mark.parametrize(
    ("change", "identity", "verdict", "words"),
    [
        ({"commands": {"sbatch": None, "squeue": "/bin/squeue"}}, "login.commands", "fail", "sbatch"),
        ({"commands": {"squeue": "/bin/squeue"}}, "login.commands", "fail", "sbatch"),
        ({"commands": {}}, "login.commands", "undetermined", "commands were not reported"),
        ({"munge": {"ok": False, "error": "no socket"}}, "login.munge", "fail", "no socket"),
        ({"munge": {"ok": "yes"}}, "login.munge", "undetermined", "munge was not reported"),
        ({"python": "3.8.10"}, "login.python", "fail", "3.8.10 is not >= 3.9"),
        ({"python": None}, "login.python", "undetermined", "Python was not reported"),
        ({"reach": [{"host": "a", "ok": False, "error": "timed out"}]}, "runtime.internet", "fail", "timed out"),
        ({"reach": []}, "runtime.internet", "undetermined", "no connection test was reported"),
        ({"apptainer": {"version": "1.0.3", "error": None, "image": None}}, "runtime.apptainer", "fail", "1.0.3"),
        ({"apptainer": {"version": None, "error": "not on PATH"}}, "runtime.apptainer", "undetermined", "not on PATH"),
    ],
)
def test_what_is_amiss_is_named(facts: Json, change: Json, identity: str, verdict: str, words: str) -> None:
    found = login_findings({**facts, **change}, "login", no_downloads=None, apptainer={"required": True})
    assert verdicts(found)[identity] == verdict
    finding = next(finding for finding in found if finding["id"] == identity)
    assert words in finding["why"]
    assert finding["where"]["host"] == "login"


@pytest.mark.parametrize("facts", [None, [], "text", {}, {"munge": 1, "commands": 2, "reach": 3, "apptainer": 4}])
def test_what_is_no_document_never_passes(facts: t.Any) -> None:
    found = verdicts(login_findings(facts, "login", no_downloads=None, apptainer={"required": True}))
    assert set(found.values()) == {"undetermined"}


def test_an_air_gap_is_the_inventorys_word(facts: Json) -> None:
    found = login_findings(
        {**facts, "reach": []}, "login", no_downloads="the inventory says that there is no internet", apptainer={}
    )
    assert verdicts(found)["runtime.internet"] == "not_applicable"


def test_a_newer_python_is_newer_than_an_older_one(facts: Json) -> None:
    assert verdicts(node_findings({**facts, "python": "3.14.0"}, "n", apptainer={}, gpus=1))["node.python"] == "pass"


def test_a_container_must_see_all_of_the_jobs_gpus(facts: Json) -> None:
    assert set(verdicts(node_findings(facts, "compute01", apptainer=IMAGE, gpus=1)).values()) == {"pass"}
    assert verdicts(node_findings(facts, "compute01", apptainer=IMAGE, gpus=2))["runtime.container_gpus"] == "fail"
    facts["apptainer"]["image"]["libraries"] = []
    assert verdicts(node_findings(facts, "n", apptainer=IMAGE, gpus=1))["runtime.container_libraries"] == "fail"


@pytest.mark.parametrize("image", [None, {"error": "FATAL: no image", "devices": [], "libraries": []}])
def test_a_container_that_did_not_start_is_undetermined(facts: Json, image: Json | None) -> None:
    facts["apptainer"]["image"] = image
    found = verdicts(node_findings(facts, "compute01", apptainer=IMAGE, gpus=1))
    assert found["runtime.container_gpus"] == "undetermined"
    assert found["runtime.container_libraries"] == "undetermined"


def test_this_controller_passes() -> None:
    found = verdicts(controller.findings())
    assert found["controller.ansible"] == found["controller.packages"] == "pass"


@pytest.mark.parametrize(
    ("version", "verdict"), [("2.18.6", "fail"), ("2.19.3", "fail"), ("2.19.4", "pass"), ("x", "undetermined")]
)
def test_ansibles_version(version: str, verdict: str) -> None:
    assert verdicts(controller.findings(version=version))["controller.ansible"] == verdict


def test_a_missing_package_fails_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "PACKAGES", ("jmespath", "no-such-package"))
    finding = controller.findings()[1]
    assert (finding["verdict"], finding["value"]) == ("fail", 1)
    assert "no-such-package" in finding["why"]


@pytest.mark.parametrize(
    ("text", "verdict"), [("whole", "pass"), ("changed", "fail"), (None, "fail"), ("list", "undetermined")]
)
def test_an_installed_collection_is_compared_with_its_list(tmp_path: Path, text: str | None, verdict: str) -> None:
    sha256 = "42d28dd6e1e4e4b2dae8a9b8ed6a5dde0e4b46d4a7ad1b19a2d3ae8e7ef2b1c4"
    if text == "whole":
        import hashlib

        sha256 = hashlib.sha256(b"whole").hexdigest()
    listed = {"files": [{"name": "a.py", "ftype": "file", "chksum_sha256": sha256}, {"name": ".", "ftype": "dir"}]}
    (tmp_path / "FILES.json").write_text("{" if text == "list" else json.dumps(listed))
    if text:
        (tmp_path / "a.py").write_text(text)
    found = controller.findings(tmp_path)
    assert verdicts(found)["controller.collection"] == verdict


def test_a_checkout_has_no_list_and_says_so(tmp_path: Path) -> None:
    assert verdicts(controller.findings(tmp_path))["controller.collection"] == "recorded"
