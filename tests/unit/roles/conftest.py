# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of rendered job scripts share."""

from __future__ import annotations

import typing as t

import yaml
from ansible.template import trust_as_template

from tests.unit.conftest import ROOT


def trusted(value: t.Any) -> t.Any:
    """Values as Ansible loads them from a role's own files: templates."""
    if isinstance(value, dict):
        return {key: trusted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [trusted(item) for item in value]
    return trust_as_template(value) if isinstance(value, str) else value


def settings_of(*paths: str) -> dict[str, t.Any]:
    """The variables that these files of roles define."""
    variables: dict[str, t.Any] = {}
    for path in paths:
        variables.update(trusted(yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))))
    return variables


def directives(script: str) -> list[str]:
    """What sbatch reads of a script."""
    return [line.removeprefix("#SBATCH ") for line in script.splitlines() if line.startswith("#SBATCH ")]
