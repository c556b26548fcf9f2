# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of a profile, their kinds and their ranges are those of the schema that editors are given."""

from __future__ import annotations

import json

import pytest
from kit.profiles import model
from kit.profiles.model import Profile
from pydantic import TypeAdapter, ValidationError

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


TEXT, FOLDER_OF = TypeAdapter(model.Text), TypeAdapter(model.Folder)


@pytest.mark.parametrize("text", ["a", "Größe, 模型", "first\n\tsecond\n", "https://a//b/.."])
def test_a_text_may_have_several_lines(text):
    assert TEXT.validate_python(text) == text


@pytest.mark.parametrize("text", ["\0", "\x1b[2Jx", "a\u202eb", "a\u200b", "a\rb", "\ufeffa"])
def test_a_text_has_nothing_that_is_not_seen(text):
    with pytest.raises(ValidationError, match="a text without characters that are not seen"):
        TEXT.validate_python(text)


@pytest.mark.parametrize("path", ["/a", "/mnt/Modèles 2", "/mnt//a/./b/", "/mnt/a..b", "/..."])
def test_a_path_is_any_below_the_root(path):
    assert FOLDER_OF.validate_python(path) == path


@pytest.mark.parametrize("path", ["/mnt/a\u200b", "/mnt/\u202eb", "/mnt/a ", "/mnt/a\u3000"])
def test_a_path_has_nothing_that_is_not_seen(path):
    with pytest.raises(ValidationError, match="a path without characters that are not seen, and no space at its end"):
        FOLDER_OF.validate_python(path)


@pytest.mark.parametrize("path", ["//", "/.", "///./", "/mnt/../etc", "/..", "/mnt/.."])
def test_a_path_leads_where_it_says_and_not_to_the_root(path):
    with pytest.raises(ValidationError, match=r"a path without \.\. in it, and not / itself"):
        FOLDER_OF.validate_python(path)
