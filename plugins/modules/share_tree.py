#!/usr/bin/python
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: share_tree
version_added: 0.1.0
short_description: Deploy small folders to the share in one call
description:
  - Makes O(dest) hold the files of O(src) and O(extra). Each file is written beside its place, synced and renamed, so
    that a job that starts meanwhile reads the old file or the new one, never a partial one.
  - What it deployed is listed in C(.share_tree.json) in O(dest). A file that is no longer deployed is removed if it is
    in that list, and so is a folder below O(dest) that this leaves empty; nothing else is ever removed. Until a run is
    over, the list has the files of before as well, so that the next run removes what an interrupted one left.
  - Jobs run these files as the submitting user, so nothing is deployed where another user could change it. O(dest), the
    folders below it and all its parents from C(/) down must belong to that user, to root or to the owner of their own
    parent, and neither everybody nor a group other than that user's own, root's and O(group) may write there. If one of
    these groups may, a member of it may own the folder too. Parents may be open to everybody if they have the sticky
    bit.
  - A file with the right content but another owner, or a mode other than 0644, is rewritten.
  - One call deploys a whole folder, or several; M(ansible.builtin.copy) takes one or two for each file.
extends_documentation_fragment:
  - mlops.hpc_validation.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
  async:
    support: none
  action:
    support: full
options:
  src:
    description: Folder on the controller. Links are rejected, C(__pycache__) is left out.
    type: path
  dest:
    description: Absolute path on the share.
    type: str
    required: true
  extra:
    description: More files, as relative path and text.
    type: dict
    default: {}
  folders:
    description: Folders below O(dest) to create, as relative paths.
    type: list
    elements: str
    default: []
  group:
    description:
      - A group, by name or number, whose members may all change what jobs run, so that folders may be writable by it.
      - This is in addition to root's and the submitting user's own group. Empty or unset adds none.
    type: str
    version_added: 0.4.0
  also:
    description: More folders to deploy in the same call, after the first and one after another.
    type: list
    elements: dict
    default: []
    version_added: 0.4.0
    suboptions:
      src:
        description: As O(src).
        type: path
      dest:
        description: As O(dest).
        type: str
        required: true
      extra:
        description: As O(extra).
        type: dict
        default: {}
      folders:
        description: As O(folders).
        type: list
        elements: str
        default: []
      _files:
        description: As O(_files).
        type: dict
  _files:
    description: What is written, as relative path and base64. Set by the action plugin from O(src) and O(extra).
    type: dict
author:
  - mlops.hpc_validation authors (@mlops)
"""

EXAMPLES = r"""
- name: Deploy a workload with its rendered job script
  mlops.hpc_validation.share_tree:
    src: files/workloads/mnist_single_gpu
    dest: /mnt/beegfs/scripts/mnist_single_gpu
    extra:
      mnist_single_gpu.sbatch: "{{ lookup('ansible.builtin.template', 'job.sbatch.j2') }}"

- name: Deploy two folders in one call
  mlops.hpc_validation.share_tree:
    src: files/datasets
    dest: /mnt/beegfs/scripts/datasets
    also:
      - src: files/models
        dest: /mnt/beegfs/scripts/models
"""

RETURN = r"""
written:
  description: Files that were created or changed, relative to O(dest); those of O(also) with their whole path.
  returned: success
  type: list
  elements: str
removed:
  description: Files that were removed, named alike.
  returned: success
  type: list
  elements: str
emptied:
  description: Folders that were removed, since nothing was left in them, named alike.
  returned: success
  type: list
  elements: str
  version_added: 0.4.0
made:
  description: Folders that were created, named alike.
  returned: success
  type: list
  elements: str
