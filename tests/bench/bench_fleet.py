# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A preflight of many nodes, each with a slurmd of its own, and ReFrame on some of the same nodes.

Usage: bench_fleet.py [--nodes N] [--reframe N] [--accelerator cpu|simulated] [--share-size SIZE] [-e JSON]

Brings up the cluster that HPC_VALIDATION_CLUSTER names with so many nodes (tests/cluster/README.md) and leaves it up.
Submissions and queries are counted by sdiag, from its reset before to the end. The memory is that of all processes of
ansible-playbook together. Ends 1 if a goal is missed: the verdict, the lines on the screen, and for 1,000 nodes also
queries a minute and the time; with fewer, the ten queries that every run makes once are most of them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import typing as t
from dataclasses import dataclass

from tests.bench.bench_scale import family, memory_of
from tests.bench.bench_waiting import CLUSTER, FOLDER, QUERIES, REFRAME, ROOT, STATE, install_reframe, node

Json = dict[str, t.Any]
LINES, QUERIES_A_MINUTE, GOAL_NODES, GOAL_SECONDS = 60, 6, 1000, 300
SIMULATED_NODES = 100  # two cores do not serve the 200 jobs with simulated GPUs that run at once with more
# With 100 at once, two slow cores took longer for the step that shows confinement, and for dmesg, than a node may.
SIMULATED_WINDOW = 32
# Each node writes 64 MiB and reads them: with more nodes than that, one disk would be measured. Up to 10 GB are used.
SHARE_SIZE = "20G"
SUBMISSIONS = re.compile(r"(REQUEST_SUBMIT_BATCH_JOB)\s.*count:(\d+)")
# The same commands as in the job of a preflight, but for its guard and its markers.
REFRAME_TEST = """
import reframe as rfm
import reframe.utility.sanity as sn

@rfm.simple_test
class Node(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "python3 -m kit host --output host.json && python3 -m kit share"
    executable_opts = ["--path", "/mnt/beegfs", "--type", "simulated", "--tool", "own"]
    env_vars = {"PYTHONPATH": "/mnt/beegfs/scripts", "PYTHONDONTWRITEBYTECODE": "1"}

    @sanity_function
    def fine(self):
        return sn.assert_found(r'"schema": 1', self.stdout)
"""
REFRAME_CONFIG = """
site_configuration = {
    "systems": [{
        "name": "local", "hostnames": [".*"],
        "partitions": [{
            "name": "fleet", "scheduler": "slurm", "launcher": "local", "environs": ["none"], "max_jobs": 200,
            "access": ["--partition=fleet", "--nodelist=%s", "--mem=1G"],
        }],
    }],
    "environments": [{"name": "none"}],
}
"""


@dataclass
class Measured:
    """One line of the table."""

    tool: str
    nodes: int
    seconds: float
    submissions: int
    queries: int
    mb: float | None
    lines: int

    def __str__(self) -> str:
        rate = self.queries / self.seconds * 60
        mb = "" if self.mb is None else f"{self.mb:.0f}"
        words = (f"{self.seconds:.0f} s", self.submissions, self.queries, f"{rate:.1f}", mb, self.lines)
        return f"| {self.tool} | {self.nodes} | {' | '.join(map(str, words))} |"


def measured(tool: str, nodes: int, command: list[str]) -> tuple[Measured, str]:
    """Run a command, whose exit code must be 0, and return what it cost and what it printed."""
    node("sdiag", "--reset")
    began, peak = time.monotonic(), 0.0
    with tempfile.TemporaryFile("w+") as screen:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=screen, stderr=screen)
        while process.poll() is None:
            peak = max(peak, sum(map(memory_of, family(process.pid))))
            time.sleep(0.2)
        seconds = time.monotonic() - began
        screen.seek(0)
        text = screen.read()
    if process.returncode:
        sys.exit(f"{text}\n{tool} ended with {process.returncode}")
    told = node("sdiag")
    counts = [sum(int(words[-1]) for words in pattern.findall(told)) for pattern in (SUBMISSIONS, QUERIES)]
    return Measured(tool, nodes, seconds, counts[0], counts[1], peak, len(text.splitlines())), text


