#!/usr/bin/python3
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in for dmesg and journalctl on a node with simulated GPUs: prints /run/hpcval/kernel.log.

Nodes are containers: the real commands would show the kernel log of the machine below. Of journalctl's options it knows
--output=json, --since=@SECONDS, --until=@SECONDS and --lines=N.
"""

import json
import re
import signal
import sys
from pathlib import Path

STATES = Path("/run/hpcval")
REFUSALS = {
    "dmesg": "dmesg: read kernel buffer failed: Operation not permitted",
    "journalctl": "No journal files were opened due to insufficient permissions.",
}


def access():
    """What the node's state says of the kernel log; refused where there is none."""
    try:
        lines = (STATES / "system.state").read_text().splitlines()
    except OSError:
        return "refused"
    return next((line.partition("=")[2] for line in lines if line.startswith("kernel_log=")), "refused")


def journal(lines, options):
    """The lines as journalctl shows them."""
    booted = next(int(line.split()[1]) for line in Path("/proc/stat").read_text().splitlines() if line[:6] == "btime ")
    rows = []
    for line in lines:
        stamp, message = re.fullmatch(r"\[ *([0-9.]+)\] (.*)", line).groups()
        rows.append((booted + float(stamp), float(stamp), message))
    since, until = (
        float(options.get(name, default).lstrip("@")) for name, default in (("since", "0"), ("until", "inf"))
    )
    rows = [row for row in rows if since <= row[0] <= until]
    rows = rows[-int(options["lines"]) :] if "lines" in options else rows
    for when, stamp, message in rows:
        if options.get("output") == "json":
            entry = {"__REALTIME_TIMESTAMP": str(int(when * 1e6)), "_SOURCE_MONOTONIC_TIMESTAMP": str(int(stamp * 1e6))}
            print(json.dumps({**entry, "_TRANSPORT": "kernel", "MESSAGE": message}))
        else:
            print(f"kernel: {message}")


def main():
    name = Path(sys.argv[0]).name
    options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
    state = access()
    if state == "hang":
        while True:
            signal.pause()
    if state == "refused":
        print(REFUSALS[name], file=sys.stderr)
        return 1
    lines = [] if state == "empty" else (STATES / "kernel.log").read_text().splitlines()
    if name == "journalctl":
        journal(lines, options)
    else:
        print("".join(f"{line}\n" for line in lines), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
