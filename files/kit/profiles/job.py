# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A training of a profile as a job of Slurm's: what it asks for, and what runs in it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from kit.errors import KitError
from kit.process.bounded import die_with_parent, end
from kit.profiles import arithmetic
from kit.profiles.model import Profile
from kit.ranks import nodes

PATIENCE = 6  # seconds for ranks and sampler to end
KIT = (sys.executable, "-m", "kit")


def options(profile: Profile, accelerator: str) -> list[str]:
    """Return the options of `sbatch` that ask for what the profile says, on one node; later ones replace them."""
    resources = profile.resources
    found = [
        f"--job-name={profile.metadata.name}",
        "--nodes=1",
        f"--ntasks-per-node={arithmetic.ranks(profile)}",
        f"--cpus-per-task={resources.cpus_per_gpu}",
        f"--mem={resources.memory_gb * 1024:.0f}M",
        f"--time={resources.time}",
    ]
    if resources.partition is not None:
        found.append(f"--partition={resources.partition}")
    if accelerator != "cpu":
        found.append(f"--gres=gpu:{resources.num_gpus}")
    return found


def training(profile: Profile, file: Path, node_count: int) -> list[str]:
    """Return the command that trains on all ranks, again where a rank dies. Raise KitError if nodes do not fit."""
    ranks, faults = arithmetic.ranks(profile), profile.fault_tolerance
    if ranks % node_count:
        raise KitError(f"{ranks} ranks (distributed.world_size) do not fill {node_count} nodes: sbatch --nodes")
    legs = [*KIT, "legs", f"--ranks={ranks}", f"--nodes={node_count}"]
    legs += [f"--restarts={faults.max_restarts}", f"--restart-delay={faults.restart_delay_seconds:g}"]
    return [*legs, *KIT, "launch", "train.py", "--config", str(file)]


def sampling(profile: Profile, output: Path, node_count: int) -> list[str] | None:
    """Return the command that samples the GPUs of all nodes; None if the profile wants none."""
    if not profile.monitoring.gpu:
        return None
    place = output / nodes.SAMPLES if node_count == 1 else output / nodes.FOLDER / "%N" / nodes.SAMPLES
    sample = [*KIT, "sample", f"--output={place}", f"--interval={profile.monitoring.interval_seconds:g}"]
    return [*KIT, "nodes", f"--count={node_count}", *sample] if node_count > 1 else sample


def run(profile: Profile, file: Path, environment: Mapping[str, str]) -> int:
    """Train in this job; return the exit code. Raise KitError outside a job."""
    job = environment.get("SLURM_JOB_ID")
    if not job:
        raise KitError("this is no job of Slurm's: scripts/train_hpc.sh submits one, python train.py needs none")
    node_count = int(environment.get("SLURM_JOB_NUM_NODES", "1"))
    output = Path(profile.logging.directory) / f"job-{job}"
    command = training(profile, file, node_count)
    output.mkdir(parents=True, exist_ok=True)
    own = {**environment, "OUTPUT_DIR": str(output)}
    watched = sampling(profile, output, node_count)
    sampler = _started(watched, own) if watched else None
    trainer = _started(command, own)

    def ended(number: int, _frame: object) -> None:
        end(trainer, PATIENCE)
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, ended)
    try:
        return trainer.wait()
    finally:
        if sampler:
            end(sampler, PATIENCE)


def _started(command: list[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # No other thread is there, and a job that is killed leaves nothing behind.
    asked = partial(die_with_parent, signal.SIGTERM)
    return subprocess.Popen(command, env=dict(environment), preexec_fn=asked)  # noqa: PLW1509
