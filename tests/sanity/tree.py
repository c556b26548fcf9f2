# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection where Ansible's tools want it: in ansible_collections/mlops/hpc_validation, and no link."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Tools of this checkout, which no collection's user gets: ruff, mypy and shellcheck look at them (noxfile.py).
OURS = {".ci", "collections", "extensions", "noxfile.py"}
# Of the tests what ansible-test knows, less whole recordings with the line ends that they had.
TESTS = ("tests/__init__.py", "tests/config.yml", "tests/unit/", "tests/sanity/", "tests/fixtures/")
RECORDINGS = "tests/fixtures/beegfs/transcripts/"


def collection(folder: Path) -> Path:
    """Copy what git knows or would take; return the collection's folder."""
    target = folder / "ansible_collections" / "mlops" / "hpc_validation"
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(wanted, done.stdout.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def wanted(name: str) -> bool:
    """Whether a file is looked at."""
    if not name or name.split("/", maxsplit=1)[0] in OURS or name.startswith(RECORDINGS):
        return False
    return name.startswith(TESTS) or not name.startswith("tests/")
