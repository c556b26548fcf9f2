# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that a user is told to run with the share's code leave no compiled files there.

They would have the mode that the caller's umask gives, and be run by every job.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOLD = [
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("docs/guides/*.md"),
    *ROOT.glob("docs/reference/*.md"),
    *ROOT.glob("files/remedies/*.yml"),
    *ROOT.glob("files/workloads/*/workload.yml"),
    *ROOT.glob("files/workloads/*/monitoring/*.yml"),
    *ROOT.glob("files/workloads/*/scripts/*.sh"),
]
CALL = re.compile(r"(?:python3|\"\$python\"|\"\$\{PYTHON:-python3\}\") (-B )?-m kit")


@pytest.mark.parametrize("path", [path for path in TOLD if CALL.search(path.read_text("utf-8"))], ids=lambda p: p.name)
def test_a_command_for_the_share_does_not_compile(path):
    calls = CALL.finditer(path.read_text(encoding="utf-8"))
    assert [call[0] for call in calls if not call[1]] == []


def test_there_are_such_commands():
    assert len([path for path in TOLD if CALL.search(path.read_text(encoding="utf-8"))]) >= 10
