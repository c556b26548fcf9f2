# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight holds back is neither staged nor prepared; all else of the run is."""

from __future__ import annotations

import typing as t

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from tests.unit.conftest import ROOT

WORKLOADS = [{"id": name} for name in ("MLOPS-1.1", "MLOPS-2.1", "MLOPS-1.2")]


def tasks(role: str) -> list[dict[str, t.Any]]:
    return t.cast("list[dict[str, t.Any]]", yaml.safe_load((ROOT / f"roles/{role}/tasks/main.yml").read_text()))


def templated(value: str, held: list[str], **variables: t.Any) -> t.Any:
    given = {"__run": {"workloads": WORKLOADS}, "__preflight_held_back": held, **variables}
    return Templar(loader=DataLoader(), variables=given).template(trust_as_template(value))


@pytest.mark.parametrize(
    ("held", "staged"),
    [
        ([], ["MLOPS-1.1", "MLOPS-2.1", "MLOPS-1.2"]),
        (["MLOPS-2.1"], ["MLOPS-1.1", "MLOPS-1.2"]),
        (["MLOPS-1.1", "MLOPS-2.1"], ["MLOPS-1.2"]),
    ],
)
def test_only_what_will_run_is_staged(held: list[str], staged: list[str]) -> None:
    (plan,) = [task["ansible.builtin.set_fact"] for task in tasks("stage") if "ansible.builtin.set_fact" in task]
    given, filtered, _settings = plan["__stage_plan"].partition("| mlops.hpc_validation.stage_plan(")
    assert filtered
    found = templated(given + "}}", held)
    assert isinstance(found, list)
    assert [each["id"] for each in found] == staged


@pytest.mark.parametrize(
    ("held", "prepared"),
    [([], ["MLOPS-1.1", "MLOPS-2.1"]), (["MLOPS-2.1"], ["MLOPS-1.1"]), (["MLOPS-1.1", "MLOPS-2.1"], [])],
)
def test_only_what_will_run_is_prepared(held: list[str], prepared: list[str]) -> None:
    (loop,) = [task["loop"] for task in tasks("workload") if task["name"].startswith("Prepare")]
    found = templated(loop, held, __wave=["MLOPS-1.1", "MLOPS-2.1"])
    assert [each["id"] for each in found] == prepared


@pytest.mark.parametrize(("held", "is_staged"), [([], True), ([each["id"] for each in WORKLOADS], False)])
def test_without_any_workload_nothing_is_staged(held: list[str], is_staged: bool) -> None:
    text = yaml.safe_load((ROOT / "playbooks/validate.yml").read_text())
    (block,) = [task["block"] for play in text for task in play["tasks"] if task["name"] == "Carry out the run"]
    (step,) = [task for task in block if task["name"].startswith("Stage")]
    variables = {"__run": {"workloads": WORKLOADS}, "__preflight_held_back": held, "__preflight_passed": True}
    templar = Templar(loader=DataLoader(), variables=variables)
    assert all(templar.evaluate_conditional(trust_as_template(each)) for each in step["when"]) is is_staged
    # What preflight did not come to is not asked for: the first condition decides.
    assert step["when"][0] == "__preflight_passed"
