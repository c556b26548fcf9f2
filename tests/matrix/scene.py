# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A local cluster of the matrix, and plays on it as a user runs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import typing as t
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from tests.integration.conftest import ANSI, ANY_SPEED, CACHE, ROOT, Played, cluster, jobs
from tests.matrix.problems import demand

HOSTS = ("login", "compute01", "compute02")
RESULTS = ROOT / "results" / "matrix"
Json = dict[str, t.Any]


@dataclass(frozen=True)
class Scene:
    """One cell's place: its cluster, its folder of results, and the controller that plays there."""

    name: str
    folder: Path
    bin: Path | None = None  # the controller's programs; by default those of this checkout
    inventories: tuple[str, ...] = ("inventories/local",)

    def with_variables(self, variables: dict[str, str]) -> Scene:
        """The same place, its hosts with these variables in the inventory, where a site would have them."""
        path = self.folder / f"inventory-{len(self.inventories)}.yml"
        hosts = {"all": {"hosts": dict.fromkeys(HOSTS, variables)}}
        path.write_text(json.dumps(hosts), encoding="utf-8")
        return replace(self, inventories=(*self.inventories, str(path)))

    @property
    def _inventories(self) -> list[str]:
        return [word for inventory in self.inventories for word in ("-i", inventory)]

    @property
    def _environment(self) -> dict[str, str]:
        path = [str(self.bin)] if self.bin else []
        own = {"HPC_VALIDATION_CLUSTER": self.name, "PATH": os.pathsep.join([*path, os.environ["PATH"]])}
        return {**os.environ, **ANSI, **own}

    def facts(self) -> str:
        """What Ansible's own modules find on the cluster's hosts; an edge host keeps its own Python."""
        return self.run("ansible", "hpc_login:hpc_compute", *self._inventories, "-m", "ansible.builtin.setup")

    def run(self, *command: str, seconds: float = 120) -> str:
        """Run a program of the controller in the checkout; return what it printed."""
        done = self._ended(command, seconds, subprocess.PIPE)
        demand(done.returncode == 0, f"{command[0]} ended with exit code {done.returncode}")
        return str(done.stdout)

    def _ended(self, command: t.Sequence[str], seconds: float, output: int | t.IO[str]) -> subprocess.CompletedProcess:
        program = shutil.which(command[0], path=self._environment["PATH"]) or command[0]
        return subprocess.run(
            [program, *command[1:]],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            text=True,
            check=False,
            timeout=seconds,
        )

    def play(self, label: str, variables: Json, playbook: str = "validate_category1") -> Played:
        """Run a playbook; its screen and its run lie in the cell's folder under the label."""
        results = self.folder / label
        extra = {"hpc_validation_results": str(results), **ANY_SPEED, **variables}
        command = ["ansible-playbook", f"playbooks/{playbook}.yml", *self._inventories, "-e", json.dumps(extra)]
        screen = self.folder / f"{label}.screen"
        with screen.open("w", encoding="utf-8") as stream:
            done = self._ended(command, 2400, stream)  # environments are installed where they are not there yet
        runs = sorted(results.iterdir()) if results.is_dir() else []
        demand(runs, f"the play {label} left no run")
        return Played(done.returncode, screen.read_text(encoding="utf-8"), runs[-1])

    def canary(self, label: str, behaviour: str = "well", **changes: t.Any) -> Played:
        """Play a workload that only does what it is told."""
        folder = self.folder / f"{label}.workloads"
        shutil.copytree(ROOT / "tests/integration/canary", folder / "canary")
        path = folder / "canary" / "workload.yml"
        manifest = yaml.safe_load(path.read_text(encoding="utf-8"))
        manifest["command"] = ["python", "canary.py", "--behaviour", behaviour]
        path.write_text(yaml.safe_dump({**manifest, **changes}), encoding="utf-8")
        selected = {"hpc_validation_workload_folders": [str(folder)], "hpc_validation_only": ["TEST-1"]}
        return self.play(label, {**selected, "hpc_validation_nodes": ["compute01"]})

    def on_login(self, *command: str, user: str = "admin") -> str:
        """Run a command on the login node; return what it printed."""
        return cluster("login", *command, user=user, name=self.name).strip()

    def jobs(self) -> list[str]:
        """Jobs that Slurm still has to do with."""
        return jobs(self.name)

    @property
    def confinement(self) -> str:
        """What `cluster up` found a job to be confined by: cgroup/v1, cgroup/v2 or none."""
        recorded = json.loads((CACHE / "clusters" / self.name / "cluster.json").read_text(encoding="utf-8"))
        return str(recorded["confinement"])


def scene(name: str, cell: str) -> Scene:
    """Return the place of a cell, its folder of results new and empty."""
    folder = RESULTS / cell
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return Scene(name, folder)


def up(name: str, slurm: str, slurmdbd: bool) -> None:
    """Bring a cluster up anew."""
    down(name)
    wanted = ["--slurm", slurm, "--accounting" if slurmdbd else "--no-accounting"]
    _cluster("up", "--name", name, *wanted)


def down(name: str) -> None:
    """Remove a cluster."""
    _cluster("down", "--name", name)


def _cluster(*words: str) -> None:
    done = subprocess.run(
        [str(ROOT / "tests/cluster/cluster"), *words], capture_output=True, text=True, check=False, timeout=1800
    )
    if done.returncode != 0:
        print(done.stdout + done.stderr, end="", flush=True)
    demand(done.returncode == 0, f"cluster {words[0]} ended with exit code {done.returncode}")
