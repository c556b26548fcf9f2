# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model is dominated by one that is nowhere worse, among what is known of all of them."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import pareto

MODELS = ["float", "pruned", "int8"]


def rows(**columns):
    """Quantities by name, each with the values of the three models."""
    return {name: dict(zip(MODELS, values)) for name, values in columns.items()}


def test_one_that_is_better_somewhere_and_worse_nowhere_dominates():
    found = pareto.compare(MODELS, rows(error=(0.42, 0.41, 0.43), size=(3, 2, 1)))
    assert found.by == ["error", "size"]
    assert found.dominated == {"float": ["pruned"], "pruned": [], "int8": []}


def test_equal_models_do_not_dominate_each_other():
    assert pareto.compare(MODELS, rows(error=(1, 1, 2))).dominated == {
        "float": [],
        "pruned": [],
        "int8": ["float", "pruned"],
    }


@pytest.mark.parametrize("unknown", ["disturbed: by a neighbour", None, True, float("nan"), {"non_finite": "NaN"}])
def test_what_is_not_known_of_all_decides_nothing_and_is_named(unknown):
    found = pareto.compare(MODELS, rows(error=(3, 2, 1), p50=(1, unknown, 2)))
    assert (found.by, found.left) == (["error"], {"p50": ["pruned"]})
    assert found.dominated == {"float": ["pruned", "int8"], "pruned": ["int8"], "int8": []}


def test_nothing_known_of_all_is_no_domination():
    found = pareto.compare(MODELS, rows(error=(1, "?", 2)))
    assert (found.by, found.dominated) == ([], {"float": [], "pruned": [], "int8": []})


def test_no_models():
    assert pareto.compare([], {"error": {}}) == pareto.Compared(["error"], {}, {})
