# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Train a model as a profile says: python train.py --config FILE

On a machine of one's own it is one process; scripts/train_hpc.sh starts it on a cluster, once for each rank.
Checkpoints and logs go to the profile's folders. With --validate it is a leg of the workload that validates a profile:
everything goes to the job's output folder. Exit code 0 after a training that ended as it should; 1 with a line that
says why not; 2 for a profile that cannot be used; 4 if its checkpoints are all damaged.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(next(folder for folder in Path(__file__).resolve().parents if (folder / "kit").is_dir())))

from kit import strict_json
from kit.errors import KitError
from kit.files import METRICS_FILE
from kit.metrics import write_metrics
from kit.pretraining.checkpoints import NONE_WHOLE, NoneWholeError
from kit.profiles.check import UnusableError, usable
from kit.profiles.model import Profile

UNUSABLE = 2
FILES = str(Path(strict_json.__file__).parents[1])


def reaching(given: str) -> str:
    """Return a PYTHONPATH by which the processes that are started here find the kit, too."""
    return os.pathsep.join(dict.fromkeys((FILES, *filter(None, given.split(os.pathsep)))))


def alone(environment: dict[str, str]) -> dict[str, str]:
    """Return what a launcher would have set, for one process by itself; nothing under a launcher."""
    if "RANK" in environment:
        return {}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    own = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return {**own, "HPC_VALIDATION_ACCELERATOR": environment.get("HPC_VALIDATION_ACCELERATOR") or accelerator()}


def accelerator() -> str:
    """Return what this machine computes on."""
    import torch  # noqa: PLC0415 - takes seconds, and a profile that cannot be used is told at once

    return "cuda" if torch.cuda.is_available() else "cpu"


def trained(profile: Profile, output: Path, *, validate: bool) -> tuple[int, dict[str, Any]]:
    """Run this rank's part of a training, or of a leg of a validation; return the rank, and the metrics."""
    from acceptance import CHECKPOINTS, MEASURED, Leg  # noqa: PLC0415
    from kit.profiles import arithmetic  # noqa: PLC0415
    from kit.training.distributed import group, patience_beyond  # noqa: PLC0415
    from kit.training.stall import Stall  # noqa: PLC0415
    from legs import COMPARING, LEGS, ON_ONE_RANK  # noqa: PLC0415

    said = os.environ.get("HPC_VALIDATION_ACCELERATOR") or "cuda"
    name = os.environ.get("HPC_VALIDATION_LEG", MEASURED) if validate else MEASURED
    if name not in LEGS:
        raise KitError(f"unknown leg {name!r}; there are {', '.join(LEGS)}")
    if validate and arithmetic.steps(profile) <= profile.training.checkpointing.every_steps:
        raise KitError("training.checkpointing.every_steps must be below the steps of a training that is validated")
    repeats = profile.reproducibility.deterministic
    with group(said, output, patience_beyond(profile.monitoring.stall_seconds), repeats_exactly=repeats) as joined:
        ranks = 1 if name in ON_ONE_RANK else arithmetic.ranks(profile)
        if joined.size != ranks:
            raise KitError(f"started on {joined.size}, and distributed.world_size is {ranks}")
        joined.require_same({"the profile": profile.model_dump_json()})
        joined.state.phase("reading data")
        stall = Stall(output, joined.state, joined.rank, profile.monitoring.stall_seconds)
        job = output if name == MEASURED else output.parent
        kept = job / CHECKPOINTS if validate else Path(profile.training.checkpointing.directory)
        found = LEGS[name](Leg(name, joined, profile, result_facts(profile), job, output, kept, said, stall))
        stall.end()
        joined.state.phase("reporting")
        if joined.rank == 0:
            write_metrics((job if name in COMPARING else output) / METRICS_FILE, found)
        return joined.rank, found


def result_facts(profile: Profile) -> dict[str, Any]:
    """Return what changes a training's result, by key; a checkpoint made with others is not gone on from."""
    whole = profile.model_dump(mode="json")
    sections = {name: whole[name] for name in ("model", "data", "transfer_learning")}
    training = {
        key: value for key, value in whole["training"].items() if key not in ("checkpointing", "log_every_steps")
    }
    seed = whole["reproducibility"]["seed"]
    return {**sections, "training": training, "seed": seed, "world_size": whole["distributed"]["world_size"]}


def main() -> int:
    """Run this rank; return the exit code."""
    environment = os.environ
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=environment.get("CONFIG_FILE"), help="the profile")
    parser.add_argument("--validate", action="store_true", help="as a leg of a job that validates the profile")
    arguments = parser.parse_args()
    if arguments.config is None:
        parser.error("--config is missing, and CONFIG_FILE is not set")
    changes = strict_json.read(Path(environment["SETTINGS_FILE"])) if environment.get("SETTINGS_FILE") else None
    try:
        profile = usable(Path(arguments.config), changes)
        output = Path(environment.get("OUTPUT_DIR") or profile.logging.directory)
        environment.update(alone(dict(environment)), PYTHONPATH=reaching(environment.get("PYTHONPATH", "")))
        output.mkdir(parents=True, exist_ok=True)
        rank, found = trained(profile, output, validate=arguments.validate)
        if rank == 0 and "test" in found:
            print(f"{found['ended']}: step {found['steps']}, test {found['test']}", flush=True)
    except UnusableError as error:
        print(error, file=sys.stderr, flush=True)
        return UNUSABLE
    except NoneWholeError as error:
        print(f"train: {error}", file=sys.stderr, flush=True)
        return NONE_WHOLE
    except (KitError, OSError, ValueError) as error:
        print(f"train: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
