# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show text of others on one line, with nothing in it that a terminal acts on."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text with escapes for what is not seen, such as line breaks and the commands of terminals."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
