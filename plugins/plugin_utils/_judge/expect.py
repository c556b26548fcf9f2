# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the expectations of an inventory key by key, before any check runs. Pure. PRIVATE."""

from __future__ import annotations

import difflib
import typing as t
from dataclasses import dataclass

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars

Json = dict[str, t.Any]
Key = tuple[t.Callable[[t.Any], bool], str]  # whether a value is valid, and what is


class ExpectError(ValueError):
    """The expectations are malformed; the message names each wrong key."""


def is_count(value: t.Any) -> bool:
    """Return whether it is a whole number, which a boolean is not."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def is_positive(value: t.Any) -> bool:
    """Return whether it is a number above 0."""
    return scalars.is_number(value) and value > 0


def is_amount(value: t.Any) -> bool:
    """Return whether it is a number of 0 or more."""
    return scalars.is_number(value) and value >= 0


def is_flag(value: t.Any) -> bool:
    """Return whether it is true or false."""
    return isinstance(value, bool)


FLAG: Key = (is_flag, "true or false")
COUNT: Key = (is_count, "a whole number")
AMOUNT: Key = (is_amount, "a number of 0 or more")
EXCUSES: Key = (lambda value: isinstance(value, dict), "an object with check IDs and reasons")


@dataclass(frozen=True)
class Expectations:
    """The keys of one setting, and their default values."""

    setting: str
    keys: dict[str, Key]
    defaults: Json

    def read(self, expect: t.Any, identities: t.Collection[str]) -> Json:
        """Return the expectations with defaults; a key whose value is null has its default. Raise ExpectError."""
        wrong = self.problems(expect, identities)
        if wrong:
            raise ExpectError("; ".join(wrong))
        return {**self.defaults, **{key: value for key, value in (expect or {}).items() if value is not None}}

    def problems(self, expect: t.Any, identities: t.Collection[str]) -> list[str]:
        """Return everything that is malformed in `expect`; `identities` are the checks that not_applicable may name."""
        if expect is None:
            return []
        if not isinstance(expect, dict):
            return [f"{self.setting}: expected an object, found {scalars.describe(expect)}"]
        found = []
        for key, value in expect.items():
            if key not in self.keys:
                found.append(f"{self.setting}: unknown key {key!r}{_meant(key, self.keys)}")
            elif value is not None and not self.keys[key][0](value):
                found.append(f"{self.setting}.{key}: expected {self.keys[key][1]}, found {scalars.describe(value)}")
        return found + self._excuses(expect.get("not_applicable"), identities)

    def _excuses(self, excused: t.Any, identities: t.Collection[str]) -> list[str]:
        found = []
        for identity, reason in excused.items() if isinstance(excused, dict) else ():
            named = f"{self.setting}.not_applicable"
            if identity not in identities:
                found.append(f"{named}: unknown check {identity!r}{_meant(identity, identities)}")
            elif not isinstance(reason, str) or not reason.strip():
                found.append(f"{named}.{identity}: expected a reason in words, found {scalars.describe(reason)}")
        return found


def _meant(name: t.Any, known: t.Collection[str]) -> str:
    close = difflib.get_close_matches(str(name), known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
