# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the validation through ansible-runner: exit 0 only if Ansible succeeded and this run's verdict is pass.

FOLDER is ansible-runner's private data folder: inventory/, env/extravars, and its other files. Each run gets
artifacts/<ident>/, which contains the results, so that no earlier run's verdict can be taken for this one's.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from uuid import uuid4

import ansible_runner

COLLECTION = "mlops.hpc_validation"


def verdict(results: Path) -> tuple[str, str]:
    """Return this run's verdict and why; undetermined unless there is exactly one readable verdict.json."""
    found = list(results.glob("*/verdict.json"))
    if len(found) != 1:
        return "undetermined", f"{len(found)} verdicts in {results}"
    try:
        document = json.loads(found[0].read_text(encoding="utf-8"))
        return str(document["verdict"]), str(document["why"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        return "undetermined", f"{found[0]}: {type(error).__name__}: {error}"


def play(folder: Path, name: str, ident: str, results: Path, timeout: int = 0) -> ansible_runner.Runner:
    """Run one of the collection's playbooks; SIGINT and SIGTERM cancel it like a timeout."""
    cause: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _frame: cause.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        return ansible_runner.run(
            private_data_dir=str(folder),
            ident=ident,
            playbook=f"{COLLECTION}.{name}",
            extravars={"hpc_validation_results": str(results)},
            suppress_env_files=True,  # otherwise these variables would stay in env/ and apply to the next run too
            settings={"pexpect_timeout": 1},  # seconds between two calls of cancel_callback
            cancel_callback=lambda: bool(cause),
            timeout=timeout or None,
        )
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main() -> int:
    """Run the command line; return 0 for a pass, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--playbook", default="validate_category1", help="of the collection (default: %(default)s)")
    parser.add_argument("--timeout", type=int, default=0, help="seconds after which the play is killed")
    parser.add_argument(
        "--cleanup",
        action="store_true",
        help="after a kill, cancel every job that a validation left on the share; not while another one runs there",
    )
    arguments = parser.parse_args()

    ident = str(uuid4())
    results = arguments.folder.resolve() / "artifacts" / ident / "results"
    ran = play(arguments.folder, arguments.playbook, ident, results, arguments.timeout)
    said, why = verdict(results)
    if arguments.cleanup and ran.status in ("canceled", "timeout"):
        cleaned = play(arguments.folder, "cleanup", f"{ident}-cleanup", results)
        print(f"cleanup: {cleaned.status}")
    print(f"ansible: {ran.status}, exit code {ran.rc}\nverdict: {said}: {why}\nresults: {results}")
    return 0 if (ran.status, ran.rc, said) == ("successful", 0, "pass") else 1


if __name__ == "__main__":
    sys.exit(main())
