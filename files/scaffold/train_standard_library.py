"""The same as train.py without the kit, as in a program in any language. The manifest names one of the two."""

import json
import os
import random
import time
from pathlib import Path

OUTPUT = Path(os.environ["OUTPUT_DIR"])  # this job's own folder on the share; everything that is judged goes there
# Every document and every row names the job and the attempt that wrote it; without them it is not accepted.
STAMP = {"job_id": os.environ["SLURM_JOB_ID"], "attempt": int(os.environ["HPC_VALIDATION_ATTEMPT"])}
EPOCHS, POINTS, RATE = 50, 200_000, 0.5


def write(name, document):
    """Write a file atomically: first under another name, then renamed."""
    temporary = OUTPUT / f".{name}.new"
    temporary.write_text(json.dumps({**document, **STAMP}), encoding="utf-8")
    temporary.replace(OUTPUT / name)


started = time.monotonic()
generator = random.Random(42)
xs = [generator.uniform(-1, 1) for _point in range(POINTS)]  # on the line y = 2 x + 1
slope, offset, losses = 0.0, 0.0, []
with open(OUTPUT / "progress.jsonl", "w", encoding="utf-8") as progress:
    for epoch in range(1, EPOCHS + 1):
        errors = [slope * x + offset - (2 * x + 1) for x in xs]
        slope -= RATE * sum(error * x for error, x in zip(errors, xs)) / POINTS
        offset -= RATE * sum(errors) / POINTS
        losses.append(sum(error * error for error in errors) / POINTS)
        row = {**STAMP, "time": time.time(), "step": epoch, "steps": EPOCHS, "loss": losses[-1]}
        print(json.dumps(row), file=progress, flush=True)

error = abs(slope - 2) + abs(offset - 1)
write("model.json", {"slope": slope, "offset": offset})
write("metrics.json", {"loss": losses, "error": error, "seconds": time.monotonic() - started})
