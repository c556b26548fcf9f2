# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A workload that the inventory leaves out is not applicable, with its reason, wherever a run is told of."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import junit, summary
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import runs
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import verdict as run_verdict

Json = dict[str, t.Any]
Example = t.Callable[[str], t.Any]
VERSIONS = {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"}
RAN, OUT = "MLOPS-1.1", "BASELINE-1"
WHY = "no node has 64 GB for one GPU"
LEFT_OUT = {"id": OUT, "name": "sft_single_gpu", "title": "Mistral-7B", "why": WHY}


@pytest.fixture
def start(tmp_path: Path, example: Example) -> t.Callable[..., Path]:
    """(verdict of the one criterion; what else the plan has) → the folder of a run that has judged its workload."""

    def started(judged: str = "pass", **more: t.Any) -> Path:
        manifest = {**example("manifest"), "criteria": [{"id": "S0-13"}]}
        plan = {"title": "All", "accelerator": "cuda", "workloads": [manifest], "left_out": [LEFT_OUT], **more}
        folder = runs.start(tmp_path / "results", plan, VERSIONS)
        criteria = [
            {**example("judged"), "id": name, "verdict": judged, "severity": "gate"} for name in ("JOB", "S0-13")
        ]
        runs.record(folder, "workload", {"id": RAN, "job": example("job"), "data": {}, "criteria": criteria})
        return folder

    return started


def test_it_is_not_applicable_and_listed_under_coverage(start: t.Callable[..., Path]) -> None:
    folder = start()
    verdict = runs.finish(folder)
    assert schema.problems("verdict", verdict) == []
    assert (verdict["verdict"], verdict["why"]) == ("pass", "1 of 1 workloads passed")
    assert verdict["workloads"][1] == {
        **LEFT_OUT,
        "verdict": "not_applicable",
        "job": None,
        "data": {},
        "criteria": [],
    }
    assert {"name": f"workload {OUT}", "count": 1, "why": WHY} in verdict["coverage"]["left_out"]
    assert RAN not in json.dumps(verdict["coverage"])


def test_the_screen_has_one_line_of_it(start: t.Callable[..., Path]) -> None:
    folder = start()
    lines = summary.summary(runs.finish(folder), folder)
    assert [line for line in lines if OUT in line] == [f"  left out: workload {OUT} ({WHY})"]


def test_in_junit_it_is_skipped_with_its_reason(start: t.Callable[..., Path]) -> None:
    folder = start()
    runs.finish(folder)
    suite = ElementTree.parse(folder / "junit.xml").getroot().findall("testsuite")[1]
    assert suite.get("name") == f"{OUT} Mistral-7B"
    assert [suite.get(key) for key in ("tests", "skipped", "failures", "errors")] == ["1", "1", "0", "0"]
    (skipped,) = suite.iterfind("testcase/skipped")
    assert skipped.get("message") == WHY


@pytest.mark.parametrize(
    ("verdict", "element"), [("recorded", "skipped"), ("undetermined", "error"), ("fail", "error")]
)
def test_in_junit_what_was_not_judged_is_no_success(example: Example, verdict: str, element: str) -> None:
    document = example("verdict")
    document["workloads"] = [{**document["workloads"][1], "verdict": verdict, "why": "so"}]
    (outcome,) = ElementTree.fromstring(junit.junit_xml(document)).iterfind(f"testsuite/testcase/{element}")
    assert outcome.get("message") == "so"


@pytest.mark.parametrize(("judged", "expected"), [("fail", "fail"), ("undetermined", "undetermined")])
def test_it_neither_proves_nor_hides_anything(start: t.Callable[..., Path], judged: str, expected: str) -> None:
    assert runs.finish(start(judged))["verdict"] == expected


def test_it_alone_is_no_pass(start: t.Callable[..., Path]) -> None:
    verdict = runs.finish(start(left_out=[LEFT_OUT, {**LEFT_OUT, "id": "MLOPS-9.9"}]))
    assert verdict["verdict"] == "pass"
    assert run_verdict._any_passed(verdict["workloads"][1:]) is False
    assert runs.finish(start("not_applicable"))["verdict"] == "undetermined"


def test_it_is_told_from_the_start_and_cannot_be_judged(start: t.Callable[..., Path], example: Example) -> None:
    folder = start()
    verdict = json.loads((folder / "verdict.json").read_text())
    assert (verdict["workloads"][1]["verdict"], verdict["workloads"][1]["why"]) == ("not_applicable", WHY)
    assert runs.passed(folder) == [RAN]
    with pytest.raises(runs.RunError, match="BASELINE-1 is not in the plan"):
        runs.record(folder, "workload", {"id": OUT, "job": example("job"), "data": {}, "criteria": []})


def test_a_baseline_that_is_left_out_has_no_record_for_people(start: t.Callable[..., Path], example: Example) -> None:
    folder = start()
    runs.finish(folder)
    assert not (folder / "record.md").exists()
    of_it = {**example("manifest"), "id": OUT, "name": "sft_single_gpu"}
    other = runs.start(folder.parent, {"title": "t", "accelerator": "cuda", "workloads": [of_it]}, VERSIONS)
    runs.finish(other)
    assert (other / "record.md").exists()


def test_the_old_form_has_it_under_coverage_only(start: t.Callable[..., Path]) -> None:
    folder = start(verdict_schema=1)
    runs.finish(folder)
    document = json.loads((folder / "verdict.json").read_text())
    assert schema.problems("verdict-1", document) == []
    assert [each["id"] for each in document["workloads"]] == [RAN]
    assert {"name": f"workload {OUT}", "why": WHY} in document["coverage"]["left_out"]


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ({"verdict": "pass"}, True),
        ({"verdict": "undetermined"}, True),
        ({"verdict": "recorded", "earlier": {}}, False),
        ({"verdict": "not_applicable"}, False),
    ],
)
def test_what_a_run_was_to_run(workload: Json, expected: bool) -> None:
    assert run_verdict.is_of_this_run(workload) is expected


