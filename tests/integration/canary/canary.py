"""A workload without torch, for tests of everything around the training. Its first argument says what it does wrong."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


def wait_for_sampler(samples: Path, seconds: float = 10) -> None:
    """A job this short ends before the sampler's first sample."""
    end = time.monotonic() + seconds
    while not (samples.exists() and samples.stat().st_size) and time.monotonic() < end:
        time.sleep(0.05)


def main(behaviour: str) -> int:
    output = Path(os.environ["OUTPUT_DIR"])
    wait_for_sampler(output / "gpu.jsonl")
    metrics = {
        "job_id": os.environ["SLURM_JOB_ID"],
        "attempt": int(os.environ["HPC_VALIDATION_ATTEMPT"]),
        "score": 0.5 if behaviour == "low" else 0.99,
        "loss": [3.0, 2.0, 1.0],
    }
    text = json.dumps(metrics)
    if behaviour == "nan":
        text = text.replace("0.99", "NaN")
    elif behaviour == "truncated":
        text = text[: len(text) // 2]
    elif behaviour == "foreign":
        text = text.replace(f'"{metrics["job_id"]}"', '"1"', 1)
    if behaviour != "no-metrics":
        (output / "metrics.json").write_text(text)
    if behaviour == "unreadable":
        (output / "metrics.json").chmod(0)
    (output / "model.bin").write_bytes(bytes(1000))
    if behaviour == "cuda-error":
        print("RuntimeError: CUDA error: an illegal memory access was encountered", file=sys.stderr)
    if behaviour == "sleep":
        time.sleep(300)
    return 3 if behaviour == "exit-3" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[2]))
