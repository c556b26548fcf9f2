# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The price of the hardware: what it is the price of must be said."""

from __future__ import annotations

import math
from typing import Any

import pytest
from kit.errors import KitError
from kit.pretraining import price

NODE = {"price_per_hour": 7.92, "price_of": "node"}


def test_without_settings_there_is_no_price() -> None:
    assert price.read(None) is None


def test_a_price_has_the_documents_scenarios_unless_others_are_named() -> None:
    assert price.read(NODE) == price.Price(7.92, "node", "USD", (350.0, 1500.0, 2000.0, 2500.0))
    given = price.read({"price_per_hour": 1, "price_of": "gpu", "currency": "EUR", "scenarios": [100]})
    assert given == price.Price(1.0, "gpu", "EUR", (100.0,))


def test_without_what_it_is_the_price_of_it_is_refused_with_the_reason() -> None:
    with pytest.raises(KitError) as refused:
        price.read({"price_per_hour": 7.92})
    assert str(refused.value).startswith("cost.price_of: expected node or gpu, it is missing: ")
    assert "8 times as much with 8 GPUs" in str(refused.value)
    assert "316.80 USD, not 2,534.40" in str(refused.value)  # 100,000 / 2500 · 7.92, and that times 8


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({**NODE, "price_of": "box"}, "cost.price_of: expected node or gpu, found 'box'"),
        ({**NODE, "price_of": ""}, "cost.price_of: expected node or gpu, found ''"),
        (
            {**NODE, "per_hour": 1},
            "cost.per_hour: unknown key; there are price_per_hour, price_of, currency, scenarios",
        ),
        ({"price_of": "node"}, "cost.price_per_hour: expected a number above 1e-09 and at most .*, found None"),
        ({**NODE, "price_per_hour": 0}, "found 0"),
        ({**NODE, "price_per_hour": True}, "found True"),
        ({**NODE, "price_per_hour": "7.92"}, "found '7.92'"),
        ({**NODE, "price_per_hour": math.inf}, "found inf"),
        ({**NODE, "price_per_hour": math.nan}, "found nan"),
        ({**NODE, "price_per_hour": 1e308}, "at most .*, found 1e.308"),
        ({**NODE, "price_per_hour": 1e-9}, "above 1e-09 .*, found 1e-09"),
        ({**NODE, "price_per_hour": 1e9 + 1}, r"at most 1e\+09, found 1000000001"),
        ({**NODE, "price_per_hour": 10**400}, "at most .*, found 1000"),
        ({**NODE, "scenarios": [1e-320]}, "cost.scenarios: .* found"),
        ({**NODE, "currency": "$"}, r"cost.currency: expected three capital letters, such as USD, found '\$'"),
        ({**NODE, "currency": None}, "cost.currency: .*, found None"),
        ({**NODE, "scenarios": 2000}, "cost.scenarios: expected a list .* found 2000"),
        ({**NODE, "scenarios": [2000, 0]}, r"cost.scenarios: .* found \[2000, 0\]"),
        ({**NODE, "scenarios": [1] * 21}, "cost.scenarios: expected a list of at most 20 numbers"),
        (7.92, "cost: expected an object with price_per_hour and price_of, found float"),
    ],
)
def test_what_is_wrong_is_named(document: Any, said: str) -> None:
    with pytest.raises(KitError, match=said):
        price.read(document)


def test_twenty_scenarios_are_enough() -> None:
    found = price.read({**NODE, "scenarios": [0.5] * 20})
    assert found is not None
    assert found.scenarios == (0.5,) * 20


def test_the_highest_price_is_one() -> None:
    assert price.read({**NODE, "price_per_hour": 1e9}) == price.Price(1e9, "node")


def test_an_hour_of_nodes_or_of_gpus() -> None:
    assert price.Price(7.92, "node").per_hour(2, 8) == 15.84
    assert price.Price(7.92, "gpu").per_hour(2, 8) == 63.36
    assert price.Price(7.92, "gpu").per_hour(None, 8) == 63.36
    assert price.Price(7.92, "node").per_hour(None, 8) is None
