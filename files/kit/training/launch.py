# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start the ranks of one leg on this node with PyTorch's elastic launcher, which `torchrun` uses.

Called as a library it returns the exit code of each rank, while torchrun only prints a table. Launchers of several
nodes meet at a free port found by `kit legs`; on a single node the launcher picks its own. Imports PyTorch, so it is
for the runtime's Python.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.distributed import DistError
from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from kit.job import current_job, node_name
from kit.ranks import state
from kit.ranks.interface import interface_to

JOINING = 120  # seconds for the launchers, and then for all ranks, to meet
CALLED = 30  # extra seconds for the node that is called: callers that fail know more, and the first failure ends all
CALL, PAUSE = 5.0, 0.5  # seconds for one call, and between two


class ApartError(Exception):
    """The meeting node cannot be reached; the message says why."""


@dataclass(frozen=True)
class Nodes:
    """The nodes of a leg: their number, this node's index (from 0), and the meeting address, if several."""

    count: int = 1
    own: int = 0
    meeting: str | None = None

    def rendezvous(self) -> dict[str, Any]:
        """Return the launcher's settings. The first node's ranks come first, so that rank 0 is where the job began."""
        if self.meeting is None:
            return {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "rdzv_timeout": JOINING}
        return {
            "rdzv_backend": "static",
            "rdzv_endpoint": self.meeting,
            "rdzv_configs": {"rank": self.own},
            "rdzv_timeout": JOINING + (CALLED if self.own == 0 else 0),
        }

    def reach(self) -> None:
        """Wait until the meeting node can be reached from this one. Raise ApartError if it never can.

        PyTorch's own connection attempts exceed their timeout.
        """
        if self.own == 0 or self.meeting is None:
            return
        host, _colon, port = self.meeting.rpartition(":")
        until = time.monotonic() + JOINING
        while True:
            try:
                socket.create_connection((host, int(port)), timeout=CALL).close()
                return
            except OSError as error:
                if time.monotonic() >= until:
                    raise ApartError(f"{type(error).__name__}: {error}") from error
                time.sleep(PAUSE)

    def apart(self, error: BaseException) -> str:
        """Return the message that this node did not meet the others, with name and interface."""
        text = " ".join(str(error).split())[:300]
        if self.own == 0:
            return f"{node_name()} waited at {self.meeting} for {self.count} nodes in vain: {text}"
        host = str(self.meeting).rpartition(":")[0]
        return f"{node_name()} ({interface_to(host)}) did not reach {self.meeting}: {text}"


def flight_recorder(output: Path) -> dict[str, str]:
    """Return the settings that make NCCL's ranks dump their last collectives if one does not end in time."""
    size, file = "TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE"
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 9):
        size, file = "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"
    return {size: "2000", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1", file: str(output / state.FOLDER / "flight-")}


def home(output: Path) -> dict[str, str]:
    """Return a home for the ranks if theirs is not writable, as in an image; else nothing.

    The flight recorder creates ~/.cache/torch regardless of its dump folder, and dumps nothing if it cannot.
    """
    cache = Path(os.environ.get("HOME", "/"), ".cache/torch")
    there = next(path for path in (cache, *cache.parents) if path.exists())
    return {} if os.access(there, os.W_OK | os.X_OK) else {"HOME": str(output / state.FOLDER)}


def launch(script: Sequence[str], count: int, output: Path, nodes: Nodes) -> int:
    """Run ``script`` as ``count`` ranks on this node; return 0, or 1 if one failed.

    Then ``output`` has their exit codes, or how the nodes failed to meet.
    """
    logs = output / state.FOLDER / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    for name, value in flight_recorder(output).items():
        os.environ.setdefault(name, value)
    os.environ.update(home(output))
    config = LaunchConfig(
        min_nodes=nodes.count,
        max_nodes=nodes.count,
        nproc_per_node=count,
        run_id=current_job().job_id,
        **nodes.rendezvous(),
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=str(logs), tee=Std.ALL),
        log_line_prefix_template="[rank ${rank}] ",
    )
    try:
        nodes.reach()
        elastic_launch(config, sys.executable)("-u", *script)
    except ChildFailedError as failed:
        state.write_exit_codes(output, {rank: failure.exitcode for rank, failure in failed.failures.items()})
        print(failed, file=sys.stderr, flush=True)
        return 1
    except (DistError, ApartError) as error:
        state.write_apart(output, nodes.apart(error))
        print(nodes.apart(error), file=sys.stderr, flush=True)
        return 1
    return 0
