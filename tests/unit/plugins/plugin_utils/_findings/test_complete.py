# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No node of the scope may be lost, whatever was folded."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import complete
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings.columns import Table

from tests.unit.plugins.plugin_utils._findings.made import finding

Json = dict[str, t.Any]
NODES = [f"n{number:03d}" for number in range(1, 6)]
SCOPE = [{"name": name, "gpus": 2} for name in NODES]


def results(nodes: t.Iterable[str] = NODES, model: str = "H100") -> list[Json]:
    return [
        each
        for node in nodes
        for each in (
            finding("node.job", node=node),
            finding("gpu.model", "recorded", node=node, gpu="GPU 0", value=model),
            finding("gpu.model", "recorded", node=node, gpu="GPU 1", value=model),
            finding("gpu.ecc", node=node, gpu="GPU 0"),
            finding("gpu.ecc", node=node, gpu="GPU 1"),
        )
    ]


def without(identity: str, *nodes: str) -> list[Json]:
    return [
        each for each in results() if (each["id"], each["where"]["node"]) not in {(identity, node) for node in nodes}
    ]


def lost(findings: list[Json]) -> list[tuple[str, int]]:
    found = complete.lost(Table(findings), SCOPE)
    assert {each["verdict"] for each in found} <= {"undetermined"}
    return [(each["where"]["node"], each["value"]) for each in found]


def test_a_scope_with_all_results_has_lost_nothing() -> None:
    assert lost(results()) == []


def test_nodes_without_any_result_are_lost() -> None:
    assert lost(results(NODES[:2])) == [("n[003-005]", 3)]
    assert lost([]) == [("n[001-005]", 5)]


def test_a_node_whose_job_has_no_result_is_lost_whatever_else_is_known() -> None:
    assert lost(without("node.job", "n002")) == [("n002", 1)]


@pytest.mark.parametrize("nodes", [("n001",), ("n002", "n004")])
def test_a_check_that_other_nodes_of_the_kind_have_is_missed(nodes: tuple[str, ...]) -> None:
    ((where, count),) = lost(without("gpu.ecc", *nodes))
    assert (where, count) == ("n001" if len(nodes) == 1 else "n[002,004]", len(nodes))


@pytest.mark.parametrize("verdict", ["fail", "undetermined"])
def test_what_is_amiss_already_is_not_told_twice(verdict: str) -> None:
    assert lost([*results(NODES[:4]), finding("scheduler.node", verdict, node="n005")]) == []
    assert lost([*without("gpu.ecc", "n002"), finding("gpu.count", verdict, node="n002")]) == []


def test_what_is_waived_excuses_no_other_loss() -> None:
    assert lost([*results(NODES[:4]), finding("scheduler.node", "waived", node="n005")]) == [("n005", 1)]
    waived = finding("gpu.clocks", "waived", node="n002")
    assert lost([*without("gpu.ecc", "n002"), waived]) == [("n002", 1)]


def test_nodes_of_another_kind_need_not_have_the_same_checks() -> None:
    other = [each for each in results(NODES[4:], "A100") if each["id"] != "gpu.ecc"]
    assert lost([*results(NODES[:4]), *other]) == []
    scope = [*SCOPE[:4], {"name": "n005", "gpus": 0}]
    bare = [each for each in results(NODES[4:]) if each["id"] == "node.job"]
    assert complete.lost(Table([*results(NODES[:4]), *bare]), scope) == []


@pytest.mark.parametrize("identity", ["share.coherence", "share.coherence_rename", "share.locks_across_nodes"])
def test_what_two_nodes_do_need_not_be_known_of_all(identity: str) -> None:
    assert lost([*results(), *(finding(identity, node=node) for node in NODES[:2])]) == []


def test_what_is_only_recorded_need_not_be_the_same_everywhere() -> None:
    assert lost([*results(), finding("gpu.xid_warnings", "recorded", node="n001")]) == []


def test_nodes_whose_gpus_are_in_another_mode_are_of_another_kind() -> None:
    modes = [finding("gpu.mig", "recorded", node=node, value=node == "n005") for node in NODES]
    assert lost([*without("gpu.ecc", "n005"), *modes]) == []


def test_what_fails_on_one_node_hides_no_other() -> None:
    counts = [finding("gpu.count", "fail", node="n001"), *(finding("gpu.count", node=node) for node in NODES[1:])]
    elsewhere = finding("login.munge", "fail", node=None, host="login")
    assert lost([*without("gpu.ecc", "n002"), *counts, elsewhere]) == [("n002", 1)]


def test_nodes_outside_the_scope_do_not_matter() -> None:
    assert lost([*results(), *results(["n099"], "A100")]) == []


@pytest.mark.parametrize("gone", [("gpu.model",), ("gpu.model", "gpu.ecc"), ("gpu.count", "gpu.model", "gpu.ecc")])
def test_a_node_that_lost_what_tells_its_kind_is_no_kind_of_its_own(gone: tuple[str, ...]) -> None:
    counts = [finding("gpu.count", node=node, value=2) for node in NODES]
    kept = [each for each in (*results(), *counts) if each["id"] not in gone or each["where"]["node"] != "n002"]
    assert lost(kept) == [("n002", 1)]


def test_a_node_that_lost_whether_its_gpus_are_split_is_no_kind_of_its_own() -> None:
    modes = [finding("gpu.mig", "recorded", node=node, value=False) for node in NODES[1:]]
    assert lost([*without("gpu.ecc", "n001"), *modes]) == [("n001", 1)]


def test_boards_whose_gpus_cannot_be_split_are_of_another_kind() -> None:
    modes = [finding("gpu.mig", "recorded", node=node, value=False) for node in NODES[:4]]
    assert lost([*results(NODES[:4]), *modes, *results(NODES[4:], "Orin")]) == []


def test_a_check_of_each_gpu_is_missed_if_one_gpu_lacks_it() -> None:
    kept = [each for each in results() if each["where"] != {"node": "n003", "gpu": "GPU 1"}]
    assert lost(kept) == [("n003", 1)]


def test_nodes_with_another_number_of_gpus_than_slurm_defines_are_of_another_kind() -> None:
    counts = [finding("gpu.count", node=node, value=1 if node == "n003" else 2) for node in NODES]
    kept = [each for each in results() if each["where"] != {"node": "n003", "gpu": "GPU 1"}]
    assert lost([*kept, *counts]) == []


def test_results_of_two_jobs_on_a_node_are_not_counted_as_one() -> None:
    assert lost([*results(), *results(NODES[1:3])]) == [("n[002-003]", 2)]
    assert lost([*results(), *results(["n099"]), *results(["n099"])]) == []
    other = finding("node.job", node=None, host="login")
    assert lost([*results(), other, other]) == []


def test_a_gpu_that_only_the_kernel_log_names_need_not_be_on_other_nodes() -> None:
    xids = [finding("gpu.xid", node=node, gpu=gpu) for node in NODES for gpu in ("GPU 0", "GPU 1")]
    assert lost([*results(), *xids, finding("gpu.xid", node="n001", gpu="GPU at 0000:aa:00, not listed")]) == []


def test_a_check_of_whole_nodes_is_missed_on_one_of_them() -> None:
    clocks = [finding("node.clock", node=node) for node in NODES[1:]]
    assert lost([*results(), *clocks]) == [("n001", 1)]
