# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Atomic files and JSON that stays JSON."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from kit.files import plain, sha256, write_atomic, write_json


def test_a_document_is_written_whole_and_readable_by_others(tmp_path: Path) -> None:
    target = tmp_path / "new folder" / "it's; \n odd.json"
    write_json(target, {"a": 1})
    assert json.loads(target.read_text()) == {"a": 1}
    assert target.stat().st_mode & 0o777 == 0o644
    assert list(target.parent.iterdir()) == [target]


def test_a_writer_that_raises_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "metrics.json"
    write_json(target, "old")

    def fail(stream: t.BinaryIO) -> None:
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_atomic(target, fail)
    assert json.loads(target.read_text()) == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_writer_killed_half_way_leaves_the_old_file(tmp_path: Path, root: Path) -> None:
    target = tmp_path / "metrics.json"
    write_json(target, "old")
    script = (
        "import os, signal, sys\nfrom kit.files import write_atomic\n"
        "write_atomic(sys.argv[1], lambda s: (s.write(b'half'), s.flush(), os.kill(os.getpid(), signal.SIGKILL)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(target)], env={**os.environ, "PYTHONPATH": str(root / "files")}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert json.loads(target.read_text()) == "old"


def test_what_cannot_be_json_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_json(tmp_path / "x.json", {"a": object()})
    assert list(tmp_path.iterdir()) == []


def test_numbers_that_are_not_finite_become_strings_at_any_depth() -> None:
    value = {"loss": [1.0, math.nan], "deep": {"up": math.inf, "down": (-math.inf,)}, 3: True}
    assert plain(value) == {"loss": [1.0, "NaN"], "deep": {"up": "Infinity", "down": ["-Infinity"]}, "3": True}


def test_sha256_is_that_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256(tmp_path / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
