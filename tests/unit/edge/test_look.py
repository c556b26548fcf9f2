# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a device says of itself, on any Python 3."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import look
import pytest

from tests.pythons import find

from .conftest import EDGE


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8", "3.14", None])
def test_every_python_3_says_what_it_is(version, tree):
    python = str(find(version) or "") if version else sys.executable
    if not python:
        pytest.skip(f"there is no Python {version} here")
    root = tree(**{"proc/device-tree/model": "Raspberry Pi 5\0"})
    done = subprocess.run(
        [python, "-S", str(EDGE / "look.py"), str(root), str(root)], capture_output=True, text=True, check=True
    )
    (line,) = done.stdout.splitlines()
    found = json.loads(line.removeprefix("HPC_VALIDATION_EDGE "))
    assert set(found) == {
        *("schema", "python", "implementation", "machine", "libc", "system", "board", "device", "home", "free_mb"),
    }
    assert found["python"].startswith(version or "3.")
    assert (found["schema"], found["implementation"], found["system"]) == (1, "cpython", "Linux")
    assert found["machine"] == os.uname().machine
    assert found["board"] == "Raspberry Pi 5"
    assert found["home"] == os.path.expanduser("~")
    assert found["free_mb"] > 0


def test_a_python_of_32_bits_is_not_of_the_kernels_processor(monkeypatch):
    monkeypatch.setattr(look.platform, "machine", lambda: "aarch64")
    assert look.machine() == "aarch64"
    monkeypatch.setattr(look.sys, "maxsize", (1 << 31) - 1)
    assert look.machine() == "armv8l"
    monkeypatch.setattr(look.platform, "machine", lambda: "armv7l")
    assert look.machine() == "armv7l"


def test_a_library_that_does_not_tell_its_version_is_not_glibc(monkeypatch):
    def unknown(_name):
        raise ValueError("unrecognized configuration name")

    assert look.libc() == os.confstr("CS_GNU_LIBC_VERSION")
    monkeypatch.setattr(look.os, "confstr", unknown)
    assert look.libc() is None


def test_a_pc_has_no_board(tmp_path):
    assert look.board(str(tmp_path)) is None


def test_a_device_is_its_name_and_the_start_of_its_kernel(tree, monkeypatch):
    root = tree(**{"proc/sys/kernel/random/boot_id": "5f0c-11\n"})
    monkeypatch.setattr(look.platform, "node", lambda: "jetson")
    assert look.device(str(root)) == "jetson 5f0c-11"
    assert look.device(str(root / "proc")) is None
    assert look.device("/") == look.device("/") is not None


def test_the_space_is_that_of_the_first_folder_that_is_there(tmp_path, monkeypatch):
    asked = []

    def free(path):
        asked.append(path)
        return type("Found", (), {"f_bavail": 3_000_000, "f_frsize": 4})

    monkeypatch.setattr(look.os, "statvfs", free)
    assert look.free_mb(str(tmp_path / "a/b")) == 12
    monkeypatch.setenv("HOME", str(tmp_path))
    assert look.free_mb("~/.hpc_validation") == 12
    assert asked == [str(tmp_path)] * 2


def test_where_nobody_says_there_is_no_space_told(monkeypatch):
    def fails(_path):
        raise OSError("no")

    monkeypatch.setattr(look.os, "statvfs", fails)
    assert look.free_mb("/") is None
