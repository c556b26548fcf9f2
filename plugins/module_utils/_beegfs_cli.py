# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running BeeGFS's command-line tools and putting together what they say of the servers. PRIVATE to the collection.

An exit code of 0 is not believed: what counts is what was listed. beegfs-df and beegfs-check-servers answer 0 while the
management daemon is dead, so the tools below them are called.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _beegfs_ctl, _beegfs_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import TYPES, Parsed, Row, entry, short

TOOLS = ("beegfs", "beegfs-ctl")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/beegfs/sbin"
OUTPUT_BYTES = 16 * 1024 * 1024
# beegfs-ctl tells by these, with --errorcodes, what its rows tell too: unreachable node, target not online, not good.
TOLD_BY_ROWS = (5, 6, 7)
NO_ANSWER = "did not answer"
NDJSON = ["--columns", "all", "--output", "ndjson"]


@dataclass(frozen=True)
class Result:
    """What a command gave back; rc is None where it did not start or did not end in time."""

    rc: int | None
    out: str = ""
    err: str = ""


Runner = Callable[[list[str]], Result]


def run(
    argv: list[str], seconds: float, *, stdin: bytes | None = None, environment: Mapping[str, str] | None = None
) -> Result:
    """Run one command in a clean environment for at most so many seconds; one that cannot be killed is left behind."""
    path = search_path()
    program = shutil.which(argv[0], path=path)
    if program is None:
        return Result(None, "", f"{argv[0]} was not found on {os.uname().nodename}")
    try:
        process = subprocess.Popen(
            [program, *argv[1:]],
            env={"PATH": path, "LC_ALL": "C", "HOME": os.environ.get("HOME", "/"), **(environment or {})},
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
        )
    except OSError as error:
        return Result(None, "", f"{argv[0]} could not be started: {error}")
    try:
        out, err = process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        _end(process)
        return Result(None, "", f"{argv[0]} {NO_ANSWER} in {seconds:g} s")
    except BaseException:
        _end(process)
        raise
    return Result(
        process.returncode, out[:OUTPUT_BYTES].decode("utf-8", "replace"), err[:OUTPUT_BYTES].decode("utf-8", "replace")
    )


def search_path() -> str:
    """Return where programs are looked for: a login's PATH may lack the folders of administrators' tools."""
    return os.environ.get("PATH", "") + ":" + PATH


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, so that it can put its things away, then kill it; wait for neither for long."""
    for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 1)):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired, ValueError):
            process.communicate(timeout=patience)
            return


def installed(cli: str) -> str | None:
    """Return the tool to use: `cli`, or with auto the newer one that is there."""
    wanted = TOOLS if cli == "auto" else (cli,)
    return next((name for name in wanted if shutil.which(name, path=search_path())), None)


@dataclass
class Cli:
    """One tool and how it is called: the client's configuration (7.x) and the words before it (sudo -n)."""

    tool: str
    runner: Runner
    config_file: str | None = None
    sudo: bool = False
    silent: bool = False  # once it did not answer, it is asked no more

    def call(self, *words: str) -> Result:
        """Run the tool with these words."""
        if self.silent:
            return Result(None, "", f"not asked: {self.tool} {NO_ANSWER} before")
        config = [f"--cfgFile={self.config_file}"] if self.tool == "beegfs-ctl" and self.config_file else []
        result = self.runner([*(["sudo", "-n"] if self.sudo else []), self.tool, *words, *config])
        self.silent = result.rc is None and NO_ANSWER in result.err
        return result

    def ask(
        self, parse: Callable[[str], Parsed], words: list[str], problems: list[Row], *, warnings: bool = False
    ) -> list[Row] | None:
        """Return the rows told, or None where nothing was; every problem is kept with its command.

        With `warnings`, lines that are such are parsed too, though they stand on the error stream.
        """
        result = self.call(*words)
        source = " ".join([self.tool, *words])
        if result.rc is None:
            problems.append({"source": source, "problem": short(result.err)})
            return None
        told = [line for line in result.err.splitlines() if line.startswith("WARNING:")] if warnings else []
        parsed = parse("\n".join([result.out, *told]) if told else result.out)
        if result.rc not in (0, *TOLD_BY_ROWS) or (result.rc != 0 and self.tool == "beegfs"):
            parsed.problems.insert(0, f"exit code {result.rc}: {_said(result)}")
        problems += [{"source": source, "problem": problem} for problem in parsed.problems]
        return parsed.rows if parsed.rows or not parsed.problems else None


