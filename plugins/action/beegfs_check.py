# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of beegfs_check: check the expectations, have the host look, judge its facts."""

from __future__ import annotations

import base64
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible_collections.mlops.hpc_validation.plugins.module_utils._probe.share import (
    CONTROLLER_ONLY,
    argument_spec,
    problems,
    servers_alone,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._probe.action import (
    NotAskedError,
    ProbeAction,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import findings as share_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.expect import SHARE
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.facts import at, text
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.titles import TITLES

MODULE = "mlops.hpc_validation.beegfs_check"
MOUNTS = FILES / "kit" / "share" / "mounts.py"


class ActionModule(ProbeAction):
    """Judge on the controller what the module of the same name saw on the host."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return facts, findings, verdict and table; failed unless the verdict is pass."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validated, arguments = self.validate_argument_spec(argument_spec=argument_spec())
        options: dict[str, Any] = plain(arguments)
        wrong = problems(options) + SHARE.problems(options["expect"], TITLES)
        if wrong:
            raise AnsibleActionFail("Nothing was checked, because these settings are invalid:\n" + "\n".join(wrong))
        host = str(options["node"] or (task_vars or {}).get("inventory_hostname", "host"))
        asked = {key: value for key, value in options.items() if key not in CONTROLLER_ONLY}
        asked["_mounts"] = base64.b64encode(MOUNTS.read_bytes()).decode("ascii")
        try:
            facts = self.ask(MODULE, asked, task_vars)
        except NotAskedError as exc:
            facts = {"error": str(exc)}
        checks = options["checks"]
        if self._task.check_mode and not servers_alone(checks):
            checks = ["mount"]
        findings = judged(options, facts, host, checks)
        title = f"beegfs_check on {host}" + (" (simulated share)" if options["share_type"] == "simulated" else "")
        return {**result, **self.tell(title, facts, findings, fail=options["fail"])}


def judged(options: dict[str, Any], facts: dict[str, Any], host: str, checks: list[str]) -> list[dict[str, Any]]:
    """Return the findings on the share as the host sees it, and on its servers."""
    expect, share_type = options["expect"], options["share_type"]
    found: list[dict[str, Any]] = []
    if not servers_alone(checks):
        found = share_findings.findings(facts, expect, node=host, share_type=share_type, checks=checks, part="host")
    return found + share_findings.servers_findings(
        facts.get("servers"),
        expect,
        host=host,
        share_type=share_type,
        access=options["access"],
        client=at(facts, "mount", "client"),
        missing=text(at(facts, "error")),
    )
