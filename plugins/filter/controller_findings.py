# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: controller_findings
version_added: 0.2.0
short_description: Judge whether the controller can judge
description:
  - Checks the version of Ansible, the Python packages that judging needs, and that the collection's files are complete.
options:
  _input:
    description: The value of C(ansible_version.full).
    type: str
    required: true
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Judge the controller
  ansible.builtin.set_fact:
    findings: "{{ ansible_version.full | mlops.hpc_validation.controller_findings }}"
"""

RETURN = r"""
_value:
  description: The findings (schema C(finding.json)).
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import controller


def controller_findings(version: str) -> list[dict[str, t.Any]]:
    """Return the findings."""
    return controller.findings(version=str(version))


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"controller_findings": controller_findings}
