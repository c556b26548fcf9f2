# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of edge.yml can be played: workloads are sound, faults are known, and what is named is judged."""

from __future__ import annotations

import ast

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import checking

from tests.faults import rows
from tests.integration import canaries, small_edge_job, small_embedded_profile

ROWS = rows.load(rows.EDGE)
FINDINGS = {"edge.reached", "edge.python", "edge.wheels"}


def names(path):
    """What the file of a fault compares its argument with: texts, and functions."""
    found = ast.walk(ast.parse(path.read_text()))
    return {each.value if isinstance(each, ast.Constant) else getattr(each, "name", None) for each in found}


FAULTS = {"edge_job": names(small_edge_job.JOB), "embedded_training": names(small_embedded_profile.FAULTY)}


def criteria(folder, workload, canary="well", changes=None):
    """The criteria of a row's workload, which is sound."""
    canaries.select(folder, workload, canary, **(changes or {}))
    manifest = folder / workload / "workload.yml"
    assert checking.check(manifest) == []
    return yaml.safe_load(manifest.read_text())["criteria"]


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
def test_a_row_can_be_played(row, tmp_path):
    assert row.group == "edge"
    assert row.canary in {"well", *FAULTS[row.workload]}
    judged = {each["id"] for each in criteria(tmp_path, row.workload, row.canary, row.manifest)}
    assert {*(named.id for named in row.expect.names), *row.expect.also} <= judged | FINDINGS


def test_every_criterion_about_devices_and_what_is_made_fails_in_a_play_or_is_recorded(tmp_path):
    of_devices = criteria(tmp_path / "one", "edge_job")
    made = [each for each in criteria(tmp_path / "other", "embedded_training") if each["id"].startswith("S4-5")]
    gates = {each["id"] for each in (*of_devices, *made) if each.get("severity") != "record"}
    failed = {name for row in ROWS for name in (*(each.id for each in row.expect.names), *row.expect.also)}
    assert gates - failed == {"S4-6.runtime"}  # the lock's wheels are all that there is on a device
