# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for running BeeGFS's tools: answers from tests/fixtures/beegfs, by what is asked."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs_cli import Cli, Result, servers

from tests.unit.conftest import ROOT

FIXTURES = ROOT / "tests/fixtures/beegfs"
HEALTHY_7 = {
    "listtargets_meta": "ctl_7.4.7/listtargets_meta_state_healthy",
    "listtargets_storage": "ctl_7.4.7_edited/listtargets_storage_healthy",
    "listnodes_meta": "ctl_7.4.7_edited/listnodes_meta_reachable",
    "listnodes_storage": "ctl_7.4.7/listnodes_storage_reachable",
    "listmirrorgroups_meta": "ctl_7.4.7/listmirrorgroups_storage_none",
    "listmirrorgroups_storage": "ctl_7.4.7/listmirrorgroups_storage_none",
    "getquota": "ctl_7.4.7_edited/getquota_csv_admin",
    "getentryinfo": "ctl_7.4.7/getentryinfo_root_verbose",
}
HEALTHY_8 = {
    "target_list": "cli_8_documented/target_list_healthy",
    "node_list": "cli_8_documented/node_list_healthy",
    "mirror_list": "cli_8_documented/mirror_list_none",
    "quota_list-usage": "cli_8_documented/quota_list_usage_healthy",
    "entry_info": "cli_8_documented/entry_info_healthy",
}


def answer(name: str) -> Result:
    """The recorded answer NAME.rcN[.stderr].txt."""
    path = Path(FIXTURES / name)
    (found,) = path.parent.glob(f"{path.name}.rc*.txt")
    rc = int(re.search(r"\.rc(\d)", found.name)[1])
    text = found.read_text()
    return Result(rc, "", text) if ".stderr." in found.name else Result(rc, text)


def key(argv: list[str]) -> str:
    """What is asked, as the answers above are named."""
    words = argv[2:] if argv[0] == "sudo" else argv
    if words[0] == "beegfs":
        return "_".join(words[1:3])
    kind = next((word.partition("=")[2] for word in words if word.startswith("--nodetype=")), "")
    return "_".join(part for part in (words[1].lstrip("-"), kind) if part)


def runner(tool: str, changed: dict[str, str | Result] | None = None, asked: list[list[str]] | None = None):
    """A runner whose answers are healthy but for `changed`; `any` stands for all."""
    answers = {**(HEALTHY_8 if tool == "beegfs" else HEALTHY_7), **(changed or {})}

    def run(argv: list[str], *_seconds: float, **_options: object) -> Result:
        if asked is not None:
            asked.append(argv)
        found = answers.get("any") or answers[key(argv)]
        return found if isinstance(found, Result) else answer(found)

    return run


def told(tool: str, changed: dict[str, str | Result] | None = None):
    """The servers' part of the facts that such answers make."""
    return servers(Cli(tool, runner(tool, changed)), "1000")
