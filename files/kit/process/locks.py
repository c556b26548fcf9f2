# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hold a lock against other processes that would create the same thing."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kit.errors import KitError

PATIENCE = 3000.0  # seconds: a download of 15 GB at 5 MB/s; less than the play waits, so that it gets this message


@contextmanager
def sole(path: Path, what: str, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock file ``path`` while ``what`` is done; raise KitError after waiting ``patience`` seconds for it.

    It only saves work: on a share whose locks do not reach other nodes, a rename decides who was first.
    """
    with open(path, "ab") as stream:
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise KitError(f"another process has been {what} for {patience:g} s") from None
                time.sleep(0.5)
            except OSError:
                break  # no locks on this file system
        yield
