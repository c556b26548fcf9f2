# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job of several nodes: run a program on each of them, and combine what each of them left.

Every node writes to its own files, since a share does not guarantee appends from two nodes to one file.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from kit import strict_json
from kit.errors import KitError
from kit.files import write_atomic, write_json
from kit.job import node_name

FOLDER = "nodes"  # below a job's output: a folder for each node
PROVENANCE, SAMPLES = "provenance.json", "gpu.jsonl"
OF_A_NODE = ("kernel", "machine", "os", "driver_version", "cuda_driver_version", "cpus_allowed", "system_python")
# Seconds for the other nodes' programs to end once one has ended: a rank that lost a peer must still report it.
WAIT = 60
# With the job's directives, a step's program would get only one task's CPUs, whatever it starts.
OF_A_TASK = ("SLURM_CPUS_PER_TASK", "SLURM_TRES_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_EXACT")
TO_CONTAINER = "APPTAINERENV_"  # Apptainer passes variables with this prefix to the container, without the prefix


def command_on(count: int, command: Sequence[str]) -> list[str]:
    """Return the command that runs ``command`` once on each of the job's first ``count`` nodes; 1 is this node.

    It is a Slurm step that takes nothing from the job's other steps: each may use all the job has on a node.
    """
    if count == 1:
        return list(command)
    step = ["srun", f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1", "--relative=0"]
    step += ["--overlap", "--cpu-bind=none", "--kill-on-bad-exit=0", f"--wait={WAIT}"]
    return [*step, sys.executable, "-m", "kit", "nodes", "--count", "1", *command]


def environment_of_step(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for `srun`, whose program may use all the job has on a node."""
    return {name: value for name, value in inherited.items() if name not in OF_A_TASK}


def environment_here(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a program on this node: Slurm's variables of this node must reach a container too.

    The job script set them on the job's first node, with that node's values.
    """
    own = {name: inherited.get(name[len(TO_CONTAINER) :]) for name in inherited if name.startswith(TO_CONTAINER)}
    return {**inherited, **{name: value for name, value in own.items() if value is not None}}


def gather(output: Path, count: int) -> None:
    """Combine what ``count`` nodes left below ``output`` into the files that a job of one node has.

    Raise KitError if a node left no provenance. If a node left no samples, the judge reports it.
    """
    folders = sorted((output / FOLDER).glob("*"), key=lambda folder: (folder.name != node_name(), folder.name))
    documents = {folder.name: _read(folder / PROVENANCE) for folder in folders}
    if len(documents) != count:
        raise KitError(
            f"{len(documents)} of {count} nodes left a provenance document: {', '.join(documents) or 'none'}"
        )
    write_json(output / PROVENANCE, merged(documents))
    samples = [folder / SAMPLES for folder in folders if (folder / SAMPLES).is_file()]
    if samples:
        write_atomic(output / SAMPLES, lambda stream: _concatenate(samples, stream))


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(strict_json.read(path))
    except (OSError, ValueError, TypeError) as error:
        raise KitError(f"the provenance of {path.parent.name} cannot be read: {error}") from error


def _concatenate(paths: Sequence[Path], stream: BinaryIO) -> None:
    for path in paths:
        with open(path, "rb") as source:
            shutil.copyfileobj(source, stream)
        stream.write(b"\n")  # a killed sampler may have left half a line


def merged(documents: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return one provenance document for several nodes; facts about the share are taken from the first.

    The GPUs are those of all nodes. A fact that should be equal but is not holds each node's value, so that it never
    equals another job's.
    """
    first, *_others = documents.values()
    return {
        **first,
        **{key: _agreed(documents, key) for key in ("driver_version", "cuda_driver_version")},
        "gpus": [{**gpu, "node": node} for node, document in documents.items() for gpu in document["gpus"]],
        "gpus_listed": sum(document["gpus_listed"] for document in documents.values()),
        "container": _containers([document["container"] for document in documents.values()]),
        "nodes": {node: {key: document[key] for key in OF_A_NODE} for node, document in documents.items()},
    }


def _agreed(documents: Mapping[str, dict[str, Any]], key: str) -> Any:
    values = {node: document[key] for node, document in documents.items()}
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return ", ".join(f"{value} on {node}" for node, value in values.items())


def _containers(found: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return what was seen in the image on all nodes; a flag is true only if it is true on each."""
    inside = [container for container in found if container is not None]
    if not inside:
        return None
    worst = min(inside, key=lambda container: (container["entered"], container["unchanged"]))
    gpus = [container["gpus"] for container in inside]
    return {**worst, "gpus": None if None in gpus else {uuid: gpu for some in gpus for uuid, gpu in some.items()}}


def become(count: int, command: Sequence[str]) -> None:
    """Become ``command`` on this node, or the step that runs it on each of ``count``. Raise KitError; never return."""
    if not command:
        raise KitError("no command is given")
    argv = command_on(count, command)
    environment = environment_here(os.environ) if count == 1 else environment_of_step(os.environ)
    os.execvpe(argv[0], argv, environment)  # noqa: S606 - an argv list
