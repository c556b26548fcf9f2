# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reviewed lists of what libraries say of errors: each text is hit as it is printed, and stands in one place."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import log
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import log_patterns

ROOT = Path(__file__).resolve().parents[2]
SEARCH = log.compile_sets(log_patterns.load())
FILES = (ROOT / "tests/workloads/library_texts").glob("*.yml")
REVIEWED = {path.stem: yaml.safe_load(path.read_text()) for path in FILES}


def test_the_lists_are_those_of_three_libraries():
    assert set(REVIEWED) == {"nvidia-cuda-runtime-cu12", "nvidia-nccl-cu12", "torch"}


@pytest.mark.parametrize("name", sorted(REVIEWED))
def test_a_list_is_of_the_locked_version(name):
    locks = [path.read_text() for path in (ROOT / "files/requirements").glob("*.txt")]
    locked = {found[1] for lock in locks for found in re.finditer(rf"^{name}==([^\s;]+)", lock, re.MULTILINE)}
    locked.discard("")
    assert {version.partition("+")[0] for version in locked} == {REVIEWED[name]["version"]}


@pytest.mark.parametrize("name", sorted(REVIEWED))
def test_each_text_stands_in_one_place(name):
    content = REVIEWED[name]
    texts = [text for group in [*content["hit"], *content["innocent"]] for text in group["texts"]]
    assert len(texts) == len(set(texts))
    assert all(group["reason"] for group in content["innocent"])


@pytest.mark.parametrize("group", [group for content in REVIEWED.values() for group in content["hit"]])
def test_each_text_is_hit_in_the_form_in_which_it_is_printed(group):
    for text in group["texts"]:
        line = group["printed"].replace("{}", text.replace("{}", group.get("filled", "1")))
        assert SEARCH.scan(io.BytesIO(line.encode() + b"\n"))["counts"][group["set"]] == 1, line
