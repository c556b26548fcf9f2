# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one place that computes a verdict: what of the manifest, the inventory and the time it goes by."""

from __future__ import annotations

import datetime

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import spec, verdicts
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.saved import Rules, judge_saved

from tests.unit.plugins.plugin_utils._judge.criteria_fake import whole

ACCURATE = {"id": "A", "title": "t", "query": "metrics.accuracy", "gt": 0.95}
PACE = {"id": "P", "title": "t", "query": "metrics.throughput", "within": {"from": "pace", "absolute": 1}}
LAST_DAY = datetime.datetime(2026, 11, 21, tzinfo=datetime.timezone.utc).timestamp()
DAY = 86400


def rules(*criteria, overrides=None, references=None, pattern_sets=None):
    manifest = {"id": "W", "criteria": list(criteria)}
    return Rules.read(manifest, overrides=overrides, references=references, pattern_sets=pattern_sets)


@pytest.mark.parametrize(("bound", "verdict"), [(0.95, "pass"), (0.98, "fail")])
def test_the_verdict_is_made_of_all_that_is_judged(bound, verdict):
    judged = judge_saved(whole(), rules({**ACCURATE, "gt": bound}), now=LAST_DAY)
    assert [entry["id"] for entry in judged.criteria] == ["JOB", "A"]
    assert judged.verdict == verdict == verdicts.overall(judged.criteria)


def test_an_inventorys_references_are_checked_and_used():
    judged = judge_saved(whole(), rules(PACE, references={"pace": 180}), now=LAST_DAY)
    assert judged.verdict == "pass"
    assert judge_saved(whole(), rules(PACE), now=LAST_DAY).verdict == "undetermined"
    with pytest.raises(spec.CriteriaError, match="workload W: references: pace"):
        rules(PACE, references={"pace": "fast"})


def test_an_inventorys_overrides_move_a_bound():
    assert judge_saved(whole(), rules(ACCURATE, overrides={"A": {"gt": 0.98}}), now=LAST_DAY).verdict == "fail"
    with pytest.raises(spec.CriteriaError, match="workload W: overrides"):
        rules(ACCURATE, overrides=5)


def test_pattern_sets_are_those_that_a_log_may_be_searched_for():
    log = {"id": "L", "title": "t", "log": ["stdout"], "absent": "cuda_errors"}
    assert judge_saved(whole(), rules(log, pattern_sets=["cuda_errors"]), now=LAST_DAY).verdict == "pass"
    assert judge_saved(whole(), rules(log), now=LAST_DAY).verdict == "pass"
    with pytest.raises(spec.CriteriaError, match="expected one of the pattern sets oom"):
        rules(log, pattern_sets=["oom"])


@pytest.mark.parametrize(
    ("now", "verdict"), [(LAST_DAY, "waived"), (LAST_DAY + DAY - 1, "waived"), (LAST_DAY + DAY, "fail")]
)
def test_a_waiver_holds_to_the_end_of_its_day_in_utc(now, verdict):
    waived = {"A": {"gt": 0.98, "waive": {"reason": "fan on order", "expires": "2026-11-21"}}}
    judged = judge_saved(whole(), rules(ACCURATE, overrides=waived), now=now)
    assert judged.criteria[1]["verdict"] == verdict


def test_it_is_judged_in_the_context_of_then_unless_another_is_given():
    here = rules({**ACCURATE, "applies_when": {"accelerator": ["cuda"]}})
    evidence = whole()
    for context, verdict in ((None, "pass"), ({"accelerator": "cpu"}, "not_applicable"), ({}, "undetermined")):
        judged = judge_saved(evidence, here, now=LAST_DAY, context=context)
        assert judged.criteria[1]["verdict"] == verdict
    assert evidence == whole()
