# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scripts of the payload that have siblings of the same names in other folders, imported for the tests."""

from __future__ import annotations

import importlib.util
import sys
import types
import typing as t
from pathlib import Path

SIBLINGS = ("stage", "stand_in")


def load(path: Path) -> t.Any:
    """Import a script as a process of its own would: its folder comes first, and no sibling of another is taken."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    others = {name: sys.modules.pop(name, None) for name in SIBLINGS}
    sys.path.insert(0, str(path.parent))
    try:
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
        for name, other in others.items():
            sys.modules.pop(name, None)
            if isinstance(other, types.ModuleType):
                sys.modules[name] = other
    return module
