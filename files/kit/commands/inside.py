# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit inside`: facts about the runtime, from its own Python."""

from __future__ import annotations

import argparse
from typing import Any

from kit.training import inside


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no options."""


def run(_arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the facts."""
    return inside.facts()
