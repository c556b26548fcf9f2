# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why something is not known of an edge host: an id and a text, in one form from the device to the report. PRIVATE."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars

Json = dict[str, t.Any]
MOST = 800  # characters of a text
ID = re.compile(r"[a-z][a-z_]{0,31}", re.ASCII)
LEFT_OUT = "left_out"  # its text says it all


class ProblemError(Exception):
    """Something is not known of an edge host; `told` says why."""

    def __init__(self, identity: str, text: str) -> None:
        self.told = problem(identity, text)
        super().__init__(words(self.told))


def problem(identity: str, text: str) -> Json:
    """Return a problem whose text is one printable line."""
    line = " ".join(scalars.printable(text).split())
    return {"id": identity, "text": line if len(line) <= MOST else line[: MOST - 1] + "…"}


def words(told: Json) -> str:
    """Return a problem as the text that stands where a value should."""
    return str(told["text"]) if told["id"] == LEFT_OUT else f"{told['id']}: {told['text']}"


def read(value: t.Any) -> Json | None:
    """Return a problem that a device told, None if it told none. Raise ProblemError for what is neither."""
    if value is None:
        return None
    identity, text = (value.get(key) if isinstance(value, dict) else None for key in ("id", "text"))
    if isinstance(identity, str) and ID.fullmatch(identity) and isinstance(text, str):
        return problem(identity, text)
    raise ProblemError("result", f"its problem is {scalars.show(value)}; expected null, or id and text")


def document(told: Json) -> Json:
    """Return what stands in the run's folder for a host that measured nothing."""
    return {"schema": 1, "problem": told}