def _said(result: Result) -> str:
    """Return the last words of the error stream that are no banner."""
    lines = [line for line in (result.err + "\n" + result.out).splitlines() if line.strip(" -|")]
    return short(lines[-1]) if lines else "without a message"


def servers(cli: Cli, user: str | None) -> dict[str, Any]:
    """Return what the tool says of targets, nodes, mirror groups and the user's quota; None where it does not say."""
    problems: list[Row] = []
    doubts: list[Row] = []  # about quota: no reason to doubt the servers
    if cli.tool == "beegfs":
        told = {
            "targets": cli.ask(
                _beegfs_json.targets, ["target", "list", "--state", "--capacity", "--raw", *NDJSON], problems
            ),
            "nodes": cli.ask(_beegfs_json.nodes, ["node", "list", "--reachability-check", *NDJSON], problems),
            "mirrors": _mirrors(cli, problems),
            "quota": _quota(cli, user, doubts),
        }
    else:
        state = ["--state", "--longnodes", "--pools", "--spaceinfo"]
        told = {
            "targets": _both(
                cli,
                lambda kind: ["--listtargets", f"--nodetype={kind}", *state],
                _beegfs_ctl.listing,
                problems,
            ),
            "nodes": _both(
                cli,
                lambda kind: ["--listnodes", f"--nodetype={kind}", "--reachable", "--errorcodes"],
                _beegfs_ctl.nodes,
                problems,
            ),
            "mirrors": _both(
                cli, lambda kind: ["--listmirrorgroups", f"--nodetype={kind}"], _beegfs_ctl.mirrors, problems
            ),
            "quota": cli.ask(_beegfs_ctl.quota, ["--getquota", "--uid", user or str(os.geteuid()), "--csv"], doubts),
        }
    return {"tool": cli.tool, **told, "problems": problems, "quota_problems": doubts}


def _both(
    cli: Cli, words: Callable[[str], list[str]], parse: Callable[[str, str], Parsed], problems: list[Row]
) -> list[Row] | None:
    rows: list[Row] = []
    known = False
    for kind in TYPES:
        found = cli.ask(partial(parse, kind), words(kind), problems)
        known = known or found is not None
        rows += found or []
    return rows if known else None


def _mirrors(cli: Cli, problems: list[Row]) -> list[Row] | None:
    """Ask beegfs 8.x, which tells that there are none by an error."""
    found: list[Row] = []
    rows = cli.ask(_beegfs_json.mirrors, ["mirror", "list", *NDJSON], found)
    if rows is None and any(_beegfs_json.NO_MIRRORS in problem["problem"] for problem in found):
        return []
    problems += found
    return rows


def _quota(cli: Cli, user: str | None, doubts: list[Row]) -> list[Row] | None:
    """Ask beegfs 8.x, which takes numbers alone, and from who is not root only `current`; by sudo that is root."""
    words = ["quota", "list-usage", "--raw", *NDJSON, "--uids"]
    try:
        number = os.geteuid() if user is None else int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid
    except KeyError:
        doubts.append({"source": " ".join(words), "problem": f"{os.uname().nodename} knows no user {user}"})
        return None
    who = "current" if number == os.geteuid() and not cli.sudo else str(number)
    return cli.ask(_beegfs_json.quota, [*words, who], doubts, warnings=True)


def striping(cli: Cli, path: str) -> Row:
    """Return the striping of what is made in a folder, as the tool says it."""
    if cli.tool == "beegfs":
        result = cli.call("entry", "info", path, "--raw", *NDJSON)
        parse = _beegfs_json.striping
    else:
        result = cli.call("--getentryinfo", path)
        parse = _beegfs_ctl.striping
    if result.rc != 0:
        return entry(
            source=cli.tool, error=result.err if result.rc is None else f"exit code {result.rc}: {_said(result)}"
        )
    return {**parse(result.out), "source": cli.tool}
