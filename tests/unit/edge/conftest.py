# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs on a device stands beside nothing else: its modules are imported as it imports them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.conftest import ROOT

EDGE = ROOT / "files/edge"
sys.path.insert(0, str(EDGE))


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., Path]:
    """Write files below a root, by path; return the root."""

    def write(**files: object) -> Path:
        for path, content in files.items():
            place = tmp_path / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"{content}\n")
        return tmp_path

    return write
