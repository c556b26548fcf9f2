# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of pretraining.yml can be played: workloads are sound, faults are known, and what is named is judged."""

from __future__ import annotations

import ast

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import checking

from tests.faults import rows
from tests.integration import canaries, small_pretraining

FAULTY = ast.parse(small_pretraining.FAULTY.read_text())
FAULTS = {each.name for each in FAULTY.body if isinstance(each, ast.FunctionDef)}
OF_EVERY_JOB = {"JOB", "RANKS.first_failure", "RANKS.ended", "step.failed", "settings.errors"}


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in rows.load(rows.PRETRAINING)])
def test_a_row_can_be_played(row, tmp_path):
    assert row.group == "pretraining"
    assert row.canary == "well" or row.canary.partition("-")[0] in FAULTS
    canaries.select(tmp_path, row.workload, row.canary, **row.manifest)
    manifest = tmp_path / "pretraining/workload.yml"
    assert checking.check(manifest) == []
    criteria = {each["id"] for each in yaml.safe_load(manifest.read_text())["criteria"]}
    assert {names.id for names in row.expect.names} <= criteria | OF_EVERY_JOB


def test_legs_that_are_not_played_are_not_judged(tmp_path):
    canaries.select(tmp_path, "pretraining", "well")
    judged = {each["id"] for each in yaml.safe_load((tmp_path / "pretraining/workload.yml").read_text())["criteria"]}
    assert {"S3-27.manifest", "S3-30.finite"} <= judged
    assert not judged & set(small_pretraining.NEEDED)
