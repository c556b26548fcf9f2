# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every place of every facts document, damaged in every way: findings in words come of it, and never a traceback.

Most of these facts were told by nodes, which may run anything; the others come of files that may be torn.
"""

from __future__ import annotations

import copy
import json
import typing as t
import zlib

import pytest
from ansible_collections.mlops.hpc_validation.plugins.filter import login_findings as login_filter
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import node as gpu_findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import controller, nodes
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import plan as preflight_plan
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import scheduler as preflight_scheduler
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import runs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.conftest import ROOT
from tests.unit.plugins.plugin_utils._gpu import gpu_node

Json = dict[str, t.Any]
GONE = object()
DAMAGES: list[t.Any] = [
    *(GONE, None, True, False, 0, -1, 1, 1.5, 10**400, float("nan"), float("inf")),
    *("", "text", "1", "\x1b[31m\n", "\ud800"),
    *([], [None], [{}], [[]], [1, "a"], [[["deep"]]]),
    *({}, {"a": None}, {"gpu": None}, {"gpu": "2"}),
]
SOME = 2
EXAMPLES = ROOT / "files/schemas/examples"


def example(name: str) -> Json:
    return t.cast("Json", json.loads((EXAMPLES / f"{name}.json").read_text()))


INFO: Json = {
    "version": "24.11.5",
    "cluster_name": "alps",
    "controllers": [{"host": "login", "role": "primary", "up": True}],
    "accounting": True,
    "min_job_age_seconds": 300,
    "user": "admin",
    "problems": [],
    "partitions": [
        {"name": "gpu", "state": "up", "default": True, "nodes": ["compute01", "compute02"]},
        {"name": "cpu", "state": "up", "default": False, "nodes": ["compute02"]},
    ],
    "nodes": [
        {
            "name": name,
            "state": "idle",
            "flags": [],
            "reason": "",
            "version": "24.11.5",
            "gres": {"gpu": 2},
            "gres_types": ["h200"],
            "features": ["nvme"],
            "partitions": ["gpu"],
        }
        for name in ("compute01", "compute02")
    ],
}
SETTINGS: Json = {
    "accelerator": "cuda",
    "nodes": [],
    "slurm": {"constraint": "nvme", "gres_type": "h200"},
    "workload_slurm": [{"exclude": "compute09"}],
    "gpu": {},
    "node_gpus": {},
    "kernel_log": "user",
    "share_type": "other",
    "share_expect": {},
    "apptainer": {},
}
PLANNED = preflight_plan.plan(INFO, SETTINGS)
PRESENT = ["/dev/nvidia0", "/dev/nvidia1"]


def _gpus(node: str) -> Json:
    facts = {**gpu_node.healthy(), "node": node, "time": gpu_node.NOW + 1}
    for gpu in facts["gpus"]:
        gpu["uuid"] = f"{gpu['uuid']}-{node}"
    return facts


def report(node: str) -> Json:
    return {
        "problems": {},
        "messages": "",
        "begin": {"time": gpu_node.NOW + 0.5},
        "end": {"time": gpu_node.NOW + 3},
        "host": {**example("host"), "host": node, "hostname": node, "time": gpu_node.NOW + 1},
        "gpus": _gpus(node),
        "confined": {"present": PRESENT, "openable": PRESENT[:1]},
        "without": None,
        "share": {"error": "not looked at here", "node": node, "time": gpu_node.NOW + 1},
        "coherence": None,
    }


JOB: Json = {
    "state": "COMPLETED",
    "exit_code": 0,
    "reason_text": "",
    "started": gpu_node.NOW,
    "ended": gpu_node.NOW + 4,
    "nodes": ["compute01"],
}
NODES: Json = {
    "waited": {
        "jobs_by_key": {
            job["key"]: {**JOB, "key": job["key"], "job_id": str(n)} for n, job in enumerate(PLANNED["jobs"])
        },
        "outcomes": {str(n): {"outcome": "ended", "why": "", "remedy": ""} for n in range(len(PLANNED["jobs"]))},
    },
    "reports": {str(n): report(node) for n, node in enumerate(("compute01", "compute02"))},
}
LOGIN: Json = {"rc": 0, "stdout": example("host")}
CONTROLLER: Json = {
    "files": [{"name": "galaxy.yml", "ftype": "file", "chksum_type": "sha256", "chksum_sha256": "0" * 64}]
}


def places(document: t.Any, at: tuple[t.Any, ...] = ()) -> t.Iterator[tuple[t.Any, ...]]:
    """Every place in a document, the document itself first."""
    yield at
    if isinstance(document, (dict, list)):
        for key in document if isinstance(document, dict) else range(len(document)):
            yield from places(document[key], (*at, key))


def some(at: tuple[t.Any, ...]) -> list[t.Any]:
    """A few of the damages, others for each place: all for all takes minutes and finds no more."""
    begin = zlib.crc32(repr(at).encode()) % len(DAMAGES)
    return (DAMAGES + DAMAGES)[begin : begin + SOME]


def damaged(document: t.Any, at: tuple[t.Any, ...], value: t.Any) -> t.Any:
    """A copy that has `value` at the place; GONE takes it out."""
    if not at:
        return None if value is GONE else value
    whole = copy.deepcopy(document)
    inner = whole
    for key in at[:-1]:
        inner = inner[key]
    if value is GONE:
        del inner[at[-1]]
    else:
        inner[at[-1]] = value
    return whole


def scheduler(facts: t.Any) -> list[Json]:
    manifest = example("manifest")
    found = preflight_scheduler.findings(facts, [manifest], {"partition": "gpu"}, "cuda", {manifest["id"]: None})
    return [
        *found,
        *preflight_scheduler.findings(facts, [], {}, "cpu"),
        *preflight_plan.plan(facts, SETTINGS)["findings"],
    ]


def node(facts: t.Any) -> list[Json]:
    facts = facts if isinstance(facts, dict) else {}
    waited, reports = facts.get("waited"), facts.get("reports")
    judging = nodes.Judging(PLANNED, waited, SETTINGS)
    found = list(judging.findings(reports.items() if isinstance(reports, dict) else ()))
    judging.probed()
    return found


def gpus(facts: t.Any) -> list[Json]:
    found = gpu_findings.findings(facts, {"count": 2}, node=gpu_node.NODE, kernel_log="user", simulated=False)
    return [*found, *gpu_findings.findings(facts, None, node=gpu_node.NODE, kernel_log="none", simulated=True)]


def login(facts: t.Any) -> list[Json]:
    told = {**facts, "stdout": json.dumps(facts["stdout"])} if isinstance(facts, dict) and "stdout" in facts else facts
    return login_filter.login_findings(told, "login", {"required": True, "image": "/x.sif"})


JUDGES = {
    "scheduler": (INFO, scheduler),
    "node": (NODES, node),
    "gpus": (gpu_node.healthy(), gpus),
    "login": (LOGIN, login),
}
BY_PLACE = [
    pytest.param(kind, at, id=f"{kind}:{'.'.join(map(str, at)) or 'whole'}")
    for kind, (document, _judge) in JUDGES.items()
    for at in places(document)
    if "gpus" not in at[2:] or kind != "node"  # the same document as in `gpus`
]


def require_words(found: list[Json]) -> None:
    """Findings that a report can hold."""
    for finding in found:
        assert schema.problems("finding", finding) == []
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(("kind", "at"), BY_PLACE)
def test_damage_at_any_place_ends_in_findings(kind, at):
    document, judge = JUDGES[kind]
    for value in DAMAGES if kind == "scheduler" or len(at) < 3 else some(at):
        require_words(judge(damaged(document, at, value)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
@pytest.mark.parametrize("kind", JUDGES)
def test_damage_at_several_places_at_once_ends_in_findings(kind, data):
    document, judge = JUDGES[kind]
    for _time in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.sampled_from(list(places(document))))
        document = damaged(document, at, data.draw(JSON | st.just(GONE)))
    require_words(judge(document))


def test_what_was_not_damaged_passes():
    """Else nothing is shown by what is not a traceback."""
    assert {finding["verdict"] for finding in scheduler(INFO)} <= {"pass", "recorded"}
    for kind in ("gpus", "login"):
        document, judge = JUDGES[kind]
        assert "pass" in {finding["verdict"] for finding in judge(document)}
    assert [f for f in node(NODES) if f["verdict"] == "fail" and not f["id"].startswith("share.")] == []


READ = [
    *[("controllers", 0, key) for key in ("host", "up")],
    *[("partitions", 0, key) for key in ("name", "default")],
    *[("nodes", 1, key) for key in ("name", "flags", "gres", "partitions")],
    ("nodes", 1, "gres", "gpu"),
    *[(key,) for key in ("controllers", "partitions", "nodes")],
]


@pytest.mark.parametrize("at", READ, ids=lambda at: ".".join(map(str, at)))
@pytest.mark.parametrize("value", [None, {"a": 1.5}, [None], [[]], 1.5, float("nan")], ids=repr)
def test_scheduler_facts_of_another_kind_are_undetermined_and_no_job_is_planned(at, value):
    facts = damaged(INFO, at, value)
    (first, *_others) = preflight_scheduler.findings(facts, [example("manifest")], {}, "cuda")
    assert (first["id"], first["verdict"]) == ("scheduler.answers", "undetermined")
    assert str(at[0]) in first["why"]
    planned = preflight_plan.plan(facts, SETTINGS)
    assert (planned["nodes"], planned["jobs"]) == ([], [])
    assert {finding["verdict"] for finding in planned["findings"]} == {"undetermined"}


@pytest.mark.parametrize("kind", ["cluster", "probed"])
@pytest.mark.parametrize("value", DAMAGES[1:], ids=repr)
def test_a_run_with_damaged_facts_comes_to_its_end(tmp_path, kind, value):
    cluster = {"version": "24.11.5", "nodes": INFO["nodes"][:1]}
    whole = cluster if kind == "cluster" else {"nodes": ["n"], "gpus": ["g"], "left_out": [{"name": "m", "why": "w"}]}
    documents = [damaged(whole, at, value) for at in places(whole)]
    plan = {"title": "t", "accelerator": "cuda", "workloads": [], "probes_only": True}
    folder = runs.start(tmp_path, plan, {"collection": None, "ansible": "2", "python": "3"})
    for document in documents:
        (folder / f"{kind}.json").write_text(json.dumps(document))
        verdict = runs.finish(folder)
        assert schema.problems("verdict", verdict) == []


@pytest.mark.parametrize("at", list(places(CONTROLLER)), ids=lambda at: ".".join(map(str, at)) or "whole")
def test_a_damaged_list_of_files_ends_in_findings(tmp_path, at):
    for value in DAMAGES:
        (tmp_path / "FILES.json").write_text(json.dumps(damaged(CONTROLLER, at, value)))
        found = controller.findings(tmp_path)
        require_words(found)
        assert {finding["id"]: finding["verdict"] for finding in found}["controller.collection"] != "pass"


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000, "\0", '{"files": [' + "9" * 5000 + "]}"])
def test_a_torn_list_of_files_ends_in_findings(tmp_path, content):
    (tmp_path / "FILES.json").write_text(content)
    require_words(controller.findings(tmp_path))


@pytest.mark.parametrize("version", ["", "text", "99", "2.19", "\x1b[31m"])
def test_a_version_of_no_known_form_ends_in_findings(version):
    require_words(controller.findings(version=version))
