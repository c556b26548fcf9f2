# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: preflight_settings
version_added: 0.4.0
short_description: Derive the settings of a preflight from the public ones
description:
  - Merges the inventory's settings for all workloads with those for each, and derives how long the jobs of a preflight
    may take and how far back they read the kernel log.
options:
  _input:
    description:
      - The public settings without their prefix, C(accelerator), C(nodes), C(slurm), C(workload_slurm), C(gpu),
        C(node_gpus), C(kernel_log), C(share_type), C(share_expect), C(apptainer), C(runtime), C(workload_runtime),
        C(air_gap) and C(wheelhouse).
    type: dict
    required: true
  selected:
    description: IDs of the run's workloads.
    type: list
    elements: str
    required: true
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Show how long the comparison of two nodes may take
  ansible.builtin.debug:
    msg: "{{ (public | mlops.hpc_validation.preflight_settings(['MLOPS-1.1'])).coherence_limit }}"
"""

RETURN = r"""
_value:
  description:
    - C(accelerator), C(nodes), C(slurm), C(gpu), C(node_gpus), C(kernel_log), C(share_type) and C(share_expect)
      unchanged, and C(workload_slurm), C(apptainer), C(xid_seconds), C(coherence), C(coherence_limit) and
      C(no_downloads).
  type: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import settings


def preflight_settings(given: dict[str, t.Any], selected: t.Sequence[str]) -> dict[str, t.Any]:
    """Return the settings."""
    try:
        return settings.settings(plain(given), plain(selected))
    except (TypeError, ValueError) as exc:
        raise AnsibleFilterError(f"invalid preflight settings: {exc}") from exc


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"preflight_settings": preflight_settings}
