# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: failed_step
version_added: 0.1.0
short_description: Make a finding from a failed task
description:
  - For C(rescue). The finding (schema C(finding.json)) is V(undetermined), since nothing was measured.
  - The remedy is the same as for the same message in a job's log.
options:
  _input:
    description: The value of C(ansible_failed_result).
    type: dict
    required: true
  task:
    description: The value of C(ansible_failed_task).
    type: dict
    required: true
  host:
    description: The host it failed on.
    type: str
    required: true
  workload:
    description: The workload it belongs to.
    type: str
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Record why it failed
  mlops.hpc_validation.validation_record:
    state: recorded
    folder: "{{ run.folder }}"
    kind: findings
    document:
      - "{{ ansible_failed_result | mlops.hpc_validation.failed_step(ansible_failed_task, inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description: The finding.
  type: dict
"""

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import log_patterns, remedies
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.findings import step_failed
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.guard import guard_finding


def failed_step(result: t.Any, task: t.Any, host: str, workload: str | None = None) -> dict[str, t.Any]:
    """Return the finding; `why` is the task's message, or the stderr of a command that failed."""
    told = result if isinstance(result, dict) else {}
    why = str(told.get("msg") or "it failed without a message").strip()
    command = told.get("cmd")
    if command:
        why = f"{command[0] if isinstance(command, list) else command}: {why}"
    exception = str(told.get("exception") or "").strip().splitlines()
    if exception and "Error executing command" in why:
        why = f"{why} {exception[-1]}"
    stderr = str(told.get("stderr") or "").strip()
    if stderr and stderr not in why:
        why = f"{why}: {stderr[-1000:]}"
    where = {"host": str(host), **({"workload": str(workload)} if workload else {})}
    if isinstance(command, list) and command[1:3] == ["-", "guard"]:
        return guard_finding(told.get("rc"), stderr, {"host": str(host)})
    remedy = log_patterns.remedy_of(why) or remedies.remedy("step.failed", where)
    return step_failed("failed", str(task.get("name") or task.get("action")), why, where, remedy)


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"failed_step": failed_step}
