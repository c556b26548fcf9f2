# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The meaning of each Xid: files/xids.yml."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import strict_yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES

FILE = FILES / "xids.yml"
SEVERITIES = ("fail", "warn", "info")
# The most severe first: if there are several, only the remedy of the worst is shown.
ACTIONS = ("isolate", "reboot", "reset", "update", "application", "watch")


class XidsError(Exception):
    """The table cannot be read; the message says why."""


@dataclass(frozen=True)
class Xid:
    """The meaning of a code; `nonfatal` is the severity of a line with the word Nonfatal."""

    code: int
    meaning: str
    severity: str
    action: str
    nonfatal: str | None = None

    def severity_of(self, line: str) -> str:
        """Return the severity of one line of the kernel log."""
        return self.nonfatal if self.nonfatal and "nonfatal" in line.lower() else self.severity


def load(path: Path = FILE) -> dict[int, Xid]:
    """Return the table by code. Raise XidsError."""
    try:
        content = strict_yaml.read(path)
        xids = {code: Xid(code, **entry) for code, entry in content.items()}
    except (OSError, strict_yaml.YAMLError, TypeError, AttributeError) as exc:
        raise XidsError(f"{path}: {type(exc).__name__}: {exc}") from exc
    for code, xid in xids.items():
        known = xid.severity in SEVERITIES and xid.nonfatal in (None, *SEVERITIES) and xid.action in ACTIONS
        if not isinstance(code, int) or isinstance(code, bool) or not known:
            raise XidsError(f"{path}: {code}: expected a code, one of {SEVERITIES} and one of {ACTIONS}")
    if not xids:
        raise XidsError(f"{path} is empty; is the collection installed completely?")
    return xids


@functools.cache
def shipped() -> dict[int, Xid]:
    """Return the table that ships with the collection. Raise XidsError."""
    return load()
