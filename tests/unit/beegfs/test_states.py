# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every state that was recorded of BeeGFS 7.4.7, replayed to the whole module: states.yml says what must be found."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import _remedies
from hpcval_cluster import beegfs_states

from tests.unit.beegfs.host import not_passed

STATES: dict[str, dict[str, t.Any]] = yaml.safe_load((Path(__file__).parent / "states.yml").read_text())
DEADLINE = 30.0
GRACE = 10.0  # seconds beyond the deadline in which the check has ended, whatever is frozen
# Time for the processes themselves, of which a scaled second has more than a real one.
FACTOR = 0.2


def symptom(finding: dict[str, t.Any]) -> str:
    """The symptom whose remedy a finding has."""
    return next(
        name
        for name, text in _remedies.load().items()
        if re.fullmatch(re.sub(r"\\{\w+\\}", ".+?", re.escape(text)), finding["remedy"])
    )


def found(result: dict[str, t.Any]) -> list[str]:
    """What did not pass: verdict, id, place and remedy."""
    return [
        f"{finding['verdict']} {finding['id']}, {finding['where'].get('target', '-')}, {symptom(finding)}"
        for finding in not_passed(result)
    ]


def check(host, state, factor):
    host.is_in(state, factor=factor)
    result = host.check(deadline=DEADLINE * factor, expect=STATES[state].get("expect", {}))
    assert found(result) == STATES[state]["finds"]
    assert result["verdict"] == STATES[state]["verdict"]
    return result


def test_every_recorded_state_is_in_the_table():
    assert set(STATES) == set(beegfs_states.recorded())


@pytest.mark.parametrize("state", STATES)
def test_a_recorded_state(host, state):
    result = check(host, state, FACTOR)
    assert result["seconds"] <= DEADLINE * FACTOR + GRACE


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_a_recorded_state_at_its_own_speed(host, state):
    result = check(host, state, 1.0)
    assert result["seconds"] <= DEADLINE + GRACE


@pytest.mark.parametrize("state", ["healthy-no-mirrors", "storage-mirrored-only", "both-mirrored-healthy"])
def test_a_healthy_system_passes_whatever_of_it_is_mirrored(host, state):
    assert STATES[state]["finds"] == []
    result = check(host, state, FACTOR)
    assert result["verdict"] == "pass"
    assert result["failed"] is False
