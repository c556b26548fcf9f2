# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command with variables read from standard input.

Every user of a node can read a command line, including variables set by ssh or a shell. The URL of an index or a proxy
may contain a password.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import BinaryIO, NoReturn

from kit import strict_json
from kit.errors import KitError

BYTES = 1 << 20


def run(argv: Sequence[str], stream: BinaryIO) -> NoReturn:
    """Become ``argv`` with the variables of the JSON object in ``stream`` added to those of this process."""
    if not argv:
        raise KitError("no command is given")
    try:
        variables = strict_json.parse(stream.read(BYTES))
        further = {str(name): str(value) for name, value in variables.items()}
    except (ValueError, AttributeError, RecursionError):  # without its text, which may hold a password
        raise KitError("standard input is not a JSON object of variables") from None
    os.execvpe(argv[0], list(argv), {**os.environ, **further})  # noqa: S606 - an argv list, from the play
