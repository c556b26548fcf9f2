"""Malformed criteria and overrides are refused by name, before anything is judged."""

from __future__ import annotations

import json

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import spec
from jsonschema import Draft202012Validator

GOOD = {"id": "S0-13", "title": "accuracy", "query": "metrics.accuracy", "gt": 0.95}
EACH = {"over": "gpu.groups", "query": "fields.util.mean", "count": "job.gpus"}
ROWS = {"query": "progress.fields.loss.last", "gt": 0}
SETS = ("cuda_errors", "oom")


def criterion(**changes):
    """GOOD with changes; None deletes."""
    merged = {**GOOD, **changes}
    return {key: value for key, value in merged.items() if value is not None}


def each(**changes):
    return criterion(
        query=None, gt=None, each={key: value for key, value in {**EACH, **changes}.items() if value is not None}
    )


def log(**changes):
    return criterion(**{"query": None, "gt": None, "log": ["stdout"], "absent": "oom", **changes})


MALFORMED = [
    (criterion(id=None), "key id"),
    (criterion(id=""), "key id"),
    (criterion(id=13), "key id"),
    (criterion(id="a b"), "key id"),
    (criterion(id="x" * 65), "key id"),
    (criterion(id="JOB"), "key id"),
    (criterion(title=None), "key title"),
    (criterion(title=" "), "key title"),
    (criterion(unit=3), "key unit"),
    (criterion(remedy=[]), "key remedy"),
    (criterion(greater=1), "key greater: is unknown"),
    (criterion(severity="warn"), "key severity"),
    (criterion(query=None), "found none"),
    (criterion(artifact="a"), "found query and artifact"),
    (criterion(lt=1), "two tests, gt and lt"),
    (criterion(gt=None), "no test"),
    (criterion(absent="oom", gt=None), "key absent: cannot be used with query"),
    (criterion(query="metrics..x"), "key query"),
    (criterion(query="metrics.["), "key query"),
    (criterion(query=5), "key query"),
    (criterion(query=""), "key query"),
    (criterion(query="`1`"), "key query"),
    (criterion(query="@"), "key query"),
    (criterion(query="metrics.a || `0`"), "key query"),
    (criterion(query="not_null(metrics.a, `0`)"), "key query"),
    (criterion(query="[metrics.a, `5`]"), "key query"),
    (criterion(query="length('abc')"), "key query"),
    (criterion(query="to_number(metrics.a)"), "key query"),
    (criterion(query="avg(metrics.a, metrics.b)"), "key query"),
    (criterion(query="a" * 1001), "key query"),
    *[(criterion(gt=bound), "key gt") for bound in ("0.95", True, float("nan"), float("inf"), [1], {})],
    (criterion(gt=None, eq=[1]), "key eq"),
    (criterion(gt=None, eq=float("nan")), "key eq"),
    (criterion(gt=None, between=[2, 1]), "key between"),
    (criterion(gt=None, between=[1]), "key between"),
    (criterion(gt=None, between=[1, float("nan")]), "key between"),
    (criterion(gt=None, between="1-2"), "key between"),
    (criterion(gt=None, between=[1, 2, 3]), "key between"),
    (criterion(gt=None, between={1: 1, 2: 2}), "key between"),
    (criterion(gt=None, between=5), "key between"),
    (criterion(gt=None, within={"tolerance": 0.1}), "key within"),
    (criterion(gt=None, within={"reference": 1}), "key within"),
    (criterion(gt=None, within={"reference": 1, "from": "x", "absolute": 1}), "key within"),
    (criterion(gt=None, within={"reference": 1, "tolerance": -0.1}), "key within.tolerance"),
    (criterion(gt=None, within={"reference": 0, "tolerance": 0.1}), "key within.tolerance"),
    (criterion(gt=None, within={"reference": True, "tolerance": 0.1}), "key within.reference"),
    (criterion(gt=None, within={"from": 3, "tolerance": 0.1}), "key within.from"),
    (criterion(gt=None, within={"reference": 1, "absolute": 1, "upper": 2}), "key within.upper"),
    (criterion(gt=None, within=5), "key within"),
    (criterion(gt=None, within={"from": "", "tolerance": 0.1}), "key within.from"),
    (criterion(gt=None, within={"reference": 1, "absolute": -1}), "key within.absolute"),
    (criterion(gt=None, within={"reference": 1, "absolute": "1"}), "key within.absolute"),
    (criterion(gt=None, within={"from": "x", "absolute": 1, "optional": False}), "key within.optional: expected true"),
    (
        criterion(gt=None, within={"reference": 1, "absolute": 1, "tolerance": 1}),
        "key within: expected either tolerance",
    ),
    *[
        (criterion(gt=None, within={**reference, "tolerance": tolerance}), "key within.tolerance: expected a fraction")
        for reference in ({"reference": 10}, {"from": "x"})
        for tolerance in (1, 1.0, 15, 100)
    ],
    *[
        (criterion(gt=None, within={"reference": value, "tolerance": 0.1}), "key within.tolerance: is a fraction of")
        for value in (-1, -1e-9, 0.0)
    ],
    (criterion(gt=None, within={"reference": 1.7e308, "absolute": 1e308}), "key within: expected a reference and a"),
    (criterion(gt=None, within={"reference": -1.7e308, "absolute": 1e308}), "key within: expected a reference and a"),
    *[
        (criterion(gt=None, ratio_ge={"bound": 1, "to": "m.a", "spread": spread}), "key ratio_ge.spread: expected a fr")
        for spread in (1, 10)
    ],
    (criterion(gt=None, decreasing={"min_drop": 5}), "key decreasing.min_drop: expected a fraction"),
    (criterion(gt=None, ratio_ge=5), "key ratio_ge"),
    (criterion(gt=None, ratio_ge={"bound": 1, "to": "m.a", "off": "own"}), "key ratio_ge.off"),
    (criterion(gt=None, ratio_le={"bound": True, "to": "m.a"}), "key ratio_le.bound"),
    (criterion(gt=None, decreasing=5), "key decreasing"),
    (criterion(gt=None, decreasing={"min_drop": "1"}), "key decreasing.min_drop"),
    (criterion(gt=None, ratio_ge={"bound": 1}), "key ratio_ge.to"),
    (criterion(gt=None, ratio_ge={"bound": "1", "to": "metrics.a"}), "key ratio_ge.bound"),
    (criterion(gt=None, ratio_ge={"bound": 1, "to": "`1`"}), "key ratio_ge.to"),
    (criterion(gt=None, ratio_le={"bound": 1, "to": "metrics.a", "of": "other"}), "key ratio_le.of"),
    *[
        (criterion(gt=None, ratio_ge={"bound": 1, "to": "m.a", "spread": spread}), "key ratio_ge.spread")
        for spread in (0, -0.1, "0.1", True, None, [0.1])
    ],
    (criterion(gt=None, ratio_le={"bound": 1, "to": "m.a", "of": "own", "spread": 0.1}), "key ratio_le.spread"),
    (each(ratio_ge={"bound": 1, "to": "m.a", "spread": 0}), "key each.ratio_ge.spread"),
    (criterion(gt=None, decreasing={"min_drop": -1}), "key decreasing.min_drop"),
    (criterion(gt=None, decreasing={"drop": 1}), "key decreasing.drop"),
    (criterion(gt=None, decreasing=False), "key decreasing"),
    (criterion(gt=None, finite=False), "key finite"),
    (criterion(gt=None, finite="yes"), "key finite"),
    (criterion(gt=None, present=False), "key present"),
    (criterion(gt=None, present="oom"), "key present"),
    (each(), "no test"),
    (each(gt=1, lt=2), "two tests"),
    (each(gt=1, at_least=1), "key each: expected either count"),
    (each(gt=1, count=None, at_least=0), "key each.at_least: expected how many"),
    (each(gt=1, count=None, at_least="length(metrics.a)"), "key each.at_least: expected a path to a number"),
    *[
        (criterion(**ROWS, missing_at_most=given), f"key missing_at_most{where}")
        for given, where in (
            (1, ": expected a mapping with the keys reason, rows"),
            ({"rows": 1}, ".reason: is missing"),
            ({"reason": "x"}, ".rows: is missing"),
            ({"rows": 1, "reason": "x", "share": 1}, ".share: is unknown"),
            ({"rows": 0, "reason": "x"}, ".rows: expected how many"),
            ({"rows": True, "reason": "x"}, ".rows: expected how many"),
            ({"rows": 1.5, "reason": "x"}, ".rows: expected how many"),
            ({"rows": "1", "reason": "x"}, ".rows: expected how many"),
            ({"rows": 1, "reason": " "}, ".reason: expected why"),
            ({"rows": 1, "reason": 5}, ".reason: expected why"),
        )
    ],
    *[
        (
            criterion(**{"missing_at_most": {"rows": 1, "reason": "x"}, **body}),
            "key missing_at_most: needs a reduction",
        )
        for body in (
            {},
            {"query": "progress.fields.loss.count"},
            {"query": "progress.fields.loss", "gt": None, "finite": True},
            {"query": "progress.fields.loss", "gt": None, "present": True},
            {"query": None, "gt": None, "log": ["stdout"], "absent": "oom"},
            {"query": None, "gt": None, "artifact": "a", "exists": True},
        )
    ],
    (each(gt=1, query="util", missing_at_most={"rows": 1, "reason": "x"}), "key each.missing_at_most: is unknown"),
    (each(gt=1, count=None), "key each: expected either count, how many there must be, or at_least"),
    (each(gt=1, count=0), "key each.count"),
    (each(gt=1, count=True), "key each.count"),
    (each(gt=1, count=1.5), "key each.count"),
    (each(gt=1, count="length(gpu.groups)"), "key each.count"),
    (each(gt=1, over="["), "key each.over"),
    (each(gt=1, query="`1`"), "key each.query"),
    (each(gt="1"), "key each.gt"),
    (each(gt=1, every=True), "key each.every"),
    ({**each(gt=1), "query": "metrics.a"}, "found query and each"),
    (criterion(query=None, gt=None, each=[]), "key each"),
    (log(log=["stdin"]), "key log"),
    (log(log=[]), "key log"),
    (log(log="stdout"), "key log"),
    (log(log={"stdout": True}), "key log"),
    (log(log=["stdout", "stdout"]), "key log"),
    (log(absent="unknown"), "key absent"),
    (log(absent=True), "key absent"),
    (log(absent=None, present=True), "key present"),
    (log(gt=1), "two tests"),
    (criterion(query=None, gt=None, artifact="", exists=True), "key artifact"),
    (criterion(query=None, gt=None, artifact=5, exists=True), "key artifact"),
    (criterion(query=None, gt=None, artifact=["a"], exists=True), "key artifact"),
    (criterion(query=None, gt=None, artifact="a", exists={"min_bytes": 1.5}), "key exists.min_bytes"),
    (criterion(query=None, gt=None, artifact="a", exists=5), "key exists"),
    (criterion(query=None, gt=None, artifact="a", exists=True, present=True), "two tests"),
    (criterion(query=None, gt=None, artifact="a", exists=False), "key exists"),
    (criterion(query=None, gt=None, artifact="a", exists={"min_bytes": 0}), "key exists.min_bytes"),
    (criterion(query=None, gt=None, artifact="a", exists={"min_bytes": True}), "key exists.min_bytes"),
    (criterion(query=None, gt=None, artifact="a", exists={"size": 1}), "key exists.size"),
    (criterion(applies_when={}), "key applies_when"),
    (criterion(applies_when="cuda"), "key applies_when"),
    (criterion(applies_when=["cuda"]), "key applies_when"),
    (criterion(applies_when={"accelerator": "cuda"}), "key applies_when.accelerator"),
    (criterion(applies_when={"accelerator": []}), "key applies_when.accelerator"),
    (criterion(applies_when={"accelerator": [["cuda"]]}), "key applies_when.accelerator"),
    (criterion(applies_when={"accelerator": [None, "cuda"]}), "key applies_when.accelerator"),
    ("S0-13", "expected a mapping"),
]


