# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exit code of a share's guard as a finding. PRIVATE to the collection."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.expect import SHARE
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.titles import TITLES

Json = dict[str, t.Any]
# What an exit code of files/kit/share/mounts.py means: the check, and its outcome if the code is an answer.
GUARD: dict[int, tuple[str, bool | None, str]] = {
    80: ("share.mounted", False, "it is not mounted, has another type, or does not exist"),
    81: (
        "share.connections",
        False,
        "the mount has no connection to its servers, or they are offline; it was not touched",
    ),
    82: ("share.same_files", False, "the login node's token was not found there: another file system, or a stale one"),
    83: ("share.writable", False, "the write test was refused"),
    84: ("share.answers", None, "it did not answer in time and was not touched again"),
    85: ("share.guard", None, "the kernel's facts about it could not be read"),
}


def guard_finding(code: t.Any, messages: str, where: Json) -> Json:
    """Return the finding for the guard's exit code, the only report of a node whose share cannot be used."""
    known = GUARD.get(code) if isinstance(code, int) else None
    identity, value, meaning = known or ("share.guard", None, f"the guard ended with {code}")
    why = "; ".join(part for part in (meaning, messages.strip()[-500:]) if part)
    judging = Judge(SHARE.setting, TITLES, {"not_applicable": {}}, where)
    detail = why if value is False else None
    return judging.check(identity, "eq", True, value, "guard", missing=why, detail=detail)
