#!/usr/bin/python3 -I
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in for beegfs-ctl (7.x) and beegfs (8.x): replays the answers that lie in ../NAME beside its own folder.

answers.json has them as {"factor": seconds of here in one of the real ones, "answers": [{"words", "at_once", "seconds",
"out", "err", "rc", "held"}]}: `at_once` is printed before the seconds, the rest after them. `*` stands for any word,
`...` for any further ones. the real tool it drops the handler of a first SIGTERM while it is held, and ends by SIGHUP.
"""

import json
import signal
import sys
import time
from pathlib import Path

TOOL = Path(sys.argv[0])


def answers():
    """The document beside the folder of the link by which this was called, or of a link that that one leads to."""
    at = TOOL
    while True:
        document = at.parent.resolve().parent / TOOL.name / "answers.json"
        if document.exists():
            return json.loads(document.read_text())
        at = at.parent / at.readlink()


def fits(expected, words):
    """Say whether a question is the one expected, whatever the order of its words and its configuration."""
    left = [word for word in words if not word.startswith("--cfgFile=")]
    for word in [each for each in expected if each not in ("*", "...")]:
        if word not in left:
            return False
        left.remove(word)
    return "..." in expected or len(left) == expected.count("*")


def drop_handler(_number, _frame):
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def main():
    document = answers()
    words = sys.argv[1:]
    answer = next((each for each in document["answers"] if fits(each["words"], words)), None)
    if answer is None:
        print(f"{TOOL.name}: this stand-in has no answer to {' '.join(words)}", file=sys.stderr)
        return 1
    if answer.get("held"):
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, drop_handler)
    sys.stdout.write(answer.get("at_once", ""))
    sys.stdout.flush()
    until = time.monotonic() + answer.get("seconds", 0) * document["factor"]
    while until > time.monotonic():
        time.sleep(max(0.0, until - time.monotonic()))
    sys.stdout.write(answer["out"])
    sys.stderr.write(answer["err"])
    return answer["rc"]


if __name__ == "__main__":
    sys.exit(main())
