# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request part by part, without a reader of its own: what is refused, waited for, read, and said of it."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import select
import signal

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import collector, log
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.opening import EvidenceError

OWN = {"job_id": "12", "attempt": 0}
NONCE = "00112233445566778899aabbccddeeff"
END = f"hpc-validation-end job=12 attempt=0 exit=0 nonce={NONCE}\n"
MANY = 1000


class Left(BaseException):
    """A forked child would be gone now."""


class Clock:
    """Time that passes only in sleep."""

    def __init__(self):
        self.now = 100.0
        self.slept = []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(collector, "time", made)
    return made


def request_for(output="/out", **parts):
    return collector.Request(job_id="12", attempt=0, output=str(output), **parts)


def json_file(path="m", **more):
    return {"path": path, "format": "json", **more}


@pytest.mark.parametrize("form", ["json", "jsonl", "csv"])
def test_what_is_well_formed_is_not_refused(form):
    request = request_for(
        files={"m": {"path": "a/m..x", "format": form}, "n": {"path": "/out/n", "format": form}},
        logs={"stdout": "/any/where"},
        artifacts=["b", "/out/c"],
        end_marker="/markers/12.end.json",
    )
    assert collector.check(request) == []


NAMES = ["schema", "job", "context", "logs", "artifacts", "files", "problems", "baseline", "leg", "versions"]


@pytest.mark.parametrize("name", ["", *NAMES])
def test_a_name_that_the_document_has_itself_is_refused(name):
    assert collector.check(request_for(files={name: json_file()})) == [
        f"files: {name!r}: expected a name other than {', '.join(NAMES)}"
    ]


@pytest.mark.parametrize("form", [None, "yaml", 5])
def test_a_format_that_is_none_is_refused(form):
    assert collector.check(request_for(files={"m": json_file(format=form)})) == [
        f"files: m: format: expected one of json, jsonl, csv, found {form!r}"
    ]


@pytest.mark.parametrize(
    "path", ["", ".", "..", "../m", "a/../m", "a/..", "a\0b", "/outside", "/out", "/out/", "/out/../out/m", None, 5]
)
def test_a_path_that_may_lead_elsewhere_is_refused(path):
    expected = f"expected a path below the output directory, found {path!r}"
    assert collector.check(request_for(files={"m": json_file(path)})) == [f"files: m: path: {expected}"]
    assert collector.check(request_for(artifacts=[path])) == [f"artifacts: {expected}"]


def test_below_the_root_lies_everything_that_has_a_name():
    assert collector.check(request_for("/", artifacts=["a", "/a/b"])) == []
    assert len(collector.check(request_for("/", artifacts=["", "\0", ".."]))) == 3


def test_paths_that_are_relative_are_refused():
    expected = "expected an absolute path, found 'here'"
    assert collector.check(request_for("here")) == [f"output: {expected}"]
    assert collector.check(request_for(logs={"stdout": "here"})) == [f"logs: stdout: {expected}"]
    assert collector.check(request_for(end_marker="here")) == [f"end_marker: {expected}"]


def test_each_source_has_its_path():
    request = request_for(files={"m": json_file("a/m")}, logs={"stdout": "/logs/o"}, artifacts=["b"])
    assert {source: request.path(source) for source in request.sources()} == {
        ("files", "m"): "/out/a/m",
        ("logs", "stdout"): "/logs/o",
        ("artifacts", "b"): "/out/b",
    }


def test_a_json_document_is_read_up_to_a_mebibyte():
    assert request_for().max_json == 1024 * 1024


def test_the_document_has_what_was_read_and_names_what_was_not(monkeypatch, clock):
    asked = []

    def answers(request, deadline):
        asked.append((request, deadline))
        yield {"section": "files", "name": "m", "entry": {"size": 1}, "document": OWN}
        yield {"section": "artifacts", "name": "a", "entry": {"size": 2}}
        yield {"section": "files", "name": "n", "path": "/out/n", "problem": "missing", "detail": "gone"}

    monkeypatch.setattr(collector, "_answers_of_child", answers)
    request = request_for(
        files={"m": json_file(), "n": json_file("n")}, artifacts=["a", "b"], logs={"stdout": "/logs/o"}
    )
    late = {"problem": "timeout", "detail": "it could not be read within 3 s, or the reader died"}
    assert collector.collect(request, 3.0) == {
        "schema": 1,
        "versions": {"end_line": 2},
        "logs": {},
        "artifacts": {"a": {"size": 2}},
        "files": {"m": {"size": 1}},
        "m": OWN,
        "problems": [
            {"source": "n", "path": "/out/n", "problem": "missing", "detail": "gone"},
            {"source": "logs.stdout", "path": "/logs/o", **late},
            {"source": "artifacts.b", "path": "/out/b", **late},
        ],
    }
    assert asked == [(request, clock.now + 3.0)]


