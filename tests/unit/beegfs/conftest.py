# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BeeGFS's tools as the local cluster's stand-in replays them: its folder is put on the path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cluster"))


def pytest_addoption(parser):
    parser.addoption("--beegfs-document", action="store_true", help="renew the table of docs/preflight.md")


@pytest.fixture(scope="session")
def seconds(request):
    """How long the check took in each state at its own speed; written into the page where that is asked for."""
    from tests.unit.beegfs import page

    measured = {}
    yield measured
    if request.config.getoption("--beegfs-document", default=False):
        page.renew({**page.seconds_of(), **measured})


@pytest.fixture
def host(tmp_path, monkeypatch, capsys):
    """A host with a stand-in for BeeGFS's tools."""
    from tests.unit.beegfs.host import Host

    return Host(tmp_path, monkeypatch, capsys)
