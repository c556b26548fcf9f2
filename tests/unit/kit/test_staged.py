# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a staged folder says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kit.staged import is_stand_in


@pytest.mark.parametrize(("source", "made_up"), [("stand-in", True), ("download", False), ("path", False)])
def test_a_stand_in_says_so(tmp_path: Path, source: str, made_up: bool) -> None:
    (tmp_path / "provenance.json").write_text(json.dumps({"source": source}))
    assert is_stand_in(tmp_path) is made_up


@pytest.mark.parametrize("text", ["{}", "[]", "", "null"])
def test_what_does_not_say_so_is_no_answer(tmp_path: Path, text: str) -> None:
    (tmp_path / "provenance.json").write_text(text)
    with pytest.raises((KeyError, TypeError, ValueError)):
        is_stand_in(tmp_path)
