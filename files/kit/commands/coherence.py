# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit coherence`: check that two nodes see the same share."""

from __future__ import annotations

import argparse
import os
from typing import Any

from kit.share import coherence
from kit.share.coherence import add_arguments

__all__ = ["add_arguments", "run"]


def run(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Take the part of one of the two nodes; return the result on the first."""
    return coherence.run(arguments, dict(os.environ))
