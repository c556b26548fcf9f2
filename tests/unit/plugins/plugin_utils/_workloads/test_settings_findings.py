# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.mlops.hpc_validation.plugins.filter.settings_findings import settings_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema

ERROR = {"line": 7, "key": "model.num_heads", "severity": "error", "text": "7 does not fit", "requirement": "S4-9"}
WARNING = {**ERROR, "line": 3, "severity": "warning", "text": "doubtful"}


def found(*findings):
    made = settings_findings([{"file": "/x/profile.yaml", "findings": list(findings)}], "PROFILE-HPC", "profile")
    for each in made:
        schema.require("finding", each, "finding")
    return made


def test_the_errors_of_a_file_are_one_finding_that_names_their_lines():
    (errors,) = found(ERROR, {**ERROR, "line": 9})
    assert (errors["id"], errors["verdict"], errors["value"]) == ("profile.errors", "fail", 2)
    assert (errors["source"], errors["where"]) == ("/x/profile.yaml", {"workload": "PROFILE-HPC"})
    assert errors["why"] == "line 7: model.num_heads: 7 does not fit; line 9: model.num_heads: 7 does not fit"


def test_what_is_at_no_key_has_its_line_alone():
    (errors,) = found({**ERROR, "key": ""})
    assert errors["why"] == "line 7: 7 does not fit"


def test_warnings_are_recorded_and_decide_nothing():
    (warnings,) = found(WARNING)
    assert (warnings["id"], warnings["verdict"], warnings["severity"]) == ("profile.warnings", "recorded", "record")
    assert warnings["why"] == "line 3: model.num_heads: doubtful"
    assert [each["id"] for each in found(WARNING, ERROR)] == ["profile.errors", "profile.warnings"]


def test_a_file_that_cannot_be_read_is_an_error_with_its_reason():
    (errors,) = settings_findings([{"file": "x", "unreadable": "2: error: not YAML: odd"}], "W", "profile")
    assert (errors["id"], errors["verdict"], errors["why"]) == (
        "profile.errors",
        "fail",
        "line 2: error: not YAML: odd",
    )


def test_a_file_that_cannot_be_opened_has_no_line():
    (errors,) = settings_findings([{"file": "x", "unreadable": "cannot be read: Permission denied"}], "W", "profile")
    assert errors["why"] == "cannot be read: Permission denied"


def test_a_file_with_nothing_wrong_has_no_finding():
    assert found() == []


@pytest.mark.parametrize("documents", [None, [{}], [{"file": "x"}], [{"file": "x", "findings": [{}]}]])
def test_what_is_no_answer_is_an_error(documents):
    with pytest.raises(AnsibleFilterError):
        settings_findings(documents, "W", "profile")


def test_other_settings_are_those_of_the_inventory():
    answer = [{"file": "hpc_validation_pretraining", "unreadable": "training.stepz: unknown setting"}]
    (errors,) = settings_findings(answer, "PRETRAIN-1", "pretraining")
    schema.require("finding", errors, "finding")
    assert (errors["id"], errors["verdict"], errors["why"]) == ("settings.errors", "fail", answer[0]["unreadable"])
    assert "hpc_validation_pretraining of the inventory" in errors["remedy"]
