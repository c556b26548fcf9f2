# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of beegfs_check on the host: first the mount, then the kit's checks, then the servers. PRIVATE."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import cli as beegfs_cli
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import config as beegfs_config
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import run as beegfs_run
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import servers as beegfs_servers
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul, strict_json

Facts = dict[str, Any]
Run = Callable[..., beegfs_run.Result]
# The servers are always queried if there is a way to; alone, nothing else is checked.
SERVERS = "servers"
SECTIONS = ("mount", "use", "speed", SERVERS)
# Handled entirely on the controller; these are not sent to the module.
CONTROLLER_ONLY = ("expect", "node", "fail")
ACCESS = ("user", "sudo", "none")


def argument_spec() -> dict[str, Any]:
    """Return the argument specification."""
    return {
        "path": {"type": "str"},
        "share_type": {"type": "str", "default": "beegfs", "choices": ["beegfs", "simulated", "other"]},
        "kit": {"type": "str"},
        "python": {"type": "str", "default": "python3"},
        "checks": {"type": "list", "elements": "str", "default": list(SECTIONS), "choices": list(SECTIONS)},
        "folder": {"type": "str", "default": "jobs"},
        "directories": {"type": "list", "elements": "str", "default": []},
        "size": {"type": "int", "default": 32},
        "reserve": {"type": "float", "default": 1.0},
        "deadline": {"type": "float", "default": 30.0},
        "tool": {"type": "str", "default": "auto", "choices": ["auto", "fio", "own"]},
        "access": {"type": "str", "default": "user", "choices": list(ACCESS)},
        "cli": {"type": "str", "default": "auto", "choices": ["auto", "beegfs", "beegfs-ctl"]},
        "config_file": {"type": "str"},
        "user": {"type": "str"},
        "expect": {"type": "dict", "default": {}},
        "node": {"type": "str"},
        "fail": {"type": "bool", "default": True},
    }


def problems(options: Facts) -> list[str]:
    """Return a message for every invalid option."""
    found = [
        f"{name}: expected an absolute path, found {options[name]!r}"
        for name in ("path", "kit", "config_file")
        if options.get(name) is not None and not str(options[name]).startswith("/")
    ]
    if options["path"] is None and not servers_alone(options["checks"]):
        found.append("path: expected the share's mount point, unless checks is [servers]")
    if servers_alone(options["checks"]) and options["access"] == "none":
        found.append("checks is [servers] and access is none: nothing would be checked")
    for name in [options["folder"], *options["directories"]]:
        if name.startswith("/") or ".." in name.split("/") or "," in name or not name:
            found.append(f"{name!r}: expected a folder below {options['path']}, without a comma")
    if not 1 <= options["size"] <= 1 << 20:
        found.append(f"size: expected 1 to {1 << 20} MiB, found {options['size']}")
    if not 0 < options["deadline"] <= 600 or options["reserve"] < 0:
        found.append("expected deadline above 0 and at most 600 seconds, and reserve of 0 or more")
    if not options["checks"]:
        found.append(f"checks: expected some of {', '.join(SECTIONS)}")
    user = options.get("user")
    if user is not None and not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", user):
        found.append(f"user: expected a user's name or number, found {user!r}")
    return found + no_nul.problems(options)


def servers_alone(checks: list[str]) -> bool:
    """Return whether only the servers are to be checked."""
    return set(checks) == {SERVERS}


def collect(options: Facts, mounts: bytes, run: Run) -> Facts:
    """Return the share facts with `servers`. `mounts` is the source of the kit's mounts.py, run before the share."""
    if servers_alone(options["checks"]):
        return _servers(options, {}, options["config_file"], run)
    facts = _kit(options, [options["python"], "-", "facts", *_where(options)], run, stdin=mounts)
    if "error" not in facts:
        facts = _look(options, facts, run)
    mount = facts.get("mount")
    config = options["config_file"] or (mount.get("config_file") if isinstance(mount, dict) else None)
    return {**facts, **_servers(options, facts, config, run)}


