# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: login_findings
version_added: 0.2.0
short_description: Judge the login node
description:
  - Returns findings for the output of C(python -m kit host) on the login node; anything else is V(undetermined).
options:
  _input:
    description: The registered result of the command.
    type: dict
    required: true
  host:
    description: The login node.
    type: str
    required: true
  no_downloads:
    description: Why nothing has to be downloaded, if nothing has to be.
    type: str
  apptainer:
    description: The value of C(hpc_validation_apptainer).
    type: dict
    required: true
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Judge the login node
  ansible.builtin.set_fact:
    findings: "{{ told | mlops.hpc_validation.login_findings(inventory_hostname, {}) }}"
"""

RETURN = r"""
_value:
  description: The findings (schema C(finding.json)).
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import strict_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import host as preflight_host


def login_findings(
    told: t.Any, host: str, apptainer: dict[str, t.Any], no_downloads: str | None = None
) -> list[dict[str, t.Any]]:
    """Return the findings; a failed command has no facts."""
    try:
        facts = strict_json.parse(told["stdout"]) if told["rc"] == 0 else None
    except (TypeError, KeyError, ValueError):
        facts = None
    return preflight_host.login_findings(facts, str(host), no_downloads=no_downloads, apptainer=dict(apptainer))


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"login_findings": login_findings}
