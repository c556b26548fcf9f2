# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a preflight makes of the public settings."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.mlops.hpc_validation.plugins.filter.preflight_jobs import preflight_jobs
from ansible_collections.mlops.hpc_validation.plugins.filter.preflight_settings import preflight_settings

Json = dict[str, t.Any]
PUBLIC: Json = {
    "accelerator": "cuda",
    "nodes": ["n1"],
    "slurm": {"partition": "gpu", "account": "ops"},
    "workload_slurm": {},
    "gpu": {},
    "node_gpus": {},
    "kernel_log": "user",
    "share_type": "beegfs",
    "share_expect": {},
    "apptainer": {"home": True},
    "runtime": "venv",
    "workload_runtime": {},
    "air_gap": False,
    "wheelhouse": "",
}


def derived(selected: t.Sequence[str] = (), **settings: t.Any) -> Json:
    return preflight_settings({**PUBLIC, **settings}, selected)


def test_all_of_them() -> None:
    assert derived() == {
        "accelerator": "cuda",
        "nodes": ["n1"],
        "slurm": {"partition": "gpu", "account": "ops"},
        "workload_slurm": [],
        "gpu": {},
        "node_gpus": {},
        "kernel_log": "user",
        "share_type": "beegfs",
        "share_expect": {},
        "apptainer": {"home": True},
        "xid_seconds": 0,
        "coherence": 5,
        "coherence_limit": 480,
        "no_downloads": "",
    }


def test_of_selected_workloads_the_sites_settings_with_their_own() -> None:
    own = {"W-1": {"partition": "big", "extra": {"x": 1}}, "W-2": None, "W-3": {"partition": "no"}}
    assert derived(["W-1", "W-2", "W-4"], workload_slurm=own)["workload_slurm"] == [
        {"partition": "big", "account": "ops", "extra": {"x": 1}},
        {"partition": "gpu", "account": "ops"},
    ]


@pytest.mark.parametrize(
    ("selected", "runtime", "by_workload", "required"),
    [
        ([], "venv", {}, False),
        ([], "apptainer", {}, True),
        ([], "venv", {"W-1": "apptainer"}, True),
        (["W-1"], "apptainer", {}, True),
        (["W-1"], "apptainer", {"W-1": "venv"}, False),
        (["W-1", "W-2"], "apptainer", {"W-1": "venv"}, True),
        (["W-1"], "venv", {"W-2": "apptainer"}, False),
        (["W-1", "W-2"], "venv", {"W-2": "apptainer"}, True),
    ],
)
def test_apptainer_is_required_where_a_workload_runs_in_an_image(
    selected: list[str], runtime: str, by_workload: Json, required: bool
) -> None:
    found = derived(selected, runtime=runtime, workload_runtime=by_workload)["apptainer"]
    assert found == {"home": True, **({"required": True} if required else {})}


def test_what_the_site_requires_stays_required() -> None:
    assert derived(apptainer={"required": True})["apptainer"] == {"required": True}


@pytest.mark.parametrize(
    ("gpu", "nodes", "seconds"),
    [
        ({}, {}, 0),
        ({"xid_since": 600}, {}, 600),
        ({"xid_since": 600}, {"n1": {"xid_since": 7200}, "n2": {"count": 2}}, 7200),
        ({"xid_since": 600}, {"n1": {"xid_since": 60}}, 600),
        ({"xid_since": 600}, {"n1": {"xid_since": "boot"}}, 0),
        ({}, {"n1": {"xid_since": 60}}, 0),
    ],
)
def test_the_kernel_log_is_read_as_far_back_as_any_node_wants(gpu: Json, nodes: Json, seconds: int) -> None:
    assert derived(gpu=gpu, node_gpus=nodes)["xid_seconds"] == seconds


@pytest.mark.parametrize(("wait", "step", "limit"), [(0.1, 1, 288), (1, 1, 288), (5.2, 6, 528), (60, 60, 3120)])
def test_how_long_two_nodes_may_take(wait: float, step: int, limit: int) -> None:
    found = derived(share_expect={"coherence_seconds": wait})
    assert (found["coherence"], found["coherence_limit"]) == (step, limit)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"air_gap": True}, "hpc_validation_air_gap"),
        ({"wheelhouse": "/w"}, "hpc_validation_wheelhouse"),
        ({"air_gap": True, "wheelhouse": "/w"}, "hpc_validation_air_gap"),
    ],
)
def test_why_nothing_has_to_be_downloaded(settings: Json, words: str) -> None:
    assert words in derived(**settings)["no_downloads"]


@pytest.mark.parametrize("settings", [{"share_expect": {"coherence_seconds": "soon"}}, {"gpu": {"xid_since": "soon"}}])
def test_what_cannot_be_read_is_refused(settings: Json) -> None:
    with pytest.raises(AnsibleFilterError, match="soon"):
        derived(**settings)


def test_jobs_have_their_scripts_in_the_folder() -> None:
    planned = {
        "jobs": [
            {"key": "n1", "script": "node.sbatch", "options": {"nodelist": "n1"}, "nodes": ["n1"]},
            {"key": "n1,n2", "script": "coherence.sbatch", "options": {}, "nodes": ["n1", "n2"]},
        ]
    }
    assert preflight_jobs(planned, "/mnt/x") == [
        {"key": "n1", "path": "/mnt/x/node.sbatch", "options": {"nodelist": "n1"}},
        {"key": "n1,n2", "path": "/mnt/x/coherence.sbatch", "options": {}},
    ]
