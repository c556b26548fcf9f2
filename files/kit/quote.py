# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Marks text that a program prints and does not mean, so that an error which it quotes is not taken for one.

    print("the model writes", quoted(answer))

What is long, or much, belongs in a file of its own: logs are searched, other files are not.
"""

from __future__ import annotations

import json

LENGTH = 2000


def quoted(text: str) -> str:
    """Return the text on one line, behind the mark by which the search of logs passes over it; cut where it is long."""
    return f"hpc-validation-quote {json.dumps(text[:LENGTH])}"
