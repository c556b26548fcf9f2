# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Legs of the pretraining on real gloo ranks, as a job runs them, with a model and steps that take seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import kit
import yaml
from kit.pretraining import converter, markov

FILES = Path(kit.__file__).resolve().parents[1]
HOME = FILES / "workloads/gpt_pretraining"
FAULTY = Path(__file__).resolve().parent / "faulty.py"
LEGS = ("shape:1", "plain", "measured", "killed::killed", "resumed", "resized:1", "export:1")
SETTINGS: dict[str, Any] = yaml.safe_load(FAULTY.with_name("small.yaml").read_text())


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return `one` with what `other` says."""
    both = {
        key: merged(one[key], value) if isinstance(one.get(key), dict) and isinstance(value, dict) else value
        for key, value in other.items()
    }
    return {**one, **both}


class Case(unittest.TestCase):
    """Tokens, an output folder, and the job script's environment."""

    tokens: tempfile.TemporaryDirectory[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.tokens = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.tokens.cleanup)
        converter.convert(
            [markov.source(12_000, 0)],
            Path(cls.tokens.name),
            vocab=markov.VOCAB,
            validation=2_000,
            source="made for tests",
            entropy=markov.ENTROPY,
        )

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.output = Path(scratch.name, "out put")
        self.output.mkdir()

    def run_legs(
        self, *legs: str, fault: str | None = None, settings: dict[str, Any] | None = None, **environment: str
    ) -> tuple[int, str]:
        """Run legs on two ranks as the job script does; return exit code and stderr."""
        own = self.output.parent / "site.json"
        own.write_text(json.dumps(merged(SETTINGS, settings or {})))
        said = {
            "PYTHONPATH": f"{FILES}:{HOME}",
            "DATA_DIR": self.tokens.name,
            "OUTPUT_DIR": str(self.output),
            "SETTINGS_FILE": str(own),
            "HPC_VALIDATION_ACCELERATOR": "cpu",
            "SLURM_JOB_ID": "12",
            **environment,
        }
        begun = [str(FAULTY), fault] if fault else [str(HOME / "train.py")]
        script = [*begun, "--config", str(HOME / "config"), "--profile", "mini"]
        told = [word for leg in legs for word in ("--leg", leg)]
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "kit",
                "legs",
                "--ranks",
                "2",
                *told,
                sys.executable,
                "-m",
                "kit",
                "launch",
                *script,
            ],
            cwd=HOME,
            env={**os.environ, **said},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return done.returncode, done.stderr

    def written(self, name: str) -> dict[str, Any]:
        """Return a JSON document of the output folder."""
        return dict(json.loads((self.output / name).read_text()))
