# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run on the controller only, without a connection to the host, so that it records even if the host is unreachable."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.screen import fitted
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import recall, runs

ERRORS = (runs.RunError, schema.SchemaError)
ARGUMENTS = {
    "state": {"type": "str", "required": True, "choices": ["recorded", "recalled"]},
    "folder": {"type": "path", "required": True},
    "kind": {"type": "str", "choices": ["workload", "findings", "cluster", "probed"]},
    "document": {"type": "raw"},
    "workload": {"type": "str"},
    "script_sha256": {"type": "str"},
    "overrides": {"type": "dict", "default": {}},
    "references": {"type": "dict", "default": {}},
    "context": {"type": "dict", "default": {}},
}
REQUIRED = [
    ("state", "recorded", ("kind", "document")),
    ("state", "recalled", ("workload", "script_sha256")),
]


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        del tmp
        return answer(self, result)


def answer(action: ActionBase, result: dict[str, t.Any]) -> dict[str, t.Any]:
    """Run the task of `action` and return `result` with its outcome."""
    _spec, given = action.validate_argument_spec(argument_spec=ARGUMENTS, required_if=REQUIRED)
    args: dict[str, t.Any] = plain(given)  # as in metrics_assert, so that both read the same values
    nul = no_nul.refusal({key: value for key, value in args.items() if key != "document"})
    if nul:
        raise AnsibleActionFail(nul)
    try:
        result.update({"recorded": _recorded, "recalled": _recalled}[args["state"]](args))
    except ERRORS as exc:
        result.update(failed=True, msg=str(exc))
    return result


def _recorded(args: dict[str, t.Any]) -> dict[str, t.Any]:
    folder = Path(args["folder"])
    runs.record(folder, args["kind"], args["document"])
    return {"changed": False, "amiss": runs.amiss(folder), "passed": runs.passed(folder)}


def _recalled(args: dict[str, t.Any]) -> dict[str, t.Any]:
    folder, identity = Path(args["folder"]), args["workload"]
    judging = {key: args[key] for key in ("overrides", "references", "context")}
    earlier, line = recall.recall(folder, identity, args["script_sha256"], judging)
    Display().display(fitted(line))
    if earlier:
        runs.record(folder, "workload", {"id": identity, "earlier": earlier})
    return {"changed": False, "msg": line, "passed": runs.passed(folder)}
