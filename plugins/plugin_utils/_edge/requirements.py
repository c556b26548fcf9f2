# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell which lock of files/edge/requirements fits an edge host, or why none does. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.problem import ProblemError

Json = dict[str, t.Any]
MACHINES = ("x86_64", "aarch64")
PYTHONS = "3.8 to 3.14"


class Lock(t.NamedTuple):
    """A lock by its name, for these minor releases of Python 3."""

    name: str
    oldest: int
    newest: int


LOCKS = (Lock("python38", 8, 9), Lock("python310", 10, 10), Lock("python311", 11, 14))


def requirement(look: Json) -> Json:
    """Return {lock, python, machine, libc} for a host as `answer.look` returns it.

    Raise ProblemError, `python` or `wheels`, if nothing is locked for it.
    """
    version = re.match(r"3\.(\d{1,3})(\.\d{1,3})?(?!\d)", look["python"], re.ASCII)
    if look["implementation"].lower() != "cpython":
        raise ProblemError(
            "python", f"it is {look['implementation']} {look['python']}; ONNX Runtime has wheels for CPython only"
        )
    minor = int(version[1]) if version else -1
    fitting = [lock for lock in LOCKS if lock.oldest <= minor <= lock.newest]
    if not version or not fitting:
        raise ProblemError("python", f"it is {look['python']}; expected {PYTHONS}")
    if look["system"] != "Linux" or look["machine"] not in MACHINES:
        raise ProblemError(
            "wheels",
            f"it is {look['system']} on {look['machine']}; ONNX Runtime is locked for Linux on {' or '.join(MACHINES)}",
        )
    libc = re.fullmatch(r"glibc (\d{1,3}\.\d{1,3})(\.\d+)?", look["libc"] or "", re.ASCII)
    if not libc:
        raise ProblemError(
            "wheels", f"its C library is {look['libc'] or 'not known'}; ONNX Runtime has wheels for glibc only"
        )
    return {"lock": fitting[0].name, "python": f"3.{minor}", "machine": look["machine"], "libc": libc[1]}
