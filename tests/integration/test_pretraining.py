# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pretraining's acceptance on the real cluster: two nodes, four ranks, real DeepSpeed (make test-workloads)."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.integration.conftest import CACHE, CLUSTER, ROOT

PLAYBOOK = ROOT / "playbooks/validate_pretraining.yml"
WORKLOAD = ROOT / "files/workloads/gpt_pretraining"


@pytest.mark.slow
def test_the_acceptance_passes_and_leaves_what_it_promises(play):
    played = play(PLAYBOOK)
    assert played.code == 0, played.screen
    (workload,) = played.verdict["workloads"]
    found = {criterion["id"]: criterion["verdict"] for criterion in workload["criteria"]}
    own = {name: verdict for name, verdict in found.items() if name.startswith("S3-")}
    manifest = yaml.safe_load((WORKLOAD / "workload.yml").read_text(encoding="utf-8"))
    assert set(own) == {each["id"] for each in manifest["criteria"]}
    assert set(own.values()) == {"pass", "recorded", "not_applicable"}
    on_gpus = {name for name, verdict in own.items() if verdict == "not_applicable"}
    assert on_gpus == {"S3-11.fits", "S3-1.cuda", "S3-24", "S3-24.measured", "S3-27.stall"}
    output = CACHE / "clusters" / CLUSTER / f"share/models/gpt-pretraining/job-{workload['job']['job_id']}"
    for name in ("cost.json", "cost.md", "run_card.md", "checkpoints.json", "hf_model/config.json", "training.log"):
        assert (output / name).stat().st_size > 0, name
    metrics = json.loads((output / "metrics.json").read_text())
    assert metrics["share_of_measured"] > 0
    assert 0 < metrics["checkpoint"]["share_at_thousand"] < 1
    assert "- DeepSpeed: 0.19.8" in (output / "run_card.md").read_text()
    checkpoints = json.loads((output / "checkpoints.json").read_text())["checkpoints"]
    assert [each["step"] for each in checkpoints] == [10, 20, 30, 40]
    assert all(each["verified"] and each["resumable_on"] for each in checkpoints)
    assert not list(output.rglob("*.pt"))  # nothing that would have to be unpickled


@pytest.mark.slow
def test_a_setting_that_is_unknown_is_refused_by_its_name_before_anything_is_submitted(play):
    wrong = {"hpc_validation_pretraining": {"training": {"stepz": 3}}}
    played = play(PLAYBOOK, variables=wrong)
    assert played.code != 0
    (finding,) = [each for each in played.verdict["findings"] if each["id"] == "settings.errors"]
    assert (finding["verdict"], finding["why"]) == (
        "fail",
        "hpc_validation_pretraining: training.stepz: unknown setting; is it training.steps?",
    )
    assert not any(each.get("job") for each in played.verdict["workloads"])
