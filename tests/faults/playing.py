# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A row of a workload, played from the cluster at rest to the cluster at rest."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest

from tests.faults import outcome, rows, scene, table
from tests.integration import canaries
from tests.integration.conftest import ANY_SPEED, wait_for


def play(row: rows.Row, folder: Path, record: t.Callable[..., None], config: pytest.Config) -> None:
    """Play the row in a folder of its own and record what it came to; fails where that is not what it states."""
    wait_for(scene.at_rest, 180)
    selected = canaries.select(folder / "workloads", row.workload, row.canary, **row.manifest)
    played = scene.Scene(row, folder, {**selected, **ANY_SPEED})
    problems, seconds = ["it did not come to an end"], scene.PATIENCE
    try:
        seconds = played.run()
        patience = 1 if config.getoption("--faults-document") else 3
        problems = outcome.problems(row, played.plays, seconds, patience, lambda: played.job)
        played.repair()
        problems += outcome.submissions(row, played.jobs(row.expect.jobs))
    finally:
        record("fault", (row.id, table.result(row, problems, seconds)))
        played.abandon()
    assert problems == [], "\n".join([*problems, played.plays[-1].screen])
