# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of profiles.yml can be played: workloads are sound, faults are known, and what is named is judged."""

from __future__ import annotations

import ast

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import checking
from kit.profiles import check
from kit.profiles.findings import dotted, errors

from tests.faults import rows
from tests.integration import canaries, small_training_profile

FAULTY = ast.parse(small_training_profile.FAULTY.read_text())
ASSIGNED = {ast.unparse(each.targets[0]): each.value for each in FAULTY.body if isinstance(each, ast.Assign)}
FAULTS = {each.id for each in ASSIGNED["FAULTS"].elts}
OF_EVERY_JOB = {"JOB", "RANKS.first_failure", "RANKS.ended", "profile.errors"}
ROWS = rows.load(rows.PROFILES)


def selected(row, folder):
    """Return the manifest of a row's workload."""
    canaries.select(folder, row.workload, row.canary, **row.manifest)
    return folder / "training_profile/workload.yml"


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
def test_a_row_can_be_played(row, tmp_path):
    assert row.group == "profiles"
    assert row.canary in {"well", *small_training_profile.WRITTEN, *FAULTS}
    manifest = selected(row, tmp_path)
    assert checking.check(manifest) == []
    criteria = {each["id"] for each in yaml.safe_load(manifest.read_text())["criteria"]}
    assert {*(names.id for names in row.expect.names), *row.expect.also} <= criteria | OF_EVERY_JOB


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
def test_only_a_row_whose_profile_is_wrong_has_errors_in_it(row, tmp_path):
    profile = selected(row, tmp_path).with_name(small_training_profile.PROFILE)
    found = errors(check.check(profile, row.settings.get("hpc_validation_profile")).findings)
    refused = any(names.id == "profile.errors" for names in row.expect.names)
    assert [dotted(each.place) or each.text for each in found] == [] or refused
    assert bool(found) == refused


def test_every_fault_is_played():
    assert {row.canary for row in ROWS} == {"well", *small_training_profile.WRITTEN, *FAULTS}