def _where(options: Facts) -> list[str]:
    return ["--path", options["path"], "--type", options["share_type"], "--deadline", str(options["deadline"])]


def _directories(options: Facts) -> list[str]:
    """Return the folders whose striping is asked for: by default the one used for the checks, if the share is used."""
    return options["directories"] or ([options["folder"]] if "use" in options["checks"] else [])


def _look(options: Facts, mount: Facts, run: Run) -> Facts:
    """Return the share facts; for an unsound mount, only that."""
    checks = [name for name in options["checks"] if name != SERVERS]
    problem = mount.get("problem")
    if set(checks) & {"use", "speed"} and problem is None:
        kit = options["kit"] or os.path.join(options["path"], "scripts")
        words = ["--checks", ",".join(checks), "--folder", options["folder"], "--size", str(options["size"])]
        words += ["--reserve", str(options["reserve"]), "--tool", options["tool"]]
        words += ["--directories", ",".join(_directories(options))]
        argv = [options["python"], "-m", "kit", "share", *_where(options), *words]
        facts = _kit(options, argv, run, PYTHONPATH=kit, PYTHONDONTWRITEBYTECODE="1")
        if "error" not in facts:
            return facts
        problem = facts["error"]
    folder: Facts = {"path": options["path"], "made": False, "removed": None, "leftovers": [], "error": None}
    return {
        "schema": 1,
        "node": os.uname().nodename,
        "time": time.time(),
        "path": options["path"],
        "type": options["share_type"],
        "checks": checks,
        "mount": mount,
        "use": {"folder": folder, "checks": {}, "error": problem} if "use" in checks else None,
        "speed": {"folder": folder, "error": problem} if "speed" in checks else None,
        "striping": None,
        "seconds": 0.0,
    }


def _kit(
    options: Facts,
    argv: list[str],
    run: Run,
    stdin: bytes | None = None,
    **environment: str,
) -> Facts:
    """Run the kit and return its document, or {"error": why}."""
    # Each check has its own time limit; after the first that exceeds it, no other begins.
    result = run(argv, 4 * options["deadline"] + 60, stdin=stdin, environment=environment)
    try:
        document = strict_json.parse(result.out) if result.rc == 0 else None
    except ValueError:
        document = None
    if isinstance(document, dict):
        return document
    said = " ".join((result.failure or result.err or result.out).split())[-500:]
    command = " ".join(argv[:4])
    return {"error": f"{command} gave no facts: {said or f'exit code {result.rc}'}"}


def _servers(options: Facts, facts: Facts, config: str | None, run: Run) -> Facts:
    """Return the servers' part, and the striping that the tool had to report."""
    if options["share_type"] == "other" or options["access"] == "none":
        return {"servers": None}
    tool = beegfs_cli.installed(options["cli"])
    if tool is None:
        wanted = "beegfs or beegfs-ctl" if options["cli"] == "auto" else options["cli"]
        missing = {"source": "PATH", "problem": f"{wanted} was not found on {os.uname().nodename}", "cause": "tool"}
        return {"servers": {"tool": None, "problems": [missing]}}
    cli = beegfs_cli.Cli(tool, run, options["deadline"], config, sudo=options["access"] == "sudo")
    servers = beegfs_servers.servers(cli, options["user"])
    told: Facts = {"servers": {**servers, "quota_enforcement": beegfs_config.quota_enforcement(config)}}
    if servers_alone(options["checks"]):
        return told
    striping = facts.get("striping") or {}
    unknown = [name for name in _directories(options) if (striping.get(name) or {}).get("error", "not asked")]
    if unknown and (facts.get("mount") or {}).get("problem") is None:
        by_tool = {name: beegfs_servers.striping(cli, os.path.join(options["path"], name)) for name in unknown}
        told["striping"] = {**striping, **by_tool}
    return told
