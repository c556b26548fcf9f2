#!/usr/bin/python3
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `cluster edge` lets go on in the edge host: stays.py busy|memory|throttled VALUE COUNTER

VALUE: on, MiB, or events a second that are counted in the file COUNTER; off or 0 for nothing of the kind. What ran for
that word ends first. Returns when the new process is at it.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

OFF = ("off", "0")
PATIENCE = 10.0  # seconds


def begun():
    """Tell whoever started this process that it is at it."""
    print("begun", flush=True)


def busy(_value, _counter):
    """Spin."""
    begun()
    while True:
        pass


def memory(value, _counter):
    """Hold so many MiB of anonymous memory. Where none is left others are killed, to whom `cluster up` gives 1000."""
    Path("/proc/self/oom_score_adj").write_text("0")
    held = bytearray(b"\1") * (int(value) << 20)
    begun()
    while held:
        signal.pause()


def throttled(value, counter):
    """Let the counter in a file grow by so many events a second; a reader sees the old or the new count."""
    counter = Path(counter)
    beside = counter.with_name(f".{counter.name}.new")
    begun()
    while True:
        time.sleep(1)
        beside.write_text(f"{int(counter.read_text()) + int(value)}\n")
        beside.chmod(counter.stat().st_mode & 0o777)
        beside.replace(counter)


STAYS = {"busy": busy, "memory": memory, "throttled": throttled}


def running(word):
    """Processes of this file that stay for a word."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = line.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if words[1:4] == [__file__, "stay", word]:
            found.append(int(line.parent.name))
    return found


def end(word):
    """End them, and see them gone."""
    until = time.monotonic() + PATIENCE
    while True:
        left = running(word)
        if not left:
            return
        if time.monotonic() > until:
            sys.exit(f"{word}: {left} did not end")
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)


def main():
    word, *values = sys.argv[1:]
    if word == "stay":
        STAYS[values[0]](*values[1:])
    end(word)
    if values[0] in OFF:
        return 0
    command = [sys.executable, __file__, "stay", word, *values]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(command, start_new_session=True, **pipes)
    told = process.stdout.readline().decode(errors="replace")
    if told == "begun\n":
        return 0
    rest = process.stdout.read().decode(errors="replace")
    return f"{word}: it ended {process.wait()}: {told}{rest}"


if __name__ == "__main__":
    sys.exit(main())
