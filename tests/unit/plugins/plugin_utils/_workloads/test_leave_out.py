# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything there is, and what the inventory leaves out of it; what it cannot mean is refused by name."""

from __future__ import annotations

import typing as t

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import leaving_out, selection
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.manifests import WorkloadError

from tests.unit.conftest import ROOT

WORKLOADS: list[dict[str, t.Any]] = [
    {"id": "MLOPS-1.1", "category": 1, "needs": []},
    {"id": "MLOPS-1.2", "category": 1, "needs": ["MLOPS-1.1"]},
    {"id": "MLOPS-2.1", "category": 2, "needs": ["MLOPS-1.1"]},
    {"id": "MLOPS-3.1", "category": 3, "needs": ["MLOPS-1.2", "MLOPS-2.1"]},
]
KNOWN = [workload["id"] for workload in WORKLOADS]


def select(
    categories: list[int] | None, *leave_out: str, only: t.Sequence[str] = (), tags: t.Sequence[str] = ("all",)
) -> tuple[list[str], dict[str, str]]:
    reasons = {name: f"why not {name}" for name in leave_out}
    found = selection.select(WORKLOADS, categories, list(only), list(tags), reasons)
    return [each["id"] for each in found.run], {each["id"]: each["why"] for each in found.left_out}


def test_everything_is_every_workload_and_each_is_asked_for() -> None:
    found = selection.select(WORKLOADS, None, [], ["all"])
    assert [(each["id"], each["asked"]) for each in found.run] == [(name, True) for name in KNOWN]
    assert found.left_out == []


@pytest.mark.parametrize("by", [{"only": ["MLOPS-2.1"]}, {"tags": ["MLOPS-2.1"]}])
def test_who_names_ids_gets_those_of_everything(by: dict[str, t.Any]) -> None:
    assert select(None, "MLOPS-1.1", **by) == (["MLOPS-2.1"], {})


@pytest.mark.parametrize(
    ("categories", "leave_out", "run", "left_out"),
    [
        (None, ["MLOPS-3.1"], KNOWN[:3], ["MLOPS-3.1"]),
        (None, ["MLOPS-2.1", "MLOPS-3.1"], KNOWN[:2], ["MLOPS-2.1", "MLOPS-3.1"]),
        ([1], ["MLOPS-1.2"], ["MLOPS-1.1"], ["MLOPS-1.2"]),
        # What is only needed by what is left out is not run for it.
        ([2, 3], ["MLOPS-3.1"], ["MLOPS-1.1", "MLOPS-2.1"], ["MLOPS-3.1"]),
        # What is not of this run is not told.
        ([1], ["MLOPS-3.1"], ["MLOPS-1.1", "MLOPS-1.2"], []),
    ],
)
def test_what_is_left_out_is_not_run_and_told_with_its_reason(
    categories: list[int] | None, leave_out: list[str], run: list[str], left_out: list[str]
) -> None:
    assert select(categories, *leave_out) == (run, {name: f"why not {name}" for name in left_out})


def test_a_workload_that_is_left_out_is_told_whole() -> None:
    (left,) = selection.select(WORKLOADS, [1], [], ["all"], {"MLOPS-1.2": "no"}).left_out
    assert left == {**WORKLOADS[1], "why": "no"}


@pytest.mark.parametrize(
    ("categories", "leave_out", "why"),
    [
        (None, ["MLOPS-2.1"], "MLOPS-3.1 needs MLOPS-2.1; leave out MLOPS-3.1 as well, or run MLOPS-2.1"),
        ([3], ["MLOPS-1.2", "MLOPS-2.1"], "MLOPS-3.1 needs MLOPS-1.2, MLOPS-2.1; leave out"),
        # A need of a need, which is not asked for itself.
        ([3], ["MLOPS-1.1"], "MLOPS-1.2 needs MLOPS-1.1; leave out MLOPS-1.2"),
    ],
)
def test_what_another_one_needs_is_not_left_out(categories: list[int] | None, leave_out: list[str], why: str) -> None:
    with pytest.raises(WorkloadError, match=f"^hpc_validation_leave_out: {why}"):
        select(categories, *leave_out)


@pytest.mark.parametrize(
    "by",
    [
        {"only": ["MLOPS-2.1", "MLOPS-1.1"]},
        {"tags": ["MLOPS-2.1"]},
        {"only": ["MLOPS-1.1", "MLOPS-2.1"], "tags": ["MLOPS-2.1"]},
    ],
)
def test_what_is_named_is_not_left_out(by: dict[str, t.Any]) -> None:
    with pytest.raises(WorkloadError, match=r"^hpc_validation_leave_out: MLOPS-2\.1 is also selected by"):
        select([1], "MLOPS-2.1", "MLOPS-3.1", **by)


def test_a_run_of_which_all_is_left_out_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"no workload is selected: categories \[3\], .*leave_out \['MLOPS-3\.1'\]"):
        select([3], "MLOPS-3.1")
    with pytest.raises(WorkloadError, match=r"categories all, .*hpc_validation_leave_out \['MLOPS-1\.1', 'MLOPS-1\.2'"):
        select(None, *KNOWN[::-1])


# -- the setting


def test_reasons_are_taken_without_white_space_around_them() -> None:
    given = {"MLOPS-1.1": "no node has two GPUs", "MLOPS-2.1": "  Größe: 2 mal 8\n"}
    assert leaving_out.check(given, KNOWN) == {**given, "MLOPS-2.1": "Größe: 2 mal 8"}
    assert leaving_out.check({}, KNOWN) == {}


@pytest.mark.parametrize("reason", ["", "  ", "\n", None, 4711, True, ["a"], {}, "two\nlines", "\x1b[31mred", "a\x00b"])
def test_a_reason_that_a_report_cannot_show_is_refused(reason: t.Any) -> None:
    with pytest.raises(
        WorkloadError, match=r"^hpc_validation_leave_out\.MLOPS-2\.1: expected the reason, as text on one"
    ):
        leaving_out.check({"MLOPS-1.1": "well", "MLOPS-2.1": reason}, KNOWN)


@pytest.mark.parametrize(
    ("given", "known", "why"),
    [
        (
            {"MLOPS-9.9": "x", 5: "x", "MLOPS-1.1": "x"},
            KNOWN,
            "unknown workload MLOPS-9.9, 5; available: MLOPS-1.1, MLOPS",
        ),
        ({"MLOPS-9.9": "x"}, [], "unknown workload MLOPS-9.9; available: none"),
        (["MLOPS-1.1"], KNOWN, r"expected a mapping of IDs to reasons, found \['MLOPS-1.1'\]"),
        ("MLOPS-1.1", KNOWN, "expected a mapping of IDs to reasons, found 'MLOPS-1.1'"),
    ],
)
def test_what_leaves_out_nothing_is_refused(given: t.Any, known: list[str], why: str) -> None:
    with pytest.raises(WorkloadError, match=f"^hpc_validation_leave_out: {why}"):
        leaving_out.check(given, known)


# -- the playbook


def test_the_playbook_of_all_selects_everything() -> None:
    (play,) = yaml.safe_load((ROOT / "playbooks/validate_all.yml").read_text(encoding="utf-8"))
    assert play["ansible.builtin.import_playbook"] == "validate.yml"
    assert play["vars"]["__everything"] is True
    assert "__categories" not in play["vars"]
    steps = (ROOT / "playbooks/validate.yml").read_text(encoding="utf-8")
    assert 'everything: "{{ __everything | default(false) }}"' in steps
    assert 'leave_out: "{{ hpc_validation_leave_out }}"' in steps
