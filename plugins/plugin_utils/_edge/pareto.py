# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which models another one beats in everything that was measured of all of them. Pure."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars

Table = Mapping[str, Mapping[str, t.Any]]  # of each quantity, of which less is better, the value of each model


class Compared(t.NamedTuple):
    """What came of a comparison."""

    by: list[str]  # the quantities that count: every model has a number
    left: dict[str, list[str]]  # those that do not, with the models that have none
    dominated: dict[str, list[str]]  # of each model those that are nowhere worse, and somewhere better


def compare(models: list[str], quantities: Table) -> Compared:
    """Return which models are dominated; a quantity that some model has no number of decides nothing."""
    left = {
        name: missing
        for name, values in quantities.items()
        if (missing := [model for model in models if not scalars.is_number(values.get(model))])
    }
    by = [name for name in quantities if name not in left]
    rows = {model: [quantities[name][model] for name in by] for model in models}
    dominated = {
        model: [other for other in models if _dominates(rows[other], rows[model])] if by else [] for model in models
    }
    return Compared(by, left, dominated)


def _dominates(one: list[float], other: list[float]) -> bool:
    return one != other and all(mine <= yours for mine, yours in zip(one, other))