"""

import base64
import contextlib
import json
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul, strict_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common.atomic import write_atomic
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common.folder_guard import (
    GroupError,
    Refusal,
    first_refusal,
    trusted_groups,
)

LIST = ".share_tree.json"
MODE = 0o644


@dataclass
class Requested:
    """The requested content of `dest`: files with their content, including their list, and folders."""

    dest: str
    files: dict[str, bytes]
    folders: list[str]
    group: str | None

    def path(self, name: str) -> str:
        """Return the path of `name` in `dest`."""
        return os.path.join(self.dest, name)


@dataclass
class Changes:
    """What differs from what was requested, as relative paths, and the content of files as it was."""

    written: list[str]
    removed: list[str]
    emptied: list[str]
    made: list[str]
    present: dict[str, bytes | None]


def read_regular(path: str) -> bytes | None:
    """Return a regular file's content, empty if this user may not read it; None for anything else, including a link.

    Raise OSError if reading fails.
    """
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        with open(path, "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        return None
    except PermissionError:
        return b""


def is_whole(path: str, content: bytes | None, wanted: bytes) -> bool:
    """Return whether the file has the right content and only this user can change it. Raise OSError."""
    if content != wanted:
        return False
    found = os.lstat(path)
    return found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == MODE


def deployed_before(dest: str) -> list[str]:
    """Return the names in the list; none if it is missing or damaged. Raise OSError if reading fails."""
    try:
        names = strict_json.parse(read_regular(os.path.join(dest, LIST)) or b"[]")
    except (ValueError, RecursionError):
        return []
    names = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return [name for name in names if inside(name) and name == os.path.normpath(name)]


def inside(name: str) -> bool:
    """Return whether a relative path stays inside its starting folder."""
    return not os.path.isabs(name) and ".." not in name.split("/") and name not in ("", ".")


def list_of(names: Iterable[str]) -> bytes:
    """Return the list's content for these files."""
    return (json.dumps(sorted({*names} - {LIST}), indent=0) + "\n").encode()


def folders_of(names: Iterable[str]) -> set[str]:
    """Return every folder that leads to one of these relative paths."""
    return {name[:at] for name in names for at, char in enumerate(name) if char == "/"}


def left_empty(dest: str, withdrawn: list[str], kept: set[str]) -> list[str]:
    """Return the folders that are empty without these files, except `kept`; the deepest first. Raise OSError."""
    gone, empty = set(withdrawn), []
    for folder in sorted(folders_of(withdrawn) - kept, key=lambda name: (-name.count("/"), name)):
        path = os.path.join(dest, folder)
        if (
            os.path.isdir(path)
            and not os.path.islink(path)
            and all(f"{folder}/{name}" in gone for name in os.listdir(path))
        ):
            gone.add(folder)
            empty.append(folder)
    return empty


def refused(dest: str, files: list[str], folders: list[str], groups: frozenset[int]) -> Refusal | None:
    """Return why nothing may be deployed there; None if it may. Raise OSError."""
    below = folders_of(files) | set(folders)
    return first_refusal([(dest, not files), *((os.path.join(dest, name), False) for name in sorted(below))], groups)


def shown(content: bytes) -> str:
    """Return the content as text for a diff."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return f"(binary, {len(content)} bytes)\n"


def requested(module: AnsibleModule) -> list[Requested]:
    """Return what the module's options request, folder by folder; end the module if one is rejected."""
    nul = no_nul.refusal(module.params)
    if nul:
        module.fail_json(msg=nul)
    return [_requested(module, each) for each in (module.params, *module.params["also"])]


def _requested(module: AnsibleModule, given: dict) -> Requested:
    dest = given["dest"]
    if given["_files"] is None:
        module.fail_json(msg="share_tree works only with its action plugin, which reads the folder on the controller")
    # One name for each file, since the list is compared by name: not also a//b or ./a.
    files = {os.path.normpath(name): base64.b64decode(text) for name, text in given["_files"].items()}
    folders = [os.path.normpath(name) for name in given["folders"]]
    if not os.path.isabs(dest):
        module.fail_json(msg=f"dest: expected an absolute path, found {dest}")
    for name in [*files, *folders]:
        if not inside(name):
            module.fail_json(msg=f"{name} would lie outside {dest}")
    if files:
        files[LIST] = list_of(files)
    return Requested(dest, files, folders, module.params["group"])


