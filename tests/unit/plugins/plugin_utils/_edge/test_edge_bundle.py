# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bundle is whole, of this job, and of bounded size, or nothing is measured with it."""

from __future__ import annotations

import json
import os
import typing as t
import zipfile
from pathlib import Path

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import bundle, npy
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.problem import ProblemError

from tests.unit.conftest import ROOT
from tests.unit.plugins.plugin_utils._edge import made_edge
from tests.unit.plugins.plugin_utils._edge.made_edge import JOB, contents, files, found, write_bundle

Json = dict[str, t.Any]
WELL = {"stat": {"exists": True, "isreg": True, "size": 1}}


def refused(path: Path, *looked: Json | None) -> tuple[str, str]:
    job, what = looked or (JOB, WELL)
    assert job is not None
    with pytest.raises(ProblemError) as caught:
        bundle.read(path, job, what)
    return caught.value.told["id"], caught.value.told["text"]


def test_a_whole_bundle_is_read(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "b.zip")
    whole = bundle.read(path, JOB, found(path))
    assert whole.deployed == "int8"
    assert whole.packed == made_edge.described(files()["int8.onnx"])
    assert whole.names() == sorted(["bundle.json", *files()])
    assert list(whole.answers().values) == made_edge.ANSWERS


@pytest.mark.parametrize("model", ["float", "pruned", "int8"])
def test_each_model_can_be_the_one_that_is_deployed(tmp_path: Path, model: str) -> None:
    whole = bundle.read(write_bundle(tmp_path / "b.zip", deployed=model), JOB, WELL)
    assert whole.packed == made_edge.described(files()[f"{model}.onnx"])


@pytest.mark.parametrize(
    ("job", "says"),
    [
        ({**JOB, "state": "FAILED", "exit_code": 1}, "its job did not end well"),
        ({**JOB, "state": "TIMEOUT"}, "its job did not end well"),
        ({**JOB, "state": "UNKNOWN"}, "its job did not end well"),
    ],
)
def test_a_job_that_did_not_end_well_leaves_nothing_to_measure(tmp_path: Path, job: Json, says: str) -> None:
    identity, text = refused(write_bundle(tmp_path / "b.zip"), job, WELL)
    assert (identity, says in text) == ("job", True)


@pytest.mark.parametrize(
    ("what", "says"),
    [
        (None, "deploy.zip could not be fetched: nobody has looked for it"),
        ({}, "nobody has looked"),
        ({"msg": "Timed out after 300 second(s)."}, "deploy.zip could not be fetched: Timed out"),
        ({"msg": "Timed out after 300 second(s).", **WELL}, "deploy.zip could not be fetched: Timed out"),
        ({"stat": {"exists": False}}, "its job left no deploy.zip"),
        ({"stat": {"exists": True, "isreg": False, "size": 1}}, "no regular file"),
        ({"stat": {"exists": True, "isreg": True, "size": 500_000_001}}, "deploy.zip has 500 MB; expected at most 500"),
    ],
)
def test_what_was_found_in_the_jobs_folder_is_the_reason(tmp_path: Path, what: Json | None, says: str) -> None:
    identity, text = refused(write_bundle(tmp_path / "b.zip"), JOB, what)
    assert (identity, says in text) == ("bundle", True)


def test_a_bundle_that_was_not_fetched_is_told(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "none.zip")[1]


def test_a_bundle_of_half_a_gigabyte_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "b.zip"
    path.touch()
    os.truncate(path, bundle.MAX_BYTES + 1)  # takes no space
    assert "500 MB; expected at most 500" in refused(path)[1]
    task = yaml.safe_load((ROOT / "roles/edge/tasks/bundle.yml").read_text())[0]["block"][1]
    assert f"item.0.stat.size <= {bundle.MAX_BYTES}" in task["when"]


def test_a_bundle_that_unpacks_to_more_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_bundle(tmp_path / "b.zip", {**files(), "more.bin": b"\0" * 100_000})
    monkeypatch.setattr(bundle, "MAX_BYTES", 50_000)
    assert path.stat().st_size < 50_000
    assert "unpacked deploy.zip has" in refused(path)[1]


def test_a_bundle_of_just_the_size_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bundle.lacking({"stat": {"exists": True, "isreg": True, "size": bundle.MAX_BYTES}}) is None
    path = write_bundle(tmp_path / "b.zip")
    with zipfile.ZipFile(path) as packed:
        sizes = {entry.filename: entry.file_size for entry in packed.infolist()}
    monkeypatch.setattr(bundle, "MAX_BYTES", sum(sizes.values()))
    monkeypatch.setattr(bundle, "MAX_CONTENTS", sizes["bundle.json"])
    monkeypatch.setattr(npy, "MAX_BYTES", sizes["answers.npy"])
    assert list(bundle.read(path, JOB, WELL).answers().values) == made_edge.ANSWERS


def test_a_list_of_more_than_a_megabyte_is_refused(tmp_path: Path) -> None:
    assert "unpacked deploy.zip has 1 MB" in refused(write_bundle(tmp_path / "b.zip", profile="x" * (1 << 20)))[1]


def test_a_limit_that_is_no_number_is_refused(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "b.zip", limits={"latency_ms": float("nan")})
    assert "NaN is not a number" in refused(path)[1]


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_a_torn_bundle_is_told(tmp_path: Path, part: float) -> None:
    path = write_bundle(tmp_path / "b.zip")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * part)])
    assert "deploy.zip is torn" in refused(path)[1]


