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

from tests.faults import playing, rows

ROWS = rows.load(Path(os.environ.get("HPC_VALIDATION_FAULTS", rows.TABLE)))
random.Random(os.environ.get("HPC_VALIDATION_FAULTS_ORDER", "0")).shuffle(ROWS)


def parameter(row: rows.Row) -> t.Any:
    return pytest.param(row, id=row.id, marks=[] if row.quick else [pytest.mark.slow])


@pytest.mark.parametrize("row", [parameter(row) for row in ROWS])
def test_the_fault_comes_out_as_stated(
    tmp_path: Path, row: rows.Row, record_property: t.Callable[..., None], pytestconfig: pytest.Config
) -> None:
    playing.play(row, tmp_path, record_property, pytestconfig)
