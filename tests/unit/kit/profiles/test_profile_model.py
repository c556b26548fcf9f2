# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of a profile, their kinds and their ranges are those of the schema that editors are given."""

from __future__ import annotations

import json

import pytest
from kit.profiles.model import Profile
from pydantic import ValidationError

from tests.unit.kit.profiles.samples import FOLDER


def test_all_keys_and_bounds_are_those_of_the_schema():
    schema = json.loads((FOLDER.parent / "schema.json").read_text(encoding="utf-8"))
    assert Profile.model_json_schema() == schema


def test_a_section_takes_nothing_for_something_else():
    debug = Profile.model_fields["debug"].annotation
    with pytest.raises(ValidationError):
        debug.model_validate({"profiler": "true", "detect_anomaly": False})
    with pytest.raises(ValidationError):
        debug.model_validate({"profiler": 1, "detect_anomaly": False})


def test_a_profile_that_was_checked_cannot_be_changed():
    debug = Profile.model_fields["debug"].annotation.model_validate({"profiler": True, "detect_anomaly": False})
    assert (debug.profiler, debug.limit_batches) == (True, None)
    with pytest.raises(ValidationError):
        debug.profiler = False
