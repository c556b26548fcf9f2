# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for jobs: ours, ReFrame and sbatch --wait, on the local cluster in one run. Prints a Markdown table.

    .venv/bin/python tests/bench/bench_waiting.py [--seconds 5 120 600] [--jobs 1 20] [--skip-reframe]

Query RPCs are counted by sdiag from its reset before to the end of each wait, so nothing else may use the cluster.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = os.environ.get("HPC_VALIDATION_CLUSTER", "local")
CACHE = Path(
    os.environ.get("HPC_VALIDATION_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "hpc_validation")
)
STATE = CACHE / "clusters" / CLUSTER
FOLDER = "/mnt/beegfs/jobs/bench-waiting"
REFRAME = "4.10.0"
SLOTS = 4
QUERIES = re.compile(
    r"(REQUEST_(?:JOB_INFO\w*|JOB_USER_INFO|JOB_STATE|NODE_INFO\w*|PARTITION_INFO|FED_INFO))\s.*count:(\d+)"
)
OPTIONS = {"gres": "gpu:1", "mem": "50M"}

REFRAME_CONFIG = """
site_configuration = {
    "systems": [{
        "name": "local", "hostnames": [".*"],
        "partitions": [
            {"name": "gpu", "scheduler": "%s", "launcher": "local", "environs": ["none"], "max_jobs": 100},
        ],
    }],
    "environments": [{"name": "none"}],
    "general": [{"resolve_module_conflicts": False}],
}
"""
REFRAME_TEST = """
import reframe as rfm
import reframe.utility.sanity as sn

@rfm.simple_test
class Sleep(rfm.RunOnlyRegressionTest):
    number = parameter(range(%d))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "sleep"
    executable_opts = ["%d"]

    @run_before("run")
    def ask(self):
        self.job.options = ["--gres=gpu:1", "--mem=50M"]

    @sanity_function
    def fine(self):
        return sn.assert_true(True)
"""
MARKED = f"""#!/bin/bash
m={FOLDER}/$SLURM_JOB_ID
row() {{ printf '{{"job_id": "%s", "attempt": 0, "exit_code": 0, "time": %s}}' "$SLURM_JOB_ID" "$(date +%s)" > $m.tmp
  mv $m.tmp $m.$1.json; }}
row begin
sleep SECONDS
row end
"""


def node(*argv: str, user: str = "root", seconds: float = 3000) -> str:
    """Run a command on the login node and return what it printed."""
    command = [str(ROOT / "tests/cluster/cluster"), "exec", "--name", CLUSTER, "--user", user, "login", "--", *argv]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=seconds).stdout


