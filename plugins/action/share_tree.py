# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read folders on the controller; the module of the same name writes what differs, all in one call."""

from __future__ import annotations

import base64
import typing as t
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.tree import read_tree

_TREE: dict[str, t.Any] = {
    "src": {"type": "path"},
    "dest": {"type": "str", "required": True},
    "extra": {"type": "dict", "default": {}},
    "folders": {"type": "list", "elements": "str", "default": []},
}
ARGUMENTS = {
    **_TREE,
    "also": {"type": "list", "elements": "dict", "default": [], "options": _TREE},
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
        trees = [args, *args["also"]]
        for each in trees:
            nul = no_nul.refusal({key: value for key, value in each.items() if key not in ("extra", "also")})
            if nul:
                return {**result, "failed": True, "msg": nul}
        try:
            first, *others = [_read(each) for each in trees]
        except _UnreadableError as exc:
            return {**result, "failed": True, "msg": str(exc)}
        try:
            answer = self._execute_module(
                module_name="mlops.hpc_validation.share_tree",
                module_args={**first, "also": others, "group": args.get("group")},
                task_vars=task_vars,
            )
        except AnsibleConnectionFailure as exc:
            # A failure, not `unreachable`: the share does not have the files, and a rescue must run.
            answer = {"failed": True, "msg": f"{args['dest']} was not deployed: the connection failed: {exc}"}
        result.update(answer)
        result.pop("invocation", None)
        return result


class _UnreadableError(Exception):
    """A folder on the controller cannot be deployed; the message says why."""


def _read(tree: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return what the module is given of one folder: its files instead of their source. Raise _UnreadableError."""
    files: dict[str, str] = {}
    if tree["src"]:
        source = Path(tree["src"]).resolve()
        if not source.is_dir():
            raise _UnreadableError(f"{source} on the controller is not a folder")
        try:
            files = read_tree(source)
        except (OSError, ValueError) as exc:
            raise _UnreadableError(f"{source} cannot be deployed: {exc}") from exc
    for name, text in tree["extra"].items():
        files[name] = base64.b64encode(str(text).encode("utf-8")).decode("ascii")
    return {"dest": tree["dest"], "_files": files, "folders": tree["folders"]}
