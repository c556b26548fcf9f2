# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the settings of a training where there is neither PyTorch nor a GPU, before anything is submitted.

Takes the inventory's own settings as JSON on stdin, and answers as `kit profile check --json` does.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError
from settings import load, require_steps

SETTING = "hpc_validation_pretraining"


def main() -> int:
    """Return 0 for settings that `train.py` takes on each of the numbers of ranks, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=Path(__file__).parent / "config", help="folder of the settings")
    parser.add_argument("--profile", help="changes of the settings, of config/profiles")
    parser.add_argument("--ranks", type=int, action="append", required=True, help="a number of ranks that trains")
    parser.add_argument("--chain", action="store_true", help="it is the training itself, without an acceptance's legs")
    arguments = parser.parse_args()
    answer: dict[str, Any] = {"file": SETTING, "findings": []}
    try:
        own = strict_json.parse(sys.stdin.buffer.read())
        for ranks in arguments.ranks:
            settings = load(arguments.config, arguments.profile, own, ranks)
            if not arguments.chain:
                require_steps(settings)
    except (KitError, ValueError) as error:
        answer = {"file": SETTING, "unreadable": str(error)}
    print(json.dumps([answer]))
    return 1 if "unreadable" in answer else 0


if __name__ == "__main__":
    sys.exit(main())
