# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of checkpoints."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from kit.errors import KitError
from kit.pretraining import checkpoint_list
from kit.pretraining.checkpoint_list import Found

BATCH = {"global": 512, "micro": 4, "accumulation": 16, "ranks": 8}


def manifest(at: int, **changed: Any) -> dict[str, Any]:
    files = [{"name": f"rank-{rank}.safetensors", "bytes": 1_139_857_920, "sha256": "0" * 64} for rank in range(8)]
    name = f"checkpoint_step_{at}"
    return {"schema": 1, "name": name, "step": at, "tokens": at * 1_048_576, "ranks": 8, "files": files, **changed}


def listed(*found: Found, batch: Any = None) -> dict[str, Any]:
    document = json.loads(json.dumps(checkpoint_list.document(found, batch or BATCH)))
    assert schema.problems("checkpoints", document) == []
    return document


def test_each_checkpoint_with_what_it_holds() -> None:
    (row,) = listed(Found(manifest(1000), "a" * 64, True, "gs://bucket/checkpoint_step_1000", True))["checkpoints"]
    assert row == {
        "name": "checkpoint_step_1000",
        "format": "own",
        "step": 1000,
        "tokens": 1_048_576_000,
        "bytes": 9_118_863_360,  # 12 bytes for each of 759,905,280 parameters
        "manifest_sha256": "a" * 64,
        "local": True,
        "remote": "gs://bucket/checkpoint_step_1000",
        "verified": True,
        "ranks": 8,
        "resumable_on": [1, 2, 4, 8, 16, 32, 64, 128],
    }


def test_they_are_in_the_order_of_their_steps() -> None:
    final = manifest(2000, name="final_checkpoint_step_2000")
    found = [Found(each, "a" * 64, True, None, True) for each in (final, manifest(2000), manifest(1000))]
    document = listed(*found)
    assert document["schema"] == 1
    assert [row["name"] for row in document["checkpoints"]] == [
        "checkpoint_step_1000",
        "checkpoint_step_2000",
        "final_checkpoint_step_2000",
    ]


@pytest.mark.parametrize("verified", [False, None])
def test_nobody_goes_on_from_what_was_not_verified(verified: bool | None) -> None:
    (row,) = listed(Found(manifest(1), "a" * 64, True, None, verified))["checkpoints"]
    assert (row["verified"], row["resumable_on"]) == (verified, [])


def test_deepspeeds_format_is_named() -> None:
    (row,) = listed(Found(manifest(1, format="deepspeed"), "a" * 64, True, None, True))["checkpoints"]
    assert (row["format"], row["resumable_on"][:3]) == ("deepspeed", [1, 2, 4])


@pytest.mark.parametrize(
    ("changed", "batch", "said"),
    [
        ({"step": None}, BATCH, "the manifest of checkpoint 'checkpoint_step_1' or the batch lacks a value: "),
        ({"files": [{"name": "a"}]}, BATCH, "'bytes'"),
        ({"files": None}, BATCH, "lacks a value"),
        ({"ranks": "many"}, BATCH, "many"),
        ({}, {"global": 512}, "'micro'"),
    ],
)
def test_a_manifest_without_a_value_is_named(changed: dict[str, Any], batch: Any, said: str) -> None:
    with pytest.raises(KitError, match=said):
        checkpoint_list.document([Found(manifest(1, **changed), "a" * 64, True, None, True)], batch)


def test_the_list_as_a_table() -> None:
    here = Found(manifest(1000, name="one"), "a" * 64, True, "gs://b/one", True)
    there = Found(manifest(2000, name="two"), "b" * 64, False, "gs://b/two", None)
    damaged = Found(manifest(3000, name="thr|ee"), "c" * 64, True, None, False)
    page = checkpoint_list.page(listed(here, there, damaged, batch={"global": 8, "micro": 4}))
    assert page.split("\n") == [
        "# Checkpoints",
        "",
        "| Checkpoint | Step | Tokens | GB | Manifest | Where | Verified | Ranks that can go on |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        "| one | 1,000 | 1,048,576,000 | 9.12 | `aaaaaaaaaaaa` | here and gs:&#47;/b/one | yes | 1, 2 |",
        "| two | 2,000 | 2,097,152,000 | 9.12 | `bbbbbbbbbbbb` | gs:&#47;/b/two | not known | none |",
        "| thr\\|ee | 3,000 | 3,145,728,000 | 9.12 | `cccccccccccc` | here | **damaged** | none |",
        "",
    ]
