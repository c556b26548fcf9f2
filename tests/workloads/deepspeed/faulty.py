# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pretraining with a fault in it: faulty.py FAULT[-STEP] and what train.py is told, which it is started instead of.

Each puts one thing wrong from outside, as a machine or a mistake would; the training itself knows nothing of it. Most
happen to the last of two ranks, in step 3 of the measured leg unless told. The tests beside use it without a cluster,
and those of tests/faults on one.
"""

from __future__ import annotations

import atexit
import math
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import acceptance
import bucket
import chain
import engine
import loop
import torch
import train
from kit.files import write_json
from kit.pretraining import checkpoint_manager as kept
from kit.pretraining import checkpoints
from kit.pretraining.checkpoint_manager import Uploader
from kit.pretraining.store import Folder
from kit.strict_json import read as read_json
from settings import Settings
from torch import distributed
from utils import checkpoint_manager, data_loader, deepspeed_format, monitoring, own_format

NAME, _dash, STEP = sys.argv.pop(1).partition("-")
AT = int(STEP or 3)
LEG, OUTPUT = os.environ.get("HPC_VALIDATION_LEG"), Path(os.environ["OUTPUT_DIR"])


def on_rank(rank: int) -> bool:
    """Return whether this is the rank; the environment is the launcher's."""
    return int(os.environ.get("RANK", "-1")) == rank


class _Scaled(torch.autograd.Function):
    """The loss as it is, and its gradient times a factor."""

    @staticmethod
    def forward(context: Any, loss: torch.Tensor, factor: float) -> torch.Tensor:
        context.factor = factor
        return loss.clone()

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        return gradient * context.factor, None


