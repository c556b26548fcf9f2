# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The site's settings for sbatch are read as text, and null never becomes the text None."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.cluster_facts import stated


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"partition": ["a", "b"], "nice": 5}, {"partition": "a,b", "nice": "5"}),
        ({"partition": ["a", None], "qos": None, "account": False}, {"partition": "a"}),
        ({"partition": (None, "b")}, {"partition": "b"}),
        ({"extra": {"a": [None]}}, {"extra": {"a": [None]}}),
        (None, {}),
    ],
)
def test_what_is_null_is_left_out(settings: t.Any, said: dict[str, t.Any]) -> None:
    assert stated(settings) == said
