# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run on the controller only, whatever host the task is for."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import log_patterns
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import checking

ERRORS = (checking.CheckError, log_patterns.PatternSetError, schema.SchemaError)
ARGUMENTS = {
    "folder": {"type": "path", "required": True},
    "known": {"type": "list", "elements": "path", "default": []},
}


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        del tmp
        _spec, given = self.validate_argument_spec(argument_spec=ARGUMENTS)
        args: dict[str, t.Any] = plain(given)
        nul = no_nul.refusal(args)
        if nul:
            raise AnsibleActionFail(nul)
        try:
            paths = checking.manifests_in(args["folder"])
            faults = [fault for path in paths for fault in checking.check(path, args["known"])]
        except ERRORS as exc:
            raise AnsibleActionFail(str(exc)) from exc
        lines = checking.report(paths, faults)
        Display().display("\n" + "\n".join(lines) + "\n", color="red" if faults else "green")
        result.update(
            changed=False,
            failed=bool(faults),
            msg=lines[-1],
            manifests=[str(path) for path in paths],
            faults=[dataclasses.asdict(fault) for fault in faults],
        )
        return result
