# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages that profiles are checked with: a controller may be without them, and nothing else needs them there."""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any

from kit.errors import KitError

NEEDED = {"pydantic": "pydantic>=2.7", "yaml": "PyYAML"}
OLDEST = {"pydantic": (2, 7)}


def require() -> None:
    """Raise KitError, with the command that installs it, if a package is missing or too old."""
    missing = []
    for module, package in NEEDED.items():
        try:
            there = version(importlib.import_module(module)) >= OLDEST.get(module, ())
        except ImportError:
            there = False
        if not there:
            missing.append(f"'{package}'")
    if missing:
        raise KitError(
            f"profiles are checked with packages that this Python has not, or too old; install them: "
            f"{sys.executable} -m pip install {' '.join(missing)}"
        )


def version(module: Any) -> tuple[int, ...]:
    """Return a module's version; nothing if it does not tell."""
    return tuple(map(int, re.findall(r"\d+", str(getattr(module, "VERSION", "")))))
