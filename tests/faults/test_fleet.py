# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each row of fleet.yml, one by one, in a preflight of a fleet (`cluster up --fleet 20`)."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest

from tests.faults import outcome, rows, scene, table
from tests.integration.conftest import ANY_SPEED, ROOT, wait_for

ROWS = rows.load(rows.FLEET)
SETTINGS = {"hpc_validation_slurm": {"partition": "fleet"}, "hpc_validation_accelerator": "cpu", **ANY_SPEED}


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.id, marks=[] if row.quick else [pytest.mark.slow]) for row in ROWS]
)
def test_the_fault_comes_out_as_stated(
    tmp_path: Path, row: rows.Row, record_property: t.Callable[..., None], pytestconfig: pytest.Config
) -> None:
    wait_for(scene.at_rest, 180)
    played = scene.Scene(row, tmp_path, SETTINGS, ROOT / "playbooks/preflight.yml", "preflight-n001")
    patience = 1 if pytestconfig.getoption("--faults-document") else 3
    problems, seconds = ["it did not come to an end"], scene.PATIENCE
    try:
        seconds = played.run()
        problems = outcome.problems(row, played.plays, seconds, patience)
        played.repair()
        problems += outcome.submissions(row, played.jobs(row.expect.jobs))
    finally:
        record_property("fault", (row.id, table.result(row, problems, seconds)))
        played.abandon()
    assert problems == [], "\n".join([*problems, played.plays[-1].screen])
