# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job's file is opened only where it lies, only if it is one, and is read as it was."""

from __future__ import annotations

import os
import stat
from unittest import mock

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import opening
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.opening import EvidenceError, open_regular

OPENED = "it was opened"


def refusal(path, root):
    """Return why a file is refused: the problem and the detail."""
    with pytest.raises(EvidenceError) as refused, open_regular(str(path), None if root is None else str(root)):
        pytest.fail(OPENED)
    return refused.value.problem, refused.value.detail


@pytest.fixture
def path(tmp_path):
    (tmp_path / "out").mkdir()
    made = tmp_path / "out" / "m"
    made.write_text("text")
    return made


def test_an_error_says_its_problem_and_its_detail():
    error = EvidenceError("missing", "gone")
    assert (str(error), error.problem, error.detail) == ("missing: gone", "missing", "gone")


@pytest.mark.parametrize("below", [True, False])
def test_a_regular_file_is_opened_as_it_is(path, below):
    with open_regular(str(path), str(path.parent) if below else None) as opened:
        found = path.stat()
        assert (opened.path, opened.size, opened.mtime) == (str(path), 4, found.st_mtime)
        assert opened.stream.read(1) == b"t"
        assert os.lseek(opened.stream.fileno(), 0, os.SEEK_CUR) == 1  # nothing is read ahead
        assert opened.stream.read() == b"ext"
    assert opened.stream.closed


def test_what_lies_elsewhere_is_not_even_opened(path, tmp_path, monkeypatch):
    monkeypatch.setattr(opening.os, "open", lambda *_unused: pytest.fail(OPENED))
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "n").symlink_to(path)
    assert refusal(path, tmp_path / "output") == ("not_regular", f"it leads out of {tmp_path}/output, to {path}")
    assert refusal(tmp_path / "output" / "n", tmp_path / "output")[0] == "not_regular"
    (tmp_path / "link").symlink_to(path.parent)
    assert refusal(tmp_path / "link" / "m", tmp_path / "link") == (
        "not_regular",
        f"{tmp_path / 'link'} is a symbolic link",
    )


def test_a_folder_above_may_be_a_link(path, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with open_regular(f"{tmp_path}/link/out/{path.name}", f"{tmp_path}/link/out") as opened:
        assert opened.stream.read() == b"text"


@pytest.mark.parametrize("below", [True, False])
def test_what_is_no_regular_file_is_not_even_opened(path, monkeypatch, below):
    os.mkfifo(path.parent / "fifo")
    (path.parent / "link").symlink_to(path)
    root = path.parent if below else None
    monkeypatch.setattr(opening.os, "open", lambda *_unused: pytest.fail(OPENED))
    assert refusal(path.parent / "fifo", root) == ("not_regular", "it is a FIFO")
    assert refusal("/dev/null", None) == ("not_regular", "it is a device")
    assert refusal(path.parent, root) == ("not_regular", "it is a directory")
    assert refusal(path.parent / "gone", root) == ("missing", "there is no such file")
    assert refusal(path.parent / "link", None) == ("not_regular", "it is a symbolic link")


def test_what_takes_the_place_of_a_file_is_refused(path, monkeypatch):
    regular = os.stat(path)
    os.mkfifo(path.parent / "fifo")
    monkeypatch.setattr(opening.os, "lstat", lambda _path: regular)
    assert refusal(path.parent / "fifo", None) == ("not_regular", "it is a FIFO")
    assert not stat.S_ISFIFO(regular.st_mode)


@pytest.mark.parametrize("now", ["/elsewhere/m", "/"])
@pytest.mark.parametrize("below", [True, False])
def test_what_was_opened_must_lie_below_too(path, monkeypatch, now, below):
    monkeypatch.setattr(opening.os, "readlink", lambda _path: now)
    monkeypatch.setattr(opening.os.path, "realpath", str)
    if below:
        assert refusal(path, path.parent) == ("not_regular", f"it leads out of {path.parent}, to {now}")
        return
    with open_regular(str(path), None) as opened:
        assert opened.size == 4


def failing(error):
    def fail(*_unused):
        raise error

    return fail


ERRORS = [(OSError(5, "Input/output error"), "Input/output error"), (OSError("cut off"), "cut off")]


@pytest.mark.parametrize(("error", "words"), ERRORS)
def test_a_file_that_cannot_be_opened_is_unreadable(path, monkeypatch, error, words):
    monkeypatch.setattr(opening.os, "open", failing(error))
    assert refusal(path, path.parent) == ("unreadable", words)


@pytest.mark.parametrize(("error", "words"), ERRORS)
def test_a_file_of_which_the_kernel_says_nothing_is_unreadable(path, monkeypatch, error, words):
    monkeypatch.setattr(opening.os.path, "realpath", str)
    monkeypatch.setattr(opening.os, "readlink", failing(error))
    assert refusal(path, path.parent) == ("unreadable", f"the kernel did not report what was opened: {words}")


@pytest.mark.parametrize(("error", "words"), ERRORS)
def test_a_file_that_cannot_be_read_is_unreadable(path, error, words):
    with pytest.raises(EvidenceError) as refused, open_regular(str(path), None):
        raise error
    assert (refused.value.problem, refused.value.detail) == ("unreadable", words)


@pytest.mark.parametrize(("text", "later"), [("longer", 0), ("same", 1), ("same", -1), ("four", 0)])
def test_a_file_that_was_written_to_meanwhile_is_refused(path, text, later):
    before = path.stat()

    def read():
        with open_regular(str(path), None):
            path.write_text(text)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + later))

    if text == "four":  # nothing that can be seen has changed
        read()
        return
    with pytest.raises(EvidenceError) as refused:
        read()
    assert refused.value.problem == "changed"
    assert refused.value.detail == "it was modified while it was read (4 bytes at first)"


