# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's Prometheus watches a real training on the local cluster, and raises its alerts (make test-workloads)."""

from __future__ import annotations

import shutil
import typing as t
from pathlib import Path

import pytest

from tests.integration import canaries, small_pretraining
from tests.integration.conftest import ANY_SPEED, CACHE, CLUSTER, cluster, running_play
from tests.prometheus import Asked, prometheus_of

BREAKS_AT = 300  # a step that comes some 30 s after the first
PATIENCE = 240.0  # seconds


@pytest.fixture
def textfiles() -> t.Iterator[Path]:
    """The folder of the text files as this machine sees it."""
    cluster("login", "mkdir", "-p", "/mnt/beegfs/textfiles", user="admin")
    folder = CACHE / "clusters" / CLUSTER / "share/textfiles"
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def asked(textfiles: Path, tmp_path: Path) -> t.Iterator[Asked]:
    """A Prometheus that asks a node_exporter with this folder."""
    with prometheus_of(textfiles, tmp_path) as found:
        yield found


@pytest.mark.slow
def test_a_loss_that_is_no_number_and_the_step_that_is_left_out_are_alerts(asked: Asked, tmp_path: Path) -> None:
    selected = canaries.select(tmp_path / "workloads", small_pretraining.NAME, f"nan-{BREAKS_AT}")
    training = {"steps": 2 * BREAKS_AT, "checkpoint": {"every": 100}, "watch": {"textfile": "/mnt/beegfs/textfiles"}}
    variables = {
        **selected,
        **ANY_SPEED,
        "hpc_validation_pretraining": {"training": training},
        "hpc_validation_results": str(tmp_path / "results"),
    }
    with running_play(variables, tmp_path, f" {small_pretraining.NAME}: RUNNING for"):
        asked.until("hpc_pretraining_step > 1", PATIENCE)
        (seen,) = asked.until("count_over_time(hpc_pretraining_skipped_steps_total[1m]) > 1")
        assert seen["metric"]["run"] == "gpt-pretraining"
        assert asked.series('ALERTS{alertstate="firing"}') == []
        for alert in ("PretrainingLossNotFinite", "PretrainingStepsSkipped"):
            (fired,) = asked.until(f'ALERTS{{alertname="{alert}",alertstate="firing"}}', PATIENCE)
            assert fired["metric"]["job_id"] == seen["metric"]["job_id"]
