# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kit's only exception: a problem that a person can act on."""

from __future__ import annotations


class KitError(Exception):
    """A problem in one sentence: what, where, and what to do about it."""
