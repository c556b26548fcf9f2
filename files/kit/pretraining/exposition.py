# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of a training as metrics of Prometheus: which there are, and their text. Pure.

A figure that is not known is left out. NaN and infinity pass through: an alert must see them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kit.errors import KitError

PREFIX = "hpc_pretraining_"
GAUGE, COUNTER = "gauge", "counter"
INFINITE = {math.inf: "+Inf", -math.inf: "-Inf"}
# What labels may hold: names of jobs, runs and nodes, so that nothing else gets into them by mistake.
LABEL_VALUE = re.compile(r"[A-Za-z0-9_.:+/-]{1,128}")

Number = float  # an int or a bool is one too


@dataclass(frozen=True)
class Figures:
    """The state of a training at one moment. None: not known."""

    active: bool = True  # False once it has ended in good order
    steps: int | None = None  # at which it ends
    step: int | None = None  # the last complete one
    step_time: float | None = None  # its end, seconds since the epoch
    loss: float | None = None  # nats per token
    validation_loss: float | None = None
    learning_rate: float | None = None
    gradient_norm: float | None = None
    finite: bool | None = None  # loss and gradient norm of the last step; in half precision its loss
    not_finite_steps: int = 0  # of this job, so that one between two scrapes is not missed
    skipped_steps: int = 0  # of this job: updates that the optimizer left out
    loss_scale: float | None = None  # of half precision only
    steps_per_second: float | None = None
    tokens_per_second: float | None = None
    mfu: float | None = None  # model FLOP/s over the GPUs' peak, 0 to 1
    memory_bytes: int | None = None  # of the accelerator, on the rank that exports
    checkpoint_step: int | None = None  # of the last that is whole; where the training began, if there is none
    checkpoint_time: float | None = None  # seconds since the epoch
    checkpoint_every: int | None = None  # steps
    solo_seconds: Sequence[float | None] = field(default_factory=tuple)  # by rank, of its last probe


# The metric of each figure that is one number: kind and help.
METRICS: Mapping[str, tuple[str, str, str]] = {
    "active": ("active", GAUGE, "1 while the training runs, 0 once it has ended in good order"),
    "steps": ("steps", GAUGE, "Step at which the training ends"),
    "step": ("step", GAUGE, "Last complete step"),
    "step_time": ("step_timestamp_seconds", GAUGE, "End of the last step, by the clock of the node of rank 0"),
    "loss": ("loss", GAUGE, "Training loss of the last step in nats per token"),
    "validation_loss": ("validation_loss", GAUGE, "Last validation loss in nats per token"),
    "learning_rate": ("learning_rate", GAUGE, "Learning rate of the last step"),
    "gradient_norm": ("gradient_norm", GAUGE, "Gradient norm of the last step, before clipping"),
    "finite": (
        "finite",
        GAUGE,
        "1 if loss and gradient norm of the last step (in half precision the loss) are finite, else 0",
    ),
    "not_finite_steps": (
        "not_finite_steps_total",
        COUNTER,
        "Steps of this job that were not finite",
    ),
    "skipped_steps": ("skipped_steps_total", COUNTER, "Steps of this job in which the optimizer made no update"),
    "loss_scale": ("loss_scale", GAUGE, "Factor of the loss in half precision"),
    "steps_per_second": ("steps_per_second", GAUGE, "Steps per second"),
    "tokens_per_second": ("tokens_per_second", GAUGE, "Tokens per second of all ranks"),
    "mfu": ("mfu_ratio", GAUGE, "FLOP/s of the model over the peak of the GPUs"),
    "memory_bytes": ("memory_bytes", GAUGE, "Peak memory of the accelerator of rank 0"),
    "checkpoint_step": ("checkpoint_step", GAUGE, "Step of the last whole checkpoint, or where the training began"),
    "checkpoint_time": ("checkpoint_timestamp_seconds", GAUGE, "When the last whole checkpoint was complete"),
    "checkpoint_every": ("checkpoint_every_steps", GAUGE, "Steps from one checkpoint to the next"),
}
SOLO = ("solo_seconds", GAUGE, "Duration of a rank's last probe, which computes without the other ranks")


@dataclass(frozen=True)
class Family:
    """A metric, with its samples: labels and value."""

    name: str
    kind: str
    text: str
    samples: Sequence[tuple[Mapping[str, str], Number]]


def labels(job_id: str, run: str) -> dict[str, str]:
    """Return the labels of all metrics; ``run`` stays the same over the jobs of a training. Raise KitError."""
    return {"job_id": _checked("job_id", job_id), "run": _checked("run", run)}


def _checked(name: str, value: str) -> str:
    if not LABEL_VALUE.fullmatch(value):
        raise KitError(f"label {name}: expected 1 to 128 letters, digits or any of _.:+/-, found {value!r}")
    return value


def families(figures: Figures, common: Mapping[str, str], nodes: Sequence[str] = ()) -> list[Family]:
    """Return the metrics with a known value; ``nodes`` are the ranks' nodes, in order. Raise KitError for a label."""
    found = []
    for attribute, (name, kind, text) in METRICS.items():
        value = getattr(figures, attribute)
        if value is not None:
            found.append(Family(PREFIX + name, kind, text, [(common, value)]))
    probed = []
    for rank, value in enumerate(figures.solo_seconds):
        if value is not None:
            node = _checked("node", nodes[rank]) if rank < len(nodes) else "unknown"
            probed.append(({**common, "node": node, "rank": str(rank)}, value))
    return [*found, Family(PREFIX + SOLO[0], *SOLO[1:], probed)] if probed else found


def text(found: Sequence[Family]) -> str:
    """Return the metrics in Prometheus's text format."""
    lines = []
    for family in found:
        lines += [f"# HELP {family.name} {family.text}", f"# TYPE {family.name} {family.kind}"]
        for those, value in family.samples:
            shown = ",".join(f'{name}="{each}"' for name, each in those.items())
            lines.append(f"{family.name}{{{shown}}} {number(value)}")
    return "".join(f"{line}\n" for line in lines)


def number(value: Number) -> str:
    """Return a number as Prometheus writes it."""
    if math.isnan(value):
        return "NaN"
    if value in INFINITE:
        return INFINITE[value]
    return repr(int(value)) if isinstance(value, int) else repr(float(value))
