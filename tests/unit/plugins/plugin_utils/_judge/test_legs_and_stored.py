# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was read of the legs becomes the baseline, and so does evidence that was saved."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import legs as made

LEGS = {"before": "b/m.json", "after": "a/m.json"}
STAMP = {"job_id": "12", "attempt": 0}
JOB = {**STAMP, "state": "COMPLETED"}


def collected():
    """Return what was read for a job with legs."""
    names = ("metrics", "provenance", "legs", "baseline.before", "baseline.after")
    entry = {"exit_code": 0, "nodes": ["n1"]}
    return {
        "schema": 1,
        "job": JOB,
        **{name: {**STAMP, "of": name} for name in names},
        "legs": {**STAMP, "work": "weak", "steady_seconds": 30, "before": entry, "measured": entry, "after": entry},
        "files": {name: {"path": f"/{name}"} for name in names},
        "problems": [],
    }


def leg(name):
    return {
        "leg": {"name": name, "exit_code": 0, "nodes": ["n1"]},
        "job": JOB,
        "metrics": {**STAMP, "of": f"baseline.{name}"},
        "provenance": {**STAMP, "of": "provenance"},
        "files": {"metrics": {"path": f"/baseline.{name}"}, "provenance": {"path": "/provenance"}},
        "problems": [],
    }


def test_a_baseline_has_two_legs():
    assert made.NAMES == ("before", "after")


def test_the_legs_are_read_as_json():
    assert made.leg_files(LEGS) == {
        "baseline.before": {"path": "b/m.json", "format": "json"},
        "baseline.after": {"path": "a/m.json", "format": "json"},
    }
    assert made.leg_files(None) == made.leg_files({}) == {}


@pytest.mark.parametrize(
    ("legs", "files", "errors"),
    [
        (None, {}, []),
        (None, {"baseline.before": {}}, []),
        (LEGS, {"legs": {}}, []),
        (LEGS, {}, ["legs: expected a document legs among the files, which says how each leg ended"]),
        (
            LEGS,
            {"legs": {}, "baseline.after": {}},
            ["files: 'baseline.after': expected a name other than the legs' own"],
        ),
    ],
)
def test_what_is_wrong_with_legs_is_told(legs, files, errors):
    assert made.check(legs, files) == errors


def test_what_was_read_of_the_legs_becomes_the_baseline():
    document = collected()
    before = copy.deepcopy(document)
    found = made.with_legs(document, LEGS)
    assert document == before
    assert found.pop("baseline") == {"source": "legs", "runs": [leg("before"), leg("after")]}
    for name in ("baseline.before", "baseline.after"):
        del before[name], before["files"][name]
    assert found == before


def test_a_legs_problem_is_that_legs_alone():
    document = collected()
    blame = {"path": "/b", "problem": "missing", "detail": "d"}
    del document["baseline.before"], document["files"]["baseline.before"]
    document["problems"] = [{"source": source, **blame} for source in ("gpu", "baseline.before", "legs")]
    found = made.with_legs(document, LEGS)
    assert [problem["source"] for problem in found["problems"]] == ["gpu", "legs"]
    before, after = found["baseline"]["runs"]
    assert before["problems"] == [{"source": "metrics", **blame}]
    assert "metrics" not in before
    assert before["files"] == {"provenance": {"path": "/provenance"}}
    assert after == leg("after")


def test_a_problem_with_the_provenance_is_every_legs():
    document = collected()
    del document["provenance"], document["files"]["provenance"]
    document["problems"] = [{"source": "provenance", "problem": "missing"}]
    found = made.with_legs(document, LEGS)
    assert found["problems"] == document["problems"]
    for run in found["baseline"]["runs"]:
        assert run["problems"] == document["problems"]
        assert "provenance" not in run


@pytest.mark.parametrize("legs", [None, [], {}, {"after": {"exit_code": 0}}, {"before": None}, {"before": 0}])
def test_what_legs_json_does_not_say_is_not_made_up(legs):
    document = {**collected(), "legs": legs}
    assert made.with_legs(document, LEGS)["baseline"]["runs"][0]["leg"] == {"name": "before"}
    del document["legs"]
    assert made.with_legs(document, LEGS)["baseline"]["runs"][0]["leg"] == {"name": "before"}


def test_saved_evidence_is_the_one_run():
    evidence = {"schema": 1, "job": JOB, "metrics": {"v": 1}}
    run = {"source": "stored", "runs": [evidence]}
    assert made.stored(evidence) == run
    for earlier in (None, {"source": "stored", "runs": [{}]}, "legs"):
        assert made.stored({**evidence, "baseline": earlier}) == run


def test_the_legs_of_saved_evidence_are_the_runs():
    document = made.with_legs(collected(), LEGS)
    assert made.stored(document) == {"source": "stored", "runs": [leg("before"), leg("after")]}
    assert made.stored({"baseline": {"source": "legs"}}) == {"source": "stored", "runs": None}
