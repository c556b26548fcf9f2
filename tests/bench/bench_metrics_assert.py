"""How fast metrics_assert reads: a million rows of JSON Lines against a loop of json.loads, which checks nothing, and a
log against grep -E with the same patterns.

    python -m tests.bench.bench_metrics_assert

Prints a Markdown table. Both sides of a comparison run one after the other, several times; the best of each counts.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "collections"))

ROWS = 1_000_000
LOG_BYTES = 200_000_000
ROUNDS = 3
# Bounds: of json.loads' time, of grep's speed, and MiB.
MOST_TIMES, LEAST_OF_GREP, MOST_MEMORY = 3.0, 0.37, 200
NONCE = "00112233445566778899aabbccddeeff"
READER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import collector
request = collector.Request(job_id="12", attempt=0, settle=0, **json.load(open(sys.argv[2])))
document = collector.collect(request, 600)
assert not document["problems"], document["problems"]
"""
LOOP = """
import json, sys
with open(sys.argv[1], "rb") as stream:
    for line in stream:
        json.loads(line)
"""


def write_rows(path: Path) -> None:
    """Write progress as the kit does."""
    noise = random.Random(1)
    with path.open("w") as stream:
        for step in range(ROWS):
            row = {
                "job_id": "12",
                "attempt": 0,
                "time": 1.7e9 + step * 0.1,
                "epoch": step // 1000,
                "epochs": 1000,
                "step": step,
                "steps": ROWS,
                "loss": round(9 / (1 + step / 1e5) + noise.random() * 0.1, 5),
                "eta_seconds": round((ROWS - step) * 0.1, 1),
            }
            stream.write(json.dumps(row) + "\n")


def write_log(path: Path) -> None:
    """Write what trainings print, now and then a line that a pattern's text is in."""
    words = [
        "epoch",
        "step",
        "loss",
        "accuracy",
        "samples",
        "loader",
        "rank",
        "tensor",
        "gradient",
        "checkpoint",
        "saved",
    ]
    noise = random.Random(2)
    block = []
    for number in range(20_000):
        text = " ".join(noise.choice(words) for _each in range(10))
        block.append(f"2026-01-01T00:{number % 60:02d}:00 [rank{number % 8}] {text} {noise.random():.5f}\n")
    block[100] = "node1:534:1763 [3] NCCL INFO comm 0x7f1928e6e060 rank 3 nranks 4 - Init COMPLETE\n"
    block[200] = "validation: mean squared error 0.0123\n"
    content = "".join(block).encode()
    with path.open("wb") as stream:
        while stream.tell() < LOG_BYTES:
            stream.write(content)
        stream.write(f"hpc-validation-end job=12 attempt=0 exit=0 nonce={NONCE}\n".encode())


def measure(argv: list[str], **options: object) -> tuple[float, float, float]:
    """Run `argv`; return wall seconds, CPU seconds and the largest resident size in MiB, of it and its children."""
    start = time.perf_counter()
    process = subprocess.Popen(argv, **options)  # type: ignore[call-overload]
    _pid, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # grep says 1 when nothing matches
        raise SystemExit(f"{argv[0]} ended with {process.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def read(folder: Path, request: dict[str, object]) -> tuple[float, float, float]:
    """Collect in a process of its own."""
    path = folder / "request.json"
    path.write_text(json.dumps({"output": str(folder), **request}))
    return measure([sys.executable, "-c", READER, str(ROOT / "collections"), str(path)])


def extended(regex: str) -> str:
    """Return a Python regular expression as grep -E writes it; what it cannot say makes it match more."""
    regex = re.sub(r"\(\?<?[!=](?:[^()]|\([^()]*\))*\)", "", regex)
    for python, posix in (
        ("}?", "}"),
        ("(?:", "("),
        (r"[\d,-]", "[0-9,-]"),
        (r"[\s.]", "([[:space:]]|[.])"),
        (r"[^\s:]", "[^[:space:]:]"),
        (r"[\w:. ]", "[[:alnum:]_:. ]"),
        (r"[\w.-]", "[[:alnum:]_.-]"),
        (r"[\w/]", "[[:alnum:]_/]"),
        (r"\d", "[0-9]"),
        (r"\S", "[^[:space:]]"),
        (r"\s", "[[:space:]]"),
        (r"\w", "[[:alnum:]_]"),
    ):
        regex = regex.replace(python, posix)
    return regex


def main() -> None:
    """Measure and print."""
    from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import log_patterns

    sets = log_patterns.load()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder / "progress.jsonl")
        write_log(folder / "big.log")
        patterns = folder / "patterns"
        regexes = [extended(pattern["regex"]) for content in sets.values() for pattern in content["patterns"]]
        patterns.write_text("\n".join(regexes) + "\n")
        size = (folder / "big.log").stat().st_size / 1e6
        rows, loops, ours, greps = [], [], [], []
        for _each in range(ROUNDS):
            rows.append(read(folder, {"files": {"progress": {"path": "progress.jsonl", "format": "jsonl"}}}))
            loops.append(measure([sys.executable, "-c", LOOP, str(folder / "progress.jsonl")]))
            ours.append(read(folder, {"logs": {"stdout": str(folder / "big.log")}, "patterns": sets}))
            argv = ["grep", "-a", "-c", "-E", "-f", str(patterns), str(folder / "big.log")]
            greps.append(measure(argv, stdout=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"}))
    best, loop, scan, grep = min(rows), min(loops), min(ours), min(greps)
    times, ratio = best[0] / loop[0], grep[0] / scan[0]
    print("| what | wall s | CPU s | peak RSS MiB | speed |")
    print("| --- | --- | --- | --- | --- |")
    for what, measured, speed in (
        (f"JSON Lines, {ROWS:,} rows", best, f"{ROWS / best[0] / 1e3:.0f} k rows/s"),
        ("the same rows by json.loads", loop, f"{ROWS / loop[0] / 1e3:.0f} k rows/s"),
        (f"log of {size:.0f} MB, all pattern sets, SHA-256", scan, f"{size / scan[0]:.0f} MB/s"),
        ("the same log by grep -E -f", grep, f"{size / grep[0]:.0f} MB/s"),
    ):
        print(f"| {what} | {measured[0]:.2f} | {measured[1]:.2f} | {measured[2]:.0f} | {speed} |")
    print(f"\nJSON Lines: {times:.2f} times as long as json.loads (bound: at most {MOST_TIMES})")
    print(f"log scan: {ratio:.2f} of grep's speed (bound: at least {LEAST_OF_GREP}); {MOST_MEMORY} MiB for each")
    if times > MOST_TIMES or ratio < LEAST_OF_GREP or max(best[2], scan[2]) >= MOST_MEMORY:
        raise SystemExit("a bound is not met")


if __name__ == "__main__":
    main()
