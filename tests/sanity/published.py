# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is looked at before a collection is published: its documentation, and Galaxy's import of the built artifact."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


def docs(root: Path) -> list[str]:
    """Have antsibull-docs look at every plugin's and role's documentation, links between them included."""
    command = [
        "antsibull-docs",
        "lint-collection-docs",
        "--plugin-docs",
        "--validate-collection-refs",
        "self",
        str(root),
    ]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(root.parents[2])}
    done = subprocess.run(command, cwd=root, env=environment, check=False)
    return [f"antsibull-docs ended with {done.returncode}"] if done.returncode else []


# Galaxy wants an address, which the source does not have before it is published.
NO_ADDRESS = "repository: https://repository.invalid/mlops/hpc_validation\n"


def importer(root: Path) -> list[str]:
    """Build the collection and import it as Galaxy does, with ansible-lint; a warning counts."""
    galaxy = root / "galaxy.yml"
    described = galaxy.read_text(encoding="utf-8")
    if not re.search(r"^repository:", described, re.MULTILINE):
        galaxy.write_text(f"{described.rstrip()}\n{NO_ADDRESS}", encoding="utf-8")
    build = ["ansible-galaxy", "collection", "build", "--output-path", str(root.parents[2]), str(root)]
    subprocess.run(build, check=True, capture_output=True)
    (artifact,) = root.parents[2].glob("mlops-hpc_validation-*.tar.gz")
    command = [sys.executable, "-m", "galaxy_importer.main", str(artifact)]
    environment = {**os.environ, "GALAXY_IMPORTER_CHECK_REQUIRED_TAGS": "1"}
    done = subprocess.run(
        command, cwd=artifact.parent, env=environment, capture_output=True, text=True, check=False, timeout=1200
    )
    print(done.stdout, done.stderr, sep="")
    found = re.findall(r"^(?:WARNING|ERROR|CRITICAL).*", done.stdout + done.stderr, re.MULTILINE)
    if done.returncode or "Importer processing completed successfully" not in done.stdout:
        found.append(f"galaxy-importer ended with {done.returncode}")
    return found
