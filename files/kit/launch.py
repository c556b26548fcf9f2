# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts the ranks of one leg on this node with PyTorch's elastic launcher, the one behind `torchrun`.

Called as a library it tells the exit code of each rank, of which torchrun only prints a table. The rendezvous picks a
free port. Imports PyTorch, so it is for the runtime's Python.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from kit import ranks
from kit.job import current_job

JOINING = 120  # seconds for all ranks to meet


def flight_recorder(output: Path) -> dict[str, str]:
    """Return the settings with which NCCL's ranks leave their last collectives when one does not end in time."""
    size, file = "TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE"
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 9):
        size, file = "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"
    return {size: "2000", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1", file: str(output / ranks.FOLDER / "flight-")}


def launch(script: Sequence[str], count: int, output: Path) -> int:
    """Run ``script`` as ``count`` ranks; return 0, or 1 after leaving the failed ranks' exit codes below ``output``."""
    logs = output / ranks.FOLDER / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    for name, value in flight_recorder(output).items():
        os.environ.setdefault(name, value)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=count,
        run_id=current_job().job_id,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        rdzv_timeout=JOINING,
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=str(logs), tee=Std.ALL),
        log_line_prefix_template="[rank ${rank}] ",
    )
    try:
        elastic_launch(config, sys.executable)("-u", *script)
    except ChildFailedError as failed:
        ranks.write_exit_codes(output, {rank: failure.exitcode for rank, failure in failed.failures.items()})
        print(failed, file=sys.stderr, flush=True)
        return 1
    return 0
