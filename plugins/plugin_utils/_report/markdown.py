# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write values into Markdown as text: what jobs, nodes and people wrote is never markup there, nor another line."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars

NOT_MEASURED = "not measured"
MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~])")
# Besides HTML: addresses become links, names become mentions, and text between dollar signs becomes a formula.
ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", "&#64;"), ("$", "&#36;"))
LINK = re.compile(r"(:|www)(//|\.)", re.IGNORECASE)


def text(value: t.Any) -> str:
    """Return `value` as one line of bounded text without markup; `not measured` if it is missing."""
    if value is None or value == "":
        return NOT_MEASURED
    return escaped(str(scalars.bounded(value if isinstance(value, str) else scalars.show(value))))


def escaped(plain: str) -> str:
    """Return a line of printable text without markup."""
    plain = MARKUP.sub(r"\\\1", plain)
    for character, entity in ENTITIES:
        plain = plain.replace(character, entity)
    return LINK.sub(r"\1\\\2", plain)


def code(value: t.Any) -> str:
    """Return a path, a version or a name as code."""
    if not isinstance(value, str) or not value.strip():
        return text(value)
    plain = str(scalars.bounded(value))
    return text(plain) if "`" in plain else f"`{plain}`"


def figure(value: t.Any, form: str = ".6g", unit: str = "") -> str:
    """Return a number in the format `form`; NaN and other values are shown, since they are not `not measured`."""
    if scalars.is_number(value):
        return f"{value:{form}}{unit}"
    return text(scalars.describe(value)) if scalars.is_non_finite(value) else NOT_MEASURED
