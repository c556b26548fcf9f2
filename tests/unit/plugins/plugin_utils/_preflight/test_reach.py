# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which partitions and nodes jobs can reach, and on which of these Slurm would start one."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import reach

Json = dict[str, t.Any]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"state": "idle", "flags": []}, True),
        ({"state": "ALLOCATED", "flags": None}, True),
        ({"state": "mixed"}, True),
        ({"state": "idle", "flags": ["cloud", "powering_up"]}, True),
        ({"state": "down"}, False),
        ({"state": "unknown"}, False),
        ({"state": None}, False),
        ({}, False),
    ],
)
def test_states_in_which_a_job_is_started(facts: Json, expected: bool) -> None:
    assert reach.usable(facts) is expected


@pytest.mark.parametrize(
    "flag", ["drain", "fail", "maintenance", "not_responding", "invalid_reg", "powered_down", "powering_down", "DRAIN"]
)
def test_flags_with_which_none_is(flag: str) -> None:
    assert reach.usable({"state": "idle", "flags": ["cloud", flag]}) is False


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"state": "idle", "flags": []}, True),
        ({"state": "mixed", "flags": ["cloud", "NOT_RESPONDING"]}, True),
        ({"state": "idle", "flags": ["not_responding", "drain"]}, False),
        ({"state": "idle", "flags": ["drain"]}, False),
        ({"state": "down", "flags": ["not_responding"]}, False),
        ({"flags": ["not_responding"]}, False),
    ],
)
def test_a_node_that_only_does_not_respond_may_become_usable(facts: Json, expected: bool) -> None:
    assert reach.may_become_usable(facts) is expected


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"state": "idle"}, "n1 is idle"),
        ({"state": "down", "flags": None, "reason": ""}, "n1 is down"),
        ({"state": "idle", "flags": ["DRAIN", "cloud"], "reason": "bad DIMM"}, "n1 is idle+drain+cloud (bad DIMM)"),
        ({}, "n1 is None"),
    ],
)
def test_a_node_in_words(facts: Json, words: str) -> None:
    assert reach.in_words({"name": "n1", **facts}) == words


PARTITIONS: list[Json] = [{"name": "cpu", "default": True}, {"name": "gpu", "default": False}, {"name": "big"}]
NODES: list[Json] = [
    {"name": "n1", "partitions": ["cpu"]},
    {"name": "n2", "partitions": ["gpu"], "features": ["nvme", "ib"], "gres_types": ["h100"]},
    {"name": "n3", "partitions": ["gpu", "big"], "features": ["nvme"], "gres_types": ["a100", "h100"]},
    {"name": "n4", "partitions": ["big"], "gres_types": []},
    {"name": "n5", "partitions": None},
]
GPU = {"partition": "gpu, big"}


@pytest.mark.parametrize(
    ("slurm", "partitions", "nodes"),
    [
        ({}, ["cpu"], ["n1"]),
        ({"partition": ""}, ["cpu"], ["n1"]),
        ({"partition": "gpu"}, ["gpu"], ["n2", "n3"]),
        (GPU, ["gpu", "big"], ["n2", "n3", "n4"]),
        ({"partition": "none"}, [], []),
        ({**GPU, "exclude": "n[2-3]"}, ["gpu", "big"], ["n4"]),
        ({**GPU, "nodelist": " n3, n4 "}, ["gpu", "big"], ["n3", "n4"]),
        ({**GPU, "nodelist": "n[1-", "exclude": "n[1-"}, ["gpu", "big"], ["n2", "n3", "n4"]),  # left to Slurm
        ({**GPU, "constraint": "nvme"}, ["gpu", "big"], ["n2", "n3"]),
        ({**GPU, "constraint": "nvme&ib"}, ["gpu", "big"], ["n2"]),
        ({**GPU, "constraint": "ib|opa"}, ["gpu", "big"], ["n2"]),
        ({**GPU, "constraint": "opa&[rack1*2]"}, ["gpu", "big"], ["n2", "n3", "n4"]),  # left to Slurm
        ({**GPU, "gres_type": "a100"}, ["gpu", "big"], ["n3", "n4"]),
    ],
)
def test_what_settings_reach(slurm: Json, partitions: list[str], nodes: list[str]) -> None:
    info = {"partitions": PARTITIONS, "nodes": NODES}
    assert [each["name"] for each in reach.chosen(info, slurm)] == partitions
    assert [each["name"] for each in reach.in_scope(info, slurm)] == nodes


def test_without_facts_nothing_is_reached() -> None:
    assert reach.chosen({}, GPU) == reach.in_scope({}, GPU) == []
    assert reach.in_scope({"partitions": PARTITIONS, "nodes": None}, {}) == []


def test_the_partitions_that_are_named() -> None:
    assert reach.named({"partition": " gpu,, big "}) == ["gpu", "big"]
    assert reach.named({"partition": None}) == reach.named({}) == []
