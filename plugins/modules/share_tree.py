#!/usr/bin/python
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: share_tree
version_added: 0.1.0
short_description: Deploy a small folder to the share in one call
description:
  - Makes O(dest) hold the files of O(src) and O(extra). Each file is written beside its place, synced and renamed, so
    that a job that starts meanwhile reads the old file or the new one, never half of one.
  - What it deployed is listed in C(.share_tree.json) in O(dest). A file that is no longer deployed is removed if it
    stands in that list, and so is a folder below O(dest) that this leaves empty; nothing else is ever removed. The list
    is written last, so that the next run removes what an interrupted one did not.
  - Jobs run what lies there as the submitting user. So nothing is done where another user could change it. O(dest), the
    folders below it and all that lead there from C(/) must belong to that user, to root or to the owner of the folder
    they lie in, and neither everybody nor a group other than that user's own, root's and O(group) may write there.
    Where such a group may, a member of it may own the folder too.
    Folders that only lead there may be open to everybody if they have the sticky bit.
  - A file that has the right content and another owner, or another mode than 0644, is written anew.
  - One call for a whole folder, where M(ansible.builtin.copy) takes one or two for each file.
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
    description: Folder on the controller. Links are refused, C(__pycache__) is left out.
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
    description: Folders below O(dest) to make, relative paths.
    type: list
    elements: str
    default: []
  group:
    description:
      - A group, by name or number, whose members may all change what jobs run, so that folders may be writable by it.
      - Besides root's and the submitting user's own, which always may. Empty or not given is no other.
    type: str
    version_added: 0.4.0
  _files:
    description: What is written, as relative path and base64. Its action makes it of O(src) and O(extra).
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
"""

RETURN = r"""
written:
  description: Files that were made or changed, relative to O(dest).
  returned: success
  type: list
  elements: str
removed:
  description: Files that were removed.
  returned: success
  type: list
  elements: str
emptied:
  description: Folders that were removed, since nothing was left in them.
  returned: success
  type: list
  elements: str
  version_added: 0.4.0
made:
  description: Folders that were made.
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


def read_regular(path: str) -> bytes | None:
    """The content of a regular file, nothing if this user may not read it; None for anything else, a link included.

    Raises OSError on reading.
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
    """Whether what lies there need not be written anew: nobody but this user can change it either. Raises OSError."""
    if content != wanted:
        return False
    found = os.lstat(path)
    return found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == MODE


def deployed_before(dest: str) -> list[str]:
    """What the list says; nothing if it is missing or damaged. Raises OSError on reading."""
    try:
        names = strict_json.parse(read_regular(os.path.join(dest, LIST)) or b"[]")
    except (ValueError, RecursionError):
        return []
    names = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return [name for name in names if inside(name) and name == os.path.normpath(name)]


def inside(name: str) -> bool:
    """Whether a relative path stays where it starts."""
    return not os.path.isabs(name) and ".." not in name.split("/") and name not in ("", ".")


def folders_of(names: Iterable[str]) -> set[str]:
    """Every folder that leads to one of these relative paths."""
    return {name[:at] for name in names for at, char in enumerate(name) if char == "/"}


def left_empty(dest: str, removed: list[str], kept: set[str]) -> list[str]:
    """The folders, without those of `kept`, in which nothing is left without these files; the deepest first.

    Raises OSError.
    """
    gone, empty = set(removed), []
    for folder in sorted(folders_of(removed) - kept, key=lambda name: (-name.count("/"), name)):
        path = os.path.join(dest, folder)
        if not os.path.islink(path) and all(f"{folder}/{name}" in gone for name in os.listdir(path)):
            gone.add(folder)
            empty.append(folder)
    return empty


def refused(dest: str, files: list[str], folders: list[str], groups: frozenset[int]) -> Refusal | None:
    """Why nothing may be put there, None where it may. Raises OSError."""
    below = folders_of(files) | set(folders)
    return first_refusal([(dest, not files), *((os.path.join(dest, name), False) for name in sorted(below))], groups)


def shown(content: bytes) -> str:
    """For a diff."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return f"(binary, {len(content)} bytes)\n"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "dest": {"type": "str", "required": True},
            "src": {"type": "path"},
            "extra": {"type": "dict", "default": {}},
            "folders": {"type": "list", "elements": "str", "default": []},
            "group": {"type": "str"},
            "_files": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    nul = no_nul.refusal(module.params)
    if nul:
        module.fail_json(msg=nul)
    os.umask(0o022)
    dest = module.params["dest"]
    if module.params["_files"] is None:
        module.fail_json(msg="share_tree works only with its action, which reads the folder on the controller")
    wanted = {name: base64.b64decode(text) for name, text in module.params["_files"].items()}
    if not os.path.isabs(dest):
        module.fail_json(msg=f"dest must be an absolute path, not {dest}")
    for name in [*wanted, *module.params["folders"]]:
        if not inside(name):
            module.fail_json(msg=f"{name} would lie outside {dest}")
    if wanted:
        wanted[LIST] = (json.dumps(sorted(wanted), indent=0) + "\n").encode()
    try:
        before = deployed_before(dest) if wanted else []
        why = refused(dest, [*wanted, *before], module.params["folders"], trusted_groups(module.params["group"]))
        if why:
            module.fail_json(
                msg=f"nothing was put into {dest}: {why.why}, so another user could change what this user's jobs run. "
                f"To mend it: {why.command}; or name another folder as hpc_validation_share"
            )
        present = {name: read_regular(os.path.join(dest, name)) for name in {*wanted, *before}}
        written = sorted(name for name in wanted if not is_whole(os.path.join(dest, name), present[name], wanted[name]))
        removed = sorted(name for name in before if name not in wanted and present[name] is not None)
        folders = [name for name in module.params["folders"] if not os.path.isdir(os.path.join(dest, name))]
        kept = folders_of([*wanted, *module.params["folders"]]) | set(module.params["folders"])
        emptied = left_empty(dest, removed, kept)
        if not module.check_mode:
            for name in folders:
                os.makedirs(os.path.join(dest, name), mode=0o755, exist_ok=True)
            for name in written:
                if name != LIST:
                    write_atomic(os.path.join(dest, name), wanted[name], MODE)
            for name in removed:
                os.unlink(os.path.join(dest, name))
            for name in emptied:
                with contextlib.suppress(OSError):  # somebody has put something there meanwhile
                    os.rmdir(os.path.join(dest, name))
            if LIST in written:
                write_atomic(os.path.join(dest, LIST), wanted[LIST], MODE)
    except GroupError as exc:
        module.fail_json(msg=f"group: {exc}; correct hpc_validation_share_group")
    except OSError as exc:
        module.fail_json(
            msg=f"{exc.filename or dest} cannot be written: {exc.strerror}. The submitting user must be able to write "
            f"there: check owner, mode and free space (ls -ld {dest}; df -h {dest})"
        )
    diff = [
        {
            "before_header": os.path.join(dest, name),
            "after_header": os.path.join(dest, name),
            "before": shown(present[name] or b""),
            "after": shown(wanted.get(name, b"")),
        }
        for name in written + removed
        if name != LIST
    ]
    module.exit_json(
        changed=bool(written or removed or folders),
        written=written,
        removed=removed,
        emptied=emptied,
        made=folders,
        diff=diff,
    )


if __name__ == "__main__":
    main()