# YAML can say these.
NOT_JSON = [
    (criterion(gt=None, within={"reference": 1e308, "absolute": float("inf")}), "key within.absolute"),
    (criterion(gt=None, within={"reference": float("nan"), "absolute": 1}), "key within.reference"),
    (criterion(gt=None, within={"reference": 1, "tolerance": float("nan")}), "key within.tolerance"),
    (criterion(gt=float("inf")), "key gt"),
    (criterion(gt=None, between=[0, float("inf")]), "key between"),
    (criterion(gt=None, ratio_ge={"bound": float("-inf"), "to": "m.a"}), "key ratio_ge.bound"),
    (criterion(gt=None, decreasing={"min_drop": float("nan")}), "key decreasing.min_drop"),
]
REFUSED = [*MALFORMED, *NOT_JSON]


@pytest.mark.parametrize(("entry", "expected"), REFUSED, ids=[f"{case[0]}"[:90] for case in REFUSED])
def test_a_malformed_criterion_is_refused_by_name(entry, expected):
    with pytest.raises(spec.CriteriaError) as refused:
        spec.read([entry], workload="MLOPS-1.1", pattern_sets=SETS)
    text = str(refused.value)
    assert expected in text
    assert "workload MLOPS-1.1" in text
    if isinstance(entry, dict) and entry.get("id") == "S0-13":
        assert "criterion S0-13" in text


