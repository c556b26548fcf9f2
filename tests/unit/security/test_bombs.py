# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a small file can be blown up to is refused in bounded time and memory."""

from __future__ import annotations

import functools
import gzip
import io
import json
import os
import re
import resource
import traceback
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.collector import Request, collect
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import markers
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.identity import Identity
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import log_patterns
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import manifests
from kit.errors import KitError
from kit.evidence import reports
from kit.runtime import wheels

from tests.unit.conftest import ROOT

MEGABYTE = 1 << 20


@pytest.fixture(autouse=True)
def bounded(request: pytest.FixtureRequest) -> None:
    """Each test runs in a child with 20 s of processor time, its own children's included, and 300 MiB more than it has.

    What this process has used at most says nothing: an earlier test may have used more.
    """
    request.node.obj = functools.partial(_in_child, request.node.obj)


def _in_child(test: t.Callable[..., None], **arguments: t.Any) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _limited(test, **arguments)
            code = 0
        except BaseException:
            os.write(writing, traceback.format_exc().encode()[-30_000:])
        finally:
            os._exit(code)
    os.close(writing)
    _child, status = os.waitpid(child, 0)
    with open(reading, "rb") as stream:
        said = stream.read().decode(errors="replace")
    if status != 0:
        pytest.fail(f"the child ended with wait status {status}\n{said}", pytrace=False)


def _limited(test: t.Callable[..., None], **arguments: t.Any) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 300 * MEGABYTE, before[1]))
    resource.setrlimit(resource.RLIMIT_CPU, (20, 21))
    try:
        test(**arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)  # telling what went wrong takes memory, too
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    assert sum(one.ru_utime + one.ru_stime for one in used) < 20


def manifest(tmp_path: Path, change: str, example: t.Callable[[str], t.Any]) -> Path:
    """A valid manifest with some lines in the place of its own of the same keys."""
    folder = tmp_path / "mnist_single_gpu"
    folder.mkdir()
    (folder / "mnist_single_gpu.py").touch()
    instead = re.findall(r"^(\w+):", change, re.MULTILINE)
    rest = {key: value for key, value in example("manifest").items() if key not in instead}
    (folder / "workload.yml").write_text(yaml.safe_dump(rest) + change)
    return folder / "workload.yml"


LAUGHS = (
    "a0: &a0 [lol, lol]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)) + "title: *a59\n"
)


def test_an_unchanged_manifest_is_accepted(tmp_path, example):
    assert manifests.load_manifest(manifest(tmp_path, "", example))["id"] == example("manifest")["id"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (LAUGHS, "alias"),
        ("needs: " + "[" * 50_000, "not YAML"),
        ("needs: " + "{a: " * 50_000, "not YAML"),
        ("category: " + "9" * 100_000, "not YAML"),
        ("category: 2026-99-99", "not YAML"),
        ("title: " + "x" * 300_000, "larger"),
        ("category: 0x" + "f" * 100_000, "64 bits"),
        ("category: !!python/object/apply:os.system [id]", "not YAML"),
        ("data: [../../etc]", "data"),
        ("models: [a/../../b]", "models"),
        ("name: ../x", "name"),
        ("command: [python, 'x.py\n\n#SBATCH --uid=0']", "command"),
        ("output: {directory: ../%j, metrics: m.json}", "output"),
        ("output: {directory: models/x-%j, metrics: ../../m.json}", "output"),
        ("output: {directory: models/x-%j, metrics: m.json, artifacts: [/etc/passwd]}", "output"),
    ],
    ids=lambda value: value[:30],
)
def test_a_manifest_that_is_a_bomb_or_climbs_is_refused_in_words(tmp_path, example, change, word):
    with pytest.raises(manifests.WorkloadError) as caught:
        manifests.load_manifest(manifest(tmp_path, change, example))
    assert word in str(caught.value)
    assert len(str(caught.value)) < MEGABYTE


def read(tmp_path: Path, content: bytes, form: str = "json", log: bool = False) -> dict[str, t.Any]:
    (tmp_path / "file").write_bytes(content)
    request = Request(
        "7",
        0,
        str(tmp_path),
        files={} if log else {"metrics": {"path": "file", "format": form}},
        logs={"stdout": str(tmp_path / "file")} if log else {},
        patterns=log_patterns.load() if log else {},
        settle=0,
    )
    document = collect(request, timeout=300)
    # A reader that hit the limit is told as a problem of the file; here it is one of the reader.
    assert [p for p in document["problems"] if p["problem"] == "timeout" or "not enough memory" in p["detail"]] == []
    return document


