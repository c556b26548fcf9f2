# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan a training as a chain of jobs: a workload's job without its acceptance. PRIVATE to the collection."""

from __future__ import annotations

import json
import re
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.chain import NOT_KNOWN
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import plan
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads.plan import WorkloadPlanError

Json = dict[str, t.Any]
LEGS = ["measured", "export:1"]
PROFILES = Path("config/profiles")  # below the workload's folder
PROFILE = "full"  # of these, unless the option or the inventory names another
DEFAULTS: Json = {"name": "full", "links": 8, "time": None, "profile": None}
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}", re.ASCII)
SETTING = "hpc_validation_chain"


def read(given: t.Any) -> Json:
    """Return the inventory's settings of the chain with their defaults. Raise WorkloadPlanError."""
    if not isinstance(given, dict):
        raise WorkloadPlanError(f"{SETTING}: expected keys and values, found {type(given).__name__}")
    unknown = sorted(set(given) - set(DEFAULTS))
    if unknown:
        raise WorkloadPlanError(f"{SETTING}: unknown key {', '.join(unknown)}; expected {', '.join(DEFAULTS)}")
    found = {**DEFAULTS, **{key: value for key, value in given.items() if value is not None}}
    if not isinstance(found["name"], str) or not NAME.fullmatch(found["name"]):
        raise WorkloadPlanError(
            f"{SETTING}.name: expected up to 40 lower-case letters, digits and hyphens, found {found['name']!r}"
        )
    links = found["links"]
    if not isinstance(links, int) or isinstance(links, bool) or not 1 <= links <= 1000:
        raise WorkloadPlanError(f"{SETTING}.links: expected 1 to 1000 jobs, found {links!r}")
    if found["time"] is not None and not isinstance(found["time"], str):
        raise WorkloadPlanError(
            f'{SETTING}.time is the number {found["time"]!r}. Write it in quotes, such as "1-00:00:00": YAML reads an '
            "unquoted 10:00 as 600"
        )
    if found["profile"] is not None and not (isinstance(found["profile"], str) and NAME.fullmatch(_dashed(found))):
        raise WorkloadPlanError(f"{SETTING}.profile: expected the name of a profile, found {found['profile']!r}")
    return found


def _dashed(found: Json) -> str:
    return str(found["profile"]).replace("_", "-")


def folder(share: str, workload: Json, name: str) -> str:
    """Return the chain's folder on the share, beside the output folders of its jobs."""
    return f"{share}/{Path(workload['output']['directory']).parent}/chain-{name}"


def plan_chain(workload: Json, settings: Json, before: Json, given: t.Any, kit: Path = FILES / "kit") -> Json:
    """Return {workload, plan, chain, what}: a link's manifest and plan, the chain's settings, what makes it this one.

    `workload`, `settings` and `before` are as for `plan.plan`. The code and the settings of a chain have a folder of
    their own: a later validation deploys its own beside them. Raise WorkloadPlanError, also for what is missing.
    """
    chain = read(given)
    profile = chain["profile"] or plan.profile_of(workload["command"]) or PROFILE
    _require_profile(workload, profile)
    manifest = {**workload, "legs": LEGS, "command": _with_profile(workload["command"], profile)}
    place = folder(settings["share"], workload, chain["name"])
    own = dict(settings["workload_slurm"].get(workload["id"]) or {})
    # Each link asks for its time on the command line; there is no deadline for what takes weeks.
    slurm = {**settings["workload_slurm"], workload["id"]: {**own, "time": None, "deadline": None}}
    planned = plan.plan(manifest, {**settings, "workload_slurm": slurm}, before, kit)
    if planned["unmet"]:
        raise WorkloadPlanError(f"{workload['id']} needs what is not there: {', '.join(planned['unmet'])}")
    name, label = workload["name"], f"chain-{chain['name']}"
    home = f"{place}/workload"
    return {
        "workload": manifest,
        "plan": {
            **planned,
            "chain": place,
            "label": label,
            "home": home,
            "check": [*(planned["check"] or []), "--chain"],
            "script": f"{home}/{name}.sbatch",
            "configs": f"{place}/configs",
            "logs": f"{settings['share']}/{workload['output']['logs']}/{label}-%j",
        },
        "chain": {**chain, "profile": profile, "folder": place},
        "what": _what(manifest, planned, profile, before["digests"]),
    }


def _require_profile(workload: Json, profile: str) -> None:
    """Raise WorkloadPlanError if there is no such profile: each link would find that out by itself."""
    known = sorted(path.stem for path in (Path(workload["folder"]) / PROFILES).glob("*.yaml"))
    if profile not in known:
        raise WorkloadPlanError(f"{SETTING}.profile: there is no {profile!r}; available: {', '.join(known)}")


def _what(manifest: Json, planned: Json, profile: str, digests: Json) -> dict[str, str]:
    """Return what makes a training this one, in words. The ranks may change: the batch stays."""
    return {
        "workload": manifest["id"],
        "profile": profile,
        "settings": json.dumps(planned["settings"], sort_keys=True, default=str),
        "resumed from": planned["resume"] or "nothing",
        **{f"data {name}": str(digests.get(name, NOT_KNOWN)) for name in manifest["data"]},
    }


def _with_profile(command: list[str], profile: str) -> list[str]:
    if plan.profile_of(command) is None:
        return [*command, "--profile", profile]
    at = command.index("--profile") + 1
    return [*command[:at], profile, *command[at + 1 :]]
