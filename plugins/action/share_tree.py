# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the folder on the controller; the module of the same name writes what differs, all in one call."""

from __future__ import annotations

import base64
import os
import typing as t
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _nul

MAX_BYTES = 8 * 1024 * 1024
ARGUMENTS = {
    "src": {"type": "path"},
    "dest": {"type": "str", "required": True},
    "extra": {"type": "dict", "default": {}},
    "folders": {"type": "list", "elements": "str", "default": []},
    "group": {"type": "str"},
}
IGNORED = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


def read_tree(source: Path) -> dict[str, str]:
    """Relative path → base64 of each regular file below `source`. Raises ValueError on links, OSError on reading."""
    files: dict[str, str] = {}
    total = 0
    for folder, folders, names in os.walk(source, onerror=_raise):
        folders[:] = sorted(set(folders) - IGNORED)
        for path in [Path(folder, name) for name in [*folders, *names]]:
            if path.is_symlink():
                raise ValueError(f"{path} is not a regular file but a link: put in its place what it leads to")
            if path.is_dir():
                continue
            if not path.is_file():
                raise ValueError(f"{path} is not a regular file")
            content = path.read_bytes()
            total += len(content)
            if total > MAX_BYTES:
                raise ValueError(f"{source} holds more than {MAX_BYTES} bytes: large data is staged, not deployed")
            files[path.relative_to(source).as_posix()] = base64.b64encode(content).decode("ascii")
    return files


def _raise(error: OSError) -> t.NoReturn:
    raise error


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        del tmp
        _spec, args = self.validate_argument_spec(argument_spec=ARGUMENTS)
        nul = _nul.refusal({key: value for key, value in args.items() if key != "extra"})
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
            # A failure, not `unreachable`: the share does not hold what was to be deployed, and a rescue must know.
            answer = {"failed": True, "msg": f"{args['dest']} was not deployed: the connection failed: {exc}"}
        result.update(answer)
        result.pop("invocation", None)
        return result
