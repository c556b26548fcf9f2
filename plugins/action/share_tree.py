# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the folder on the controller; the module of the same name writes what differs, all in one call."""

from __future__ import annotations

import base64
import typing as t
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.tree import read_tree

ARGUMENTS = {
    "src": {"type": "path"},
    "dest": {"type": "str", "required": True},
    "extra": {"type": "dict", "default": {}},
    "folders": {"type": "list", "elements": "str", "default": []},
    "group": {"type": "str"},
}


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        del tmp
        _spec, args = self.validate_argument_spec(argument_spec=ARGUMENTS)
        nul = no_nul.refusal({key: value for key, value in args.items() if key != "extra"})
        if nul:
            return {**result, "failed": True, "msg": nul}
        files: dict[str, str] = {}
        if args["src"]:
            source = Path(args["src"]).resolve()
            if not source.is_dir():
                return {**result, "failed": True, "msg": f"{source} on the controller is not a folder"}
            try:
                files = read_tree(source)
            except (OSError, ValueError) as exc:
                return {**result, "failed": True, "msg": f"{source} cannot be deployed: {exc}"}
        for name, text in args["extra"].items():
            files[name] = base64.b64encode(str(text).encode("utf-8")).decode("ascii")
        try:
            answer = self._execute_module(
                module_name="mlops.hpc_validation.share_tree",
                module_args={
                    "dest": args["dest"],
                    "_files": files,
                    "folders": args["folders"],
                    "group": args.get("group"),
                },
                task_vars=task_vars,
            )
        except AnsibleConnectionFailure as exc:
            # A failure, not `unreachable`: the share does not have the files, and a rescue must run.
            answer = {"failed": True, "msg": f"{args['dest']} was not deployed: the connection failed: {exc}"}
        result.update(answer)
        result.pop("invocation", None)
        return result
