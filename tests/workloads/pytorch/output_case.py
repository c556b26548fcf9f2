# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A test whose ranks leave what they write in a folder of its own."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path


class OutputCase(unittest.TestCase):
    """Has ``output``, an empty folder that is removed after the test."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.output = Path(scratch.name)
