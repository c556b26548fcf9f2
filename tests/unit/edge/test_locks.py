# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The locks of edge hosts: each has what its Pythons need, for both processors."""

from __future__ import annotations

import pytest
from kit.errors import KitError
from kit.runtime import lock_file

from .conftest import EDGE

LOCKS = EDGE / "requirements"
RUNTIMES = {
    "python38": ("1.19.2", [8, 9]),
    "python310": ("1.23.2", [10]),
    "python311": ("1.32.0", [11, 12, 13, 14]),
}
CASES = [
    (lock, minor, machine)
    for lock, (_runtime, minors) in RUNTIMES.items()
    for minor in minors
    for machine in ("x86_64", "aarch64")
]


@pytest.mark.parametrize(("lock", "minor", "machine"), CASES)
def test_a_lock_has_the_runtime_and_what_it_imports(lock, minor, machine):
    found = {each.name: each for each in lock_file.requirements(LOCKS / f"{lock}.txt", (3, minor), machine)}
    assert found["onnxruntime"].version == RUNTIMES[lock][0]
    assert {"numpy", "flatbuffers", "packaging", "protobuf"} < set(found)
    assert "pyreadline3" not in found  # Windows
    assert all(each.hashes for each in found.values())


@pytest.mark.parametrize(("lock", "minor"), [("python38", 10), ("python310", 11)])
def test_a_lock_is_for_no_later_python(lock, minor):
    with pytest.raises(KitError, match="has nothing for"):
        lock_file.requirements(LOCKS / f"{lock}.txt", (3, minor), "x86_64")


def test_the_locks_are_those_that_are_made_and_name_no_index(root):
    names = {each.stem for each in LOCKS.glob("*.txt")}
    assert names == set(RUNTIMES) == {each.stem for each in LOCKS.glob("*.in")}
    makefile = (root / "Makefile").read_text()
    for name in names:
        assert f"$(EDGE)/{name}.txt $(EDGE)/{name}.in" in makefile
        assert "://" not in (LOCKS / f"{name}.txt").read_text()
