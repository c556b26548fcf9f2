# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mark text that a program only quotes, so that an error in it is not taken for the program's own.

    print("the model writes", quoted(answer))

Put long or frequent texts in a separate file: logs are searched, other files are not.
"""

from __future__ import annotations

import json

LENGTH = 2000


def quoted(text: str) -> str:
    """Return the text on one line, truncated, after the mark that makes the log search skip it."""
    return f"hpc-validation-quote {json.dumps(text[:LENGTH])}"