# What needs JMESPath, the pattern sets or arithmetic is beyond a schema.
BEYOND = (
    *("key query", "each.over", "each.query", "ratio_ge.to", "key between", "within.tolerance", "key gt", "key eq"),
    *("key within: expected a reference and a", "key missing_at_most: needs a reduction"),
)
VISIBLE = [entry for entry, expected in MALFORMED if not expected.endswith(BEYOND) and entry != log(absent="unknown")]


@pytest.mark.parametrize("entry", VISIBLE, ids=lambda entry: f"{entry}"[:90])
def test_the_schema_refuses_what_it_can_see(entry, root):
    schema = json.loads((root / "files/schemas/criterion.json").read_text())
    assert not Draft202012Validator(schema).is_valid(entry)


def test_all_that_is_wrong_is_told_at_once():
    with pytest.raises(spec.CriteriaError) as refused:
        spec.read([criterion(gt="x"), criterion(id="B", query="[")], workload="W")
    assert len(refused.value.errors) == 2


def test_a_fault_has_its_key_and_reason_apart():
    with pytest.raises(spec.CriteriaError) as refused:
        spec.read([GOOD, criterion(id="B", greater=1)], workload="W")
    (wrong,) = refused.value.wrong
    assert wrong.key == "greater"
    assert refused.value.errors == [f"workload W: criterion B: key greater: {wrong.why}"]


