# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What failures lose, against figures computed by hand."""

from __future__ import annotations

import pytest
from kit.pretraining import failures

# A checkpoint every 30 minutes that stops the training for 9 s; 90 s from a failure to the next step.
SAVING = failures.Saving(interval=1800.0, restart=90.0, blocking=9.0)


def test_a_failure_loses_half_an_interval_and_the_restart() -> None:
    assert failures.hours_each(SAVING) == pytest.approx((900 + 90) / 3600)


def test_failures_lose_their_number_times_that() -> None:
    # In 48 h with one a day there are 2; each loses 0.275 h; 96 checkpoints of 9 s take 864 s.
    assert failures.loss(48.0, 24.0, SAVING) == {
        "mtbf_hours": 24.0,
        "failures": 2.0,
        "hours": pytest.approx(0.55),
        "share": pytest.approx(0.275 / 24),
        "blocking_hours": pytest.approx(864 / 3600),
        "young_seconds": pytest.approx(1247.08, abs=0.01),  # √(2 · 9 · 86,400) = √1,555,200
    }


def test_without_the_time_of_a_checkpoint_its_interval_is_not_known() -> None:
    found = failures.loss(48.0, 24.0, failures.Saving(1800.0, 90.0, None))
    assert (found["blocking_hours"], found["young_seconds"]) == (None, None)
    assert found["hours"] == pytest.approx(0.55)


def test_youngs_interval() -> None:
    assert failures.young_seconds(2.0, 1.0) == 120.0  # √(2 · 2 · 3600)


def test_the_assumptions() -> None:
    assert failures.RESTART_SECONDS == 300
    assert failures.MTBF_HOURS == (24, 168, 720)
