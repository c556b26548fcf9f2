# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each row of edge.yml, one by one, on the live cluster and its edge host (make faults GROUP=edge)."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest

from tests.faults import playing, rows


@pytest.mark.slow
@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in rows.load(rows.EDGE)])
def test_the_fault_comes_out_as_stated(
    tmp_path: Path, row: rows.Row, record_property: t.Callable[..., None], pytestconfig: pytest.Config
) -> None:
    playing.play(row, tmp_path, record_property, pytestconfig)
