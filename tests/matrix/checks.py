# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is tried in each cell. A check returns what the table says of it; it raises where it does not come out."""

from __future__ import annotations

import json
import re
import typing as t
from dataclasses import replace

from tests.integration.conftest import ANY_TIME, Played
from tests.matrix import interpreters
from tests.matrix.cells import Cell
from tests.matrix.problems import demand
from tests.matrix.scene import Scene

# More than the job's 500 MiB, every page of it touched.
HUNGRY = ["python", "-c", "len(b'x' * (2 << 30))"]
Versions = dict[str, str]


def passed(played: Played) -> None:
    """Demand a pass with the exit code of one."""
    verdict = played.verdict
    judged = [*verdict["findings"], *(c for workload in verdict["workloads"] for c in workload["criteria"])]
    bad = sorted({item["id"] for item in judged if item["verdict"] in {"fail", "undetermined"}})
    why = f"what is well is {verdict['verdict']}, exit code {played.code}: {', '.join(bad)}"
    demand(played.code == 0 and verdict["verdict"] == "pass", why)


def failed(played: Played, identity: str, why: str) -> dict[str, t.Any]:
    """Demand that the workload failed by this criterion; return the criterion."""
    demand(played.code != 0 and played.verdict["verdict"] == "fail", why)
    criteria = [c for workload in played.verdict["workloads"] for c in workload["criteria"] if c["id"] == identity]
    demand(len(criteria) == 1 and criteria[0]["verdict"] == "fail", why)
    return criteria[0]


def failing_fails(scene: Scene) -> str:
    """A job whose score is too low, and nothing else wrong."""
    criterion = failed(scene.canary("failing", "low"), "T-2", "a job with a low score does not fail by its score")
    demand(criterion["value"] == 0.5, "the score that failed is not the one measured")
    return "yes"


def out_of_memory_is_named(scene: Scene) -> str:
    """A job that is killed for its memory, where Slurm can kill it."""
    if scene.confinement == "none":
        return "not confined here"
    criterion = failed(scene.canary("hungry", command=HUNGRY), "JOB", "a job out of memory does not fail")
    demand(str(criterion["value"]).startswith("OUT_OF_MEMORY"), "a job out of memory is not named OUT_OF_MEMORY")
    return "yes"


def slurm(cell: Cell, scene: Scene, versions: Versions) -> t.Iterator[tuple[str, str]]:
    """A Slurm release: the real training, and two ways to fail."""
    selected = {"hpc_validation_only": ["MLOPS-1.1"], "hpc_validation_overrides": {"MLOPS-1.1": ANY_TIME}}
    played = scene.play("training", selected)
    passed(played)
    told = played.verdict["cluster"]
    demand(told["version"] == versions["slurm"], "the run names another Slurm than the cluster's own")
    demand(told["accounting"] is cell.slurmdbd, "the run sees accounting where there is none, or none where there is")
    demand(scene.jobs() == [], "the run left jobs")
    yield "training passes", "yes"
    yield "failing job fails", failing_fails(scene)
    yield "out of memory is named", out_of_memory_is_named(scene)


def controller(cell: Cell, scene: Scene, versions: Versions) -> t.Iterator[tuple[str, str]]:
    """A controller: its own packages, on the same cluster."""
    scene = replace(scene, bin=interpreters.controller(cell.python, cell.packages))
    versions.update(controller_versions(scene))
    demand(versions["python"].startswith(f"{cell.python}."), "the controller is another Python than asked for")
    played = scene.canary("well")
    passed(played)
    demand(played.verdict["versions"]["ansible"] == versions["ansible"], "the run names another ansible-core")
    yield "good job passes", "yes"
    yield "failing job fails", failing_fails(scene)
    name = "mlops.hpc_validation.slurm_job"
    rendered = json.loads(scene.run("ansible-doc", "--type", "module", "--json", name))
    demand(rendered[name]["doc"]["options"], "ansible-doc shows no options of slurm_job")
    yield "documentation renders", "yes"


def node(cell: Cell, scene: Scene, versions: Versions) -> t.Iterator[tuple[str, str]]:
    """A Python on the login node and the compute nodes: modules, kit, and the environment made from it."""
    python = interpreters.on_nodes(scene.name, cell.python)
    trains = cell.python != "3.9"
    modules = {"ansible_python_interpreter": python}
    everything = scene.with_variables({**modules, "hpc_validation_python": python})
    versions["node_python"] = scene.on_login(python, "-c", "import platform; print(platform.python_version())")
    seen = set(re.findall(r"ansible_python_version\W+([0-9.]+)", everything.facts()))
    demand(seen == {versions["node_python"]}, "Ansible's modules ran in another Python than asked for")
    played = everything.play("preflight", {}, "preflight")
    passed(played)
    told = {f["value"] for f in played.findings if f["id"] in {"login.python", "node.python"}}
    demand(told == {versions["node_python"]}, "the kit ran in another Python than asked for")
    yield "preflight passes", "yes"
    if not trains:
        refused = everything.canary("refused")
        demand(refused.code != 0 and refused.verdict["verdict"] == "undetermined", "a Python without PyTorch passes")
        demand("covers 3.10 to" in json.dumps(refused.verdict), "it is not said that PyTorch needs a newer Python")
    # Where PyTorch does not run on this Python the modules still do, beside a newer one for the jobs.
    place = everything if trains else scene.with_variables(modules)
    passed(place.canary("well"))
    yield "good job passes", "yes" if trains else "with a newer `hpc_validation_python`"
    yield "failing job fails", failing_fails(place)


def controller_versions(scene: Scene) -> Versions:
    """ansible-core and its Python, as `ansible --version` says."""
    said = scene.run("ansible", "--version")
    found = re.search(r"\[core (\S+)\].*python version = (\S+)", said, re.DOTALL)
    demand(found, "ansible --version is not understood")
    assert found
    return {"ansible": found[1], "python": found[2]}


def cluster_versions(cell: Cell, scene: Scene) -> Versions:
    """Slurm's and, where it runs, slurmdbd's versions as they say themselves; they must be the release's."""
    seen = {"slurm": scene.on_login("sinfo", "--version")}
    if cell.slurmdbd:
        seen["slurmdbd"] = scene.on_login("/usr/sbin/slurmdbd", "-V", user="root")  # it reads its password's file first
    seen = {what: said.split()[-1] for what, said in seen.items()}
    demand(all(said.startswith(f"{cell.slurm}.") for said in seen.values()), "the cluster runs another Slurm release")
    return seen


GROUPS = {"slurm": slurm, "controller": controller, "node": node}
