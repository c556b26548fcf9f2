# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run on the controller only, whatever host the task is for."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import scaffold

ARGUMENTS = {"name": {"type": "str", "required": True}, "dest": {"type": "path", "default": "workloads"}}


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
            new = scaffold.plan(args["name"], args["dest"])
            if not self._task.check_mode:
                scaffold.make(new)
        except scaffold.ScaffoldError as exc:
            raise AnsibleActionFail(str(exc)) from exc
        if not self._task.check_mode:
            Display().display("\n" + "\n".join(scaffold.what_next(new)) + "\n")
        result.update(changed=True, folder=str(new.folder), id=new.id, files=sorted(new.files))
        return result