def preflight(nodes: int, variables: Json) -> tuple[Measured, str]:
    """Run a preflight of the fleet, or of some of its nodes."""
    with tempfile.TemporaryDirectory() as results:
        given = {"hpc_validation_slurm": {"partition": "fleet"}, "hpc_validation_results": results, **variables}
        command = ["ansible-playbook", "playbooks/preflight.yml", "-i", "inventories/local", "-e", json.dumps(given)]
        return measured("preflight", nodes, command)


def reframe(nodes: int, names: str) -> Measured:
    """Run ReFrame's --distribute on these nodes."""
    install_reframe()
    node("mkdir", "-p", FOLDER, user="admin")
    for name, text in (("config.py", REFRAME_CONFIG % names), ("node.py", REFRAME_TEST)):
        (STATE / "share/jobs/bench-waiting" / name).write_text(text)
    path = f"/mnt/beegfs/venvs/reframe-{REFRAME}"
    run = f"python3 {path}/bin/reframe -C config.py -c node.py -r --distribute=all --prefix={FOLDER}/reframe"
    login = [str(ROOT / "tests/cluster/cluster"), "exec", "--name", CLUSTER, "--user", "admin", "login", "--"]
    found, _text = measured("ReFrame", nodes, [*login, "bash", "-c", f"cd {FOLDER} && PYTHONPATH={path} {run}"])
    found.mb = None  # it runs on the login node
    node("rm", "-rf", FOLDER)
    return found


def main() -> int:
    """Print a table and the screen, and return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--reframe", type=int, default=50, help="compare with ReFrame on at most so many; 0: do not")
    default = f"default: simulated for up to {SIMULATED_NODES} nodes, cpu for more"
    parser.add_argument("--accelerator", choices=("cpu", "simulated"), help=default)
    default = f"of a share in memory; '': on the disk; default: {SHARE_SIZE} for more than {SIMULATED_NODES} nodes"
    parser.add_argument("--share-size", metavar="SIZE", help=default)
    parser.add_argument("-e", dest="variables", type=json.loads, default={}, help="variables of the plays, as JSON")
    arguments = parser.parse_args()
    up = ["tests/cluster/cluster", "up", "--name", CLUSTER, "--fleet", str(arguments.nodes)]
    size = arguments.share_size
    if size is None and arguments.nodes > SIMULATED_NODES:
        size = SHARE_SIZE
    up += ["--share-size", size] if size else []
    began = time.monotonic()
    subprocess.run(up, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    print(f"{arguments.nodes} nodes were up after {time.monotonic() - began:.0f} s\n")
    accelerator = arguments.accelerator or ("simulated" if arguments.nodes <= SIMULATED_NODES else "cpu")
    window = {"hpc_validation_window": SIMULATED_WINDOW} if accelerator == "simulated" else {}
    variables = {"hpc_validation_accelerator": accelerator, **window, **arguments.variables}
    print("| tool | nodes | time | submissions | queries | a minute | MB | lines |\n|---|---|---|---|---|---|---|---|")
    whole, screen = preflight(arguments.nodes, variables)
    print(whole, flush=True)
    compared = min(arguments.reframe, arguments.nodes)
    if compared:
        width = max(3, len(str(arguments.nodes)))
        names = f"n[{1:0{width}}-{compared:0{width}}]"
        some, _screen = preflight(compared, {**variables, "hpc_validation_nodes": names})
        print(some, flush=True)
        print(reframe(compared, names), flush=True)
    print(f"\n```text\n{screen.strip()}\n```")
    missed = ["lines"] * (whole.lines > LINES)
    if arguments.nodes >= GOAL_NODES:
        missed += ["queries a minute"] * (whole.queries / whole.seconds * 60 > QUERIES_A_MINUTE)
        missed += ["time"] * (whole.seconds > GOAL_SECONDS)
    if missed:
        print(f"missed: {', '.join(missed)}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
