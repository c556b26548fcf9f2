# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cluster reports about itself: version, controllers, partitions, nodes. Silence is a problem, never a value."""

from __future__ import annotations

import re
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import Result, Runner, error_text
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.nodes import (
    NODE_ARGV,
    PARTITION_ARGV,
    parse_nodes,
    parse_partitions,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import clean

VERSION_ARGV = ["sinfo", "--version"]
PING_ARGV = ["scontrol", "ping"]
CONFIG_ARGV = ["scontrol", "show", "config"]
# A query that costs slurmdbd next to nothing.
ACCOUNTING_ARGV = ["sacct", "--noheader", "--parsable2", "--allocations", "--starttime=now", "--format=JobIDRaw"]
_ACCOUNTING_SECONDS = 10.0

Cluster = dict[str, Any]


def cluster_info(run: Runner, user: str) -> Cluster:
    """Return the cluster's description with a list of problems: {source, problem}."""
    problems: list[dict[str, str]] = []

    def text(argv: list[str]) -> str:
        result: Result = run(argv)
        if result.rc != 0:
            problems.append({"source": " ".join(argv), "problem": error_text(result)})
            return ""
        return result.text

    version = parse_version(text(VERSION_ARGV))
    controllers = _controllers(run, problems)
    config = parse_config(text(CONFIG_ARGV))
    nodes = parse_nodes(text(NODE_ARGV))
    partitions = parse_partitions(text(PARTITION_ARGV))
    for name, found in (("nodes", nodes), ("partitions", partitions)):
        if not found and not any(name[:4] in problem["source"] for problem in problems):
            problems.append({"source": f"scontrol show {name[:-1]}", "problem": f"no {name} were reported"})
    return {
        "version": version,
        "cluster_name": config.get("ClusterName"),
        "controllers": controllers,
        "accounting": _accounting(run, config, problems),
        "min_job_age_seconds": _leading_number(config.get("MinJobAge")),
        "partitions": partitions,
        "nodes": nodes,
        "user": user,
        "problems": problems,
    }


def parse_version(text: str) -> str | None:
    """Return 24.11.5 of 'slurm-wlm 24.11.5'; None if there is none."""
    match = re.search(r"\b(\d+\.\d+(?:\.\d+)?(?:[-.\w]*)?)\s*$", text.strip(), re.ASCII)
    return match[1] if match else None


def parse_ping(text: str) -> list[dict[str, Any]]:
    """Return controllers of 'Slurmctld(primary) at login is UP'."""
    found = re.findall(r"^Slurmctld\(([^)]*)\) at (\S+) is (\w+)", text, re.MULTILINE)
    return [{"host": clean(host), "role": clean(role), "up": state == "UP"} for role, host, state in found]


def _controllers(run: Runner, problems: list[dict[str, str]]) -> list[dict[str, Any]]:
    # It exits non-zero if a controller is down, but still reports which.
    result = run(PING_ARGV)
    controllers = parse_ping(result.text)
    if not controllers:
        problems.append({"source": " ".join(PING_ARGV), "problem": error_text(result)})
    problems.extend(
        {"source": " ".join(PING_ARGV), "problem": f"slurmctld on {each['host']} is down"}
        for each in controllers
        if not each["up"]
    )
    return controllers


def parse_config(text: str) -> dict[str, str]:
    """Return 'Key = value' lines of scontrol show config."""
    pairs = (line.partition("=") for line in text.split("\n") if "=" in line)
    return {key.strip(): value.strip() for key, _other, value in pairs}


def _accounting(run: Runner, config: dict[str, str], problems: list[dict[str, str]]) -> bool | None:
    """Return whether accounting answers: False if it is turned off, None if it is on but silent."""
    kind = config.get("AccountingStorageType")
    if kind in ("accounting_storage/none", "(null)", "none"):
        return False
    result = run(ACCOUNTING_ARGV, seconds=_ACCOUNTING_SECONDS)
    if result.rc == 0:
        return True
    if "accounting storage is disabled" in result.err:
        return False
    problems.append({"source": "sacct", "problem": error_text(result)})
    return None


def _leading_number(text: str | None) -> int | None:
    match = re.match(r"(\d+)\b", text or "", re.ASCII)
    return int(match[1]) if match else None
