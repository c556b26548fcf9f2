# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kit's command line: `python -m kit …`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from kit import host, installers, markers, provenance, reports, runtime, wheels
from kit.errors import KitError
from kit.files import write_json
from kit.gpu import probe, sampler
from kit.job import current_job
from kit.share import coherence
from kit.share import look as share


def _add_source_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--index-url", help="package index (default: UV_DEFAULT_INDEX, PIP_INDEX_URL, the public one)")
    parser.add_argument("--extra-index-url", action="append", default=[], help="a further index; may be repeated")
    parser.add_argument("--wheelhouse", type=Path, help="folder of wheels; no index is used")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kit", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    for name in ("begin", "end"):
        command = commands.add_parser(name, help=f"write the job's {name} marker")
        command.add_argument("--markers", default=os.environ.get("HPC_VALIDATION_MARKERS"), help="folder of markers")
        if name == "end":
            command.add_argument("--exit-code", type=int, required=True)

    command = commands.add_parser("runtime", help="install a locked environment on the share")
    command.add_argument("--name", required=True)
    command.add_argument("--lock", type=Path, required=True, help="requirements file with hashes")
    command.add_argument("--root", type=Path, required=True, help="folder of environments")
    command.add_argument("--python", default=sys.executable)
    command.add_argument("--uv", help="uv to use (default: the one on PATH, else the pinned one is fetched)")
    command.add_argument("--installer", choices=("auto", "uv", "pip"), default="auto")
    command.add_argument(
        "--cache", type=Path, help="uv's cache (default: ROOT/.cache/uv, so that files are hard-linked)"
    )
    command.add_argument("--check", action="store_true", help="say what would be done, do nothing")
    _add_source_options(command)

    command = commands.add_parser("wheels", help="fetch a wheel that the kit needs, by its pinned hash")
    command.add_argument("--fetch", required=True, metavar="NAME[==VERSION]")
    command.add_argument("--output", type=Path, required=True, help="folder to put it in")
    command.add_argument("--check", action="store_true", help="say what would be done, do nothing")
    _add_source_options(command)

    command = commands.add_parser("sample", help="sample this job's GPUs on this node until told to stop")
    command.add_argument("--output", type=Path, required=True, help="JSON Lines file")
    command.add_argument("--interval", type=float, default=1.0, help="seconds between samples (default 1)")
    command.add_argument("--parent", type=int, help="process id whose end ends the sampling (default: the parent)")

    command = commands.add_parser("host", help="tell what this host has beside GPUs and the share")
    command.add_argument("--output", type=Path, help="JSON file (default: standard output)")
    command.add_argument("--image", help="container image to look for the GPUs in")
    command.add_argument("--reach", action="append", default=[], metavar="URL", help="try this URL; may be repeated")
    command.add_argument("--index", action="store_true", help="try the package index of the environment")

    command = commands.add_parser("devices", help="tell which GPUs this process may use")
    command.add_argument("--output", type=Path, required=True)

    command = commands.add_parser("reports", help="gather what the jobs of a preflight wrote")
    command.add_argument("--folder", type=Path, required=True, help="holds one folder a job")
    command.add_argument("--markers", type=Path, required=True, help="folder of markers")
    command.add_argument("--remove", action="store_true", help="remove all of it when it has been read")
    command.add_argument("jobs", nargs="*", metavar="JOB")

    probe.add_arguments(commands.add_parser("probe", help="tell what the GPUs are and how they are: facts as JSON"))

    command = commands.add_parser("provenance", help="write what the job runs on")
    command.add_argument("--output", type=Path, required=True)
    command.add_argument("--python", help="the runtime's interpreter")
    command.add_argument("--data", type=Path, help="folder of the dataset")

    share.add_arguments(commands.add_parser("share", help="look at the share from this node: facts as JSON"))
    coherence.add_arguments(commands.add_parser("coherence", help="do two nodes see the same share? under srun"))
    return parser


