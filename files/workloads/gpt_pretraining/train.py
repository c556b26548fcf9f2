# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRETRAIN-1: pretrain a GPT with DeepSpeed's ZeRO-3, and prove that it can be trusted with weeks of computing.

Started by `kit legs` and `kit launch`, which set the ranks' environment; HPC_VALIDATION_LEG names the leg. The settings
are the files in config, a profile, and the inventory's own in SETTINGS_FILE.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import chain
from acceptance import LEGS, MEASURED, Leg, run
from kit import strict_json
from kit.errors import KitError
from kit.pretraining.checkpoints import NONE_WHOLE, NoneWholeError
from kit.ranks.state import RankState
from kit.training.distributed import group, patience_beyond
from settings import load
from utils.monitoring import Stall


def main() -> int:
    """Run this rank; return 0 after a complete leg, 4 if there was no checkpoint to go on from, else 1."""
    environment = os.environ
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=Path(__file__).parent / "config", help="folder of the settings")
    parser.add_argument("--profile", help="changes of the settings, of config/profiles")
    arguments = parser.parse_args()
    name = environment.get("HPC_VALIDATION_LEG", MEASURED)
    output = Path(environment["OUTPUT_DIR"])
    accelerator = environment.get("HPC_VALIDATION_ACCELERATOR") or "cuda"
    try:
        if name not in LEGS:
            raise KitError(f"unknown leg {name!r}; there are {', '.join(LEGS)}")
        own = strict_json.read(Path(environment["SETTINGS_FILE"])) if environment.get("SETTINGS_FILE") else {}
        of_a_chain = chain.folder() is not None
        rank, ranks = int(environment["RANK"]), int(environment["WORLD_SIZE"])
        if name == "shape":  # it is that of the whole job; another leg on fewer ranks keeps the batch
            ranks = int(environment.get("HPC_VALIDATION_ALL_RANKS", ranks))
        with RankState(output, rank).during("reading settings"):
            settings = load(arguments.config, arguments.profile, own, ranks)
        stall_seconds = settings["training.watch.stall_seconds"]
        # Legs are compared; the training itself is not.
        with group(accelerator, output, patience_beyond(stall_seconds), repeats_exactly=not of_a_chain) as joined:
            stall = Stall(output, joined.state, joined.rank, stall_seconds)
            job = output if name == MEASURED else output.parent
            data = Path(environment["DATA_DIR"])
            found = (chain.run if of_a_chain else run)(
                Leg(name, joined, settings, data, job, output, accelerator, stall)
            )
            stall.end()
            if found and "loss" in found:
                print(f"{name}: step {found['steps']}, loss {found['loss'][-1]:.4f}", flush=True)
    except NoneWholeError as error:
        print(f"gpt_pretraining: {error}", file=sys.stderr, flush=True)
        return NONE_WHOLE
    except (KitError, OSError, ValueError) as error:
        print(f"gpt_pretraining: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
