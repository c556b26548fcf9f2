# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sweep over all nodes from files to files, as the reports of a small fleet come back."""

from __future__ import annotations

import gzip
import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import sweep
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.reports import FILE
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import runs

from tests.unit import fleet_reports
from tests.unit.fleet_reports import SETTINGS

Json = dict[str, t.Any]
NODES = 6


class Fleet:
    """A preflight whose jobs have ended."""

    def __init__(self, results: Path, bad: float = 0, nodes: int = NODES) -> None:
        plan = {"title": "Preflight", "accelerator": "cuda", "workloads": [], "probes_only": True}
        self.folder = runs.start(results, plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})
        self.count = sweep.plan(self.folder, fleet_reports.cluster(nodes), SETTINGS, [], ([], {}))
        planned = json.loads((self.folder / sweep.PLAN).read_text())
        self.jobs = fleet_reports.jobs(planned)
        self.reports = dict(fleet_reports.reports(planned, self.jobs, bad))

    def finish(self) -> Json:
        (self.folder / sweep.JOBS).write_text(json.dumps(self.jobs))
        lines = [json.dumps({**report, "job": job}) for job, report in self.reports.items()]
        (self.folder / FILE).write_bytes(gzip.compress("\n".join(lines).encode()))
        sweep.judge(self.folder, SETTINGS)
        return runs.finish(self.folder)

    def job(self, node: str) -> str:
        return str(self.jobs["jobs_by_key"][node]["job_id"])


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def amiss(verdict: Json) -> set[tuple[str, str, str | None]]:
    return {(each["id"], each["verdict"], each["where"].get("node")) for each in verdict["findings"]}


def test_a_healthy_fleet_passes_and_covers_all_of_it(fleet: Fleet) -> None:
    assert fleet.count == NODES + 1
    verdict = fleet.finish()
    assert (verdict["verdict"], amiss(verdict)) == ("pass", set())
    assert verdict["coverage"]["nodes"] == {"exercised": "n[001-006]", "count": NODES, "in_scope": NODES}
    assert verdict["coverage"]["gpus"] == {"count": NODES * 8, "in_scope": NODES * 8}


def test_what_is_bad_is_whole_and_the_rest_is_folded(tmp_path: Path) -> None:
    verdict = Fleet(tmp_path, bad=0.34).finish()
    assert verdict["verdict"] == "fail"
    assert len({each["where"]["node"] for each in verdict["findings"]}) == 2
    assert verdict["sidecar"]["count"] > 50 * len(verdict["checks"]) / 3


def test_a_report_that_is_gone_leaves_its_node_undetermined(fleet: Fleet) -> None:
    del fleet.reports[fleet.job("n003")]
    verdict = fleet.finish()
    assert verdict["verdict"] == "undetermined"
    assert {node for _id, _verdict, node in amiss(verdict) if node} == {"n003"}


def test_a_report_of_another_run_is_named_and_hides_nothing(fleet: Fleet) -> None:
    fleet.reports["99"] = fleet.reports[fleet.job("n003")]
    verdict = fleet.finish()
    assert amiss(verdict) == {("step.reports", "undetermined", None)}
    assert "99" in verdict["findings"][0]["why"]


def test_a_report_of_another_node_proves_nothing(fleet: Fleet) -> None:
    fleet.reports[fleet.job("n003")] = fleet.reports[fleet.job("n004")]
    verdict = fleet.finish()
    assert ("gpu.readable", "undetermined", "n003") in amiss(verdict)


def test_jobs_that_were_refused_hide_no_other(fleet: Fleet) -> None:
    for node in ("n002", "n005"):
        del fleet.reports[fleet.job(node)]
        fleet.jobs["jobs_by_key"][node] = {"key": node, "job_id": "0", "state": "UNKNOWN", "reason_text": "refused"}
    verdict = fleet.finish()
    assert {node for _id, _verdict, node in amiss(verdict) if node} == {"n002", "n005"}
    assert verdict["coverage"]["nodes"]["exercised"] == "n[001,003-004,006]"


@pytest.mark.parametrize("name", [sweep.JOBS, sweep.PLAN])
def test_without_the_jobs_or_the_plan_nothing_is_judged(fleet: Fleet, name: str) -> None:
    fleet.finish()
    (fleet.folder / name).write_text("{")
    with pytest.raises((OSError, ValueError)):
        sweep.judge(fleet.folder, SETTINGS)


def test_where_judging_was_lost_every_node_is_missed(fleet: Fleet) -> None:
    verdict = runs.finish(fleet.folder)
    assert (verdict["verdict"], amiss(verdict)) == ("undetermined", {("coverage.node", "undetermined", "n[001-006]")})


def test_a_dry_run_expects_no_results(tmp_path: Path) -> None:
    plan = {"title": "Preflight", "accelerator": "cuda", "workloads": [], "probes_only": True}
    folder = runs.start(tmp_path, plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})
    sweep.plan(folder, fleet_reports.cluster(2), SETTINGS, [], ([], {}), dry=True)
    assert runs.finish(folder)["findings"] == []


def test_a_larger_fleet_makes_no_larger_verdict(tmp_path: Path) -> None:
    sizes = []
    for nodes in (4, 40):
        fleet = Fleet(tmp_path / str(nodes), nodes=nodes)
        fleet.finish()
        sizes.append((fleet.folder / "verdict.json").stat().st_size)
    assert sizes[1] < 1.1 * sizes[0]


def test_what_is_planned_is_recorded(tmp_path: Path) -> None:
    plan = {"title": "Preflight", "accelerator": "cuda", "workloads": [], "probes_only": True}
    folder = runs.start(tmp_path, plan, {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"})
    info = fleet_reports.cluster(3)
    info["nodes"][2]["state"] = "down"
    settings = {**SETTINGS, "nodes": ["n001", "n003"]}
    assert sweep.plan(folder, info, settings, [], ([], {})) == 1
    assert json.loads((folder / "cluster.json").read_text()) == info
    probed = json.loads((folder / "probed.json").read_text())
    assert [node["name"] for node in probed["scope"]] == ["n001", "n003"]
    assert [left["name"] for left in probed["left_out"]] == ["n002"]
    assert (probed["nodes"], probed["gpus"]) == ([], [])
    assert ("scheduler.node", "undetermined", "n003") in amiss(runs.finish(folder))


@pytest.mark.parametrize(("strange", "told"), [(5, 5), (6, 6), (50, 6)])
def test_not_every_strange_report_is_told(fleet: Fleet, strange: int, told: int) -> None:
    for number in range(strange):
        fleet.reports[str(9000 + number)] = {}
    (finding,) = fleet.finish()["findings"]
    reasons = finding["why"].split("; ")
    assert len(reasons) == told
    assert (reasons[-1] == f"and {strange - 5} more") is (strange > 5)
