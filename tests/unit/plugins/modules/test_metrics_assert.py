"""The module's half: the collected document, or a failure that says what is wrong with the request."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.mlops.hpc_validation.plugins.modules import metrics_assert

OWN = {"job_id": "12", "attempt": 0}


def run(capsys, **arguments):
    with patch_module_args({"settle": 0, **arguments}), pytest.raises(SystemExit) as ended:
        metrics_assert.main()
    return ended.value.code, json.loads(capsys.readouterr().out)


def test_it_answers_with_the_document_and_changes_nothing(capsys, tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(OWN))
    code, answer = run(capsys, job=OWN, output=str(tmp_path), files={"m": {"path": "m.json", "format": "json"}})
    assert code == 0
    assert answer["changed"] is False
    assert answer["document"]["m"] == OWN


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "job"),
        ({"job": {"job_id": 12, "attempt": 0}}, "job"),
        ({"job": OWN, "files": {"m": {"path": "../m", "format": "json"}}, "output": "/out"}, "files: m: path"),
        ({"job": OWN, "logs": {"stdout": "relative"}}, "logs: stdout"),
        ({"job": OWN, "logs": {"stdin": "/x"}}, "stdin"),
        ({"job": OWN, "patterns": {"mine": {}}}, "pattern set mine"),
    ],
)
def test_a_request_that_makes_no_sense_fails_and_says_why(capsys, arguments, told):
    code, answer = run(capsys, **arguments)
    assert code == 1
    assert told in answer["msg"]
