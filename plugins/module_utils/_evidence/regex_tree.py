# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parser of the re module and the names in what it returns. PRIVATE."""

from __future__ import annotations

import importlib
from typing import Any

try:  # under their names since Python 3.11
    codes: Any = importlib.import_module("re._constants")
    _parser: Any = importlib.import_module("re._parser")
except ImportError:
    codes = importlib.import_module("sre_constants")
    _parser = importlib.import_module("sre_parse")


def parse(regex: str | bytes) -> Any:
    """Return the parts of a regular expression as the re module parses it. Raise re.error."""
    return _parser.parse(regex)
