# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A wave's jobs and its workloads: each workload is judged by its own job, in whatever order the jobs come back."""

from __future__ import annotations

import hashlib
import typing as t

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from tests.unit.conftest import ROOT
from tests.unit.roles.conftest import settings_of, trusted

VARS = settings_of("roles/workload/vars/main.yml")


def templated(value: t.Any, **variables: t.Any) -> t.Any:
    return Templar(loader=DataLoader(), variables=variables).template(value)


@pytest.mark.parametrize("identity", ["MLOPS-1.2", "S0-13", "keys", "7"])
def test_a_job_is_submitted_under_its_workloads_id(identity: str) -> None:
    tasks = yaml.safe_load((ROOT / "roles/workload/tasks/deploy.yml").read_text(encoding="utf-8"))
    (jobs,) = [task["ansible.builtin.set_fact"]["__wave_jobs"] for task in tasks if "ansible.builtin.set_fact" in task]
    others = {"other": {"key": "other", "path": "/o"}}
    found = templated(
        trusted(jobs),
        __wave_jobs=others,
        __workload={"id": identity},
        __workload_plan={"submit": {"run_timeout": 9}},
        __workload_submitted={"path": "/x"},
        __workload_script="#!/bin/bash",
    )
    whole = {"key": identity, "path": "/x", "run_timeout": 9, "sha256": hashlib.sha256(b"#!/bin/bash").hexdigest()}
    assert found == {**others, identity: whole}


@pytest.mark.parametrize("identity", ["MLOPS-1.2", "S0-13", "keys", "7"])
def test_a_workload_finds_its_job_by_its_id(identity: str) -> None:
    jobs = [{"key": identity, "job_id": "8"}, {"key": "other", "job_id": "9"}]
    for returned in (jobs, jobs[::-1]):
        wave = {"jobs": returned, "jobs_by_key": {job["key"]: job for job in returned}}
        assert templated(VARS["__workload_job"], __wave_result=wave, __workload={"id": identity})["job_id"] == "8"
