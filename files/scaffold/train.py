"""Fit a line to points. Replace it with your own training; the criteria judge what it writes at the end."""

import os
import random
import time
from pathlib import Path

from kit.files import write_json
from kit.metrics import Progress, write_metrics

OUTPUT = Path(os.environ["OUTPUT_DIR"])  # this job's own folder on the share; everything that is judged goes there
EPOCHS, POINTS, RATE = 50, 200_000, 0.5

started = time.monotonic()
generator = random.Random(42)
xs = [generator.uniform(-1, 1) for _point in range(POINTS)]  # on the line y = 2 x + 1
slope, offset, losses = 0.0, 0.0, []
with Progress(OUTPUT / "progress.jsonl") as progress:
    for epoch in range(1, EPOCHS + 1):
        errors = [slope * x + offset - (2 * x + 1) for x in xs]
        slope -= RATE * sum(error * x for error, x in zip(errors, xs)) / POINTS
        offset -= RATE * sum(errors) / POINTS
        losses.append(sum(error * error for error in errors) / POINTS)
        progress.row(step=epoch, steps=EPOCHS, loss=losses[-1])

error = abs(slope - 2) + abs(offset - 1)
write_json(OUTPUT / "model.json", {"slope": slope, "offset": offset})
write_metrics(OUTPUT / "metrics.json", {"loss": losses, "error": error, "seconds": time.monotonic() - started})
