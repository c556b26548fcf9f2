# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON on the controller, which people read too."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import json_files


def test_what_can_be_printed_is_written_as_it_is_and_nothing_else(tmp_path: Path) -> None:
    document = {"a": ["é\x1b[31m\u2028\ud800\n~ "]}
    json_files.write_json(tmp_path / "x.json", document)
    escaped = '"é\\u001b[31m\\u2028\\ud800\\n~ "'
    assert (tmp_path / "x.json").read_text(encoding="utf-8") == f'{{\n  "a": [\n    {escaped}\n  ]\n}}\n'
    assert json_files.read_json(tmp_path / "x.json") == document


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_has_not_is_refused(tmp_path: Path, value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_files.write_json(tmp_path / "x.json", [value])
    assert list(tmp_path.iterdir()) == []


def test_the_compact_form_is_ascii_without_blanks() -> None:
    assert json_files.encode_compact({"a": [1, "é"]}) == b'{"a":[1,"\\u00e9"]}'
    with pytest.raises(ValueError, match="JSON"):
        json_files.encode_compact([float("nan")])
