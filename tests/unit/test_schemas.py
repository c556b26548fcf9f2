from __future__ import annotations

import json

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema as common_schema
from jsonschema import Draft202012Validator

from tests.unit.conftest import ROOT

SCHEMAS = sorted(path.stem for path in (ROOT / "files/schemas").glob("*.json") if path.stem != "wire")


def test_the_contracts_are_all_there():
    assert set(SCHEMAS) >= {"manifest", "criterion", "judged", "evidence", "job", "finding", "verdict"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_is_itself_valid_and_has_a_valid_example(name):
    Draft202012Validator.check_schema(json.loads((ROOT / f"files/schemas/{name}.json").read_text()))
    example = json.loads((ROOT / f"files/schemas/examples/{name}.json").read_text())
    assert common_schema.problems(name, example) == []


def test_evidence_with_legs_has_an_example_too(example):
    document = example("evidence-legs")
    assert common_schema.problems("evidence", document) == []
    assert [run["leg"]["name"] for run in document["baseline"]["runs"]] == ["before", "after"]
    document["baseline"]["source"] = "guessed"
    del document["baseline"]["runs"][0]["problems"]
    found = "; ".join(common_schema.problems("evidence", document))
    assert "baseline.source" in found
    assert "baseline.runs[0]" in found


@pytest.mark.parametrize("name", SCHEMAS)
def test_an_example_short_of_any_required_key_is_refused(name, example):
    schema = json.loads((ROOT / f"files/schemas/{name}.json").read_text())
    for key in schema.get("required", []):
        document = example(name)
        del document[key]
        assert any(key in line for line in common_schema.problems(name, document)), key


def test_a_typo_is_named_with_what_was_meant(example):
    manifest = example("manifest")
    manifest["resorces"] = manifest.pop("resources")
    text = "; ".join(common_schema.problems("manifest", manifest))
    assert "unknown key 'resorces' (did you mean 'resources'?)" in text


def test_the_place_of_a_wrong_value_is_named(example):
    manifest = example("manifest")
    manifest["limits"]["queue"] = "soon"
    assert any(line.startswith("limits.queue: ") for line in common_schema.problems("manifest", manifest))
