# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each criterion of each manifest is seen to pass, to fail and to be undetermined, on files that a job might leave."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import criterion as keys

from tests.unit.criteria import job_folder
from tests.unit.criteria.manifests import EVERY_FORM, HERE, SHIPPED, WORKLOADS, repeats

CASES = [
    pytest.param(workload, criterion, verdict, change, id=f"{workload.name} {criterion} {verdict} {number}")
    for workload in WORKLOADS
    for criterion in workload.criteria
    for verdict in ("pass", "fail", "undetermined")
    for number, change in enumerate(workload.cases(criterion, verdict))
    if not repeats(workload, criterion, verdict, change)
]
CONDITIONAL = [
    pytest.param(workload, criterion, key, id=f"{workload.name} {criterion} {key}")
    for workload in WORKLOADS
    for criterion, data in workload.criteria.items()
    for key in data.get("applies_when", {})
]


def judged(folder, workload, example, change):
    """Return the judged criteria by id after `change` to what the workload's job leaves behind."""
    base = {**workload.described, "job": {**example("job"), **workload.described["job"]}}
    described = job_folder.merged({key: value for key, value in base.items() if key != "criteria"}, change)
    job_folder.write(folder, described)
    evidence = job_folder.collect(folder, workload.manifest, described, described["job"])
    return job_folder.judge(workload.manifest, described, evidence)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_each_criterion_has_its_opposites_and_none_is_left_over(workload):
    where = f"tests/unit/criteria/{workload.name.split()[0]}.yml"
    assert workload.described, f"{where} is missing; README.md beside it says what belongs into it"
    assert set(workload.described["criteria"]) == set(workload.criteria), f"{where}: criteria"
    for criterion, changes in workload.described["criteria"].items():
        assert set(changes) <= {"pass", "fail", "undetermined"}, f"{where}: {criterion}"
        for verdict in ("fail", "undetermined"):
            assert workload.cases(criterion, verdict), f"{where}: {criterion} needs a change that makes it {verdict}"


def test_there_is_no_description_without_a_manifest():
    assert SHIPPED
    assert {path.stem for path in HERE.glob("*.yml")} == {workload.name.split()[0] for workload in WORKLOADS}
    for workload in SHIPPED:
        assert set(workload.described.get("options", {})) == set(workload.manifest.get("options", {}))


def test_each_form_of_a_criterion_has_its_opposites():
    forms, inner, severities = set(), set(), set()
    for criterion in EVERY_FORM.criteria.values():
        source = next(name for name in keys.SOURCES if name in criterion)
        forms |= {(source, test) for test in keys.TESTS_OF[source] if test in criterion}
        inner |= {test for test in keys.VALUE_TESTS if test in criterion.get("each", {})}
        severities.add(criterion.get("severity", "gate"))
    assert forms == {(source, test) for source, tests in keys.TESTS_OF.items() for test in tests}
    assert inner == set(keys.VALUE_TESTS)
    assert severities == {"gate", "record"}


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_on_what_a_job_leaves_when_all_is_well_every_criterion_passes(tmp_path, example, workload):
    found = judged(tmp_path, workload, example, {})
    verdicts = {name: entry["verdict"] for name, entry in found.items() if name in workload.criteria}
    expected = {"record": "recorded", "gate": "pass"}
    assert verdicts == {name: expected[found[name]["severity"]] for name in workload.criteria}
    assert found[""]["verdict"] == "pass"
    for entry in found.values():
        assert entry["verdict"] != "recorded" or entry["why"].startswith("only recorded (would be pass):")


@pytest.mark.parametrize(("workload", "criterion", "verdict", "change"), CASES)
def test_a_criterion_answers_to_its_evidence(tmp_path, example, workload, criterion, verdict, change):
    found = judged(tmp_path, workload, example, change)
    entry = found[criterion]
    if entry["severity"] == "record":
        assert entry["verdict"] == "recorded"
        assert entry["why"].startswith(f"only recorded (would be {verdict}):")
        return
    assert entry["verdict"] == verdict, entry["why"]
    if verdict == "fail":
        assert found[""]["verdict"] == "fail"
    elif verdict == "undetermined":
        assert found[""]["verdict"] != "pass"


def another(allowed):
    """Return a value of the same kind that is none of these."""
    value = allowed[0]
    if isinstance(value, bool):
        return not value
    return "somewhere else" if isinstance(value, str) else max(allowed) + 1


@pytest.mark.parametrize(("workload", "criterion", "key"), CONDITIONAL)
def test_a_criterion_applies_only_where_the_inventory_says_so(tmp_path, example, workload, criterion, key):
    value = another(workload.criteria[criterion]["applies_when"][key])
    elsewhere = judged(tmp_path / "elsewhere", workload, example, {"context": {key: value}})[criterion]
    silent = judged(tmp_path / "silent", workload, example, {"context": {key: job_folder.ABSENT}})[criterion]
    assert elsewhere["verdict"] == "not_applicable", elsewhere["why"]
    assert key in elsewhere["why"]
    assert silent["verdict"] in ("undetermined", "recorded")
    assert f"depends on {key}" in silent["why"]
