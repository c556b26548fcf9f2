# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: tree_digest
version_added: 0.1.0
short_description: Return a SHA-256 of a folder on the controller
description:
  - The digest covers the names and contents of the files that M(mlops.hpc_validation.share_tree) would deploy from it.
options:
  _input:
    description: The folder.
    type: path
    required: true
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Show the digest of a workload's folder
  ansible.builtin.debug:
    msg: "{{ 'files/workloads/mnist_single_gpu' | mlops.hpc_validation.tree_digest }}"
"""

RETURN = r"""
_value:
  description: The digest in hexadecimal.
  type: str
"""

import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import tree


def tree_digest(folder: str) -> str:
    """Return the digest."""
    return tree.digest(Path(str(folder)))


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"tree_digest": tree_digest}
