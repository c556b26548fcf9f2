# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lock fits a device, and why none does."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import requirements
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.problem import ProblemError

from tests.unit.conftest import ROOT
from tests.unit.plugins.plugin_utils._edge.made_edge import LOOK


@pytest.mark.parametrize(
    ("python", "machine", "libc", "expected"),
    [
        ("3.8.10", "aarch64", "glibc 2.31", ("python38", "3.8", "2.31")),
        ("3.9.2", "x86_64", "glibc 2.31", ("python38", "3.9", "2.31")),
        ("3.10.12", "aarch64", "glibc 2.35", ("python310", "3.10", "2.35")),
        ("3.11.2", "x86_64", "glibc 2.36", ("python311", "3.11", "2.36")),
        ("3.13.0rc1", "x86_64", "glibc 2.41", ("python311", "3.13", "2.41")),
        ("3.14.1", "aarch64", "glibc 2.36.1", ("python311", "3.14", "2.36")),
    ],
)
def test_each_python_has_its_lock(python: str, machine: str, libc: str, expected: tuple[str, str, str]) -> None:
    found = requirements.requirement({**LOOK, "python": python, "machine": machine, "libc": libc})
    assert (found["lock"], found["python"], found["libc"]) == expected
    assert found["machine"] == machine


@pytest.mark.parametrize(
    ("changes", "identity", "says"),
    [
        ({"python": "3.7.17"}, "python", "3.7.17; expected 3.8 to 3.14"),
        ({"python": "3.6.9"}, "python", "3.6.9"),
        ({"python": "3.15.0"}, "python", "3.15.0"),
        ({"python": "2.7.18"}, "python", "2.7.18"),
        ({"python": "three"}, "python", "three"),
        ({"python": "3.1111"}, "python", "3.1111"),
        ({"implementation": "pypy", "python": "3.9.18"}, "python", "pypy 3.9.18"),
        ({"machine": "armv7l"}, "wheels", "Linux on armv7l"),
        ({"machine": "i686"}, "wheels", "i686"),
        ({"machine": "riscv64"}, "wheels", "riscv64"),
        ({"system": "Darwin", "machine": "x86_64"}, "wheels", "Darwin on x86_64"),
        ({"libc": "musl 1.2.5"}, "wheels", "musl 1.2.5; ONNX Runtime has wheels for glibc only"),
        ({"libc": None}, "wheels", "its C library is not known"),
        ({"libc": "glibc"}, "wheels", "its C library is glibc"),
    ],
)
def test_what_nothing_is_locked_for_is_told(changes: dict[str, t.Any], identity: str, says: str) -> None:
    with pytest.raises(ProblemError) as caught:
        requirements.requirement({**LOOK, **changes})
    assert caught.value.told["id"] == identity
    assert says in caught.value.told["text"]


def test_each_lock_is_there_and_they_leave_no_gap() -> None:
    for lock in requirements.LOCKS:
        assert (ROOT / "files/edge/requirements" / f"{lock.name}.txt").is_file()
    minors = [minor for lock in requirements.LOCKS for minor in range(lock.oldest, lock.newest + 1)]
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert f"3.{minors[0]} to 3.{minors[-1]}" == requirements.PYTHONS
