# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict in the form of schema 1: written if asked for, and made of a folded one."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import columns
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import runs, schema_1

from tests.unit.plugins.plugin_utils._findings.made import finding

Json = dict[str, t.Any]
NODES = ["n001", "n002", "n003"]
VERSIONS = {"collection": "0.1.0", "ansible": "2.19.14", "python": "3.11.7"}
CLUSTER = {"version": "24.11.5", "nodes": [{"name": name, "state": "idle", "gres": {"gpu": 1}} for name in NODES]}


def preflight(results: Path, **plan: t.Any) -> Path:
    """Return the folder of a preflight of three nodes of which two were in scope; it has not finished."""
    given = {"title": "Preflight", "accelerator": "cuda", "workloads": [], "probes_only": True, **plan}
    folder = runs.start(results, given, VERSIONS)
    runs.record(folder, "cluster", CLUSTER)
    found = [finding(identity, node=name) for identity in ("node.job", "gpu.ecc") for name in NODES[:2]]
    runs.record(folder, "findings", [*found, finding("share.mounted", node=None, host="login")])
    probed = {
        "scope": [{"name": name, "gpus": 1} for name in NODES[:2]],
        "nodes": NODES[:2],
        "gpus": ["GPU-b", "GPU-a"],
        "left_out": [{"name": "n003", "why": "not among hpc_validation_nodes"}],
    }
    runs.record(folder, "probed", probed)
    return folder


def read(path: Path) -> Json:
    return t.cast(Json, json.loads(path.read_text(encoding="utf-8")))


def told(findings: t.Iterable[Json]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in findings)


def test_a_folded_verdict_expands_to_every_finding_and_every_name(tmp_path: Path) -> None:
    folder = preflight(tmp_path)
    folded = runs.finish(folder)
    document = read(runs.expand(folder))
    assert schema.problems("verdict-1", document) == []
    assert len(document["findings"]) == 5
    assert told(document["findings"]) == told(columns.unpack((folder / "findings.json.gz").read_bytes()))
    assert document["coverage"] == {
        "nodes": {"exercised": NODES[:2], "in_scope": 2},
        "gpus": {"exercised": ["GPU-a", "GPU-b"], "in_scope": 2},
        "left_out": [{"name": "n003", "why": "not among hpc_validation_nodes"}],
    }
    assert [node["name"] for node in document["cluster"]["nodes"]] == NODES
    assert document["verdict"] == folded["verdict"] == "pass"
    assert read(folder / "verdict.json")["schema"] == 2


def test_the_old_form_is_written_if_asked_for(tmp_path: Path) -> None:
    folder = preflight(tmp_path, verdict_schema=1)
    assert read(folder / "verdict.json")["verdict"] == "undetermined"
    verdict = runs.finish(folder)
    document = read(folder / "verdict.json")
    assert (document["schema"], document["verdict"], verdict["schema"]) == (1, "pass", 2)
    assert schema.problems("verdict-1", document) == []
    assert (folder / "findings.json.gz").exists()


def _unfinished(_folder: Path) -> None:
    pass


def _without_sidecar(folder: Path) -> None:
    runs.finish(folder)
    (folder / "findings.json.gz").unlink()


def _with_another(folder: Path) -> None:
    runs.finish(folder)
    (folder / "findings.json.gz").write_bytes(columns.pack(columns.Table([finding()])))


def _torn(folder: Path) -> None:
    runs.finish(folder)
    (folder / "verdict.json").write_text("{")


def test_an_old_form_that_does_not_fit_its_schema_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = preflight(tmp_path, verdict_schema=1)
    before = (folder / "verdict.json").read_bytes()
    monkeypatch.setattr(schema_1, "unfolded", lambda *_arguments: {"schema": 1})
    with pytest.raises(runs.RunError, match="verdict-1"):
        runs.finish(folder)
    assert (folder / "verdict.json").read_bytes() == before


def test_what_expands_to_something_else_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = preflight(tmp_path)
    runs.finish(folder)
    monkeypatch.setattr(schema_1, "unfolded", lambda *_arguments: {"schema": 1})
    with pytest.raises(runs.RunError, match="verdict-1"):
        runs.expand(folder)
    assert not (folder / "verdict-1.json").exists()


def _old(folder: Path) -> None:
    runs.finish(folder)
    document = read(runs.expand(folder))
    (folder / "verdict-1.json").unlink()
    (folder / "verdict.json").write_text(json.dumps(document))


@pytest.mark.parametrize("spoil", [_old, _unfinished, _without_sidecar, _with_another, _torn])
def test_what_is_not_whole_is_not_expanded(tmp_path: Path, spoil: t.Callable[[Path], None]) -> None:
    folder = preflight(tmp_path)
    spoil(folder)
    with pytest.raises(runs.RunError, match=folder.name):
        runs.expand(folder)
    assert not (folder / "verdict-1.json").exists()


def test_only_the_folder_of_a_run_is_expanded(tmp_path: Path) -> None:
    with pytest.raises(runs.RunError, match="is not the folder of a run"):
        runs.expand(tmp_path)


def test_the_verdict_names_its_sidecar_by_content(tmp_path: Path) -> None:
    folder = preflight(tmp_path)
    sidecar = runs.finish(folder)["sidecar"]
    content = (folder / sidecar["path"]).read_bytes()
    assert (sidecar["count"], sidecar["size"]) == (5, len(content))
    assert "findings.json.gz" not in [each["path"] for each in read(folder / "verdict.json")["evidence"]]
