# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: edge_wheels
version_added: 0.4.0
short_description: Tell which wheels the edge hosts need
description:
  - For the role P(mlops.hpc_validation.edge#role), from what M(mlops.hpc_validation.edge_host) answered on each host.
options:
  _input:
    description: >-
      What M(mlops.hpc_validation.edge_host) returned for V(looked), by host; empty for a host that was left out.
    type: dict
    required: true
  cache:
    description: Folder on the controller that has a folder for each lock, Python and processor.
    type: str
    required: true
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Plan the wheels
  ansible.builtin.set_fact:
    wheels: "{{ looks | mlops.hpc_validation.edge_wheels('/home/me/.cache/edge') }}"
"""

RETURN = r"""
_value:
  description: Each needed folder once, as C(key), C(lock), C(python), C(machine), C(libc) and C(output), its path.
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import looks


def edge_wheels(told: dict[str, t.Any], cache: str) -> list[dict[str, t.Any]]:
    """Return the folders."""
    return looks.wheels({host: looks.outcome(each) for host, each in plain(told).items()}, str(cache))


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"edge_wheels": edge_wheels}
