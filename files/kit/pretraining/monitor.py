# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one thing that a training loop tells its figures to; from here they go to all who want them.

Rank 0 has one:

    with Monitor(output, current_job(), steps, watch, checkpoint_every=50, began_at=0, nodes=nodes) as monitor:
        monitor.step(1, loss=…, learning_rate=…, …)
        monitor.performance(1, data_seconds=…, …)
        monitor.checkpoint(50)

Only the records below ``output`` can raise, since a training that leaves none cannot be judged. What goes to
Prometheus, W&B and TensorBoard neither stops nor slows the training: a problem there is a line in training.log, once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable

from kit.errors import KitError
from kit.job import Job
from kit.pretraining import alerts, exposition
from kit.pretraining.exporters import Publisher, TextFile, serve
from kit.pretraining.exposition import Figures
from kit.pretraining.records import Records
from kit.trackers import sinks

RUN = "gpt-pretraining"


class Monitor:
    """Records, exports and tracks one training."""

    def __init__(
        self,
        output: Path,
        job: Job,
        steps: int,
        watch: Mapping[str, Any],
        *,
        checkpoint_every: int,
        began_at: int = 0,
        nodes: Sequence[str] = (),
        run: str = RUN,
    ) -> None:
        """Begin. ``watch`` are the settings of that name; ``began_at`` is the step that was resumed from, or 0.

        ``nodes`` are those of the ranks, in order; ``run`` names the training over all its jobs. Raise OSError if the
        records cannot be written, KitError if ``run`` or a node's name is none that a label may hold.
        """
        self._common, self._nodes = exposition.labels(job.job_id, run), nodes
        self._figures = Figures(steps=steps, checkpoint_step=began_at, checkpoint_every=checkpoint_every)
        exposition.families(replace(self._figures, solo_seconds=[0.0] * len(nodes)), self._common, nodes)
        self.records = Records(output, job, steps)
        self._publisher: Publisher | None = None
        self._server: Callable[[], None] | None = None
        self._trackers: list[sinks.Tracker] = []
        self._closed = False
        if began_at:
            self.say(f"resumed from a checkpoint of step {began_at}")
        self._begin_text_file(watch, job)
        self._begin_server(watch)
        try:
            self._trackers = sinks.start(output, run, watch, self.say, RUN)
        except (OSError, KitError) as error:
            self.say(f"W&B and TensorBoard are not started: {error}; the training goes on without them")

    def _begin_text_file(self, watch: Mapping[str, Any], job: Job) -> None:
        if not watch.get("textfile"):
            return
        try:
            file = TextFile(Path(watch["textfile"]), job.job_id)
        except (OSError, KitError) as error:
            self.say(f"no metrics for Prometheus: {error}; the training goes on without them")
            return
        self._publisher = Publisher(lambda: exposition.text(self._families()), file.write, self.say)

    def _begin_server(self, watch: Mapping[str, Any]) -> None:
        if not watch.get("http_port"):
            return
        address, port = watch.get("http_address") or "127.0.0.1", int(watch["http_port"])
        try:
            self._server = serve(self._families, address, port)
        except (ImportError, OSError) as error:
            self.say(f"no metrics at {address}:{port} (watch.http_port): {error}; the training goes on without them")

    def _families(self) -> list[exposition.Family]:
        return exposition.families(self._figures, self._common, self._nodes)

    def say(self, text: str) -> None:
        """Write a line to training.log."""
        self.records.say(text)

    def step(self, step: int, **figures: Any) -> None:
        """Report a complete step; ``figures`` are those of `Records.step`."""
        row = self.records.step(step, **figures, checkpoint_step=self._figures.checkpoint_step)
        finite = not alerts.not_finite(row["loss"], row["grad_norm"], scaled=row["loss_scale"] is not None)
        before = self._figures
        self._figures = replace(
            before,
            step=step,
            step_time=row["time"],
            loss=row["loss"],
            validation_loss=row.get("validation_loss", before.validation_loss),
            learning_rate=row["learning_rate"],
            gradient_norm=row["grad_norm"],
            finite=finite,
            not_finite_steps=before.not_finite_steps + (not finite),
            skipped_steps=row["skipped_steps"],
            loss_scale=row["loss_scale"],
            steps_per_second=row["steps_per_second"],
            tokens_per_second=row["tokens_per_second"],
            memory_bytes=row["memory_bytes"],
        )
        for tracker in self._trackers:
            tracker.send(row)

    def performance(
        self,
        step: int,
        *,
        mfu: float | None = None,
        solo_seconds: Sequence[float | None] | None = None,
        **seconds: Any,
    ) -> None:
        """Report where a step's time went, as `Records.performance`."""
        self.records.performance(step, mfu=mfu, solo_seconds=solo_seconds, **seconds)
        self._figures = replace(
            self._figures,
            mfu=mfu,
            solo_seconds=self._figures.solo_seconds if solo_seconds is None else tuple(solo_seconds),
        )

    def checkpoint(self, step: int, moment: float | None = None) -> None:
        """Report a checkpoint that is whole by now, or was at ``moment``, seconds since the epoch."""
        self._figures = replace(
            self._figures, checkpoint_step=step, checkpoint_time=time.time() if moment is None else moment
        )
        self.say(f"saved a checkpoint of step {step}")

    def close(self, *, in_order: bool = True) -> None:
        """End. ``in_order``: finished, or stopped with a checkpoint; otherwise the alerts go on. Twice is once."""
        if self._closed:
            return
        self._closed = True
        self._figures = replace(self._figures, active=not in_order)
        if self._publisher:
            self._publisher.close()
        if self._server:
            self._server()
        sinks.close(self._trackers)
        self.records.close()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_other: object) -> None:
        self.close(in_order=kind is None)
