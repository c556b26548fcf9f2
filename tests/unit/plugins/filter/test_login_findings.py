# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the login node's command told is believed only where it ended well."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.filter.login_findings import login_findings


def verdicts(told: t.Any) -> set[str]:
    return {finding["verdict"] for finding in login_findings(told, "login", {"required": True}) if finding}


def test_a_command_that_ended_well_is_believed(example: t.Callable[[str], t.Any]) -> None:
    assert "pass" in verdicts({"rc": 0, "stdout": json.dumps(example("host"))})


@pytest.mark.parametrize("rc", [1, 124, None, "0"])
def test_one_that_did_not_told_nothing_whatever_it_printed(example: t.Callable[[str], t.Any], rc: object) -> None:
    assert "pass" not in verdicts({"rc": rc, "stdout": json.dumps(example("host"))})


@pytest.mark.parametrize(
    "told", [None, {}, {"rc": 0}, {"rc": 0, "stdout": ""}, {"rc": 0, "stdout": "[1"}, {"stdout": "{}"}]
)
def test_one_that_was_not_run_or_cannot_be_read_told_nothing(told: t.Any) -> None:
    found = verdicts(told)
    assert "undetermined" in found
    assert "pass" not in found
