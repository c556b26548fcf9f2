# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each package of the kit may import from outside, and that preflight runs on a Python that has nothing else."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest

from tests.pythons import find

# The kit's packages that may import third-party packages; all others have the standard library.
THIRD_PARTY = {
    "gpu": {"pynvml"},
    "pretraining": {
        "google",
        "google_crc32c",
        "numpy",
        "prometheus_client",
        "requests",
        "urllib3",
    },
    "profiles": {"pydantic", "pydantic_core", "yaml"},
    "staging": {"huggingface_hub"},
    "stand_in": {"numpy", "tokenizers", "torch", "transformers"},
    "trackers": {"tensorboard", "wandb"},
    "training": {"oumi", "torch", "transformers"},
}
# What the commands of preflight import, directly or not, has to do without all of these but NVML's wheel.
PREFLIGHT = {
    "begin": ["begin"],
    "host": ["host", "--output", "host.json"],
    "preflight": ["preflight", "--output", "n7", "--path", ".", "--type", "other"],
    "probe": ["probe", "--kernel-log", "none", "--output", "gpus.json"],
    "devices": ["devices", "--output", "devices.json"],
    "share": ["share", "--path", ".", "--type", "other", "--checks", "mount"],
    "coherence": ["coherence", "--help"],
    "reports": ["reports", "--folder", ".", "--markers", ".", "--into", "gathered.gz"],
    "end": ["end", "--exit-code", "0"],
    "wheels": ["wheels", "--help"],
    "environment": ["environment", "--help"],
}


def breaches(package: str, source: str) -> list[str]:
    """Return `line: package` for each import, lazy ones included, of what a package of the kit may not import."""
    may = {"kit", *THIRD_PARTY.get(package, ())} | sys.stdlib_module_names
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["a relative import" if node.level else str(node.module)]
        else:
            continue
        found += [f"{node.lineno}: {name}" for name in names if name.partition(".")[0] not in may]
    return found


def test_no_package_imports_what_it_may_not(root):
    kit = root / "files/kit"
    found = {
        str(path.relative_to(kit)): breaches(path.relative_to(kit).parent.name, path.read_text(encoding="utf-8"))
        for path in kit.rglob("*.py")
    }
    assert {"__main__.py", "gpu/nvml.py", "training/launch.py"} < found.keys()
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("package", "source", "found"),
    [
        ("gpu", "import pynvml\nimport torch", ["2: torch"]),
        ("host", "def versions():\n    from torch.cuda import nccl\n    return nccl", ["2: torch.cuda"]),
        ("training", "import json, torch\nimport numpy as np", ["2: numpy"]),
        ("", "import yaml", ["1: yaml"]),
        ("share", "from . import mounts", ["1: a relative import"]),
        ("staging", "from kit import files\nimport huggingface_hub", []),
    ],
)
def test_the_line_that_breaks_a_wall_is_named(package, source, found):
    assert breaches(package, source) == found


@pytest.mark.parametrize("command", PREFLIGHT)
def test_preflight_runs_on_a_bare_python(root, tmp_path, command):
    """Without site-packages: what a node's own Python has. GPUs are then facts with an error, which is an answer."""
    ended = subprocess.run(
        [str(find("3.9") or sys.executable), "-S", "-s", "-B", "-m", "kit", *PREFLIGHT[command]],
        cwd=tmp_path,
        env={
            "PATH": os.defpath,
            "PYTHONPATH": str(root / "files"),
            "OUTPUT_DIR": str(tmp_path),
            "SLURM_JOB_ID": "12",
            "HPC_VALIDATION_NONCE": "0" * 32,
            "HPC_VALIDATION_MARKERS": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = ended.stderr + "".join(path.read_text() for path in tmp_path.glob("*/messages.txt"))
    assert "Traceback" not in said
    assert "No module named" not in said
    assert ended.returncode == 0, said