def changes(asked: Requested, before: list[str]) -> Changes:
    """Return what is to be done if the files of `before` were deployed earlier. Raise OSError."""
    present = {name: read_regular(asked.path(name)) for name in {*asked.files, *before}}
    withdrawn = [name for name in before if name not in asked.files]
    kept = folders_of([*asked.files, *asked.folders]) | set(asked.folders)
    return Changes(
        written=sorted(
            name for name, wanted in asked.files.items() if not is_whole(asked.path(name), present[name], wanted)
        ),
        removed=sorted(name for name in withdrawn if present[name] is not None),
        emptied=left_empty(asked.dest, withdrawn, kept),
        made=[name for name in asked.folders if not os.path.isdir(asked.path(name))],
        present=present,
    )


def apply(asked: Requested, todo: Changes) -> None:
    """Apply the changes. Until all are made, the list has the files of before as well. Raise OSError."""
    if LIST in todo.written and todo.present[LIST] is not None:
        write_atomic(asked.path(LIST), list_of([*todo.present, *asked.files]), MODE)
    for name in todo.made:
        os.makedirs(asked.path(name), mode=0o755, exist_ok=True)
    for name in todo.written:
        if name != LIST:
            write_atomic(asked.path(name), asked.files[name], MODE)
    for name in todo.removed:
        os.unlink(asked.path(name))
    for name in todo.emptied:
        with contextlib.suppress(OSError):  # somebody has put something there meanwhile
            os.rmdir(asked.path(name))
    if LIST in todo.written:
        write_atomic(asked.path(LIST), asked.files[LIST], MODE)


def deployed(module: AnsibleModule, asked: Requested) -> Changes:
    """Make `dest` hold what was requested, less what check mode leaves out. Raises GroupError, OSError."""
    before = deployed_before(asked.dest) if asked.files else []
    why = refused(asked.dest, [*asked.files, *before], asked.folders, trusted_groups(asked.group))
    if why:
        module.fail_json(
            msg=f"nothing was deployed to {asked.dest}: {why.why}, so another user could change what your jobs run. "
            f"To fix it: {why.command}; or set hpc_validation_share to another folder"
        )
    todo = changes(asked, before)
    if not module.check_mode:
        apply(asked, todo)
    return todo


def diff(asked: Requested, done: Changes) -> list[dict[str, str]]:
    """Each changed file as it was and as it is, for diff mode."""
    return [
        {
            "before_header": asked.path(name),
            "after_header": asked.path(name),
            "before": shown(done.present[name] or b""),
            "after": shown(asked.files.get(name, b"")),
        }
        for name in done.written + done.removed
        if name != LIST
    ]


def result(asked: Requested, done: Changes, whole_path: bool) -> dict[str, list]:
    """Return what was done, by the names that the module returns."""
    found = {"written": done.written, "removed": done.removed, "emptied": done.emptied, "made": done.made}
    return {key: [asked.path(name) for name in names] if whole_path else names for key, names in found.items()}


def main() -> None:
    tree = {
        "dest": {"type": "str", "required": True},
        "src": {"type": "path"},
        "extra": {"type": "dict", "default": {}},
        "folders": {"type": "list", "elements": "str", "default": []},
        "_files": {"type": "dict"},
    }
    module = AnsibleModule(
        argument_spec={
            **tree,
            "also": {"type": "list", "elements": "dict", "default": [], "options": tree},
            "group": {"type": "str"},
        },
        supports_check_mode=True,
    )
    trees = requested(module)
    os.umask(0o022)
    returned: dict[str, list] = {"written": [], "removed": [], "emptied": [], "made": []}
    shown_changes: list[dict[str, str]] = []
    for number, asked in enumerate(trees):
        try:
            done = deployed(module, asked)
        except GroupError as exc:
            module.fail_json(msg=f"group: {exc}; correct hpc_validation_share_group")
        except OSError as exc:
            module.fail_json(
                msg=f"{exc.filename or asked.dest} cannot be written: {exc.strerror}. The submitting user must be able "
                f"to write there: check owner, mode and free space (ls -ld {asked.dest}; df -h {asked.dest})"
            )
        for key, names in result(asked, done, whole_path=number > 0).items():
            returned[key] += names
        shown_changes += diff(asked, done) if module._diff else []
    module.exit_json(
        changed=any(returned[key] for key in ("written", "removed", "made")),
        **returned,
        **({"diff": shown_changes} if module._diff else {}),
    )


if __name__ == "__main__":
    main()
