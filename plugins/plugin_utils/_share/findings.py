# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The share, judged: facts of a node and of BeeGFS's servers, as findings.

Whatever the facts hold, a finding comes out; what is missing or malformed is undetermined.
"""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import mount as share_mount
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import servers as share_servers
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import use as share_use
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.facts import at, text
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.judging import judge

Json = dict[str, t.Any]


def findings(
    facts: t.Any,
    expect: t.Any,
    *,
    node: str,
    share_type: str,
    checks: t.Collection[str] = ("use", "speed"),
    part: str = "node",
    gate_speed: bool = True,
) -> list[Json]:
    """Judge share facts (share.json). `part` is node or host, as `node` is named in where. Raise ExpectError.

    Of the `checks` asked for, use and speed decide what is judged beside the mount, which always is.
    Without `gate_speed` rates are recorded: of nodes that are measured at once each gets but a part of the share.
    """
    judging = judge(expect, share_type, {part: node})
    missing = _no_facts(facts, share_type)
    if missing:
        return [judging.check("share.mounted", "eq", True, None, "python -m kit share", missing=missing)]
    use, speed = at(facts, "use"), at(facts, "speed")
    used = "use" in checks and at(use, "error") is None and bool(at(use, "checks"))
    found = share_mount.findings(judging, at(facts, "mount"), used=used)
    if found[0]["verdict"] not in ("pass", "not_applicable"):
        return found
    if "use" in checks:
        found += share_use.use_findings(judging, use)
    if "use" in checks or at(facts, "striping"):
        found += share_use.striping_findings(judging, at(facts, "striping"))
    if "speed" in checks:
        found += share_use.speed_findings(judging, speed, gate=gate_speed)
    return found


def _no_facts(facts: t.Any, share_type: str) -> str | None:
    """Why these are no facts of such a share; None if they are."""
    if at(facts, "schema") == 1 and at(facts, "type") == share_type:
        return None
    known = "they are of another kind of share" if isinstance(facts, dict) else "they are no share facts"
    return text(at(facts, "error")) or ("nothing was told of it" if facts is None else known)


def servers_findings(
    servers: t.Any,
    expect: t.Any,
    *,
    host: str,
    share_type: str,
    access: str = "user",
    client: t.Any = None,
    missing: str | None = None,
) -> list[Json]:
    """Judge what BeeGFS's tool said on `host`; `client` is its mount's client, if it has one. Raise ExpectError.

    `missing` says why there is nothing to judge, where that is known.
    """
    return share_servers.findings(judge(expect, share_type, {"host": host}), servers, access, client, missing)
