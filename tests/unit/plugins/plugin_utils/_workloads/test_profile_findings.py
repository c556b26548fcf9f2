# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.mlops.hpc_validation.plugins.filter.profile_findings import profile_findings

ERROR = {"line": 7, "key": "model.num_heads", "severity": "error", "text": "7 does not fit", "requirement": "S4-9"}
WARNING = {**ERROR, "severity": "warning"}


def test_the_errors_of_a_file_are_one_finding_that_names_their_lines():
    (found,) = profile_findings(
        [{"file": "/x/profile.yaml", "findings": [WARNING, ERROR, {**ERROR, "line": 9}]}], "PROFILE-HPC"
    )
    assert (found["id"], found["verdict"], found["value"]) == ("S4-9", "fail", 2)
    assert (found["source"], found["where"]) == ("/x/profile.yaml", {"workload": "PROFILE-HPC"})
    assert "line 7: model.num_heads" in found["why"]
    assert "line 9" in found["why"]


def test_warnings_alone_are_no_finding():
    assert profile_findings([{"file": "x", "findings": [WARNING]}, {"file": "y", "findings": []}], "W") == []


@pytest.mark.parametrize("documents", [None, [{}], [{"file": "x"}], [{"file": "x", "findings": [{}]}]])
def test_what_is_no_answer_is_an_error(documents):
    with pytest.raises(AnsibleFilterError):
        profile_findings(documents, "W")
