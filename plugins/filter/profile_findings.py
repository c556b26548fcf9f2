# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: profile_findings
version_added: 0.3.0
short_description: Make findings of what is wrong with training profiles
description:
  - Of each file that has errors one finding (schema C(finding.json)), V(fail), with all of its errors.
options:
  _input:
    description: What C(validate_config.py --json) answers.
    type: list
    elements: dict
    required: true
  workload:
    description: The workload whose profiles they are.
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
    document: "{{ checked.stdout | from_json | mlops.hpc_validation.profile_findings('PROFILE-HPC') }}"
"""

RETURN = r"""
_value:
  description: The findings.
  type: list
  elements: dict
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.profiles import findings


def profile_findings(documents: t.Any, workload: str) -> list[dict[str, t.Any]]:
    """Return the findings."""
    try:
        return findings(documents, workload)
    except (KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"profile_findings: expected what validate_config.py --json answers: {error!r}"
        ) from error


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"profile_findings": profile_findings}
