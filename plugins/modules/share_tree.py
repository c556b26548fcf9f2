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
    that a job that starts meanwhile reads the old file or the new one, never a partial one.
  - What it deployed is listed in C(.share_tree.json) in O(dest). A file that is no longer deployed is removed if it is
    in that list; nothing else is ever removed.
  - Jobs run these files as the submitting user, so nothing is deployed where another user could change it. O(dest), the
    folders below it and all its parents from C(/) down must belong to that user, to root or to the owner of their own
    parent, and neither everybody nor a group other than that user's own, root's and O(group) may write there. If one of
    these groups may, a member of it may own the folder too. Parents may be open to everybody if they have the sticky
    bit.
  - A file with the right content but another owner, or a mode other than 0644, is rewritten.
  - One call deploys a whole folder; M(ansible.builtin.copy) takes one or two for each file.
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
"""

RETURN = r"""
written:
  description: Files that were created or changed, relative to O(dest).
  returned: success
  type: list
  elements: str
removed:
  description: Files that were removed.
  returned: success
  type: list
  elements: str
made:
  description: Folders that were created.
  returned: success
  type: list
  elements: str
"""

import base64
import json
import os
import stat

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
    return [name for name in names if isinstance(name, str) and inside(name)] if isinstance(names, list) else []


def inside(name: str) -> bool:
    """Return whether a relative path stays inside its starting folder."""
    return not os.path.isabs(name) and ".." not in name.split("/") and name not in ("", ".")


def refused(dest: str, files: list[str], folders: list[str], groups: frozenset[int]) -> Refusal | None:
    """Return why nothing may be deployed there; None if it may. Raise OSError."""
    below = {name[:at] for name in files for at, char in enumerate(name) if char == "/"} | set(folders)
    return first_refusal([(dest, not files), *((os.path.join(dest, name), False) for name in sorted(below))], groups)


def shown(content: bytes) -> str:
    """Return the content as text for a diff."""
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
        module.fail_json(msg="share_tree works only with its action plugin, which reads the folder on the controller")
    wanted = {name: base64.b64decode(text) for name, text in module.params["_files"].items()}
    if not os.path.isabs(dest):
        module.fail_json(msg=f"dest: expected an absolute path, found {dest}")
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
                msg=f"nothing was deployed to {dest}: {why.why}, so another user could change what your jobs run. "
                f"To fix it: {why.command}; or set hpc_validation_share to another folder"
            )
        present = {name: read_regular(os.path.join(dest, name)) for name in {*wanted, *before}}
        written = sorted(name for name in wanted if not is_whole(os.path.join(dest, name), present[name], wanted[name]))
        removed = sorted(name for name in before if name not in wanted and present[name] is not None)
        folders = [name for name in module.params["folders"] if not os.path.isdir(os.path.join(dest, name))]
        if not module.check_mode:
            for name in folders:
                os.makedirs(os.path.join(dest, name), mode=0o755, exist_ok=True)
            for name in written:
                write_atomic(os.path.join(dest, name), wanted[name], MODE)
            for name in removed:
                os.unlink(os.path.join(dest, name))
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
        changed=bool(written or removed or folders), written=written, removed=removed, made=folders, diff=diff
    )


if __name__ == "__main__":
    main()
