# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of beegfs_check: checks what is expected, has the host look, judges its facts."""

from __future__ import annotations

import base64
import collections
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _criteria
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs_check import (
    CONTROLLER_ONLY,
    argument_spec,
    problems,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import (
    _evidence_store,
    _judge_table,
    _share_expect,
    _share_findings,
    _share_judge,
)

MODULE = "mlops.hpc_validation.beegfs_check"
MOUNTS = Path(__file__).resolve().parents[2] / "files" / "kit" / "mounts.py"


class ActionModule(ActionBase):
    """Judges on the controller what the module of the same name saw on the host."""

    _supports_check_mode = True
    _supports_async = False
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return facts, findings, verdict and table; failed unless the verdict is pass."""
        result = super().run(tmp, task_vars)
        _validated, arguments = self.validate_argument_spec(argument_spec=argument_spec())
        options: dict[str, Any] = _evidence_store.plain(arguments)
        wrong = problems(options) + _share_expect.problems(options["expect"], _share_findings.TITLES)
        if wrong:
            raise AnsibleActionFail("nothing was looked at; malformed:\n" + "\n".join(wrong))
        host = str(options["node"] or (task_vars or {}).get("inventory_hostname", "host"))
        facts = self._facts(options, task_vars)
        findings = judged(options, facts, host, ["mount"] if self._task.check_mode else options["checks"])
        verdict = _criteria.overall(findings)
        title = f"beegfs_check on {host}" + (" (simulated share)" if options["share_type"] == "simulated" else "")
        table = render(title, verdict, findings)
        if not self._task.no_log:
            self._display.display(table)
        result.update(changed=False, facts=facts, findings=findings, verdict=verdict, table=table)
        result["failed"] = verdict != "pass" and options["fail"]
        if result["failed"]:
            result["msg"] = _judge_table.summary(title, verdict, [_placed(finding) for finding in findings])
        return result

    def _facts(self, options: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Return what the host saw, or {"error": why} where it saw nothing."""
        arguments = {key: value for key, value in options.items() if key not in CONTROLLER_ONLY and value is not None}
        arguments["mounts"] = base64.b64encode(MOUNTS.read_bytes()).decode("ascii")
        try:
            answer = self._execute_module(module_name=MODULE, module_args=arguments, task_vars=task_vars)
        except AnsibleConnectionFailure as exc:
            return {"error": f"the host cannot be reached: {exc}"}
        except AnsibleError as exc:
            return {"error": f"the host could not look: {exc}"}
        facts = _evidence_store.plain(answer.get("facts"))
        if answer.get("failed") or answer.get("unreachable") or not isinstance(facts, dict):
            told = " ".join(str(answer[key]) for key in ("msg", "module_stderr") if answer.get(key))
            return {"error": f"the host could not look: {told or 'no answer'}"}
        return facts


def judged(options: dict[str, Any], facts: dict[str, Any], host: str, checks: list[str]) -> list[dict[str, Any]]:
    """Return the findings about the share as the host sees it, and about its servers."""
    expect, share_type = options["expect"], options["share_type"]
    findings = _share_findings.findings(facts, expect, node=host, share_type=share_type, checks=checks, part="host")
    return findings + _share_findings.servers_findings(
        facts.get("servers"),
        expect,
        host=host,
        share_type=share_type,
        access=options["access"],
        client=_share_judge.at(facts, "mount", "client"),
    )


def render(title: str, verdict: str, findings: list[dict[str, Any]]) -> str:
    """Return the table of what is no pass, and how many findings there are of each verdict."""
    shown = [_placed(finding) for finding in findings if finding["verdict"] in ("fail", "undetermined")]
    counts = collections.Counter(finding["verdict"] for finding in findings)
    total = ", ".join(f"{number} {name}" for name, number in counts.most_common())
    return f"{_judge_table.render(title, verdict, shown)}\n{len(findings)} findings: {total}"


def _placed(finding: dict[str, Any]) -> dict[str, Any]:
    """A finding whose title names the server or target."""
    target = finding["where"].get("target")
    return {**finding, "title": f"{target}: {finding['title']}"} if target else finding