@pytest.mark.parametrize("at", range(40))
def test_one_changed_byte_makes_no_other_bundle(tmp_path: Path, at: int) -> None:
    path = write_bundle(tmp_path / "b.zip")
    content = bytearray(path.read_bytes())
    content[at * len(content) // 40] ^= 0x55
    path.write_bytes(content)
    # A byte of the archive's own may say nothing, such as one of a time.
    assert _contents_or_problem(path) in (contents(files()), "bundle")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"job_id": "11"}, 'deploy.zip is of job "11", attempt 0; expected 12, attempt 0'),
        ({"job_id": 12}, "deploy.zip is of job 12, attempt 0"),
        ({"attempt": 1}, "attempt 1; expected 12, attempt 0"),
        ({"attempt": False}, "attempt false"),
        ({"attempt": None}, "attempt null"),
    ],
)
def test_a_bundle_of_another_job_is_told(tmp_path: Path, changes: Json, says: str) -> None:
    assert says in refused(write_bundle(tmp_path / "b.zip", **changes))[1]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"schema": 2}, "schema 1"),
        ({"deployed": "int4"}, "deployed is"),
        ({"deployed": ["int8"]}, "deployed is"),
        ({"files": []}, "files: expected"),
        ({"files": 5}, "files: expected"),
        ({"files": {"../x": made_edge.described(b"")}}, "files: expected some of float.onnx, "),
        ({"files": {"a/b": made_edge.described(b"")}}, 'each with sha256 and bytes; found "a/b"'),
        ({"files": {"bundle.json": made_edge.described(b"")}}, 'found "bundle.json"'),
        ({"files": {"int8.onnx": {"sha256": "x", "bytes": 1}}}, "files: expected some of"),
        ({"files": {"int8.onnx": {"sha256": 5, "bytes": 1}}}, "files: expected some of"),
        ({"files": {"int8.onnx": made_edge.described(b""), "float.onnx": "x"}}, "files: expected some of"),
        ({"files": {"int8.onnx": {**made_edge.described(b""), "bytes": True}}}, "files: expected some of"),
        ({"files": {"int8.onnx": {**made_edge.described(b""), "bytes": "1"}}}, "files: expected some of"),
        ({"files": {"int8.onnx": made_edge.described(b"")}}, "inputs.npy, answers.npy is not there"),
        ({"limits": None}, "limits is null"),
    ],
)
def test_contents_of_another_form_are_told(tmp_path: Path, changes: Json, says: str) -> None:
    assert says in refused(write_bundle(tmp_path / "b.zip", **changes))[1]


@pytest.mark.parametrize("name", ["json.py", "sensors.py", "numpy.onnx", "other.npy", "int8.onnx.py", "site"])
def test_a_file_that_python_would_import_beside_the_runner_is_refused(tmp_path: Path, name: str) -> None:
    identity, text = refused(write_bundle(tmp_path / "b.zip", {**files(), name: b"x"}))
    assert (identity, f'found "{name}"' in text) == ("bundle", True)


def test_contents_that_are_no_json_are_told(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"schema": 1, "schema": 1}', '{"schema": NaN}', "[" * 50_000):
        path = tmp_path / "b.zip"
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("bundle.json", text)
        assert refused(path)[0] == "bundle"


def test_files_that_are_not_those_that_it_lists_are_told(tmp_path: Path) -> None:
    whole = files()
    missing = {name: content for name, content in whole.items() if name != "float.onnx"}
    assert "float.onnx" in refused(write_bundle(tmp_path / "a.zip", missing, contents(whole)))[1]
    more = {**whole, "evil.sh": b"x"}
    assert "evil.sh" in refused(write_bundle(tmp_path / "b.zip", more, contents(whole)))[1]
    swapped = {**whole, "int8.onnx": whole["int8.onnx"][::-1]}
    assert (
        "int8.onnx in deploy.zip is not the file that it lists"
        in refused(write_bundle(tmp_path / "c.zip", swapped, contents(whole)))[1]
    )
    longer = {**whole, "int8.onnx": whole["int8.onnx"] + b"x"}
    assert (
        "int8.onnx in deploy.zip has 1001 bytes; expected 1000"
        in refused(write_bundle(tmp_path / "d.zip", longer, contents(whole)))[1]
    )
    assert "deploy.zip has no bundle.json" in refused(_without_contents(tmp_path / "e.zip"))[1]


def _contents_or_problem(path: Path) -> t.Any:
    try:
        return bundle.read(path, JOB, WELL).contents
    except ProblemError as exc:
        return exc.told["id"]


def _without_contents(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("int8.onnx", b"x")
    return path


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_that_is_in_it_twice_is_told(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "b.zip")
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr("int8.onnx", b"another")
    assert "deploy.zip has a file twice" in refused(path)[1]


def test_answers_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    parts = {**files(), "answers.npy": b"no array"}
    path = write_bundle(tmp_path / "b.zip", parts)
    with pytest.raises(ValueError, match=r"answers\.npy of the bundle: it is not a \.npy file"):
        bundle.read(path, JOB, WELL).answers()


def test_more_answers_than_are_compared_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = bundle.read(write_bundle(tmp_path / "b.zip"), JOB, WELL)
    monkeypatch.setattr(npy, "MAX_BYTES", 10)
    with pytest.raises(ValueError, match="it has more than"):
        whole.answers()


def test_limits_are_json(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "b.zip")
    assert json.dumps(bundle.read(path, JOB, WELL).contents["limits"]) == json.dumps(made_edge.LIMITS)
