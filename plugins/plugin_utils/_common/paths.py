# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The paths of the collection and its files on the controller. PRIVATE to the collection."""

from __future__ import annotations

from pathlib import Path

COLLECTION = Path(__file__).resolve().parents[3]
FILES = COLLECTION / "files"
