# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-test on this machine, without containers: every Python that is here, and its own pins for each test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from collections.abc import Sequence
from pathlib import Path

from ansible_test._internal.python_requirements import get_venv_packages
from ansible_test._internal.util import SUPPORTED_PYTHON_VERSIONS

from tests.pythons import find

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
HOME = Path(os.environ.get("HPC_VALIDATION_CACHE") or CACHE / "hpc_validation") / "ansible-test"
OLDEST = (3, 9)
# ansible-test would fetch a script from its makers' site to put pip into a new environment. Ours asks the index.
BOOTSTRAP = """import subprocess, sys
packages = [word for word in sys.argv[1:] if not word.startswith("-")]
subprocess.run([{pip!r}, "-m", "pip", "--python", sys.executable, "install", "--quiet", *packages], check=True)
"""


def sanity(root: Path, tests: Sequence[str] = ()) -> list[str]:
    """Run ansible-test sanity on every Python at hand."""
    ignored = [path.name for path in (root / "tests/sanity").glob("ignore*.txt")]
    chosen = [word for test in tests for word in ("--test", test)]
    return [f"{name}: nothing may be ignored" for name in ignored] + run(root, "sanity", *chosen)


def units(root: Path) -> list[str]:
    """Run ansible-test units of the plugins on the Python of this environment."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return run(root, "units", "--python", version, "tests/unit/plugins/")


def run(root: Path, *arguments: str) -> list[str]:
    """Run ansible-test, in full view; return what failed and, named, what did not run."""
    pythons, absent = _pythons()
    environment = {**os.environ, "HOME": str(_home()), "PATH": os.pathsep.join([*_links(pythons), os.environ["PATH"]])}
    command = ["ansible-test", *arguments, "--color", "no"]
    with subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        assert running.stdout is not None
        said = []
        for line in running.stdout:
            print(line, end="", flush=True)
            said.append(line)
    named = {f"Python {version}" for version in absent}
    skipped = sorted({line.strip() for line in said if re.search(r"skipp", line, re.IGNORECASE)})
    for line in skipped:
        print(f"not run: {line}")
    unexpected = [line for line in skipped if not any(f"on {name} " in line for name in named)]
    failed = [f"{' '.join(command)} ended with {running.returncode}"] if running.returncode else []
    return failed + [f"left out: {line}" for line in unexpected]


def _pythons() -> tuple[dict[str, Path], list[str]]:
    """Each Python that this ansible-test knows and we support, and the versions that it will not find."""
    versions = [each for each in SUPPORTED_PYTHON_VERSIONS if tuple(map(int, each.split("."))) >= OLDEST]
    found = {version: path for version in versions if (path := find(version))}
    return found, [each for each in SUPPORTED_PYTHON_VERSIONS if each not in found]


def _links(pythons: dict[str, Path]) -> list[str]:
    """A folder for PATH in which each Python has the name by which ansible-test looks for it."""
    folder = HOME / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    for version, path in pythons.items():
        link = folder / f"python{version}"
        link.unlink(missing_ok=True)
        link.symlink_to(path)
    return [str(folder)]


def _home() -> Path:
    """A home of ansible-test's own, for its environments, with this machine's settings of pip, whose environment
    variables it does not hand on."""
    version = get_venv_packages(types.SimpleNamespace(version="3.13"))["pip"]
    bootstrap = HOME / ".ansible/test/cache" / f"get_pip_{version.replace('.', '_')}.py"
    bootstrap.parent.mkdir(parents=True, exist_ok=True)
    bootstrap.write_text(BOOTSTRAP.format(pip=sys.executable), encoding="utf-8")
    command = [sys.executable, "-m", "pip", "config", "list"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    settings = dict(re.findall(r"^(?:global|install|:env:)\.([a-z-]+)='(.*)'$", said, re.MULTILINE))
    settings.setdefault("cert", os.environ.get("SSL_CERT_FILE", ""))
    settings["quiet"] = "1"
    text = "".join(f"{key} = {value}\n" for key, value in settings.items() if value)
    config = HOME / ".config/pip/pip.conf"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.touch(mode=0o600)
    config.write_text(f"[global]\n{text}", encoding="utf-8")
    return HOME
