# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of a run's results where people look for the latest."""

from __future__ import annotations

import json
import os

import pytest
from kit.errors import KitError
from kit.evidence import publishing


def test_results_are_published_whole_and_noted_last(tmp_path, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    output, results = tmp_path / "out", tmp_path / "share/results/training/x"
    output.mkdir()
    (output / "metrics.json").write_text("{}")
    results.mkdir(parents=True)
    (results / "metrics.json").write_text("of an earlier run")
    publishing.publish(output, results, ["metrics.json"])
    assert (results / "metrics.json").read_text() == "{}"
    assert os.listdir(results) == ["metrics.json"]
    note = json.loads((output / "published.json").read_text())
    assert (note["directory"], list(note["sha256"]), note["job_id"]) == (str(results), ["metrics.json"], "manual")


def test_a_run_whose_output_is_the_runs_folder_publishes_in_place(tmp_path):
    (tmp_path / "metrics.json").write_text("{}")
    publishing.publish(tmp_path, tmp_path, ["metrics.json"])
    assert sorted(os.listdir(tmp_path)) == ["metrics.json", "published.json"]


def test_results_that_cannot_be_published_are_not_noted(tmp_path):
    output = tmp_path / "out"
    output.mkdir()
    (output / "metrics.json").write_text("{}")
    (tmp_path / "results").write_text("a file")
    with pytest.raises(KitError, match=r"cannot be published.*publish elsewhere"):
        publishing.publish(output, tmp_path / "results/x", ["metrics.json"])
    assert not (output / "published.json").exists()


def test_what_another_run_overwrites_is_not_noted(tmp_path, monkeypatch):
    output = tmp_path / "out"
    output.mkdir()
    (output / "metrics.json").write_text("{}")
    monkeypatch.setattr(publishing, "write_atomic", lambda path, _fill: path.write_text("another's"))
    with pytest.raises(KitError, match="another run publishes there too"):
        publishing.publish(output, tmp_path / "results", ["metrics.json"])
    assert not (output / "published.json").exists()