def test_patterns_that_are_none_are_refused_before_anything_is_read(monkeypatch):
    monkeypatch.setattr(collector, "_answers_of_child", lambda *_unused: pytest.fail("it was read"))
    with pytest.raises(log.PatternsError):
        collector.collect(request_for(patterns={"x": {"patterns": [], "except": []}}), 1.0)


@pytest.fixture
def pipe(monkeypatch):
    """The pipe that the next reader gets; what is still open of it is closed."""
    ends = os.pipe()
    os.set_blocking(ends[0], False)
    monkeypatch.setattr(collector.os, "pipe", lambda: ends)
    yield ends
    for end in ends:
        if is_open(end):
            os.close(end)


def is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@pytest.fixture
def waits(monkeypatch):
    """For how long each wait for the child was to be."""
    real, waited = select.select, []

    def waiting(*arguments):
        waited.append(arguments[3])
        assert len(waited) < MANY
        return real(*arguments[:3], 0)

    monkeypatch.setattr(collector.select, "select", waiting)
    return waited


@pytest.fixture
def ended(monkeypatch):
    """The children that were ended; the parent of child 4242 is the one that goes on."""
    children = []
    monkeypatch.setattr(collector.os, "fork", lambda: 4242)
    monkeypatch.setattr(collector, "_child", lambda *_unused: pytest.fail("the parent reads itself"))
    monkeypatch.setattr(collector, "_end", children.append)
    return children


@pytest.mark.parametrize(("deadline", "wait"), [(101.5, 1.5), (100.0, 0.0), (99.0, 0.0)])
def test_the_parent_takes_whole_lines_until_the_child_has_ended(clock, pipe, waits, ended, deadline, wait):
    os.write(pipe[1], b'{"a": 1}\n{"b": 2}\n{"c": ')
    assert list(collector._answers_of_child(request_for(), deadline)) == [{"a": 1}, {"b": 2}]
    assert waits == [wait, wait]
    assert ended == [4242]
    assert not is_open(pipe[0])
    assert not is_open(pipe[1])
    assert clock.slept == []


def test_the_parent_waits_no_longer_than_it_may(clock, pipe, waits, ended):
    other = os.dup(pipe[1])
    try:
        os.write(other, b'{"a": 1}\n')
        assert list(collector._answers_of_child(request_for(), clock.now + 5)) == [{"a": 1}]
        assert waits == [5.0, 5.0]
        assert ended == [4242]
    finally:
        os.close(other)


def test_the_child_reads_and_does_not_go_on(monkeypatch, pipe):
    told = []

    def read(*arguments):
        told.append(arguments)
        raise Left

    monkeypatch.setattr(collector.os, "fork", lambda: 0)
    monkeypatch.setattr(collector, "_child", read)
    monkeypatch.setattr(collector, "_end", lambda _child: pytest.fail("the child ends a process"))
    request = request_for()
    with pytest.raises(Left):
        next(collector._answers_of_child(request, 0.0))
    assert told == [(request, *pipe)]


class ChildsOs:
    """The system as a child uses it that is none: it closes, exchanges and leaves nothing, but it is written down."""

    def __init__(self):
        self.closed, self.exchanged, self.statuses, self.opened = [], [], [], []

    def __getattr__(self, name):
        return getattr(os, name)

    def open(self, *arguments):
        self.opened.append(os.open(*arguments))
        return self.opened[-1]

    def close(self, descriptor):
        self.closed.append(descriptor)

    def dup2(self, old, new):
        self.exchanged.append((old, new))

    def _exit(self, status):
        self.statuses.append(status)
        raise Left


@pytest.fixture
def child(monkeypatch, pipe):
    made = ChildsOs()
    monkeypatch.setattr(collector, "os", made)
    yield made
    gc.enable()
    (null,) = made.opened
    assert os.path.samestat(os.fstat(null), os.stat(os.devnull))
    os.close(null)
    assert made.exchanged == [(null, 0), (null, 1), (null, 2)]
    assert made.closed == [pipe[0]]


def test_the_child_tells_of_each_source_as_soon_as_it_was_read(monkeypatch, clock, pipe, child):
    told = []

    def read(_request, source, until):
        assert until == clock.now + 7
        assert not gc.isenabled()
        if source[1] == "b":
            told.append(os.read(pipe[0], 100))
        return {"is": source[1]}

    monkeypatch.setattr(collector, "_read", read)
    with pytest.raises(Left):
        collector._child(request_for(artifacts=["a", "b"], settle=7.0), *pipe)
    assert child.statuses == [0]
    assert told == [b'{"is": "a"}\n']
    assert os.read(pipe[0], 100) == b'{"is": "b"}\n'


