# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The findings of several nodes and workloads on the screen."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.findings import finding
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import findings_table


def failed(**where):
    return finding("node.clock", "Clock", "fail", value=60, bound="<= 5", source="s", why="60 is not <= 5", where=where)


@pytest.mark.parametrize(
    ("where", "title"),
    [
        ({"node": "compute01"}, "compute01: Clock"),
        ({"gpu": "GPU 1 (a)", "node": "compute01"}, "compute01, GPU 1 (a): Clock"),
        ({"path": "/x", "target": "201", "host": "login"}, "login, 201, /x: Clock"),
        ({"workload": "MLOPS-1.1"}, "MLOPS-1.1: Clock"),
        ({"host": "login", "workload": "MLOPS-1.1"}, "MLOPS-1.1, login: Clock"),
        ({"step": "failed"}, "Clock"),
        ({}, "Clock"),
    ],
)
def test_a_finding_begins_with_the_workload_or_the_node(where, title):
    assert findings_table.placed(failed(**where))["title"] == title


def test_a_fault_of_several_nodes_is_one_line_that_names_them():
    lines = findings_table.lines([failed(node=f"compute0{number}") for number in (1, 2, 3)])
    heads = [line for line in lines if line.startswith("fail")]
    assert [line.split()[2] for line in heads] == ["compute[01-03]:"]
    assert lines[-1] == "3 findings: 3 fail"
