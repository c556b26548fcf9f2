# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the configuration files of BeeGFS 7.x on this host say about quota. PRIVATE to the collection."""

from __future__ import annotations

import os
import re

FOLDER = "/etc/beegfs"
MAX_BYTES = 1048576


def flag(path: str, key: str) -> bool | None:
    """Return the last value of a boolean setting; None if the file cannot be read or does not set it."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            lines = stream.read(MAX_BYTES).split("\n")
    except OSError:
        return None
    values = [match[1].lower() for line in lines if (match := re.match(rf"\s*{re.escape(key)}\s*=\s*(\w+)\s*$", line))]
    return values[-1] in ("1", "true", "yes", "y") if values else None


def quota_enforcement(client_config: str | None) -> dict[str, bool | None]:
    """Return whether the client here tracks quota, and whether a management daemon configured here enforces it."""
    client = client_config or os.path.join(FOLDER, "beegfs-client.conf")
    return {
        "client": flag(client, "quotaEnabled"),
        "management": flag(os.path.join(FOLDER, "beegfs-mgmtd.conf"), "quotaEnableEnforcement"),
    }