@pytest.mark.parametrize("answer", [{"a": float("nan")}, {"a": object()}, KeyboardInterrupt()])
def test_a_child_that_cannot_tell_says_nothing_and_leaves(monkeypatch, pipe, child, answer):
    def read(*_unused):
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(collector, "_read", read)
    with pytest.raises(Left):
        collector._child(request_for(artifacts=["a"]), *pipe)
    assert child.statuses == [1]
    assert os.read(pipe[0], 100) == b""


def ending(monkeypatch, waits, *reaped):
    """Let child 5 be ended, with what waitpid answers each time; return what was done."""
    done, answers = [], iter(reaped)

    def reap(*arguments):
        done.append(arguments)
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(collector.os, "kill", lambda *arguments: done.append(arguments))
    monkeypatch.setattr(collector.os, "waitpid", reap)
    collector._end(5)
    assert len(waits) == reaped.count((0, 0))
    return done


KILL, ASK = (5, signal.SIGKILL), (5, os.WNOHANG)


def test_a_child_is_killed_and_reaped(monkeypatch, waits):
    assert ending(monkeypatch, waits, (5, 9)) == [KILL, ASK]
    assert ending(monkeypatch, waits, (0, 0), (5, 9)) == [KILL, ASK, ASK]


def test_a_child_that_another_reaped_is_left(monkeypatch, waits):
    assert ending(monkeypatch, waits, ChildProcessError()) == [KILL, ASK]


def test_a_child_that_does_not_die_within_a_second_is_left(monkeypatch, waits):
    ending(monkeypatch, waits, *[(0, 0)] * 100)
    assert sum(waits) == pytest.approx(1)


def test_a_child_that_is_gone_is_not_waited_for(monkeypatch):
    def gone(*_unused):
        raise ProcessLookupError

    monkeypatch.setattr(collector.os, "kill", gone)
    monkeypatch.setattr(collector.os, "waitpid", lambda *_unused: pytest.fail("it was waited for"))
    collector._end(5)


@pytest.mark.parametrize(
    ("raised", "problem", "detail"),
    [
        (EvidenceError("foreign", "not ours"), "foreign", "not ours"),
        (MemoryError(), "too_large", "there is not enough memory to read it"),
        (KeyError("x"), "unreadable", "KeyError: 'x'"),
    ],
)
def test_what_goes_wrong_is_said_of_the_source(monkeypatch, raised, problem, detail):
    def breaks(*_unused):
        raise raised

    monkeypatch.setattr(collector, "_read_when_settled", breaks)
    assert collector._read(request_for(), ("artifacts", "a\udcff"), 0.0) == {
        "section": "artifacts",
        "name": "a\udcff",
        "path": "/out/a?",
        "problem": problem,
        "detail": detail,
    }


def settled(monkeypatch, source, until, *outcomes):
    """Return what is made of a source that is found so, one after the other; all of them must be looked at."""
    left = list(outcomes)

    def read(_request, asked):
        assert asked == source
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(collector, "_read_once", read)
    try:
        return collector._read_when_settled(request_for(), source, until)
    finally:
        assert left == []


OPEN, WHOLE = {"entry": {"end": None}}, {"entry": {"end": {"exit_code": 0}}}
FILE, LOG = ("files", "m"), ("logs", "stdout")
STEP = collector.SETTLE_STEP


@pytest.mark.parametrize("problem", ["missing", "empty", "truncated", "changed"])
def test_what_another_host_may_yet_show_is_read_again(monkeypatch, clock, problem):
    first = EvidenceError(problem, "")
    assert settled(monkeypatch, FILE, clock.now + 2 * STEP, first, {"entry": {}}) == {"entry": {}}
    assert clock.slept == [STEP]


@pytest.mark.parametrize("problem", ["foreign", "not_json", "not_regular", "too_large", "unreadable"])
def test_what_time_does_not_mend_is_not_read_again(monkeypatch, clock, problem):
    with pytest.raises(EvidenceError, match=problem):
        settled(monkeypatch, FILE, clock.now + 9, EvidenceError(problem, ""))
    assert clock.slept == []


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_what_stays_away_is_waited_for_until_the_time_has_come(monkeypatch, clock, steps):
    with pytest.raises(EvidenceError, match="missing"):
        settled(monkeypatch, FILE, clock.now + steps * STEP, *[EvidenceError("missing", "")] * (steps + 1))
    assert clock.slept == [STEP] * steps


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_log_that_stays_open_is_waited_for_until_the_time_has_come(monkeypatch, clock, steps):
    assert settled(monkeypatch, LOG, clock.now + steps * STEP, *[OPEN] * (steps + 1)) is OPEN
    assert clock.slept == [STEP] * steps


