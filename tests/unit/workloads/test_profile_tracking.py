# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command that sends a training's rows says what the profile says, whatever names look like."""

from __future__ import annotations

import argparse
import subprocess

from kit.commands import tracker
from kit.profiles.check import usable

from tests.unit.conftest import ROOT
from tests.unit.scripts import load

HOME = ROOT / "files/workloads/training_profiles"
tracking = load(HOME / "tracking.py")


def test_names_that_begin_with_a_hyphen_reach_the_sender(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_more: started.append(command))
    mlflow = {"tracking_uri": "https://mlflow:5000", "experiment": "-mine", "ca_file": "/etc/ca.pem"}
    changes = {"metadata": {"name": "--hpc"}, "logging": {"mlflow": mlflow}}
    tracking.follower(tmp_path, usable(HOME / "local.yaml", changes))
    parser = argparse.ArgumentParser()
    tracker.add_arguments(parser)
    arguments = parser.parse_args(started[0][started[0].index("tracker") + 1 :])
    assert (arguments.name, arguments.experiment, str(arguments.ca)) == ("--hpc", "-mine", "/etc/ca.pem")
