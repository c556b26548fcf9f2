# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Slurm in memory: it answers squeue, sacct, sbatch, scancel and scontrol in the forms that the real ones print."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import sacct, squeue
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import Result

DOWN = Result(1, b"", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
TIMED_OUT = Result(1, b"", "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation")


def record(job_id: str, **values: object) -> bytes:
    """One record of squeue; an exit code that is None is not printed."""
    fields = {
        "JobID": job_id,
        "State": "PENDING",
        "Reason": "None",
        "exit_code": "0:0",
        "DerivedEC": "0:0",
        "RestartCnt": 0,
        "SubmitTime": 1000,
        "StartTime": "N/A",
        "EndTime": "N/A",
        "TimeLimit": "30:00",
        "Partition": "gpu",
        "UserName": "admin",
        "tres-alloc": "cpu=1",
        **dict.fromkeys(("tres-per-job", "tres-per-node", "tres-per-socket", "tres-per-task"), "N/A"),
        "NodeList": "",
        "Comment": "(null)",
        "WorkDir": "/tmp",
        "STDOUT": "/tmp/slurm-%j.out",
        "STDERR": "(null)",
        "Name": "job",
        **{key.replace("_", "-") if key.startswith("tres") else key: value for key, value in values.items()},
    }
    known = [(key, width) for key, width in (*squeue.FIELDS, *squeue.CODES) if fields[key] is not None]
    return b"".join(str(fields[key]).encode().ljust(width)[:width] for key, width in known) + b"\n"


@dataclass
class FakeSlurm:
    """Jobs by id as squeue's fields; sacct rows by id; what sbatch answers and whether it submits all the same."""

    jobs: dict[str, dict[str, object]] = field(default_factory=dict)
    accounting: dict[str, str] | None = field(default_factory=dict)
    calls: list[list[str]] = field(default_factory=list)
    time: float = 1000.0
    sbatch: Result | None = None
    sbatch_submits: bool = True
    down: bool = False
    next_id: int = 1
    deaf: bool = False
    texts: dict[str, str] = field(default_factory=dict)

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    def count(self, program: str) -> int:
        return sum(call[0] == program for call in self.calls)

    def __call__(self, argv: list[str], **_options: object) -> Result:
        self.calls.append(argv)
        return getattr(self, "_" + argv[0])(argv)

    def _squeue(self, argv: list[str]) -> Result:
        if self.down:
            return DOWN
        wanted = [word.partition("=")[2].split(",") for word in argv if word.startswith("--jobs=")]
        shown = [job_id for job_id in self.jobs if not wanted or job_id in wanted[0]]
        return Result(0, b"".join(record(job_id, **self.jobs[job_id]) for job_id in shown))

    def _sbatch(self, argv: list[str]) -> Result:
        if "--test-only" in argv:
            return Result(0, b"", "sbatch: Job 1 to start at 2026-11-21T03:49:22 using 1 processors on nodes compute01")
        if self.down:
            return Result(
                1,
                b"",
                "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
            )
        if self.sbatch_submits:
            comment = next(word.partition("=")[2] for word in argv if word.startswith("--comment="))
            self.jobs[str(self.next_id)] = {"Comment": comment, "SubmitTime": int(self.time)}
            self.next_id += 1
        return self.sbatch or Result(0, f"{self.next_id - 1}\n".encode())

    def _scancel(self, argv: list[str]) -> Result:
        if self.down:
            return DOWN
        for job_id in argv[1:]:
            if job_id in self.jobs and not self.deaf:
                self.jobs[job_id]["State"] = "CANCELLED"
        return Result(0)

    def _sacct(self, argv: list[str]) -> Result:
        if self.accounting is None:
            return Result(1, b"", "Slurm accounting storage is disabled")
        ids = next(word.partition("=")[2] for word in argv if word.startswith("--jobs=")).split(",")
        return Result(0, "".join(self.accounting.get(job_id, "") for job_id in ids).encode())

    def _scontrol(self, argv: list[str]) -> Result:
        return Result(0, self.texts[next(word for word in ("job", "node") if word in argv)].encode())


def sacct_row(job_id: str, state: str, **values: object) -> str:
    """One line of sacct."""
    fields = {
        **dict.fromkeys(sacct.FIELDS, ""),
        "JobIDRaw": job_id,
        "State": state,
        "ExitCode": "0:0",
        "DerivedExitCode": "0:0",
        "Submit": "1000",
        "Start": "1001",
        "End": "1006",
        "NodeList": "compute01",
        **values,
    }
    return "|".join(str(fields[key]) for key in sacct.FIELDS) + "\n"