@pytest.mark.parametrize("changes", [{"criteria": ["judged"]}, {"job": "job"}, {"data": {"mnist": "digits"}}])
def test_a_verdict_in_which_it_has_run_is_refused(example: Example, changes: Json) -> None:
    document = example("verdict")
    assert schema.problems("verdict", document) == []
    (left,) = [each for each in document["workloads"] if each["verdict"] == "not_applicable"]
    for key, value in changes.items():
        told = document["workloads"][0]
        left[key] = told[key] if key != "data" else value
    assert schema.problems("verdict", document)


def test_so_many_reasons_are_told_as_the_most_frequent_and_a_count(start: t.Callable[..., Path]) -> None:
    folder = start()
    verdict = runs.finish(folder)

    def told(reasons: list[Json]) -> list[str]:
        verdict["coverage"].update(left_out=reasons, outside=reasons)
        lines = summary.summary(verdict, folder)
        assert [line for line in lines if line.startswith("  out of scope: ")] == [
            line.replace("left out", "out of scope") for line in lines if line.startswith("  left out: ")
        ]
        return [line for line in lines if line.startswith("  left out: ")]

    few = [{"name": f"n{number}", "count": 1, "why": f"reason {number}"} for number in range(summary.REASONS)]
    assert told(few) == [f"  left out: n{number} (reason {number})" for number in range(summary.REASONS)]
    last = {"name": "n[90-99]", "count": 10, "why": "down"}
    lines = told([*few, {"name": "n80", "count": 1, "why": "drained"}, last])
    assert len(lines) == summary.REASONS
    assert lines[0] == "  left out: n0 (reason 0)"
    assert lines[-2] == "  left out: n[90-99] (down)"
    assert lines[-1] == "  left out: 3 more, for 3 other reasons (under coverage in verdict.json)"