def test_a_missing_file_is_told_with_its_folder_and_what_lies_there(tmp_path):
    root = tmp_path / "job-7"
    root.mkdir()
    assert opening.whereabouts(f"{root}/metrics.json", f"{root}/") == f"{root} is empty"
    for name in ("b.json", "a"):
        (root / name).touch()
    (root / "nodes").mkdir()
    (root / "elsewhere").symlink_to(tmp_path)
    assert opening.whereabouts(f"{root}/metrics.json", str(root)) == f"{root} holds a, b.json, elsewhere, nodes/"


def test_of_folders_that_are_missing_the_last_one_above_is_listed(tmp_path):
    root = tmp_path / "job-7"
    assert opening.whereabouts(f"{root}/metrics.json", str(root)) == f"folder {root} does not exist"
    assert (
        opening.whereabouts(f"{root}/a/b/m", str(root))
        == f"folder {root}/a does not exist; folder {root} does not exist"
    )
    (root / "a").mkdir(parents=True)
    assert opening.whereabouts(f"{root}/a/b/c/m", str(root)) == f"folder {root}/a/b does not exist; {root}/a is empty"


def test_of_many_files_ten_are_listed(tmp_path, monkeypatch):
    def listed(count):
        for number in range(count):
            (tmp_path / f"{number:02}").touch()
        return opening.whereabouts(f"{tmp_path}/m", str(tmp_path)).removeprefix(f"{tmp_path} holds ")

    ten = ", ".join(f"{number:02}" for number in range(10))
    assert listed(10) == ten
    assert listed(12) == f"{ten} and 2 more"
    monkeypatch.setattr(opening, "MAX_NAMES", 12)
    assert listed(30).endswith(" and at least 2 more")


def test_the_names_in_a_jobs_folder_are_untrusted_text(tmp_path):
    (tmp_path / "\x1b[2J\n").touch()
    (tmp_path / ("y" * 61)).touch()
    (tmp_path / ("z" * 60)).touch()
    with open(os.fsencode(tmp_path) + b"/\xff", "wb"):
        pass
    told = opening.whereabouts(f"{tmp_path}/m", str(tmp_path)).removeprefix(f"{tmp_path} holds ")
    assert told == f"\ufffd[2J , {'y' * 59}…, {'z' * 60}, \ufffd"


def test_a_folder_that_is_not_the_jobs_is_not_listed(tmp_path, monkeypatch):
    root = tmp_path / "job-7"
    root.mkdir()
    (tmp_path / "secret").touch()
    (root / "out").symlink_to(tmp_path)
    assert opening.whereabouts(f"{root}/out/m", str(root)) == f"{root}/out leads out of {root}"
    monkeypatch.setattr(opening.os, "scandir", mock.Mock(side_effect=PermissionError(13, "Permission denied")))
    assert opening.whereabouts(f"{root}/m", str(root)) == f"{root} cannot be listed: Permission denied"
