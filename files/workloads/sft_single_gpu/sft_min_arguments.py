# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse the document's command line. No PyTorch."""

from __future__ import annotations

import argparse
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path

from sft_min_figures import Batch
from sft_min_results import runs_root

RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Settings:
    """Settings of one run; ``results`` is None if nothing is to be published."""

    run_name: str
    model: Path
    dataset: Path
    output_dir: Path
    results: Path | None
    accelerator: str
    max_steps: int
    batch: Batch
    subset_size: int
    seed: int
    learning_rate: float
    lora: bool
    started: float


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return the parser, whose defaults are the job script's environment and the document's values."""
    environment = os.environ.get
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--run_name", default="sft_1gpu_smoke", help="folder of the results in results/training")
    made.add_argument("--max_steps", type=int, default=10, help="optimizer steps (default 10)")
    made.add_argument("--seq_len", type=int, default=512, help="tokens in a sample (default 512)")
    made.add_argument("--model", type=Path, default=environment("MODEL_DIR"), help="staged folder (default: MODEL_DIR)")
    made.add_argument("--dataset", type=Path, default=environment("DATA_DIR"), help="staged folder (default: DATA_DIR)")
    made.add_argument("--bsz", type=int, default=1, help="samples in a micro-batch (default 1)")
    made.add_argument("--grad_accum", type=int, default=4, help="micro-batches in a step (default 4)")
    made.add_argument("--seed", type=int, default=int(environment("HPC_VALIDATION_SEED") or 42))
    made.add_argument("--subset_size", type=int, default=2048, help="rows of the dataset to draw from (default 2048)")
    made.add_argument("--lora", action="store_true", help="train an adapter (rank 8) instead of every parameter")
    made.add_argument("--learning_rate", type=float, default=2e-5, help="of the first step; falls linearly")
    made.add_argument(
        "--output_dir",
        type=Path,
        default=environment("OUTPUT_DIR"),
        help="where everything is written (default: OUTPUT_DIR, else RUNS_ROOT/<run_name>)",
    )
    made.add_argument(
        "--accelerator",
        choices=("cuda", "simulated", "cpu"),
        default=environment("HPC_VALIDATION_ACCELERATOR") or "cuda",
    )
    return made


def parse(description: str | None, started: float, arguments: list[str] | None = None) -> Settings:
    """Read the command line; an error ends the program with exit code 2.

    ``started`` is the time the program started, on the monotonic clock.
    """
    commands = parser(description)
    given = commands.parse_args(arguments)
    if not RUN_NAME.fullmatch(given.run_name):
        commands.error("--run_name: letters, digits, '.', '_' and '-' are allowed, 64 at most, a letter or digit first")
    root = runs_root(os.environ)
    results = root / given.run_name if root else None
    output = given.output_dir or (results if os.environ.get("RUNS_ROOT") else None)
    for name, value, variable in (
        ("model", given.model, "MODEL_DIR"),
        ("dataset", given.dataset, "DATA_DIR"),
        ("output_dir", output, "OUTPUT_DIR"),
    ):
        if not value:
            commands.error(f"--{name} is required (or {variable} in the environment; env.sh in this folder sets it)")
    for name in ("max_steps", "bsz", "grad_accum", "subset_size"):
        if getattr(given, name) < 1:
            commands.error(f"--{name} must be at least 1")
    if given.seq_len < 2:
        commands.error("--seq_len must be at least 2: each token is predicted from those before it")
    if not (math.isfinite(given.learning_rate) and given.learning_rate > 0):
        commands.error("--learning_rate must be a finite number above 0")
    return Settings(
        run_name=given.run_name,
        model=given.model,
        dataset=given.dataset,
        output_dir=output,
        results=results,
        accelerator=given.accelerator,
        max_steps=given.max_steps,
        batch=Batch(given.bsz, given.grad_accum, given.seq_len),
        subset_size=given.subset_size,
        seed=given.seed,
        learning_rate=given.learning_rate,
        lora=given.lora,
        started=started,
    )
