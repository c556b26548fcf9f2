# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two real ranks on the local cluster, and what they are compared with. What goes wrong with them: tests/faults."""

from __future__ import annotations

import json
import re

import pytest

from tests.integration import canaries
from tests.integration.conftest import ANY_SPEED


@pytest.fixture
def ranks(tmp_path):
    """The variables that select two ranks that are well."""
    return {**canaries.select(tmp_path / "workloads", "ranks_canary"), **ANY_SPEED}


@pytest.mark.slow
def test_two_ranks_between_two_runs_of_one_pass(play, ranks):
    played = play(variables=ranks)
    assert played.code == 0, played.end
    evidence = json.loads((played.folder / "evidence/TEST-2.json").read_text())
    legs = [evidence["legs"][name] for name in ("before", "measured", "after")]
    assert [leg["ranks"] for leg in legs] == [1, 2, 1]
    assert legs[0]["ended"] <= legs[1]["started"] < legs[1]["ended"] <= legs[2]["started"]
    assert len({state["gpu"] for state in legs[1]["states"].values()}) == 2
    assert evidence["baseline"]["source"] == "legs"
    assert played.criterion("T-5")["verdict"] == "pass"
    assert re.search(r" = [\d.]+ \([\d.]+ to [\d.]+\) is >= 0.01", played.criterion("T-5")["why"])
    assert " GPU-hours" in played.screen


@pytest.mark.slow
def test_a_stored_baseline_is_shown_as_such_and_nothing_is_run_for_it(play, ranks):
    first = play(variables=ranks)
    assert first.code == 0, first.end
    stored = {"hpc_validation_baselines": {"TEST-2": str(first.folder / "evidence/TEST-2.json")}}
    second = play(variables={**ranks, **stored})
    assert second.code == 0, second.end
    evidence = json.loads((second.folder / "evidence/TEST-2.json").read_text())
    assert {"before", "measured", "after"} & set(evidence["legs"]) == {"measured"}
    job = first.verdict["workloads"][0]["job"]["job_id"]
    assert f"stored baseline of job {job}, less than a day old" in second.criterion("T-5")["why"]
    there = {"hpc_validation_nodes": ["compute02"], "hpc_validation_slurm": {"nodelist": "compute02"}}
    elsewhere = play(variables={**ranks, **stored, **there})
    assert elsewhere.code != 0
    assert elsewhere.criterion("T-5")["verdict"] == "undetermined"
    assert "it ran on compute01 and this job on compute02" in elsewhere.criterion("T-5")["why"]