def of_the_loss(change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Change rank 1's loss in one step of the measured leg."""
    forward = engine.GPT.forward
    calls = [0]

    def changed(self: Any, tokens: torch.Tensor, targets: torch.Tensor | None = None) -> torch.Tensor:
        loss = forward(self, tokens, targets)
        calls[0] += torch.is_grad_enabled()
        return change(loss) if calls[0] == AT and LEG == "measured" and on_rank(1) else loss

    engine.GPT.forward = changed  # type: ignore[method-assign]


def nan() -> None:
    """Make one rank's loss no number."""
    of_the_loss(lambda loss: loss * math.nan)


def infinite_gradient() -> None:
    """Make one rank's gradients infinite; its loss stays as it is."""
    of_the_loss(lambda loss: _Scaled.apply(loss, math.inf))


def before_the_step(act: Callable[[], None]) -> None:
    """Let rank 1 do something before one step of the measured leg."""
    read = data_loader.Loader.read

    def changed(self: Any, step: int, device: torch.device) -> Any:
        if step == AT and LEG == "measured" and on_rank(1):
            act()
        return read(self, step, device)

    data_loader.Loader.read = changed  # type: ignore[method-assign]


def wait_for(path: Path) -> None:
    """Wait until somebody makes the file."""
    while not path.exists():
        time.sleep(0.1)


def held() -> None:
    """Wait in a step, so that somebody else can put something wrong: `held` is there then, and `go` ends it."""

    def wait() -> None:
        (OUTPUT / "held").write_text("here")
        wait_for(OUTPUT / "go")

    before_the_step(wait)


def held_in_save() -> None:
    """Wait for ever in the first checkpoint, with a part of it written."""
    save = own_format.save_file

    def changed(tensors: Any, path: Path) -> None:
        save(tensors, path)
        if LEG == "measured" and on_rank(1):
            os.truncate(path, path.stat().st_size // 2)
            (OUTPUT / "held").write_text("here")
            wait_for(OUTPUT / "go")

    own_format.save_file = changed


def stands_still() -> None:
    """Let one rank read for ever."""
    before_the_step(lambda: wait_for(OUTPUT / "never"))


def stopped() -> None:
    """Stop one rank's process."""
    before_the_step(lambda: os.kill(os.getpid(), signal.SIGSTOP))


def killed() -> None:
    """Kill one rank."""
    before_the_step(lambda: os.kill(os.getpid(), signal.SIGKILL))


def launcher_killed() -> None:
    """Kill what started the ranks."""
    before_the_step(lambda: os.kill(os.getppid(), signal.SIGKILL))


def slow() -> None:
    """Let one rank take twice as long for what it computes by itself."""
    alone = loop.solo

    def changed(device: torch.device) -> float:
        return alone(device) + alone(device)

    if on_rank(1):
        loop.solo = changed


def spike() -> None:
    """Raise the learning rate a thousandfold from a step on."""
    learning_rate = Settings.learning_rate

    def changed(self: Settings, step: int) -> float:
        return learning_rate(self, step) * (1000 if step >= AT else 1)

    Settings.learning_rate = changed  # type: ignore[method-assign]


def bucket_gone() -> None:
    """Have a bucket at an address where nobody listens."""
    os.environ["STORAGE_EMULATOR_HOST"] = "http://127.0.0.1:9"


class _Unavailable(BaseHTTPRequestHandler):
    """Answers every request with 503."""

    def answer(self) -> None:
        """Answer."""
        self.send_error(503)

    do_GET = do_POST = do_PUT = answer  # noqa: N815 - the names that the library calls

    def log_message(self, *_other: Any) -> None:
        """Say nothing."""


def bucket_unavailable() -> None:
    """Have a bucket that answers 503 for ever."""
    if on_rank(0):
        server = HTTPServer(("127.0.0.1", 0), _Unavailable)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        os.environ["STORAGE_EMULATOR_HOST"] = f"http://127.0.0.1:{server.server_port}"


def bucket_recovers() -> None:
    """Have a bucket that answers 503 three times, and then as it should; the emulator is on the share."""
    if on_rank(0):
        if "FAKE_GCS_SERVER" not in os.environ:
            os.environ["FAKE_GCS_SERVER"] = str(Path(os.environ["DATA_DIR"]).parents[1] / "fake-gcs-server")
        service = bucket.Service()
        atexit.register(service.end)
        service.proxy.faults = [bucket.Fault("503", "POST", 3)]
        os.environ["STORAGE_EMULATOR_HOST"] = service.proxy.url


def slow_bucket() -> None:
    """Have a bucket that is a folder, and takes longer than ranks wait in a collective and the watch for a step."""
    patience = distributed.distributed_c10d._set_pg_timeout
    uploads, earlier, limit = acceptance.Leg.uploads, acceptance.found_earlier, monitoring.Stall.limit
    close, newest = Uploader.close, acceptance.CheckpointManager.download_newest

    def impatient(act: Callable[..., Any], leg: acceptance.Leg, *others: Any) -> Any:
        monitoring.Stall.limit = 1.0  # type: ignore[assignment, method-assign]
        patience(timedelta(seconds=2))
        try:
            return act(leg, *others)
        finally:
            patience(timedelta(seconds=60))
            monitoring.Stall.limit = limit  # type: ignore[method-assign]

    def slowly(act: Callable[..., Any], *arguments: Any) -> Any:
        threading.Event().wait(4)
        return act(*arguments)

    kept.open_store = lambda url, **_options: Folder(OUTPUT.parent / url.replace("gs://", ""))
    acceptance.Leg.uploads = lambda *given: impatient(uploads, *given)  # type: ignore[method-assign]
    acceptance.found_earlier = chain.found_earlier = lambda *given: impatient(earlier, *given)
    Uploader.close = lambda *given: slowly(close, *given)  # type: ignore[method-assign]
    acceptance.CheckpointManager.download_newest = lambda *given: slowly(newest, *given)  # type: ignore[method-assign]


def repeats() -> None:
    """Begin the tokens anew after a resumption, as a loader whose position is lost."""
    if LEG == "resumed":
        numbers = data_loader.numbers
        data_loader.numbers = lambda step, *others: numbers(step - 4, *others)


def flipped() -> None:
    """Flip a bit of the only whole checkpoint before it is taken, in a file of the last rank."""
    if LEG == "resumed" and on_rank(0):
        path = OUTPUT.parent / "killed/checkpoints/checkpoint_step_4"
        file = path / read_json(path / checkpoints.MANIFEST)["files"][-1]["name"]
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)


class _Program:
    """A pickle that makes a folder when it is read by whoever believes it."""

    def __reduce__(self) -> Any:
        return os.mkdir, (str(OUTPUT.parent / "a program ran"),)


def forged() -> None:
    """Put a program where the last rank's state was, with a manifest that fits."""
    if LEG == "resumed" and on_rank(0):
        path = OUTPUT.parent / "killed/checkpoints/checkpoint_step_4"
        manifest = read_json(path / checkpoints.MANIFEST)
        file = path / manifest["files"][-1]["name"]
        torch.save(_Program(), file)
        manifest["files"][-1] = checkpoints.describe(file)
        manifest[checkpoints.DIGEST] = checkpoints._digest(manifest)
        write_json(path / checkpoints.MANIFEST, manifest)


def asked_to_stop() -> None:
    """Ask the resumed leg to stop, after its first step."""
    if LEG == "resumed":
        (OUTPUT.parent / "stop").touch()


def chain_asked_to_stop() -> None:
    """Ask a whole chain to stop."""
    word = Path(os.environ["HPC_VALIDATION_CHAIN"]) / "stop"
    before_the_step(word.touch)


def forgets_moments() -> None:
    """Restore the weights alone: the optimizer's moments begin at zero."""
    restore = engine.Sharded.restore

    def changed(self: Any, read: Any, steps: int) -> None:
        restore(self, read, steps)
        for state in self._engine.optimizer.optimizer.state.values():
            for moment in engine.MOMENTS:
                state[moment].zero_()

    if LEG == "resumed":
        engine.Sharded.restore = changed  # type: ignore[method-assign]


def one_step_for_all() -> None:
    """Let all groups of the optimizer share their step, as DeepSpeed's universal checkpoint does."""
    restore = engine.Sharded.restore

    def changed(self: Any, read: Any, steps: int) -> None:
        restore(self, read, steps)
        inner = self._engine.optimizer.optimizer
        shared = torch.tensor(float(steps))
        for state in inner.state.values():
            state["step"] = shared

    if LEG == "resized":
        engine.Sharded.restore = changed  # type: ignore[method-assign]


def groups_unrepaired() -> None:
    """Leave each group the numbers that DeepSpeed's universal checkpoint gives it."""
    deepspeed_format.repair_groups = lambda *_given: None


def steps_unrepaired() -> None:
    """Leave all groups the one count of updates that DeepSpeed's universal checkpoint gives them."""
    deepspeed_format.repair_steps = lambda *_given: None


def disk_full() -> None:
    """Have no space for the second checkpoint."""
    begin = checkpoints.begin

    def changed(folder: Path, name: str, size: int, **options: Any) -> Path:
        if name == "checkpoint_step_8":
            usage = shutil.disk_usage(folder)
            checkpoints.shutil.disk_usage = lambda _path: usage._replace(free=1000)  # type: ignore[assignment]
        return begin(folder, name, size, **options)

    if LEG == "measured":
        checkpoint_manager.checkpoints.begin = changed


def not_killed() -> None:
    """Let the leg that is to be killed live."""
    save = checkpoint_manager.Saver.save

    def changed(self: Any, *arguments: Any, dies: bool = False, **options: Any) -> None:  # noqa: ARG001
        save(self, *arguments, **options)

    checkpoint_manager.Saver.save = changed  # type: ignore[method-assign]


FAULTS = (
    nan,
    infinite_gradient,
    held,
    held_in_save,
    stands_still,
    stopped,
    killed,
    launcher_killed,
    slow,
    spike,
    bucket_gone,
    bucket_unavailable,
    bucket_recovers,
    slow_bucket,
    repeats,
    flipped,
    asked_to_stop,
    chain_asked_to_stop,
    forgets_moments,
    one_step_for_all,
    forged,
    groups_unrepaired,
    steps_unrepaired,
    disk_full,
    not_killed,
)

if __name__ == "__main__":
    {fault.__name__: fault for fault in FAULTS}[NAME]()
    sys.exit(train.main())
