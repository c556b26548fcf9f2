# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: settings_findings
version_added: 0.3.0
short_description: Make findings of what is wrong with the settings of a training
description:
  - Of each file, or of the inventory's own settings, that has errors one finding (schema C(finding.json)), V(fail),
    with all of its errors.
options:
  _input:
    description: What C(kit profile check --json) answers, or a workload's C(check_settings.py).
    type: list
    elements: dict
    required: true
  workload:
    description: The workload whose settings they are.
    type: str
    required: true
  of:
    description: The setting that they are of, without its prefix, which is V(profile) for training profiles.
    type: str
    required: true
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Record what is wrong
  mlops.hpc_validation.validation_record:
    state: recorded
    folder: "{{ run.folder }}"
    kind: findings
    document: "{{ checked.stdout | from_json | mlops.hpc_validation.settings_findings('PROFILE-HPC', 'profile') }}"
"""

RETURN = r"""
_value:
  description: The findings.
  type: list
  elements: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.settings_findings import findings


def settings_findings(documents: t.Any, workload: str, of: str) -> list[dict[str, t.Any]]:
    """Return the findings."""
    try:
        return findings(documents, workload, of)
    except (KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"settings_findings: expected what kit profile check --json answers: {error!r}"
        ) from error


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"settings_findings": settings_findings}
