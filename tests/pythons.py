# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pythons of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


def find(version: str) -> Path | None:
    """A Python of this version, such as 3.12, of pyenv or on PATH; None where there is none that answers."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    known = sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)
    on_path = (shutil.which(f"python{version}", path=folder) for folder in os.get_exec_path())
    for candidate in [*known, *map(Path, filter(None, on_path))]:
        if _answers(candidate):
            return candidate
    return None


def _answers(python: Path) -> bool:
    """Whether it runs: a shim of pyenv only does so for versions that are chosen."""
    command = [str(python), "-c", "import ensurepip, venv"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
