"""Workloads for tests of everything around a training: `canary` is a process, `ranks_canary` two, of a few seconds.

`pretraining` and `training_profile` are the real ones, made small (small_pretraining.py, small_training_profile.py);
`embedded_training` too, without devices; `edge_job` leaves a model for the devices that nobody trained.
"""

from __future__ import annotations

import shutil
import typing as t
from pathlib import Path

import yaml

from tests.integration import small_edge_job, small_embedded_profile, small_pretraining, small_training_profile

MADE = (small_edge_job, small_embedded_profile, small_pretraining, small_training_profile)
SMALL = {each.NAME: each for each in MADE}


def label(name: str) -> str:
    """What Slurm calls the canary's job, and the share the folder of its output."""
    return name.replace("_", "-")


def add(folder: Path, identity: str, name: str, behaviour: str = "well", **changes: t.Any) -> None:
    """Put a canary of one process into the folder of workloads, with this id and name and these changes."""
    shutil.copytree(Path(__file__).with_name("canary"), folder / name)
    path = folder / name / "workload.yml"
    manifest = {**yaml.safe_load(path.read_text(encoding="utf-8")), "id": identity, "name": name, **changes}
    manifest["output"]["directory"] = f"models/{label(name)}/job-%j"
    manifest["command"] = ["python", "canary.py", "--behaviour", behaviour]
    path.write_text(yaml.safe_dump(manifest), encoding="utf-8")


def select(folder: Path, name: str, behaviour: str = "well", **changes: t.Any) -> dict[str, t.Any]:
    """Variables that select such a canary, with these changes of its manifest; a copy of it is made in the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    if name in SMALL:
        manifest = SMALL[name].make(folder / name, behaviour, changes)
    else:
        shutil.copytree(Path(__file__).with_name(name), folder / name)
        given = yaml.safe_load((folder / name / "workload.yml").read_text(encoding="utf-8"))
        manifest = {**given, **changes, "command": ["python", f"{name}.py", "--behaviour", behaviour]}
    (folder / name / "workload.yml").write_text(yaml.safe_dump(manifest), encoding="utf-8")
    return {
        "hpc_validation_workload_folders": [str(folder)],
        "hpc_validation_only": [manifest["id"]],
        "hpc_validation_nodes": ["compute01"],  # preflight has tests of its own, over all nodes
    }
