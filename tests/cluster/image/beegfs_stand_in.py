#!/usr/bin/python3
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in for beegfs-ctl (7.x) and beegfs (8.x): replays the answers that `cluster beegfs` put into ANSWERS.

An answer is KEY.rcN.txt (stdout) or KEY.rcN.stderr.txt, or both; KEY.hang: none ever comes. KEY is the mode and, where
it is given, the node type, listtargets_storage; of beegfs its first two words, target_list; `any` goes before all.
"""

import re
import signal
import socket
import sys
from pathlib import Path

ANSWERS = Path("/etc/hpcval/beegfs") / socket.gethostname() / Path(sys.argv[0]).name


def key(words):
    """What is asked, as the answers are named."""
    if ANSWERS.name == "beegfs":
        return "_".join([word for word in words if not word.startswith("-")][:2])
    mode = next((word[2:] for word in words if re.fullmatch(r"--(?:list|get|server)\w+", word)), "")
    kind = next((word.partition("=")[2] for word in words if word.startswith("--nodetype=")), "")
    return "_".join(word for word in (mode, "mirrorgroups" if "--mirrorgroups" in words else "", kind) if word)


def main():
    for name in ("any", key(sys.argv[1:])):
        if (ANSWERS / f"{name}.hang").exists():
            while True:
                signal.pause()
        found = sorted(ANSWERS.glob(f"{name}.rc*.txt"))
        if found:
            for path in found:
                stream = sys.stderr if path.name.endswith(".stderr.txt") else sys.stdout
                stream.buffer.write(path.read_bytes())
            return int(re.search(r"\.rc(\d+)\.", found[0].name).group(1))
    print(f"{ANSWERS.name}: this stand-in has no answer to {' '.join(sys.argv[1:])}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
