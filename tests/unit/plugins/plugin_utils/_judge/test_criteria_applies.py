"""Whether a criterion applies is never decided by a value of another kind, nor by how a word is spelt."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import spec, verdicts

from tests.unit.plugins.plugin_utils._judge.criteria_fake import TODAY, one, whole


def judged(allowed, said):
    evidence = whole()
    evidence["context"] = {**evidence["context"], "asked": said}
    return one(evidence, query="metrics.accuracy", gt=2, applies_when={"asked": allowed})


@pytest.mark.parametrize(
    ("allowed", "said"),
    [
        ([True], "true"),
        ([True], 1),
        ([True], ["x"]),
        ([True], {"a": 1}),
        ([False], "false"),
        ([False], 0),
        ([8], "8"),
        ([8], True),
        (["8"], 8),
        (["cuda"], True),
        (["cuda"], ["cuda"]),
        (["cuda"], {"cuda": 1}),
        ([1], float("nan")),
        (["cuda", "cpu"], 7),
    ],
)
def test_a_value_of_another_kind_leaves_it_undetermined_and_says_what_to_write(allowed, said):
    found = judged(allowed, said)
    assert (found["verdict"], "asked" in found["remedy"]) == ("undetermined", True)


@pytest.mark.parametrize("said", ["infiniband", "InfiniBand", " infiniband", "INFINIBAND \n"])
def test_text_is_compared_without_case_and_blanks(said):
    assert judged(["InfiniBand"], said)["verdict"] == "fail"
    assert judged(["infiniband", "roce"], said)["verdict"] == "fail"
    assert judged(["roce"], said)["verdict"] == "not_applicable"


@pytest.mark.parametrize(
    ("allowed", "said", "verdict"),
    [
        ([True], True, "fail"),
        ([True], False, "not_applicable"),
        ([8], 8, "fail"),
        ([8], 8.0, "fail"),
        ([8], 4, "not_applicable"),
        ([True, "some"], "some", "fail"),
        ([True, "some"], "other", "not_applicable"),
        (["cuda"], None, "undetermined"),
        ([1, False], True, "not_applicable"),
        ([0, True], False, "not_applicable"),
        ([False, 8], 0, "not_applicable"),
    ],
)
def test_a_value_of_the_same_kind_decides(allowed, said, verdict):
    assert judged(allowed, said)["verdict"] == verdict


@pytest.mark.parametrize("said", [["cuda"], {}, [], float("nan")])
def test_a_value_that_is_no_text_number_or_boolean_never_decides(said):
    read = spec.read(
        [{"id": "X", "title": "t", "query": "metrics.accuracy", "gt": 2, "applies_when": {"asked": ["cuda"]}}],
        workload="W",
    )
    loose = dataclasses.replace(read[0], applies_when={"asked": [None, "cuda"]})
    found = verdicts.judge({**whole(), "context": {"asked": said}}, [loose], today=TODAY)[1]
    assert found["verdict"] == "undetermined"


def test_a_run_does_not_pass_by_a_gate_that_a_misspelt_setting_would_have_left_out():
    found = [judged([True], "true"), judged([True], True)]
    assert verdicts.overall(found[:1]) == "undetermined"
    assert verdicts.overall(found[1:]) == "fail"