def ours(count: int, seconds: int, markers: bool) -> float:
    """Wait with slurm_job; return the task's wall time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = MARKED.replace("SECONDS", str(seconds)) if markers else f"#!/bin/bash\nsleep {seconds}\n"
        unique = f"{time.time():.0f}"
        task = {
            "script": script,
            "share": "/mnt/beegfs",
            "chdir": FOLDER,
            "jobs": [{"options": {**OPTIONS, "job-name": f"bench{unique}-{number}"}} for number in range(count)],
            "queue_timeout": 3600,
        }
        if markers:
            task |= {"begin_marker": f"{FOLDER}/%j.begin.json", "end_marker": f"{FOLDER}/%j.end.json"}
        stamp = "{{ now(utc=true).timestamp() }}"
        content = "{{ {'t0': t0, 't1': t1, 'states': r.jobs | map(attribute='state') | unique | list} | to_json }}"
        play = [
            {
                "hosts": "login",
                "gather_facts": False,
                "tasks": [
                    {"ansible.builtin.ping": {}},
                    {"ansible.builtin.command": {"argv": ["sdiag", "--reset"]}, "ignore_errors": True},
                    {"ansible.builtin.set_fact": {"t0": stamp}},
                    {"mlops.hpc_validation.slurm_job": task, "register": "r"},
                    {"ansible.builtin.set_fact": {"t1": stamp}},
                    {
                        "ansible.builtin.copy": {
                            "content": content,
                            "dest": str(folder / "times.json"),
                            "mode": "0600",
                        },
                        "delegate_to": "localhost",
                    },
                ],
            }
        ]
        host = {
            "ansible_ssh_common_args": f"-F {STATE}/ssh_config",
            "ansible_control_path": f"{STATE}/%%h.ssh",
            "ansible_python_interpreter": "/usr/bin/python3",
        }
        (folder / "play.yml").write_text(yaml.safe_dump(play))
        (folder / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": {"login": host}}}))
        subprocess.run(
            ["ansible-playbook", "-i", str(folder / "inventory.yml"), str(folder / "play.yml")],
            check=True,
            cwd=ROOT,
            env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        times = json.loads((folder / "times.json").read_text())
    if times["states"] != ["COMPLETED"]:
        raise SystemExit(f"slurm_job: jobs ended {times['states']}")
    return float(times["t1"]) - float(times["t0"])


def sbatch_wait(count: int, seconds: int) -> float:
    """Wait with one sbatch --wait per job."""
    one = f"sbatch --wait --gres=gpu:1 --mem=50M --chdir={FOLDER} --wrap {shlex.quote(f'sleep {seconds}')} >/dev/null"
    begun = time.monotonic()
    node("bash", "-c", f"for i in $(seq {count}); do {one} & done; wait", user="admin")
    return time.monotonic() - begun


def install_reframe() -> None:
    """Install ReFrame for the login node's Python into the folder that the clusters share."""
    target = CACHE / "venvs" / f"reframe-{REFRAME}"
    if not target.exists():
        version = node("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
        pip = ["uv", "pip", "install", "--quiet", "--python-version", version, "--target", str(target)]
        subprocess.run([*pip, f"ReFrame-HPC=={REFRAME}"], check=True)


def reframe(count: int, seconds: int, scheduler: str) -> float:
    """Wait with ReFrame: its scheduler slurm asks slurmdbd by sacct, squeue asks slurmctld."""
    folder = STATE / "share/jobs/bench-waiting"
    (folder / "config.py").write_text(REFRAME_CONFIG % scheduler)
    (folder / "sleep.py").write_text(REFRAME_TEST % (count, seconds))
    path = f"/mnt/beegfs/venvs/reframe-{REFRAME}"
    run = f"python3 {path}/bin/reframe -C config.py -c sleep.py -r --prefix={FOLDER}/reframe"
    command = f"cd {FOLDER} && PYTHONPATH={path} {run}"
    begun = time.monotonic()
    node("bash", "-c", command, user="admin")
    return time.monotonic() - begun


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, nargs="+", default=[5])
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 20])
    parser.add_argument("--skip-reframe", action="store_true")
    parser.add_argument("--only", default="", help="tools whose name holds this text")
    args = parser.parse_args()
    node("mkdir", "-p", FOLDER, user="admin")
    subprocess.run(["chmod", "777", str(STATE / "share/jobs/bench-waiting")], check=True)
    tools = {
        "slurm_job": lambda count, seconds: ours(count, seconds, markers=True),
        "slurm_job, no end marker": lambda count, seconds: ours(count, seconds, markers=False),
        "sbatch --wait": sbatch_wait,
    }
    if not args.skip_reframe:
        install_reframe()
        tools[f"ReFrame {REFRAME}, squeue"] = lambda count, seconds: reframe(count, seconds, "squeue")
        tools[f"ReFrame {REFRAME}, sacct"] = lambda count, seconds: reframe(count, seconds, "slurm")
    tools = {name: wait for name, wait in tools.items() if args.only in name}
    print("| jobs | each | tool | wall | beyond the ideal | query RPCs |\n|---|---|---|---|---|---|")
    for seconds in args.seconds:
        for count in args.jobs:
            ideal = seconds * math.ceil(count / SLOTS)
            for name, wait in tools.items():
                node("sdiag", "--reset")
                try:
                    wall = wait(count, seconds)
                except subprocess.CalledProcessError as error:
                    # ReFrame 4.10.0's squeue scheduler stops with an AttributeError where one of many jobs is pending.
                    print(f"| {count} | {seconds} s | {name} | failed, exit code {error.returncode} | | |", flush=True)
                    node("scancel", "--user=admin")
                    continue
                rpcs = sum(int(number) for _kind, number in QUERIES.findall(node("sdiag")))
                print(f"| {count} | {seconds} s | {name} | {wall:.1f} s | {wall - ideal:.1f} s | {rpcs} |", flush=True)
    node("rm", "-rf", FOLDER)


if __name__ == "__main__":
    main()
