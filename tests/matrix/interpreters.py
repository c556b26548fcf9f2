# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pythons of this machine: found, made into a controller, copied into a cluster's nodes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests import pythons
from tests.integration.conftest import CACHE, ROOT, cluster
from tests.matrix.problems import AbsentError, demand
from tests.matrix.scene import HOSTS

# Nothing of them is asked of an interpreter on a node.
LEFT_OUT = ("*.a", "test", "tests", "idlelib", "site-packages", "share", "include")


def find(version: str) -> Path:
    """A Python of this version, such as 3.12. AbsentError where this machine has none."""
    python = pythons.find(version)
    if python is None:
        raise AbsentError(f"this machine has no Python {version}")
    return python


def controller(version: str, packages: str) -> Path:
    """Make an environment with what requirements.txt asks for, the oldest or the newest; return its bin folder."""
    folder = CACHE / "matrix" / f"controller-{version}-{packages}"
    shutil.rmtree(folder, ignore_errors=True)
    resolution = {"oldest": "lowest-direct", "newest": "highest"}[packages]
    make = ["uv", "venv", "--quiet", "--no-project", "--seed", "--python", str(find(version)), str(folder)]
    python = str(folder / "bin" / "python")
    fill = ["uv", "pip", "install", "--quiet", "--python", python, "--resolution", resolution]
    for command in (make, [*fill, "--requirement", str(ROOT / "requirements.txt")]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(done.stdout + done.stderr, end="")
        demand(done.returncode == 0, "the controller's packages could not be installed")
    return folder / "bin"


def on_nodes(name: str, version: str) -> str:
    """Return the path of this Python on every node of a cluster: the node's own, else a copy of one of this machine."""
    if _version("/usr/bin/python3", name, "login").startswith(f"{version}."):
        return "/usr/bin/python3"
    source = find(version)
    prefix = subprocess.run(
        [str(source), "-I", "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if prefix in {"/usr", "/usr/local"}:
        raise AbsentError(f"this machine's Python {version} is its distribution's and cannot be copied")
    target = f"/opt/python{version}"
    python = f"{target}/bin/python{version}"
    for host in HOSTS:
        cluster(host, "mkdir", "-p", target, name=name)
        _copy(prefix, target, name, host)
        for library in Path(prefix, "lib").glob("libpython*.so.*"):  # the copy looks for it where it was built
            cluster(host, "ln", "-sf", f"{target}/lib/{library.name}", "/usr/local/lib/", name=name)
            cluster(host, "ldconfig", name=name)
        demand(_version(python, name, host).startswith(f"{version}."), f"Python {version} does not run on the nodes")
    return python


def _copy(prefix: str, target: str, name: str, host: str) -> None:
    pack = ["tar", "-C", prefix, "-c", *(f"--exclude={pattern}" for pattern in LEFT_OUT), "."]
    unpack = [str(ROOT / "tests/cluster/cluster"), "exec", "--name", name, host, "--"]
    unpack += ["tar", "-C", target, "-x", "--no-same-owner"]
    with subprocess.Popen(pack, stdout=subprocess.PIPE) as packing:
        unpacked = subprocess.run(unpack, stdin=packing.stdout, check=False, timeout=300)
    demand(packing.returncode == 0 and unpacked.returncode == 0, "the interpreter could not be copied into the nodes")


def _version(python: str, name: str, host: str) -> str:
    script = "import ctypes, lzma, platform, ssl, zlib; print(platform.python_version())"
    return cluster(host, python, "-I", "-c", script, user="admin", name=name, check=False).strip()
