# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the jobs of a preflight and judge what they reported. Everything large stays in files of the run's folder."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul, scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import expect
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import sweep
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.screen import fitted
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import runs

INFO = "mlops.hpc_validation.slurm_cluster_info"
NOT_FACTS = ("failed", "changed", "invocation", "warnings", "deprecations", "msg", "exception")
ARGUMENTS = {
    "state": {"type": "str", "required": True, "choices": ["planned", "judged"]},
    "folder": {"type": "path", "required": True},
    "settings": {"type": "dict", "required": True},
    "expected": {"type": "list", "elements": "str", "default": []},
    "workloads": {"type": "list", "elements": "dict", "default": []},
    "workload_slurm": {"type": "dict", "default": {}},
}


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        del tmp
        _spec, given = self.validate_argument_spec(argument_spec=ARGUMENTS)
        args: dict[str, t.Any] = plain(given)
        nul = no_nul.refusal({key: args[key] for key in ("folder", "expected")})
        if nul:
            raise AnsibleActionFail(nul)
        try:
            folder = Path(args["folder"])
            if args["state"] == "judged":
                sweep.judge(folder, args["settings"])
            else:
                told = self._execute_module(module_name=INFO, module_args={}, task_vars=task_vars)
                if told.get("failed"):
                    return {**result, **told}
                facts = {k: v for k, v in told.items() if k not in NOT_FACTS and not k.startswith("_ansible")}
                asked = (args["workloads"], args["workload_slurm"])
                result["jobs"] = sweep.plan(
                    folder, facts, args["settings"], args["expected"], asked, dry=bool(self._task.check_mode)
                )
                held = runs.not_submitted(folder)
                for name, why in held.items():
                    Display().display(fitted(f"{name}: not submitted: {scalars.printable(why)}"))
                result["held_back"] = list(held)
            result.update(changed=False, amiss=runs.amiss(folder))
        except (OSError, ValueError, runs.RunError, schema.SchemaError, expect.ExpectError) as exc:
            result.update(failed=True, msg=str(exc))
        return result
