# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the facts of a host (`python -m kit host`): of the login node, or of a compute node from its job."""

from __future__ import annotations

import typing as t
from functools import partial

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import checks

Json = dict[str, t.Any]
LEAST_PYTHON = "3.9"
COMMANDS = ("sbatch", "squeue", "scontrol", "sinfo", "scancel", "sacct", "srun")
LEAST_APPTAINER = "1.1"
judged = partial(checks.judged, source="kit host")
version_at_least = partial(checks.version_at_least, source="kit host")


def _mapping(value: t.Any) -> Json:
    return value if isinstance(value, dict) else {}


def login_findings(facts: t.Any, host: str, *, no_downloads: str | None, apptainer: Json) -> list[Json]:
    """Return the login node's findings; `apptainer` is {required, image}, `no_downloads` why none are needed."""
    facts, where = _mapping(facts), {"host": host}
    found = [_commands(facts, where), _munge(facts, where), _python("login.python", facts, where)]
    return [*found, *_internet(facts, where, no_downloads), *_apptainer({**apptainer, "image": None}, facts, where)]


def node_findings(facts: t.Any, node: str, *, apptainer: Json, gpus: int) -> list[Json]:
    """Return a compute node's findings; `gpus` is how many the job was given."""
    facts, where = _mapping(facts), {"node": node}
    return [_python("node.python", facts, where), *_apptainer(apptainer, facts, where, gpus)]


def _commands(facts: Json, where: Json) -> Json:
    commands = _mapping(facts.get("commands"))
    missing = [name for name in COMMANDS if not isinstance(commands.get(name), str)]
    return judged(
        "login.commands",
        "eq",
        0,
        len(missing) if commands else None,
        unit="missing",
        where=where,
        missing="the commands were not reported",
        detail=", ".join(missing) or None,
    )


def _munge(facts: Json, where: Json) -> Json:
    told = _mapping(facts.get("munge"))
    return judged(
        "login.munge",
        "eq",
        True,
        told.get("ok") if isinstance(told.get("ok"), bool) else None,
        where=where,
        missing="the test of munge was not reported",
        detail=told.get("error"),
    )


def _python(identity: str, facts: Json, where: Json) -> Json:
    missing = "the version of Python was not reported"
    return version_at_least(identity, LEAST_PYTHON, facts.get("python"), where=where, missing=missing)


def old_python(node: str) -> Json:
    """Return the finding for a job that could not start the guard."""
    why = f"hpc_validation_python is older than {LEAST_PYTHON} on the node, or does not exist"
    return {
        **_python("node.python", {}, {"node": node}),
        "verdict": "fail",
        "value": f"older than {LEAST_PYTHON}, or missing",
        "why": why,
    }


def _internet(facts: Json, where: Json, no_downloads: str | None) -> list[Json]:
    if no_downloads:
        return [checks.not_applicable("runtime.internet", no_downloads, source="kit host", where=where)]
    reach = facts.get("reach")
    if not isinstance(reach, list) or not reach:
        return [judged("runtime.internet", "eq", True, None, where=where, missing="no connection test was reported")]
    return [
        judged(
            "runtime.internet",
            "eq",
            True,
            told.get("ok") if isinstance(told.get("ok"), bool) else None,
            where={**where, "target": str(told.get("host"))},
            missing="the connection test was not reported",
            detail=told.get("error"),
        )
        for told in map(_mapping, reach)
    ]


def _apptainer(setting: Json, facts: Json, where: Json, gpus: int = 0) -> list[Json]:
    told = _mapping(facts.get("apptainer"))
    found = [
        version_at_least(
            "runtime.apptainer",
            LEAST_APPTAINER,
            told.get("version"),
            where=where,
            missing=str(told.get("error") or "the version of Apptainer was not reported"),
            record=not setting.get("required"),
        )
    ]
    if not setting.get("image"):
        return found
    image = _mapping(told.get("image"))
    devices, libraries = image.get("devices"), image.get("libraries")
    failed = image.get("error") or told.get("error")
    return [
        *found,
        judged(
            "runtime.container_gpus",
            "eq",
            gpus,
            len(devices) if isinstance(devices, list) and not failed else None,
            unit="GPUs",
            where={**where, "path": str(setting["image"])},
            missing=str(failed or "the test of the container was not reported"),
        ),
        judged(
            "runtime.container_libraries",
            "ge",
            1,
            len(libraries) if isinstance(libraries, list) and not failed else None,
            unit="libraries",
            where={**where, "path": str(setting["image"])},
            missing=str(failed or "the test of the container was not reported"),
        ),
    ]
