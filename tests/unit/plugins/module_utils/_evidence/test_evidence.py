"""Collecting: what is read, and that what is no evidence is a named problem and leaves no document."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import collector, opening

OWN = {"job_id": "12", "attempt": 0}
NONCE = "00112233445566778899aabbccddeeff"
END = f"hpc-validation-end job=12 attempt=0 exit=0 nonce={NONCE}\n"
SETS = {
    "cuda_errors": {
        "patterns": [{"id": "c", "regex": "CUDA error", "texts": ["CUDA error"], "remedy": "r"}],
        "except": [],
    }
}


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out put;$(x) 'q'"
    folder.mkdir()
    return folder


def collect(out, *, timeout=30.0, settle=0.0, job_id="12", attempt=0, **parts):
    request = collector.Request(job_id=job_id, attempt=attempt, output=str(out), patterns=SETS, settle=settle, **parts)
    assert collector.check(request) == []
    document = collector.collect(request, timeout)
    json.dumps(document, allow_nan=False)
    return document


def read(out, content, form="json", **wanted):
    """Write `content` to a file, collect it as m; return (document or None, problem or None)."""
    (out / "m").write_bytes(content if isinstance(content, bytes) else content.encode())
    document = collect(out, files={"m": {"path": "m", "format": form, **wanted}})
    return document.get("m"), next((entry["problem"] for entry in document["problems"]), None)


def test_a_job_that_left_everything(out):
    (out / "metrics.json").write_text(json.dumps({**OWN, "accuracy": 0.97}))
    (out / "rows.jsonl").write_text("".join(json.dumps({**OWN, "loss": loss}) + "\n" for loss in (3, 2, 1)))
    (out / "model.pt").write_bytes(b"weights")
    (out / "o.log").write_text(f"CUDA error: x\n{END}")
    (out / "end.json").write_text(json.dumps({**OWN, "nonce": NONCE}))
    document = collect(
        out,
        files={
            "metrics": {"path": "metrics.json", "format": "json"},
            "rows": {"path": "rows.jsonl", "format": "jsonl"},
        },
        logs={"stdout": str(out / "o.log")},
        end_marker=str(out / "end.json"),
        artifacts=["model.pt"],
    )
    assert document["problems"] == []
    assert document["metrics"]["accuracy"] == 0.97
    assert document["rows"]["fields"]["loss"]["slope"] == -1
    assert document["artifacts"]["model.pt"] == {
        "path": str(out / "model.pt"),
        "size": 7,
        "sha256": hashlib.sha256(b"weights").hexdigest(),
    }
    assert document["logs"]["stdout"]["counts"] == {"cuda_errors": 1}
    assert document["logs"]["stdout"]["end"] == {"job_id": "12", "attempt": 0, "exit_code": 0, "after": None}
    assert document["versions"] == collector.VERSIONS
    assert document["files"]["metrics"]["size"] == (out / "metrics.json").stat().st_size


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ('{"job_id": "12", "attempt": 0, "accuracy": 0.9', "truncated"),
        ('{"job_id": "12", "attempt": 0, "acc', "truncated"),
        ('{"job_id": "12", "attempt": 0} x', "not_json"),
        ("{'job_id': '12'}", "not_json"),
        (b'{"job_id": "12", "attempt": 0, "name": "\xff"}', "not_json"),
        ('{"job_id": "12", "attempt": 0, "a": 1, "a": 2}', "duplicate_key"),
        ('{"job_id": "12", "attempt": 0, "a": ' + "[" * 80 + "]" * 80 + "}", "not_json"),
        ('{"job_id": "12", "attempt": 0, "a": ' + "[" * 200_000 + "]" * 200_000 + "}", "not_json"),
        ('{"job_id": "12", "attempt": 0, "a": ' + "1" * 5000 + "}", "not_json"),
        ('{"job_id": "12", "attempt": 0, "a": "' + "x" * (1 << 20) + '"}', "too_large"),
        ('{"job_id": "13", "attempt": 0}', "foreign"),
        ('{"job_id": "12", "attempt": 1}', "foreign"),
        ('{"job_id": 12, "attempt": 0}', "foreign"),
        ('{"job_id": "12", "attempt": "0"}', "foreign"),
        ('{"job_id": "12", "attempt": false}', "foreign"),
        ('{"job_id": "12", "attempt": 0.0, "x": 1}', None),
        ('{"accuracy": 0.99}', "foreign"),
        ("[1, 2]", "foreign"),
        ("0.99", "foreign"),
        ("null", "foreign"),
    ],
)
def test_json_that_is_no_evidence(out, content, problem):
    document, found = read(out, content)
    assert found == problem
    assert (document is None) == (problem is not None)


def test_numbers_that_are_not_finite_stay_visible(out):
    document, problem = read(
        out, '{"job_id": "12", "attempt": 0, "a": NaN, "b": [-Infinity], "c": 1e999, "d": "\\ud800"}'
    )
    assert problem is None
    assert document["a"] == {"non_finite": "NaN"}
    assert document["b"] == [{"non_finite": "-Infinity"}]
    assert document["c"] == {"non_finite": "Infinity"}
    assert document["d"] == "?"


@pytest.mark.parametrize("name", ["m", "inside/m"])
def test_a_link_within_the_output_directory_is_followed(out, name):
    (out / "real").write_text(json.dumps(OWN))
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).symlink_to(out / "real")
    assert collect(out, files={"m": {"path": name, "format": "json"}})["m"] == OWN


def test_what_is_no_regular_file_of_the_job_is_never_opened(out, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(json.dumps(OWN))
    (out / "link").symlink_to(elsewhere)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "m").write_text(json.dumps(OWN))
    (out / "linked").symlink_to(tmp_path / "folder")
    (out / "directory").mkdir()
    (out / "loop").symlink_to(out / "loop")
    os.mkfifo(out / "fifo")
    names = ["link", "linked/m", "directory", "fifo", "gone", "loop", "real/file/below"]
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(out)  # a socket's path is short
        server.bind("socket")
        document = collect(
            out, files={f"f{n}": {"path": name, "format": "json"} for n, name in enumerate([*names, "socket"])}
        )
    found = {os.path.relpath(entry["path"], out): entry["problem"] for entry in document["problems"]}
    assert found == {
        "link": "not_regular",
        "linked/m": "not_regular",
        "directory": "not_regular",
        "fifo": "not_regular",
        "gone": "missing",
        "loop": "not_regular",
        "real/file/below": "missing",
        "socket": "not_regular",
    }
    assert not any(key.startswith("f") and key != "files" for key in document)


def test_a_log_that_is_a_link_or_a_device_is_not_read(out):
    (out / "link").symlink_to("/dev/null")
    document = collect(out, logs={"stdout": str(out / "link"), "stderr": "/dev/zero"})
    assert {entry["problem"] for entry in document["problems"]} == {"not_regular"}
    assert document["logs"] == {}


@pytest.mark.parametrize(
    ("text", "later"),
    [("three", 1), ("two", 1), ("two", -1), ("three", 0)],  # nanoseconds by which the file's time is another then
)
def test_a_file_that_is_written_to_meanwhile_is_no_evidence(out, text, later):
    path = out / "m"
    path.write_text("one")
    before = path.stat()

    def write_while_reading():
        with opening.open_regular(str(path), str(out)) as opened:
            opened.stream.read()
            path.write_text(text)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + later))

    with pytest.raises(opening.EvidenceError, match="changed"):
        write_while_reading()


def test_a_directory_exchanged_for_a_link_after_the_check_is_noticed(out, tmp_path, monkeypatch):
    (out / "sub").mkdir()
    (out / "sub" / "m").write_text("mine")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "m").write_text("not mine")
    real_lstat = os.lstat

    def exchanged(path, **kwargs):
        result = real_lstat(path, **kwargs)
        if str(path).endswith("sub/m") and not (out / "sub").is_symlink():
            (out / "sub").rename(out / "was")
            (out / "sub").symlink_to(secret)
        return result

    monkeypatch.setattr(opening.os, "lstat", exchanged)
    with (
        pytest.raises(opening.EvidenceError, match="leads out"),
        opening.open_regular(str(out / "sub/m"), str(out)),
    ):
        pytest.fail("it was opened")


def test_a_file_that_appears_late_is_waited_for(out):
    whole = out / "whole"
    whole.write_text(json.dumps(OWN))
    timer = threading.Timer(0.5, lambda: whole.rename(out / "late"))  # as the kit writes: never there and empty
    timer.start()
    document = collect(out, settle=20.0, files={"m": {"path": "late", "format": "json"}})
    timer.join()
    assert document["m"] == OWN


@pytest.mark.parametrize("seen", ["", json.dumps(OWN)[:-5]], ids=["nothing", "a part"])
def test_json_of_which_not_all_is_seen_yet_is_read_again(out, seen):
    path = out / "late"
    path.write_text(seen)
    timer = threading.Timer(0.5, lambda: path.write_text(json.dumps(OWN)))
    timer.start()
    document = collect(out, settle=20.0, files={"m": {"path": "late", "format": "json"}})
    timer.join()
    assert document["m"] == OWN


def test_a_log_whose_end_is_not_yet_seen_is_read_again(out):
    path = out / "o"
    path.write_text("working\n")
    (out / "end.json").write_text(json.dumps({**OWN, "nonce": NONCE}))
    timer = threading.Timer(0.5, lambda: path.write_text(f"working\n{END}"))
    timer.start()
    document = collect(out, settle=20.0, logs={"stdout": str(path)}, end_marker=str(out / "end.json"))
    timer.join()
    assert document["logs"]["stdout"]["end"]["job_id"] == "12"


@pytest.mark.parametrize(
    "marker",
    [
        None,
        "",
        "{}",
        json.dumps({**OWN}),
        json.dumps({**OWN, "nonce": 5}),
        json.dumps({**OWN, "nonce": "f" * 32}),
        json.dumps({"job_id": "11", "attempt": 0, "nonce": NONCE}),
        json.dumps({**OWN, "attempt": 1, "nonce": NONCE}),
    ],
)
def test_no_log_is_whole_without_the_jobs_own_marker(out, marker):
    (out / "o").write_text(f"working\n{END}")
    if marker is not None:
        (out / "end.json").write_text(marker)
    document = collect(out, logs={"stdout": str(out / "o")}, end_marker=str(out / "end.json"))
    assert document["logs"]["stdout"]["end"] is None


def test_a_log_in_utf_16_is_a_problem_and_no_log(out):
    (out / "o").write_bytes("RuntimeError: CUDA error: x\n".encode("utf-16"))
    document = collect(out, logs={"stdout": str(out / "o")})
    assert document["logs"] == {}
    assert [(entry["source"], entry["problem"]) for entry in document["problems"]] == [
        ("logs.stdout", "not_searchable")
    ]


def test_what_is_missing_is_told_with_what_the_job_left_in_its_place(out):
    (out / "gpu.jsonl").touch()
    document = collect(
        out,
        files={"metrics": {"path": "metrics.json", "format": "json"}},
        artifacts=["model.bin"],
        logs={"stdout": str(out / "o.log")},
    )
    told = {entry["source"]: (entry["problem"], entry["detail"]) for entry in document["problems"]}
    beside = ("missing", f"there is no such file; {out} holds gpu.jsonl")
    assert told == {
        "metrics": beside,
        "artifacts.model.bin": beside,
        "logs.stdout": ("missing", "there is no such file"),
    }


def test_waiting_for_what_never_comes_takes_no_longer_than_asked(out):
    (out / "o").write_text("killed\n")
    document = collect(out, settle=0.3, logs={"stdout": str(out / "o")}, artifacts=["a", "b"])
    assert document["logs"]["stdout"]["end"] is None
    assert [entry["problem"] for entry in document["problems"]] == ["missing", "missing"]


def test_what_does_not_answer_in_time_is_a_problem_and_the_rest_is_kept(out, monkeypatch):
    (out / "quick").write_text(json.dumps(OWN))
    stuck = threading.Event()
    real = collector._read_once

    def hangs(request, source):
        if source == ("files", "slow"):
            stuck.wait()
        return real(request, source)

    monkeypatch.setattr(collector, "_read_once", hangs)
    files = {"quick": {"path": "quick", "format": "json"}, "slow": {"path": "quick", "format": "json"}}
    document = collect(out, timeout=1.0, files=files, artifacts=["quick"])
    assert document["quick"] == OWN
    assert {entry["source"]: entry["problem"] for entry in document["problems"]} == {
        "slow": "timeout",
        "artifacts.quick": "timeout",
    }
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_reader_that_dies_is_a_problem(out, monkeypatch):
    monkeypatch.setattr(collector, "_read", lambda *_unused: os._exit(9))
    document = collect(out, files={"m": {"path": "m", "format": "json"}})
    assert [entry["problem"] for entry in document["problems"]] == ["timeout"]


def test_whatever_goes_wrong_in_reading_is_a_problem(out, monkeypatch):
    def breaks(*_unused):
        raise KeyError("surprise")

    monkeypatch.setattr(collector, "_read_once", breaks)
    document = collect(out, files={"m": {"path": "m", "format": "json"}})
    assert [(entry["problem"], entry["detail"]) for entry in document["problems"]] == [
        ("unreadable", "KeyError: 'surprise'")
    ]


def test_an_unreadable_file_is_told_apart_from_a_missing_one(out, monkeypatch):
    (out / "m").write_text("{}")

    real = os.open

    def refused(path, *arguments):
        if path == str(out / "m"):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments)

    monkeypatch.setattr(opening.os, "open", refused)
    document = collect(out, files={"m": {"path": "m", "format": "json"}})
    assert [(entry["problem"], entry["detail"]) for entry in document["problems"]] == [
        ("unreadable", "Permission denied")
    ]


@pytest.mark.parametrize(
    "parts",
    [
        {"files": {"job": {"path": "m", "format": "json"}}},
        {"files": {"problems": {"path": "m", "format": "json"}}},
        {"files": {"m": {"path": "m", "format": "yaml"}}},
        {"files": {"m": {"path": "../m", "format": "json"}}},
        {"files": {"m": {"path": "", "format": "json"}}},
        {"files": {"m": {"path": "a\0b", "format": "json"}}},
        {"files": {"m": {"format": "json"}}},
        {"artifacts": ["/etc/passwd"]},
        {"artifacts": ["a/../../b"]},
        {"artifacts": [""]},
        {"logs": {"stdout": "relative"}},
        {"output": "relative"},
    ],
)
def test_a_malformed_request_is_refused(parts):
    request = collector.Request(**{"job_id": "12", "attempt": 0, "output": "/out", **parts})
    assert len(collector.check(request)) == 1
