# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit profile`: check training profiles, describe what one may hold, train as one says in a job of Slurm's."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

from kit import strict_json
from kit.errors import KitError
from kit.printable import printable
from kit.profiles import packages

WRONG, UNREADABLE = 1, 2  # exit codes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    actions = parser.add_subparsers(dest="action", required=True)
    check = actions.add_parser("check", help="everything that is wrong with each file, with lines")
    add_check(check)
    actions.add_parser("schema", help="the JSON Schema of a profile, for editors")
    for name, text in (
        ("options", "the options of sbatch that ask for what a profile says, one on each line"),
        ("train", "train in this job, whose current folder is the workload's"),
    ):
        actions.add_parser(name, help=text).add_argument("file", type=Path, metavar="FILE")


def add_check(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a check."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--changes", metavar="FILE", help="JSON with keys that are changed, or - for standard input")
    parser.add_argument("--devices", action="store_true", help="for a workload whose model is measured on devices")
    parser.add_argument("--json", action="store_true", help="answer with one JSON document")


def run(arguments: argparse.Namespace) -> None:
    """Answer. Raise SystemExit with WRONG for errors, with UNREADABLE for a file that cannot be read."""
    if arguments.action == "check":
        code = answered(arguments)
    else:
        packages.require()
        code = _as_job(arguments)
    if code:
        raise SystemExit(code)


def answered(arguments: argparse.Namespace) -> int:
    """Check the files; return the exit code, which is UNREADABLE, with a line on stderr, if none can be checked."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        packages.require()
        code = checked(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever reads has seen enough, as `head`; Python flushes once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KitError as error:
        print(error, file=sys.stderr)
    except Exception as error:  # a file that nobody has thought of is none that can be used
        print(f"the check failed, which is a fault of its own: {type(error).__name__}", file=sys.stderr)
    return UNREADABLE


def _as_job(arguments: argparse.Namespace) -> int:
    """Describe a profile, say what its job asks for, or run in the job; return the exit code. Raise KitError."""
    if arguments.action == "schema":
        from kit.profiles.model import Profile  # noqa: PLC0415 - building the model takes a quarter of a second

        print(json.dumps(Profile.model_json_schema(), indent=2, ensure_ascii=False))
        return 0
    from kit.profiles import job  # noqa: PLC0415 - as above
    from kit.profiles.check import usable  # noqa: PLC0415

    profile = usable(arguments.file)
    if arguments.action == "train":
        return job.run(profile, arguments.file, os.environ)
    print("\n".join(job.options(profile, os.environ.get("HPC_VALIDATION_ACCELERATOR") or "cuda")))
    return 0


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def read_changes(source: str | None) -> dict[str, Any] | None:
    """Return the keys that are changed. Raise KitError."""
    if source is None:
        return None
    try:
        found = strict_json.parse(sys.stdin.read()) if source == "-" else strict_json.read(Path(source))
    except (OSError, ValueError, RecursionError) as error:
        raise KitError(f"--changes {printable(source)}: {error}") from error
    if not isinstance(found, dict):
        raise KitError(f"--changes {source}: expected keys and values")
    return found


def checked(arguments: argparse.Namespace) -> int:
    """Check the files and print what was found; return the exit code."""
    from kit.profiles.check import check  # noqa: PLC0415 - as above
    from kit.profiles.document import UnreadableError  # noqa: PLC0415
    from kit.profiles.findings import dotted, errors  # noqa: PLC0415

    changes = read_changes(arguments.changes)
    code = 0
    documents: list[dict[str, Any]] = []
    for path in arguments.files:
        name = printable(str(path))
        try:
            found = check(path, changes, on_devices=arguments.devices).findings
        except UnreadableError as error:
            code = UNREADABLE
            documents.append({"file": str(path), "unreadable": str(error)})
            if not arguments.json:
                print(f"{name}:{error}" if str(error)[:1].isdigit() else f"{name}: error: {error}")
            continue
        wrong = len(errors(found))
        code = max(code, WRONG if wrong else 0)
        rows = [
            {
                "line": each.line,
                "key": dotted(each.place),
                "severity": each.severity,
                "text": printable(each.text),
                "requirement": each.requirement,
            }
            for each in found
        ]
        documents.append({"file": str(path), "findings": rows})
        if not arguments.json:
            for each in found:
                print(f"{name}:{each}")
            print(f"{name}: {_count(wrong, 'error')}, {_count(len(found) - wrong, 'warning')}")
    if arguments.json:
        print(json.dumps(documents))
    return code
