"""A workload without torch, for tests of everything around the training. Its argument says what it does wrong."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import time
import typing as t
from pathlib import Path

from evidence import EVIDENCE, METRICS, OUTPUT, metrics

MODEL = OUTPUT / "model.bin"
CUDA_ERROR = "RuntimeError: CUDA error: an illegal memory access was encountered"
MEBIBYTE = 1 << 20


def wait_for_sampler(samples: Path, seconds: float = 10) -> None:
    """A job this short ends before the sampler's first sample."""
    end = time.monotonic() + seconds
    while not (samples.exists() and samples.stat().st_size) and time.monotonic() < end:
        time.sleep(0.05)


def say(text: str) -> None:
    print(text, file=sys.stderr)


def say_in_utf_16() -> None:
    sys.stderr.buffer.write(f"{CUDA_ERROR}\n".encode("utf-16"))


def eat() -> None:
    """Take more memory than the job asked for; 2 GiB, should nobody mind."""
    eaten = [bytearray(10 * MEBIBYTE) for _ in range(200)]
    say(f"{len(eaten)} pieces, and nobody minded")


def child_eats() -> None:
    """The same in a child, whose end nobody looks at."""
    child = os.fork()
    if child == 0:
        eat()
        os._exit(0)
    os.waitpid(child, 0)


def link_the_model() -> None:
    """In place of the model a link to a file outside the job's folder."""
    elsewhere = OUTPUT.parent / f"{OUTPUT.name}.elsewhere.bin"
    MODEL.rename(elsewhere)
    MODEL.symlink_to(elsewhere)


def failed_step() -> None:
    """A step of the job fails, and its script does not care."""
    subprocess.run(["srun", "--ntasks=1", "--mem=50M", "false"], check=False)


def leave_a_child() -> None:
    subprocess.Popen(["sleep", "4711"], start_new_session=True)


def hold() -> None:
    """Keep every GPU that the job may open busy until the job ends."""
    for device in sorted(Path("/dev").glob("nvidia[0-9]")):
        with contextlib.suppress(PermissionError):
            os.open(device, os.O_RDWR)


def wait() -> None:
    """Until the file `go` is there."""
    while not (OUTPUT / "go").exists():
        time.sleep(0.1)


def write_more() -> None:
    """Write the metrics anew once the file `go` is there; that they could not be written whole it only mentions."""
    wait()
    try:
        with METRICS.open("w", buffering=1 << 14) as stream:
            stream.write(json.dumps({"score": 0.99, "text": "x" * 500000, **metrics()}))
    except OSError as error:
        say(str(error))


# What is done when metrics and model are there; a number that it returns is the exit code. NAME-3 calls NAME with 3.
BEHAVIOUR: dict[str, t.Callable[..., object]] = {
    "cuda-error": lambda: say(CUDA_ERROR),
    "dirty-log": lambda: say("\0\x1b]0;title\x07\x1b[2J" + CUDA_ERROR.replace("error", "\x1b[31merror\x1b[0m") + "\0"),
    "long-line": lambda: say("x" * (20 * MEBIBYTE) + CUDA_ERROR),
    "wide-log": say_in_utf_16,
    "no-model": MODEL.unlink,
    "small-model": lambda: os.truncate(MODEL, 999),
    "linked-model": link_the_model,
    "exit": lambda code: code,
    "sleep": lambda seconds=300: time.sleep(seconds),
    "wait": wait,
    "eat": eat,
    "child-eats": child_eats,
    "step-fails": failed_step,
    "segfault": lambda: ctypes.string_at(0),
    "leave-a-child": leave_a_child,
    "hold": hold,
    "write-more": write_more,
}


def main(words: str) -> int:
    """Carry out what the words say, in their order, separated by commas."""
    chosen = [word for word in words.split(",") if word != "well"]
    wait_for_sampler(OUTPUT / "gpu.jsonl")
    for word in [word for word in chosen if word in EVIDENCE] or ["good"]:
        EVIDENCE[word]()
    MODEL.write_bytes(bytes(1000))
    code = 0
    for word in chosen:
        name, _sep, number = word.rpartition("-") if word[-1].isdigit() else (word, "", "")
        if word not in EVIDENCE:
            told = BEHAVIOUR[name](*([int(number)] if number else []))
            code = told if isinstance(told, int) else code
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[2]))
