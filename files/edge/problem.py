# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a device was not measured."""

from __future__ import annotations

import errno


class Problem(Exception):  # noqa: N818 - it is told, not raised further
    """A reason, with the id that the controller knows."""

    def __init__(self, problem: str, text: str) -> None:
        """Take an id, such as `space`, and what to say."""
        super().__init__(text)
        self.id = problem


def of_files(error: OSError) -> Problem:
    """Return the problem that a file could not be written or read."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return Problem("space" if full else "files", str(error))
