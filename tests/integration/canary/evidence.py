"""What the canary leaves as metrics.json: good, or wrong in one way."""

from __future__ import annotations

import json
import os
import typing as t
from pathlib import Path

OUTPUT = Path(os.environ["OUTPUT_DIR"])
METRICS = OUTPUT / "metrics.json"


def metrics(**changes: t.Any) -> dict[str, t.Any]:
    """What a good run measures, with changes."""
    stamp = {"job_id": os.environ["SLURM_JOB_ID"], "attempt": int(os.environ["HPC_VALIDATION_ATTEMPT"])}
    return {**stamp, "score": 0.99, "seconds": 12.5, "loss": [3.0, 2.0, 1.0], **changes}


def good() -> bytes:
    return json.dumps(metrics()).encode()


def written(**changes: t.Any) -> t.Callable[[], object]:
    """Good metrics with these changes."""
    return lambda: METRICS.write_text(json.dumps(metrics(**changes)))


def scored(text: str) -> t.Callable[[], object]:
    """Good metrics, but this text stands where the score should."""
    return lambda: METRICS.write_bytes(good().replace(b"0.99", text.encode()))


def content(change: t.Callable[[bytes], bytes]) -> t.Callable[[], object]:
    """Good metrics with their bytes changed."""
    return lambda: METRICS.write_bytes(change(good()))


def beside() -> None:
    """Only the temporary file that a killed writer leaves."""
    (OUTPUT / ".metrics.json.tmp").write_bytes(good())


def huge() -> None:
    METRICS.write_bytes(good())
    os.truncate(METRICS, 300 << 20)


def unreadable() -> None:
    METRICS.write_bytes(good())
    METRICS.chmod(0)


def linked() -> None:
    """A link to good metrics outside the job's folder."""
    elsewhere = OUTPUT.parent / f"{OUTPUT.name}.elsewhere.json"
    elsewhere.write_bytes(good())
    METRICS.symlink_to(elsewhere)


EVIDENCE: dict[str, t.Callable[[], object]] = {
    "good": written(),
    "no-metrics": lambda: None,
    "empty": content(lambda _text: b""),
    "truncated": content(lambda text: text[: len(text) // 2]),
    "half-written": beside,
    "low": written(score=0.5),
    "negative": written(score=-0.99),
    "percent": written(score=99),
    "milliseconds": written(seconds=12500),
    "flat": written(loss=[2.0, 2.0, 2.0, 2.0]),
    "scattered": written(loss=[3.0, 1.0, 3.0, 1.0, 3.0, 1.0]),
    "text": written(score="0.99"),
    "boolean": written(score=True),
    "list": written(score=[0.99]),
    "null": written(score=None),
    "no-score": content(lambda text: text.replace(b'"score"', b'"scores"')),
    "nan": scored("NaN"),
    "infinite": scored("Infinity"),
    "overflow": scored("1e999"),
    "digits": scored("9" * 5000),
    "twice": scored('0.5, "score": 0.99'),
    "deep": scored("[" * 50000 + "]" * 50000),
    "array": content(lambda text: b"[" + text + b"]"),
    "foreign": written(job_id="1"),
    "other-attempt": written(attempt=1),
    "huge": huge,
    "many-keys": written(**{f"key{number}": number for number in range(100000)}),
    "binary": content(lambda _text: bytes(range(256)) * 16),
    "linked": linked,
    "fifo": lambda: os.mkfifo(METRICS),
    "folder": METRICS.mkdir,
    "unreadable": unreadable,
}
