# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The price of a training's hardware, as the settings give it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kit.errors import KitError

KEYS = ("price_per_hour", "price_of", "currency", "scenarios")
# Steps per hour: those of the estimator in the document that this workload was made from, and its goals.
SCENARIOS = (350.0, 1500.0, 2000.0, 2500.0)
MOST_SCENARIOS = 20
LEAST, MOST = 1e-9, 1e9  # of a price, and of steps per hour: anything else is a mistake
CURRENCY = "USD"


@dataclass(frozen=True)
class Price:
    """An hour's price of a ``node`` or of a ``gpu``, and the steps per hour to compare with what was measured."""

    price_per_hour: float
    price_of: str
    currency: str = CURRENCY
    scenarios: tuple[float, ...] = SCENARIOS

    def per_hour(self, nodes: int | None, gpus: int | None) -> float | None:
        """Return the price of an hour on so many, or None if the number that counts is unknown.

        A node is paid for whole, however many of its GPUs are used.
        """
        count = nodes if self.price_of == "node" else gpus
        return None if count is None else self.price_per_hour * count


def read(document: Any) -> Price | None:
    """Return the price of ``settings.json``'s ``cost``, or None if that is null. Raise KitError."""
    if document is None:
        return None
    if not isinstance(document, dict):
        raise KitError(f"cost: expected an object with price_per_hour and price_of, found {type(document).__name__}")
    unknown = sorted(set(document) - set(KEYS))
    if unknown:
        raise KitError(f"cost.{unknown[0]}: unknown key; there are {', '.join(KEYS)}")
    price: Any = document.get("price_per_hour")
    if not _is_sensible(price):
        raise KitError(f"cost.price_per_hour: expected a number above {LEAST:g} and at most {MOST:g}, found {price!r}")
    currency = document.get("currency", CURRENCY)
    if not isinstance(currency, str) or not re.fullmatch(r"[A-Z]{3}", currency):
        raise KitError(f"cost.currency: expected three capital letters, such as {CURRENCY}, found {currency!r}")
    return Price(float(price), _price_of(document, currency), currency, _scenarios(document))


def _price_of(document: dict[str, Any], currency: str) -> str:
    given, price = document.get("price_of"), document["price_per_hour"]
    if given in ("node", "gpu"):
        return str(given)
    found = "it is missing" if given is None else f"found {given!r}"
    raise KitError(
        f"cost.price_of: expected node or gpu, {found}: an hour for {price} {currency} is that of a whole node or of "
        f"each of its GPUs, which is 8 times as much with 8 GPUs (7.92 USD is the price of a node with 8: 100,000 "
        "steps at 2,500 steps/h cost 316.80 USD, not 2,534.40)"
    )


def _scenarios(document: dict[str, Any]) -> tuple[float, ...]:
    given = document.get("scenarios", list(SCENARIOS))
    if not isinstance(given, list) or not all(_is_sensible(each) for each in given) or len(given) > MOST_SCENARIOS:
        raise KitError(
            f"cost.scenarios: expected a list of at most {MOST_SCENARIOS} numbers above {LEAST:g} and at most "
            f"{MOST:g}, in steps per hour, found {given!r}"
        )
    return tuple(float(each) for each in given)


def _is_sensible(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and LEAST < value <= MOST
