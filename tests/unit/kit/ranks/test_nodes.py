# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job of several nodes: the step that runs on each, and what they left put together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.job import node_file
from kit.ranks import nodes

from tests.unit.conftest import ROOT

CONTAINER = {"entered": True, "unchanged": True, "path": "/x.sif"}


@pytest.fixture(autouse=True)
def first_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "compute02")  # a job's first node need not be the first by name


def provenance(node: str, **changes: t.Any) -> dict[str, t.Any]:
    """What `kit provenance` writes on a node, as far as it is looked at here."""
    of_a_node = {**dict.fromkeys(nodes.OF_A_NODE), "driver_version": "570.1", "cuda_driver_version": "12.8"}
    gpus = {"gpus": [{"uuid": f"GPU-{node}"}], "gpus_listed": 2}
    return {"job_id": "12", "attempt": 0, "node": node, **of_a_node, **gpus, "container": None, **changes}


def leave(output: Path, node: str, samples: str | None = None, **changes: t.Any) -> None:
    """Leave what a node leaves."""
    folder = output / "nodes" / node
    folder.mkdir(parents=True)
    (folder / "provenance.json").write_text(json.dumps(provenance(node, **changes)))
    if samples is not None:
        (folder / "gpu.jsonl").write_text(samples)


def gathered(output: Path) -> dict[str, t.Any]:
    nodes.gather(output, 2)
    return dict(json.loads((output / "provenance.json").read_text()))


def test_a_node_writes_to_its_own_file() -> None:
    assert node_file(Path("/out/nodes/%N/gpu.jsonl")) == Path("/out/nodes/compute02/gpu.jsonl")
    assert node_file(Path("/out/gpu.jsonl")) == Path("/out/gpu.jsonl")


def test_gpus_and_samples_are_all_nodes_and_the_jobs_own_node_speaks_first(tmp_path: Path) -> None:
    leave(tmp_path, "compute01", '{"uuid": "GPU-compute01"}\n', kernel="6.1")
    leave(tmp_path, "compute02", '{"uuid": "GPU-compute02"}\n{"uuid": "GPU-co', kernel="6.2")
    document = gathered(tmp_path)
    assert document["node"] == "compute02"
    assert (document["job_id"], document["attempt"]) == ("12", 0)
    assert document["gpus"] == [
        {"uuid": "GPU-compute02", "node": "compute02"},
        {"uuid": "GPU-compute01", "node": "compute01"},
    ]
    assert document["gpus_listed"] == 4
    assert document["driver_version"] == "570.1"
    assert {node: facts["kernel"] for node, facts in document["nodes"].items()} == {
        "compute01": "6.1",
        "compute02": "6.2",
    }
    rows = (tmp_path / "gpu.jsonl").read_text().splitlines()
    assert rows == ['{"uuid": "GPU-compute02"}', '{"uuid": "GPU-co', '{"uuid": "GPU-compute01"}', ""]


def test_drivers_that_differ_are_no_other_jobs_driver(tmp_path: Path) -> None:
    leave(tmp_path, "compute01", driver_version="575.2")
    leave(tmp_path, "compute02")
    assert gathered(tmp_path)["driver_version"] == "570.1 on compute02, 575.2 on compute01"


@pytest.mark.parametrize("key", ["entered", "unchanged"])
def test_an_image_is_the_right_one_only_where_it_is_on_all_nodes(tmp_path: Path, key: str) -> None:
    right = {**CONTAINER, "gpus": {"GPU-2": {"answers": True}}}
    leave(tmp_path, "compute01", container={**CONTAINER, "gpus": {"GPU-1": {"answers": False}}, key: False})
    leave(tmp_path, "compute02", container=right)
    container = gathered(tmp_path)["container"]
    assert container[key] is False
    assert container["gpus"] == {"GPU-1": {"answers": False}, "GPU-2": {"answers": True}}


def test_gpus_in_an_image_are_unknown_where_they_are_on_one_node(tmp_path: Path) -> None:
    leave(tmp_path, "compute01", container={**CONTAINER, "gpus": None})
    leave(tmp_path, "compute02", container={**CONTAINER, "gpus": {"GPU-2": {"answers": True}}})
    assert gathered(tmp_path)["container"]["gpus"] is None


def test_a_node_that_left_nothing_is_missed(tmp_path: Path) -> None:
    leave(tmp_path, "compute02")
    with pytest.raises(KitError, match="1 of 2 nodes left a provenance document: compute02"):
        nodes.gather(tmp_path, 2)


@pytest.mark.parametrize("content", ["", "{", "3"])
def test_a_node_that_cannot_be_understood_is_named(tmp_path: Path, content: str) -> None:
    leave(tmp_path, "compute02")
    leave(tmp_path, "compute01")
    (tmp_path / "nodes/compute01/provenance.json").write_text(content)
    with pytest.raises(KitError, match="compute01 cannot be read"):
        nodes.gather(tmp_path, 2)


def test_without_samples_there_is_no_file_of_them(tmp_path: Path) -> None:
    leave(tmp_path, "compute01")
    leave(tmp_path, "compute02")
    gathered(tmp_path)
    assert not (tmp_path / "gpu.jsonl").exists()


def kit(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "files"), **environment}
    command = [sys.executable, "-m", "kit", *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=30)


def test_on_a_node_a_container_gets_that_nodes_variables() -> None:
    said = {"SLURMD_NODENAME": "compute01", "APPTAINERENV_SLURMD_NODENAME": "compute02", "APPTAINERENV_KEPT": "x"}
    done = kit("nodes", "--count", "1", "env", **said)
    assert {"APPTAINERENV_SLURMD_NODENAME=compute01", "APPTAINERENV_KEPT=x"} <= set(done.stdout.splitlines())


def test_several_nodes_are_a_step_which_calls_itself_on_each(tmp_path: Path) -> None:
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    srun.chmod(0o755)
    done = kit("nodes", "--count", "2", "env", "-0", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.stdout.splitlines()[-7:] == ["-m", "kit", "nodes", "--count", "1", "env", "-0"]
    assert "--nodes=2" in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [(("--count", "0", "env"), "expected at least 1"), (("--count", "2"), "no command is given")],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, ...], why: str) -> None:
    done = kit("nodes", *arguments)
    assert done.returncode == 1
    assert why in done.stderr
