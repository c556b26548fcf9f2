# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The judge of a share, and the checks that only BeeGFS has. PRIVATE to the collection."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.expect import SHARE
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.titles import TITLES

Json = dict[str, t.Any]


def judge(expect: t.Any, share_type: str, where: Json) -> Judge:
    """Return the judge of one place. Raise ExpectError if the inventory's expectations are malformed."""
    stated = {**SHARE.read(expect, TITLES), "share_type": share_type}
    return Judge(SHARE.setting, TITLES, stated, where, note="simulated share" if share_type == "simulated" else "")


def beegfs_only(judging: Judge, identities: t.Iterable[str], source: str) -> list[Json]:
    """Return the findings that these checks do not apply to the share type stated in the inventory."""
    reason = f"hpc_validation_share_type is {judging.expect['share_type']}"
    return [judging.not_applicable(identity, reason, source) for identity in identities]
