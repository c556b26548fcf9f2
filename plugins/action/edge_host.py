# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at an edge host, measure there, or remove what is ours, by its shell and its Python: no module runs there."""

from __future__ import annotations

import contextlib
import posixpath
import shlex
import tempfile
import typing as t
from pathlib import Path

from ansible import constants
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul, scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import (
    answer,
    bundle,
    judged,
    payload,
    problem,
    requirements,
    results,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.problem import ProblemError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.screen import fitted

Json = dict[str, t.Any]
ARGUMENTS = {
    "state": {"type": "str", "required": True, "choices": ["looked", "measured", "absent"]},
    "python": {"type": "str", "default": "python3"},
    "folder": {"type": "str", "default": "~/.hpc_validation"},
    "root": {"type": "str", "default": "/"},
    "timeout": {"type": "int", "default": 3600},
    "run": {"type": "path"},
    "workload": {"type": "str"},
    "job": {"type": "dict"},
    "wheelhouse": {"type": "dict"},
    "found": {"type": "dict"},
    "problem": {"type": "dict"},
}
REQUIRED = [("state", "measured", ("run", "workload", "job", "found"))]
# These keep the standard input of what they run open as long as they last. Others close it at once, and a device ends
# itself when that is closed.
HOLDING = ("ssh", "paramiko", "paramiko_ssh", "libssh")


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Return what the state returns, and `problem`, null if all is well: what a host does never fails the task."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        del tmp
        _spec, given = self.validate_argument_spec(argument_spec=ARGUMENTS, required_if=REQUIRED)
        args: Json = plain(given)
        nul = no_nul.refusal({name: args[name] for name in ("python", "folder", "root", "run", "workload")})
        if nul:
            raise AnsibleActionFail(nul)
        if self._connection.become is not None:
            raise AnsibleActionFail(
                "edge hosts are used without become, as the user who connects: take ansible_become out of what the "
                "inventory says of the group edge"
            )
        if self._task.check_mode:
            return {**result, "skipped": True, "changed": False, "msg": "check mode: nothing is put on the host"}
        host = str((task_vars or {}).get("inventory_hostname", "the host"))
        return {**result, "changed": False, "problem": None, **getattr(self, f"_{args['state']}")(args, host)}

    def _looked(self, args: Json, _host: str) -> Json:
        try:
            words = [args["folder"], args["root"]]
            look = answer.look(self._asked(FILES / "edge" / "look.py", args["python"], words))
        except ProblemError as exc:
            return {"look": None, "requirement": None, "problem": exc.told}
        try:
            return {"look": look, "requirement": requirements.requirement(look)}
        except ProblemError as exc:
            return {"look": look, "requirement": None, "problem": exc.told}

    def _absent(self, args: Json, host: str) -> Json:
        try:
            document = self._asked(FILES / "edge" / "remove.py", args["python"], [args["folder"]])
            told = problem.read(document.get("problem"))
        except ProblemError as exc:
            told, document = exc.told, {}
        if told:
            self._say(f"{host}: nothing was removed: {problem.words(told)}")
        elif document.get("kept") is not None:
            kept = scalars.show(document["kept"])
            self._say(f"{host}: {args['folder']} stays, for in it is {kept}, which is not ours")
        return {"changed": document.get("removed") is True, "problem": told}

    def _measured(self, args: Json, host: str) -> Json:
        run = Path(args["run"])
        try:
            document = self._measurement(args, run)
        except ProblemError as exc:
            document = problem.document(exc.told)
        except Exception as exc:
            document = problem.document(problem.problem("controller", f"{type(exc).__name__}: {exc}"))
        except BaseException as exc:  # the task's time is up, or it is interrupted: the file says so, and it ends
            told = problem.problem("timeout", f"{str(exc) or type(exc).__name__} (hpc_validation_edge_timeout)")
            results.write(run, args["workload"], host, problem.document(told))
            raise
        path = results.write(run, args["workload"], host, document)
        told = document["problem"]
        self._say(f"{host}: {'not measured: ' + problem.words(told) if told else 'measured for ' + args['workload']}")
        return {"changed": True, "problem": told, "path": str(path)}

    def _measurement(self, args: Json, run: Path) -> Json:
        """Return what the host answered. Raise ProblemError, and OSError or ValueError for faults of the controller."""
        known = problem.read(args["problem"])
        if known or not args["wheelhouse"]:
            return problem.document(known or problem.problem("wheels", "there are none for it"))
        made = bundle.read(results.bundle_path(run, args["workload"]), args["job"], args["found"])
        judged.sha256(results.metrics_path(run, args["workload"]), args["job"], made)
        place = results.device_folder(run, args["workload"])
        asked = payload.request(place, args, made, args["wheelhouse"]["packages"])
        with tempfile.TemporaryDirectory(dir=constants.DEFAULT_LOCAL_TMP) as folder:
            built = Path(folder) / "payload.pyz"
            payload.build(built, asked, payload.parts(), made, args["wheelhouse"])
            document = self._asked(built, args["python"], [], hold=args["timeout"])
        return answer.measured(document, place)

    def _asked(self, program: Path, python: str, words: list[str], hold: int = 0) -> Json:
        """Put a program there, run it, remove it, and return its answer. Raise ProblemError.

        With `hold` its standard input stays open, for so many seconds at most, as long as something waits for it.
        """
        try:
            with self._folder() as folder:
                place = posixpath.join(folder, program.name)
                self._connection.put_file(str(program), place)
                command = shlex.join([python, place, *words])
                if hold:
                    command = self._held(command, folder, hold)
                done = self._low_level_execute_command(command, sudoable=False)
        except (AnsibleError, UnicodeError) as exc:
            raise _problem_of(exc) from exc
        return answer.read(done, python)

    @contextlib.contextmanager
    def _folder(self) -> t.Iterator[str]:
        """Make a temporary folder there and remove it, unless time is up: a connection that hangs would take more."""
        folder = self._make_tmp_path()
        is_late = False
        try:
            yield folder
        except BaseException as exc:
            is_late = not isinstance(exc, Exception)
            raise
        finally:
            if not is_late:
                with contextlib.suppress(AnsibleError):
                    self._remove_tmp_path(folder)
            self._connection._shell.tmpdir = None  # or Ansible would try once more, and fail the task

    def _held(self, command: str, folder: str, seconds: int) -> str:
        """Return a command that keeps standard input open where the connection does not, and removes the folder itself.

        So the folder goes even if the connection is lost meanwhile.
        """
        lines = [f"{command}; code=$?"]
        if self._connection.transport not in HOLDING:
            pipe = shlex.quote(posixpath.join(folder, "held"))
            lines = [
                f"mkfifo -m 600 {pipe} || exit 1",
                f"sleep {seconds} > {pipe} 2> /dev/null & held=$!",
                f"{command} < {pipe}; code=$?",
                "kill $held 2> /dev/null",
            ]
        if not constants.DEFAULT_KEEP_REMOTE_FILES:
            lines.append(self._connection._shell.remove(folder, recurse=True))
        return "\n".join([*lines, "exit $code"])

    def _say(self, line: str) -> None:
        Display().display(fitted(line))


def _problem_of(exc: Exception) -> ProblemError:
    """Return the problem that an error of Ansible's is, by what its words say."""
    text = str(exc)
    if "No space left on device" in text:
        return ProblemError("space", text)
    is_lost = isinstance(exc, AnsibleConnectionFailure) and "Failed to create temporary directory" not in text
    return ProblemError("unreachable" if is_lost else "files", text)