def test_an_id_used_twice_is_refused():
    with pytest.raises(spec.CriteriaError, match="S0-13 appears twice"):
        spec.read([GOOD, GOOD], workload="W")


@pytest.mark.parametrize("criteria", [None, {}, "x", 5])
def test_criteria_that_are_no_list_are_refused(criteria):
    with pytest.raises(spec.CriteriaError, match="expected a list"):
        spec.read(criteria, workload="W")


@pytest.mark.parametrize(
    "references",
    [
        [],
        {"a": "fast"},
        {"a": None},
        {"a": True},
        {"a": {"when": {}, "value": 1}},
        {"a": [1]},
        {"a": [{"value": 1}]},
        {"a": [{"when": {}}]},
        {"a": [{"when": [], "value": 1}]},
        {"a": [{"when": {"fabric": None}, "value": 1}]},
        {"a": [{"when": {"fabric": ["ib"]}, "value": 1}]},
        {"a": [{"when": {}, "value": None}]},
        {"a": [{"when": {}, "value": True}]},
        {"a": [{"when": {}, "value": 1, "unless": {}}]},
        {"good": 1, "a": [{"when": {}, "value": 1}, {"when": {}}]},
    ],
)
def test_malformed_references_are_refused(references):
    with pytest.raises(spec.CriteriaError, match=r"^workload W: references: ") as refused:
        spec.read([GOOD], workload="W", references=references)
    assert len(refused.value.errors) == 1


@pytest.mark.parametrize(
    "references",
    [
        None,
        {},
        {"a": 1, "b": 2.5},
        {"a": []},
        {"a": [{"when": {"gpu_model": "H200", "gpu_count": 2, "ecc": True}, "value": 1, "note": "n"}]},
    ],
)
def test_references_are_numbers_or_lists_of_conditions(references):
    assert spec.read([GOOD], workload="W", references=references)


def test_the_manifests_in_the_collection_are_well_formed(root):
    import yaml

    found = 0
    for path in (root / "files/workloads").glob("*/workload.yml"):
        manifest = yaml.safe_load(path.read_text())
        read = spec.read(manifest["criteria"], workload=manifest["id"])
        found += len(read)
    assert found
