# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E402 - the clock and the libraries' settings come before the libraries
"""BASELINE-1: fine-tune a 7B language model for a few steps on one GPU, and report the measurements.

The job script sets the environment; by hand: `source env.sh` next to this file, then
`python train_sft_min.py --run_name sft_1gpu_smoke --max_steps 10 --seq_len 512`.
Writes run_args.json, progress.jsonl, metrics.json and the model to the output folder and publishes the two documents
under results/training on the share. Exit code 0 only after a complete training whose saved model was reloaded;
whatever stops it is reported in one line on stderr.
"""

from __future__ import annotations

import os
import time

STARTED = time.monotonic()
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
for _name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):  # everything is staged, so that no GPU waits for downloads
    os.environ.setdefault(_name, "1")
os.environ.setdefault("DO_NOT_TRACK", "true")

import sys

from kit.errors import KitError
from sft_min_arguments import parse
from sft_min_data import WorkloadError


def main() -> int:
    """Run the workload; return 0 after a complete training, else 1 with a line on stderr."""
    settings = parse(__doc__, STARTED)
    try:
        from sft_min_run import run  # noqa: PLC0415 - report wrong usage before the seconds that importing PyTorch takes

        metrics = run(settings)
    except (WorkloadError, KitError, OSError) as error:
        print(f"train_sft_min: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    print(
        f"loss {metrics['train_loss']:.4f} over {settings.max_steps} steps in {metrics['train_seconds']:.1f} s, "
        f"{metrics['tokens_per_second']:.0f} tokens/s; saved in {metrics['save_seconds']:.1f} s, loaded again"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
