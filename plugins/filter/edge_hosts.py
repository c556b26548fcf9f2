# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: edge_hosts
version_added: 0.4.0
short_description: Tell which edge hosts can be measured, and with what
description:
  - For the role P(mlops.hpc_validation.edge#role), from what M(mlops.hpc_validation.edge_host) answered on each host,
    and from the wheels that were fetched.
options:
  _input:
    description: >-
      What M(mlops.hpc_validation.edge_host) returned for V(looked), by host; empty for a host that was left out.
    type: dict
    required: true
  fetched:
    description: The results of C(kit wheelhouse), a loop over what P(mlops.hpc_validation.edge_wheels#filter) returned.
    type: list
    elements: dict
    required: true
  workloads:
    description: IDs of the workloads that are to be measured there.
    type: list
    elements: str
    required: true
  limit:
    description: The value of C(--limit).
    type: str
  failure:
    description: Why the wheels could not be fetched at all.
    type: str
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Conclude
  ansible.builtin.set_fact:
    edge: "{{ looks | mlops.hpc_validation.edge_hosts(fetched.results, ['PROFILE-EMBEDDED']) }}"
"""

RETURN = r"""
_value:
  description:
    - C(hosts), of each host C(look), C(requirement), C(wheelhouse) and C(problem), and C(findings) (schema
      C(finding.json)).
    - A host for which there are no wheels holds the workloads back, and so do hosts of which none can be reached.
  type: dict
"""

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import looks


def edge_hosts(
    told: dict[str, t.Any], fetched: t.Any, workloads: t.Any, limit: str = "", failure: str | None = None
) -> dict[str, t.Any]:
    """Return the hosts and the findings."""
    outcomes = {host: looks.outcome(each, str(limit or "")) for host, each in plain(told).items()}
    return looks.concluded(outcomes, looks.made(plain(fetched), plain(failure)), plain(workloads))


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"edge_hosts": edge_hosts}
