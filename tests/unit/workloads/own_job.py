# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a workload's script as a job does, without Slurm, and judges what it leaves as a play does."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import time
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import collector
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import log_patterns, spec, verdicts
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import manifests

from tests.unit.conftest import ROOT

JOB_ID = "7"
NONCE = "00112233445566778899aabbccddeeff"


class OwnJob:
    """A job of the workload in `folder`, which writes into `place`."""

    def __init__(self, folder: Path, place: Path) -> None:
        self.manifest = manifests.load_manifest(folder / manifests.MANIFEST)
        self.folder = folder
        self.output = place / "job-7"
        self.markers = place / "markers"
        self.exit_code = -1
        self.times: dict[str, float] = {}

    def run(self) -> OwnJob:
        """Run the script with the variables of a job script, and nothing else in its environment."""
        for made in (self.output, self.markers):
            made.mkdir(parents=True)
        started = time.time()
        done = subprocess.run(
            [sys.executable, *self.manifest["command"][1:]],
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(ROOT / "files"),
                "PYTHONDONTWRITEBYTECODE": "1",
                "OUTPUT_DIR": str(self.output),
                "SLURM_JOB_ID": JOB_ID,
                "HPC_VALIDATION_ATTEMPT": "0",
                "HPC_VALIDATION_ACCELERATOR": "cpu",
                "HPC_VALIDATION_MARKERS": str(self.markers),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        self.times = {"started": started, "ended": time.time()}
        self.exit_code = done.returncode
        end = f"\nhpc-validation-end job={JOB_ID} attempt=0 exit={self.exit_code} nonce={NONCE}\n"
        for name, text in (("out", done.stdout), ("err", done.stderr)):
            (self.output.parent / name).write_text(text + end)
        marker = {"job_id": JOB_ID, "attempt": 0, "exit_code": self.exit_code, "nonce": NONCE, "time": 0}
        (self.markers / f"{JOB_ID}.end.json").write_text(json.dumps(marker))
        return self

    def judged(self) -> dict[str, dict[str, t.Any]]:
        """The workload's own criteria, judged, by id."""
        output = self.manifest["output"]
        patterns = log_patterns.load()
        request = collector.Request(
            job_id=JOB_ID,
            attempt=0,
            output=str(self.output),
            files={
                "metrics": {"path": output["metrics"], "format": "json"},
                "progress": {"path": output["progress"], "format": "jsonl"},
            },
            logs={"stdout": str(self.output.parent / "out"), "stderr": str(self.output.parent / "err")},
            end_marker=str(self.markers / f"{JOB_ID}.end.json"),
            artifacts=output["artifacts"],
            patterns=patterns,
            settle=0,
        )
        assert collector.check(request) == []
        example = json.loads((ROOT / "files/schemas/examples/job.json").read_text())
        job = {**example, "job_id": JOB_ID, "attempt": 0, "exit_code": self.exit_code, "gpus": 1, **self.times}
        evidence = {**collector.collect(request, 60), "job": job, "context": {"accelerator": "simulated"}}
        own = [each for each in self.manifest["criteria"] if not each["id"].startswith(("GPU.", "CONTAINER."))]
        criteria = spec.read(own, workload=self.manifest["id"], pattern_sets=patterns)
        today = datetime.date(2026, 11, 24)
        return {each["id"]: each for each in verdicts.judge(evidence, criteria, today=today) if each["id"] != "JOB"}
