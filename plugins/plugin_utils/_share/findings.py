# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the share: facts of a node and of BeeGFS's servers become findings.

Any facts give a finding; what is missing or malformed is undetermined.
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
    """Judge share facts (share.json). `part`, node or host, is the key of `node` in where. Raise ExpectError.

    The mount is always judged; use and speed only if they are among `checks`.
    Without `gate_speed` rates are only recorded: nodes measured at the same time divide the share's speed.
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
    """Return why these are not facts of such a share, or None if they are."""
    if at(facts, "schema") == 1 and at(facts, "type") == share_type:
        return None
    known = "the facts are from another type of share" if isinstance(facts, dict) else "expected share facts"
    return text(at(facts, "error")) or ("its facts were not reported" if facts is None else known)


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
    """Judge the output of BeeGFS's tool on `host`; `client` is its mount's client, if any. Raise ExpectError.

    `missing` says why there is nothing to judge, if known.
    """
    return share_servers.findings(judge(expect, share_type, {"host": host}), servers, access, client, missing)
