# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Base of the actions of probes: query the host with the module of the same name, and show the findings."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import groups
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import verdicts
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import criteria_table, findings_table
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.screen import fitted

Json = dict[str, Any]


class NotAskedError(Exception):
    """The host returned no facts; the message says why."""


class ProbeAction(ActionBase):
    """Run a module on the host; subclasses judge its facts on the controller."""

    _supports_check_mode = True
    _supports_async = False
    TRANSFERS_FILES = False

    def ask(self, module: str, arguments: Json, task_vars: Json | None) -> Json:
        """Return the facts of the module. Raise NotAskedError."""
        given = {key: value for key, value in arguments.items() if value is not None}
        try:
            answer = self._execute_module(module_name=module, module_args=given, task_vars=task_vars)
        except AnsibleConnectionFailure as exc:
            raise NotAskedError(f"the node cannot be reached: {exc}") from exc
        except AnsibleError as exc:
            raise NotAskedError(f"the node could not be asked: {exc}") from exc
        facts = plain(answer.get("facts"))
        if answer.get("failed") or answer.get("unreachable") or not isinstance(facts, dict):
            told = " ".join(str(answer[key]) for key in ("msg", "module_stderr") if answer.get(key))
            raise NotAskedError(f"the node could not be asked: {told or 'no answer'}")
        return dict(facts)

    def tell(self, title: str, facts: Json, findings: list[Json], *, fail: bool) -> Json:
        """Show what did not pass and return the task's result, which fails unless the verdict is pass."""
        verdict = verdicts.overall(findings)
        table = "\n".join([f"{title}: {verdict.upper()}", *findings_table.lines(findings)])
        if not self._task.no_log:
            short = f"{title}: {verdict.upper()}, {len(findings)} findings: {groups.counts(findings)}"
            is_short = verdict == "pass" and not self._display.verbosity
            self._display.display(short if is_short else fitted(table))
        result: Json = {"changed": False, "facts": facts, "findings": findings, "verdict": verdict, "table": table}
        result["failed"] = verdict != "pass" and fail
        if result["failed"]:
            result["msg"] = criteria_table.summary(title, verdict, [findings_table.placed(each) for each in findings])
        return result
