# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each row of faults.yml, one by one, on the live cluster."""

from __future__ import annotations

import os
import random
import typing as t
from pathlib import Path

import pytest

from tests.faults import outcome, rows, scene, table
from tests.integration import canaries
from tests.integration.conftest import ANY_SPEED, wait_for

ROWS = rows.load(Path(os.environ.get("HPC_VALIDATION_FAULTS", rows.TABLE)))
random.Random(os.environ.get("HPC_VALIDATION_FAULTS_ORDER", "0")).shuffle(ROWS)


def parameter(row: rows.Row) -> t.Any:
    return pytest.param(row, id=row.id, marks=[] if row.quick else [pytest.mark.slow])


@pytest.mark.parametrize("row", [parameter(row) for row in ROWS])
def test_the_fault_comes_out_as_stated(
    tmp_path: Path, row: rows.Row, record_property: t.Callable[..., None], pytestconfig: pytest.Config
) -> None:
    wait_for(scene.at_rest, 180)
    selected = canaries.select(tmp_path / "workloads", row.workload, row.canary, **row.manifest)
    played = scene.Scene(row, tmp_path, {**selected, **ANY_SPEED})
    problems, seconds = ["it did not come to an end"], scene.PATIENCE
    try:
        seconds = played.run()
        patience = 1 if pytestconfig.getoption("--faults-document") else 3
        problems = outcome.problems(row, played.plays, seconds, patience, lambda: played.job)
        played.repair()
        problems += outcome.submissions(row, played.jobs(row.expect.jobs))
    finally:
        record_property("fault", (row.id, table.result(row, problems, seconds)))
        played.abandon()
    assert problems == [], "\n".join([*problems, played.plays[-1].screen])
