# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of gpu_probe: checks what is expected, has the node asked, judges its facts."""

from __future__ import annotations

import collections
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _criteria
from ansible_collections.mlops.hpc_validation.plugins.module_utils._gpu_probe import (
    CONTROLLER_ONLY,
    argument_spec,
    problems,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import _evidence_store, _gpu_findings, _judge_table
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu_facts import SILENT

MODULE = "mlops.hpc_validation.gpu_probe"


class _NotAskedError(Exception):
    """The node gave no facts; the message says why."""


class ActionModule(ActionBase):
    """Judges on the controller what the module of the same name read on the node."""

    _supports_check_mode = True
    _supports_async = False
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return facts, findings, verdict and table; failed unless the verdict is pass."""
        result = super().run(tmp, task_vars)
        _validated, arguments = self.validate_argument_spec(argument_spec=argument_spec())
        options: dict[str, Any] = _evidence_store.plain(arguments)
        wrong = problems(options) + _gpu_findings.problems(options["expect"])
        if wrong:
            raise AnsibleActionFail("nothing was read; malformed:\n" + "\n".join(wrong))
        options["since"] = options["since"] or _seconds(options["expect"].get("xid_since"))

        try:
            facts = self._facts(options, task_vars)
        except _NotAskedError as exc:
            facts = {"schema": 1, "node": _host(options, task_vars), "source": "none", "error": str(exc), "gpus": []}
        told = facts.get("node")
        node = options["node"] or (told if isinstance(told, str) and told else _host(options, task_vars))
        findings = _gpu_findings.findings(
            facts,
            options["expect"],
            node=node,
            kernel_log=options["kernel_log"],
            simulated=options["simulated"],
            health=options["health"],
        )
        verdict = _criteria.overall(findings)
        title = f"gpu_probe on {node}" + (" (simulated GPUs)" if options["simulated"] else "")
        table = render(title, verdict, findings)
        if not self._task.no_log:
            self._display.display(table)
        result.update(changed=False, facts=facts, node=node, findings=findings, verdict=verdict, table=table)
        result["failed"] = verdict != "pass" and options["fail"]
        if result["failed"]:
            result["msg"] = _judge_table.summary(title, verdict, [_placed(finding) for finding in findings])
        return result

    def _facts(self, options: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Return what the node told. Raise _NotAskedError."""
        arguments = {key: value for key, value in options.items() if key not in CONTROLLER_ONLY and value is not None}
        try:
            answer = self._execute_module(module_name=MODULE, module_args=arguments, task_vars=task_vars)
        except AnsibleConnectionFailure as exc:
            raise _NotAskedError(f"the node cannot be reached: {exc}") from exc
        except AnsibleError as exc:
            raise _NotAskedError(f"the node could not be asked: {exc}") from exc
        facts = _evidence_store.plain(answer.get("facts"))
        if answer.get("failed") or answer.get("unreachable") or not isinstance(facts, dict):
            told = " ".join(str(answer[key]) for key in ("msg", "module_stderr") if answer.get(key))
            raise _NotAskedError(f"the node could not be asked: {told or 'no answer'}")
        return facts


def _host(options: dict[str, Any], task_vars: dict[str, Any] | None) -> str:
    return str(options["node"] or (task_vars or {}).get("inventory_hostname", "node"))


def _seconds(since: Any) -> str | None:
    return None if since is None else str(since)


def render(title: str, verdict: str, findings: list[dict[str, Any]]) -> str:
    """Return the table of what is no pass, and how many findings there are of each verdict."""
    blamed = [finding for finding in findings if finding["verdict"] in ("fail", "undetermined")]
    # Of a GPU that does not answer one line says all.
    silent = collections.Counter(finding["where"].get("gpu") for finding in blamed if SILENT in finding["why"])
    shown = [_placed(finding) for finding in blamed if SILENT not in finding["why"]]
    lines = [_judge_table.render(title, verdict, shown)]
    lines += [f"undetermined   {number} more checks of {gpu}, which does not answer" for gpu, number in silent.items()]
    counts = collections.Counter(finding["verdict"] for finding in findings)
    total = ", ".join(f"{number} {name}" for name, number in counts.most_common())
    return "\n".join([*lines, f"{len(findings)} findings: {total}"])


def _placed(finding: dict[str, Any]) -> dict[str, Any]:
    """A finding whose title names the GPU."""
    gpu = finding["where"].get("gpu")
    return {**finding, "title": f"{gpu}: {finding['title']}"} if gpu else finding