OWN = b'"job_id": "7", "attempt": 0'


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (b"[" * MEGABYTE, "json"),
        (b'{"a":' * 200_000, "json"),
        (b'{%s, "x": %s}' % (OWN, b"[" * 100 + b"]" * 100), "json"),
        (b'{%s, "x": %s}' % (OWN, b"9" * 100_000), "json"),
        (b'{%s, "x": "%s"}' % (OWN, b"x" * 2 * MEGABYTE), "json"),
        (b"{" + b",".join(b'"%d": 0' % n for n in range(60_000)) + b', "59999": 1}', "json"),
        (b"[" * MEGABYTE + b"\n", "jsonl"),
        (b'{%s, "x": "%s"}\n' % (OWN, b"x" * 2 * MEGABYTE), "jsonl"),
        (b'{%s, "x": %s}\n' % (OWN, b"9" * 100_000), "jsonl"),
        (b"".join(b'{%s, "f%d": 0}\n' % (OWN, n) for n in range(5_000)), "jsonl"),
        (b"job_id,attempt,x\n7,0," + b"9" * 2 * MEGABYTE + b"\n", "csv"),
        (b'job_id,attempt,x\n7,0,"' + b"\n" * 200_000, "csv"),
    ],
    ids=lambda value: str(value[:24]),
)
def test_metrics_that_are_a_bomb_are_no_evidence(tmp_path, content, form):
    document = read(tmp_path, content, form)
    assert "metrics" not in document or document["metrics"].get("fields", {}).get("x", {}).get("count", 0) == 0
    assert document["problems"] or document["metrics"]["malformed"]
    assert len(json.dumps(document)) < MEGABYTE


def test_a_log_of_one_endless_line_and_of_endless_hits_is_bounded(tmp_path):
    error = b"RuntimeError: CUDA error: an illegal memory access was encountered "
    document = read(tmp_path, error * 20_000 + b"\n" + (error + b"\n") * 5_000, log=True)
    assert document["logs"]["stdout"]["counts"]["cuda_errors"] > 20
    assert len(json.dumps(document)) < MEGABYTE


def test_an_image_of_zeros_unpacked_is_refused_as_too_large(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "files/datasets/mnist")
    import stage

    packed = io.BytesIO()
    with gzip.open(packed, "wb", compresslevel=9) as stream:
        for _each in range(80):
            stream.write(bytes(MEGABYTE))
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(packed.getvalue())
    assert len(packed.getvalue()) < MEGABYTE
    with pytest.raises(KitError, match="holds more than"):
        stage.unpack(tmp_path / "train-images-idx3-ubyte.gz")


def test_an_index_that_never_stops_answering_is_given_up(tmp_path, monkeypatch):
    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            assert 0 < size <= wheels.PAGE_BYTES + 1
            return bytes(size)

    monkeypatch.setattr(wheels, "_open", lambda _url: Endless())
    monkeypatch.setattr(wheels, "PAGE_BYTES", MEGABYTE)
    with pytest.raises(KitError, match="more than"):
        wheels.fetch("nvidia-ml-py", tmp_path, indexes=["http://index.example/simple"])


@pytest.mark.parametrize(
    "content", [b"[" * 1_000_000, b"9" * 100_000, b'{"job_id": "7"' + b" " * MEGABYTE + b"}", b"\xff\xfe"]
)
def test_a_marker_or_a_report_that_is_a_bomb_is_none(tmp_path, content):
    (tmp_path / "7.begin.json").write_bytes(content)
    assert markers.read(str(tmp_path / "7.begin.json"), Identity("7")) is None
    found, why = reports.read(tmp_path / "7.begin.json")
    assert (found is None and why) or found == {"job_id": "7"}


def test_a_report_larger_than_any_is_not_read(tmp_path):
    with open(tmp_path / "gpus.json", "wb") as stream:
        stream.truncate(10 << 30)
    assert "larger" in str(reports.read(tmp_path / "gpus.json")[1])


def test_a_document_that_does_not_fit_its_schema_is_told_in_bounded_words(example):
    document = {**example("manifest"), "needs": [["x" * 1000] * 1000]}
    assert len("; ".join(schema.problems("manifest", document))) < 10 * MEGABYTE