def _markers_folder(arguments: argparse.Namespace) -> str:
    if not arguments.markers:
        raise KitError("no folder for markers: give --markers or set HPC_VALIDATION_MARKERS")
    return str(arguments.markers)


def _begin(arguments: argparse.Namespace) -> None:
    markers.begin(_markers_folder(arguments), current_job())


def _end(arguments: argparse.Namespace) -> None:
    markers.end(_markers_folder(arguments), current_job(), arguments.exit_code)


def _runtime(arguments: argparse.Namespace) -> dict[str, Any]:
    named = arguments.index_url or arguments.extra_index_url
    indexes = wheels.index_urls(arguments.index_url, arguments.extra_index_url) if named else []
    return runtime.install(
        name=arguments.name,
        lock_path=arguments.lock,
        root=arguments.root,
        python=arguments.python,
        source=installers.Source(tuple(indexes), arguments.wheelhouse),
        tools=installers.Tools(arguments.installer, arguments.uv, arguments.cache),
        check=arguments.check,
    )


def _wheels(arguments: argparse.Namespace) -> dict[str, Any]:
    project, _, version = arguments.fetch.partition("==")
    named = not arguments.wheelhouse and not arguments.check
    indexes = wheels.index_urls(arguments.index_url, arguments.extra_index_url) if named else []
    path, changed = wheels.fetch(
        project,
        arguments.output,
        version or None,
        indexes=indexes,
        wheelhouse=arguments.wheelhouse,
        check=arguments.check,
    )
    return {"path": str(path), "changed": changed}


def _sample(arguments: argparse.Namespace) -> None:
    if not 0.05 <= arguments.interval <= 3600:
        raise KitError(f"--interval {arguments.interval}: expected 0.05 to 3600 seconds")
    sampler.run(arguments.output, arguments.interval, current_job(), arguments.parent)


def _host(arguments: argparse.Namespace) -> dict[str, Any] | None:
    found = host.facts(current_job(), image=arguments.image, reach=arguments.reach, index=arguments.index)
    if arguments.output is None:
        return found
    write_json(arguments.output, found)
    return None


def _devices(arguments: argparse.Namespace) -> None:
    write_json(arguments.output, {**current_job().stamp, **host.devices()})


def _reports(arguments: argparse.Namespace) -> dict[str, Any]:
    gathered = reports.gather(arguments.folder, arguments.markers, arguments.jobs)
    if arguments.remove:
        reports.remove(arguments.folder, arguments.markers, arguments.jobs)
    return gathered


def _provenance(arguments: argparse.Namespace) -> None:
    write_json(arguments.output, provenance.collect(current_job(), arguments.python, arguments.data))


def _share(arguments: argparse.Namespace) -> dict[str, Any]:
    return share.run(arguments)


def _coherence(arguments: argparse.Namespace) -> dict[str, Any] | None:
    return coherence.run(arguments, dict(os.environ))


COMMANDS = {
    "begin": _begin,
    "end": _end,
    "runtime": _runtime,
    "wheels": _wheels,
    "sample": _sample,
    "host": _host,
    "devices": _devices,
    "reports": _reports,
    "probe": probe.run,
    "provenance": _provenance,
    "share": _share,
    "coherence": _coherence,
}


def _terminated(number: int, _frame: FrameType | None) -> NoReturn:
    # As an exception, so that children are killed and half-made folders removed on the way out.
    raise SystemExit(128 + number)


def main() -> int:
    """Run the command line; 0 done, 1 a problem told on stderr, 2 wrong usage."""
    arguments = _parser().parse_args()
    signal.signal(signal.SIGTERM, _terminated)
    try:
        result = COMMANDS[arguments.command](arguments)
    except (KitError, OSError) as error:
        print(f"kit {arguments.command}: {error}", file=sys.stderr)
        return 1
    if result is not None:
        print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