def test_a_log_that_is_whole_is_not_waited_for(monkeypatch, clock):
    assert settled(monkeypatch, LOG, clock.now + 9, OPEN, WHOLE) is WHOLE
    assert clock.slept == [STEP]


def test_only_a_log_has_an_end_to_wait_for(monkeypatch, clock):
    assert settled(monkeypatch, ("artifacts", "logs"), clock.now + 9, {"entry": {}}) == {"entry": {}}
    assert clock.slept == []


def test_a_document_is_read_with_what_was_found_of_its_file(tmp_path):
    path = tmp_path / "m"
    path.write_text(json.dumps({**OWN, "v": float("nan")}))
    assert collector._read_once(request_for(tmp_path, files={"m": json_file()}), FILE) == {
        "section": "files",
        "name": "m",
        "document": {**OWN, "v": {"non_finite": "NaN"}},
        "entry": {
            "path": str(path),
            "size": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "mtime": path.stat().st_mtime,
        },
    }


@pytest.mark.parametrize(("form", "content"), [("csv", "job_id,attempt,v\n12,0,5\n"), ("jsonl", None)])
def test_rows_are_reduced(tmp_path, form, content):
    (tmp_path / "m").write_text(content or json.dumps({**OWN, "v": 5}) + "\n")
    answer = collector._read_once(request_for(tmp_path, files={"m": json_file(format=form)}), FILE)
    assert answer["document"]["fields"]["v"]["mean"] == 5


def test_an_artifact_is_known_by_its_content(tmp_path):
    (tmp_path / "a").write_bytes(b"abc" * MANY)
    assert collector._read_once(request_for(tmp_path, artifacts=["a"]), ("artifacts", "a")) == {
        "section": "artifacts",
        "name": "a",
        "entry": {
            "path": str(tmp_path / "a"),
            "size": 3 * MANY,
            "sha256": hashlib.sha256(b"abc" * MANY).hexdigest(),
        },
    }


def test_files_lie_below_the_output_directory_and_logs_anywhere(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "o").write_text(f"x\n{END}")
    (tmp_path / "end.json").write_text(json.dumps({**OWN, "nonce": NONCE}))
    (tmp_path / "out" / "a").symlink_to(tmp_path / "o")
    request = request_for(
        tmp_path / "out", artifacts=["a"], logs={"stdout": str(tmp_path / "o")}, end_marker=str(tmp_path / "end.json")
    )
    answer = collector._read_once(request, LOG)
    assert (answer["section"], answer["name"]) == LOG
    assert answer["entry"]["path"] == str(tmp_path / "o")
    assert answer["entry"]["end"]["exit_code"] == 0
    assert "end_doubt" not in answer["entry"]
    with pytest.raises(EvidenceError, match="leads out"):
        collector._read_once(request, ("artifacts", "a"))


@pytest.mark.parametrize(
    ("marker", "doubt"),
    [
        (None, "is missing: there is no such file"),
        ("[]", "is foreign: expected an object "),
        (json.dumps({**OWN, "attempt": 1, "nonce": NONCE}), "is foreign: it was written by "),
        (json.dumps(OWN), "has no nonce"),
        (json.dumps({**OWN, "nonce": 5}), "has no nonce"),
        (json.dumps({**OWN, "nonce": [NONCE]}), "has no nonce"),
        (json.dumps({**OWN, "nonce": ""}), "has no nonce"),
    ],
)
def test_why_a_log_has_no_end_is_said(tmp_path, marker, doubt):
    path = tmp_path / "end.json"
    if marker is not None:
        path.write_text(marker)
    (tmp_path / "o").write_text(END)
    request = request_for(tmp_path, logs={"stdout": str(tmp_path / "o")}, end_marker=str(path))
    entry = collector._read_once(request, LOG)["entry"]
    assert entry["end"] is None
    assert entry["end_doubt"].startswith(f"the end marker {path} {doubt}")


def test_without_an_end_marker_no_log_has_an_end(tmp_path):
    (tmp_path / "o").write_text(END)
    entry = collector._read_once(request_for(tmp_path, logs={"stdout": str(tmp_path / "o")}), LOG)["entry"]
    assert (entry["end"], entry["end_doubt"]) == (None, "no end marker was named")
