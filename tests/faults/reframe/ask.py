# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ReFrame answers to the same faults on the same cluster: make faults-reframe; renews docs/faults.md.

Left out are rows that ReFrame cannot be asked: those that act on a play (its screen, its settings, Ctrl-C), on our own
files on the share, or on GPUs, which a ReFrame test does not watch.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

from tests.faults import rows, scene, table
from tests.integration.conftest import CACHE, CLUSTER, ROOT, cluster, wait_for

VERSION = "4.10.4"
HOME = f"{scene.SHARE}/.reframe"
STAGE = f"{HOME}/stage/local/gpu/builtin/Canary"
NAME = "rfm_Canary"
PATIENCE = 120.0
OTHERS = ("screen", "signal", "crash", "again", "beside")
ANSWERABLE = ("hpc_validation_nodes", "hpc_validation_workload_slurm")


def on_host(path: str) -> Path:
    """The same path of the share on this machine."""
    return CACHE / "clusters" / CLUSTER / "share" / Path(path).relative_to(scene.SHARE)


def expressible(row: rows.Row) -> bool:
    """True where ReFrame can be asked the same."""
    steps = [*row.before, *row.do, *row.undo]
    ours = any("%s" in step or step.partition(" ")[0] in (*OTHERS, "gpu", "beegfs", "share") for step in steps)
    asked = all(name in ANSWERABLE for name in row.settings) and row.expect.second is None
    known = row.when in ("before", "pending", "running", "completing") and row.group in ("slurm", "job", "judge")
    return known and asked and not ours and set(row.manifest) <= {"resources"} and row.expect.verdict is not None


def install() -> None:
    """Put ReFrame, its configuration and the canary on the cluster's share, as the submitting user."""
    home = on_host(HOME)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    python = cluster("login", "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    wanted = ["--target", str(home / "lib"), "--python-version", python, f"reframe-hpc=={VERSION}"]
    subprocess.run(["uv", "pip", "install", "--quiet", *wanted], check=True)
    for path in [*Path(__file__).parent.glob("*.py"), *(ROOT / "tests/integration/canary").glob("*.py")]:
        shutil.copy(path, home)
    cluster("login", "chown", "-R", "admin:admin", HOME)


@dataclass
class Reframe:
    """One ReFrame process."""

    process: subprocess.Popen[str]

    def finish(self) -> str:
        """Wait for its end and return what it printed; what it printed so far where it does not end."""
        try:
            return self.process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.communicate()[0] + "\nit did not end"


class Asked(scene.Scene):
    """A row of which ReFrame is asked."""

    screen = ""

    def run(self) -> float:
        """Run ReFrame with the fault at its moment; seconds from the fault to its answer."""
        self.steps(self.row.before)
        if self.row.when == "before":
            self.steps(self.row.do)
        asked = self.ask()
        if self.row.when != "before":
            wait_for(lambda: self.listed("%T") == self.row.when.upper(), PATIENCE)
            self.steps(self.row.do)
        self.struck = time.monotonic()
        self.screen = asked.finish()
        return time.monotonic() - self.struck

    def ask(self) -> Reframe:
        """Start ReFrame on the login node."""
        options = [f"--job-option=mem={self.row.manifest['resources']['mem']}"] if self.row.manifest else []
        slurm = self.row.settings.get("hpc_validation_workload_slurm", {}).get("TEST-1", {})
        given = {key: value for key, value in slurm.items() if key != "extra"} | slurm.get("extra", {})
        options += [f"--job-option={key}={value}" for key, value in given.items()]
        words = ["-c", "from reframe.frontend.cli import main; main()", "-C", f"{HOME}/settings.py"]
        words += ["-c", f"{HOME}/canary_check.py", "--run", "--keep-stage-files", "--prefix", HOME, *options]
        words += ["-S", f"program={HOME}/canary.py", "-S", f"behaviour={self.row.canary}", "--performance-report"]
        words += ["--report-file", f"{HOME}/report.json"]
        on_host(f"{HOME}/report.json").unlink(missing_ok=True)
        argv = [str(ROOT / "tests/cluster/cluster"), "exec", "--name", CLUSTER, "--user", "admin", "login", "--"]
        argv += ["env", f"PYTHONPATH={HOME}/lib", f"HOME={HOME}", "python3", *words]
        return Reframe(subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))

    def listed(self, form: str) -> str:
        """What squeue says of ReFrame's job."""
        argv = ("squeue", "--noheader", f"--name={NAME}", "--states=all", f"--format=%i {form}", "--sort=-i")
        lines = cluster("login", *argv, check=False).splitlines()
        return lines[0].split()[1] if lines else ""

    @property
    def job(self) -> str:
        """ReFrame's job id."""
        wait_for(lambda: self.listed("%i"), PATIENCE)
        return self.listed("%i")

    def step(self, line: str) -> None:
        """The same steps, with ReFrame's folder."""
        super().step(line.replace("%o", STAGE))

    def answer(self) -> dict[str, str]:
        """What ReFrame's own report says."""
        report = on_host(f"{HOME}/report.json")
        if "it did not end" in self.screen:
            return {"answer": "hangs", "says": f"no answer within {PATIENCE:.0f} s"}
        cases = json.loads(report.read_text(encoding="utf-8"))["runs"][-1]["testcases"] if report.exists() else []
        if not cases or cases[0]["result"] not in ("pass", "fail"):  # it gave up itself
            said = [line for line in self.screen.splitlines() if "error" in line.lower()] or self.screen.splitlines()[
                -1:
            ]
            return {"answer": "error", "says": " ".join(said)[:200]}
        (case,) = cases
        told = " ".join(str(case.get("fail_reason") or "").split())[:200]
        return {"answer": case["result"], "says": told}


def main() -> int:
    """Ask ReFrame of every row that it can express."""
    install()
    answers: dict[str, t.Any] = {}
    for row in [rows.Row("none", "job", "nothing is wrong", "before", rows.Expected(0, "pass")), *rows.load()]:
        if not expressible(row):
            continue
        wait_for(scene.at_rest, 90)
        with tempfile.TemporaryDirectory() as folder:
            asked = Asked(row, Path(folder), {})
            try:
                seconds = asked.run()
            finally:
                cluster("login", "scancel", f"--name={NAME}", check=False)
                asked.repair()
        answers[row.id] = {**asked.answer(), "seconds": round(seconds, 1)}
        print(f"{row.id}: {answers[row.id]}", flush=True)
    healthy = answers.pop("none")
    if healthy["answer"] != "pass":
        print("ReFrame's own test does not pass on the healthy cluster: its answers say nothing", file=sys.stderr)
        return 1
    table.renew({"reframe": {"version": VERSION, "rows": answers}})
    return 0


if __name__ == "__main__":
    sys.exit(main())
