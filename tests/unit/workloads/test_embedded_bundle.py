# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job makes no bundle with fewer samples than the controller compares a device's answers on."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import bundle as read
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import figures
from kit.errors import KitError

from tests.unit.conftest import ROOT
from tests.unit.scripts import load

bundle = load(ROOT / "files/workloads/training_profiles/bundle.py")


def test_few_windows_are_refused_with_their_number_and_the_bound():
    bundle.require_enough(1000, "/data/device-test")
    with pytest.raises(KitError, match=r"data\.test, /data/device-test, has 999 windows; expected 1000 at least"):
        bundle.require_enough(999, "/data/device-test")


def test_job_and_controller_mean_the_same():
    assert bundle.ANSWERS == figures.ANSWERS
    assert (bundle.CONTENTS, bundle.INPUTS, bundle.TRUTH) == (read.CONTENTS, read.INPUTS, read.ANSWERS)
