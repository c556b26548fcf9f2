# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the job of a workload: its Slurm options, what it runs, and where it writes. PRIVATE to the collection."""

from __future__ import annotations

import hashlib
import json
import re
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import tree
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import FILES

Json = dict[str, t.Any]
# Slurm drops a job that nobody waits for any more. The two hours are for the jobs of its wave that may run before it.
BACKSTOP_SECONDS = 7200
OWN_KEYS = ("gres_type", "extra")  # of hpc_validation_slurm: not options of sbatch
MARKERS = {"begin_marker": "%j.begin.json", "progress_marker": "%j.progress.json", "end_marker": "%j.end.json"}
CHECK = "check_settings.py"  # in a workload's folder: refuses on the controller what the job would refuse
SETTINGS_FILE = "site.json"  # what the inventory says of the training itself
WORKLOAD = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)+(\.[0-9]+)*")  # an ID: below it stand a workload's own settings
LEGS_THAT_GO_ON = ("shape", "measured", "export")  # or do not train at all
LEGS = {"before": "baseline-before/metrics.json", "after": "baseline-after/metrics.json"}


class WorkloadPlanError(Exception):
    """A setting is invalid, or the runtime of the workload was not prepared."""


def plan(workload: Json, settings: Json, before: Json, kit: Path = FILES / "kit") -> Json:
    """Return the plan of a workload's job, or only {unmet: […]} if something that it needs is missing.

    `workload` is a manifest as `manifests.load_manifest` returns it, `settings` the public settings without their
    prefix, `before` what the run did before: {check_mode, selected, passed, planned, runtimes, missing_runtimes,
    digests, data}. In check mode nothing is judged, so nothing is missing. Raise WorkloadPlanError, and OSError or
    ValueError if a folder cannot be deployed.
    """
    key = before["planned"]["by_workload"][workload["id"]]
    unmet = [] if before["check_mode"] else _unmet(workload, key, before)
    if unmet:
        return {"unmet": unmet}
    if key not in before["runtimes"]:
        raise WorkloadPlanError(f"{workload['id']} runs in {key}, which the run has not prepared")
    share, name, output = settings["share"], workload["name"], workload["output"]
    runtime = before["runtimes"][key]
    staged = [*workload["data"], *workload["models"]]
    label = name.replace("_", "-")
    queue = _seconds(settings, "queue_timeout") or workload["limits"]["queue"]
    run = _seconds(settings, "run_timeout") or workload["limits"]["run"]
    baseline = settings["baselines"].get(workload["id"]) or None
    return {
        "unmet": [],
        "label": label,
        "home": f"{share}/scripts/{name}",
        "script": f"{share}/scripts/{name}/{name}.sbatch",
        "configs": f"{share}/configs/{name}",
        "output": f"{share}/{output['directory']}",
        "logs": f"{share}/{output['logs']}/{label}-%j",
        "runtime": runtime,
        "directives": directives(workload, settings, queue + run + BACKSTOP_SECONDS),
        # Each of several nodes runs its own sampler; files/kit/ranks/nodes.py merges their files.
        "several_nodes": "launcher" in workload and workload["resources"]["nodes"] > 1,
        # The workload on fewer ranks runs before and after (files/kit/ranks/legs.py), unless a baseline is given.
        "legs": LEGS if "baseline" in workload and not baseline else None,
        "runs": _runs(workload, settings),
        "baseline": baseline,
        "settings": _own_settings(workload, settings),
        "settings_file": SETTINGS_FILE,
        "check": _check(workload, _runs(workload, settings)),
        "resume": _resume(workload, settings),
        "files": files(workload),
        "context": _context(workload, settings, runtime),
        "payload": _payload(workload, [*staged, key], before["digests"], kit, _own_settings(workload, settings)),
        "data": {name: before["data"][name] for name in staged if name in before["data"]},
        "submit": {
            **{marker: f"{share}/jobs/.markers/{file}" for marker, file in MARKERS.items()},
            "queue_timeout": queue,
            "run_timeout": run,
        },
    }


def _unmet(workload: Json, key: str, before: Json) -> list[str]:
    """Return the workloads of the run that have not passed, and what could not be staged, for the report."""
    needs = [need for need in workload["needs"] if need in before["selected"] and need not in before["passed"]]
    missing = [name for name in (*workload["data"], *workload["models"]) if name not in before["digests"]]
    return needs + missing + ([key] if key in before["missing_runtimes"] else [])


def _own_settings(workload: Json, settings: Json) -> Json | None:
    """Return what the inventory says of this workload's training; None for a workload without such settings."""
    name = workload.get("settings")
    if name is None:
        return None
    given = settings[name]
    if not isinstance(given, dict):
        raise WorkloadPlanError(f"hpc_validation_{name}: expected keys and values, found {type(given).__name__}")
    common = {key: value for key, value in given.items() if not WORKLOAD.fullmatch(str(key))}
    return t.cast("Json", _changed(common, given.get(workload["id"]) or {}))


def _check(workload: Json, legs: list[str]) -> list[str] | None:
    """Return the arguments of Python that check the settings of this workload's training; None if nothing does.

    They are checked on the controller, for each number of ranks that a leg trains on.
    """
    folder = Path(workload["folder"])
    if workload.get("settings") == "profile":
        devices = ["--devices"] if workload.get("edge") else []
        check = ["-m", "kit", "profile", "check", "--json", "--changes", "-", *devices]
        return [*check, str(folder / workload["config"])]
    script = folder / CHECK
    if workload.get("settings") is None or not script.is_file():
        return None
    resources = workload["resources"]
    fewer = [leg.split(":")[1] for leg in legs if ":" in leg]
    counts = dict.fromkeys([str(resources["nodes"] * resources["ntasks_per_node"]), *filter(None, fewer)])
    ranks = [part for each in counts for part in ("--ranks", each)]
    profile = profile_of(workload["command"])
    return ["-B", str(script), *(["--profile", profile] if profile else []), *ranks]


def profile_of(command: list[str]) -> str | None:
    """Return the profile that a workload's or an option's command names."""
    return command[command.index("--profile") + 1] if "--profile" in command[:-1] else None


def _changed(base: t.Any, change: t.Any) -> t.Any:
    """Return a deep merge; a null in `change` stays, since it is a value of the training's settings."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    return {**base, **{key: _changed(base.get(key), value) for key, value in change.items()}}


def _resume(workload: Json, settings: Json) -> str | None:
    """Return what has the checkpoints that a job of this workload goes on from: a job's output folder, or a bucket."""
    given = settings["resume"].get(workload["id"])
    if given is None:
        return None
    if re.fullmatch(r"[1-9][0-9]*", str(given)):
        return f"{settings['share']}/{workload['output']['directory']}".replace("%j", str(given))
    if isinstance(given, str) and re.fullmatch(r"gs://[a-z0-9._-]+(/[A-Za-z0-9._/-]*)?", given):
        return given
    raise WorkloadPlanError(
        f"hpc_validation_resume.{workload['id']}: expected the number of a job, or gs://bucket/prefix, found {given!r}"
    )


def _runs(workload: Json, settings: Json) -> list[str]:
    """Return the manifest's legs, of a job that goes on from another's checkpoints only those that can.

    The others train from the first step, and have none in common with it that they could be compared over.
    """
    legs = workload.get("legs") or []
    if _resume(workload, settings) is None:
        return list(legs)
    return [leg for leg in legs if leg.partition(":")[0] in LEGS_THAT_GO_ON]


def _seconds(settings: Json, name: str) -> int:
    """Return the setting as a number of seconds; `-e` on the command line makes it text."""
    try:
        return int(settings[name] or 0)
    except (TypeError, ValueError):
        raise WorkloadPlanError(
            f"hpc_validation_{name}: expected a number of seconds, found {settings[name]!r}"
        ) from None


def directives(workload: Json, settings: Json, deadline: int) -> Json:
    """Return sbatch's long options: the manifest's, then the site's, then the site's for this workload.

    A null or false value removes an option, whether the site's or our own.
    """
    resources = workload["resources"]
    slurm = {**settings["slurm"], **(settings["workload_slurm"].get(workload["id"]) or {})}
    found = {
        "nodes": resources["nodes"],
        "ntasks-per-node": resources["ntasks_per_node"],
        "cpus-per-task": resources["cpus_per_task"],
        "mem": resources["mem"],
        "time": resources["time"],
        "deadline": f"now+{deadline}seconds",
    }
    if resources.get("gres") and settings["accelerator"] != "cpu":
        kind = slurm.get("gres_type")
        found["gres"] = re.sub("^gpu:", lambda _match: f"gpu:{kind}:", resources["gres"]) if kind else resources["gres"]
    found |= {key: value for key, value in slurm.items() if key not in OWN_KEYS}
    found |= slurm.get("extra") or {}
    return {key: value for key, value in found.items() if value is not None and value is not False}


def files(workload: Json) -> Json:
    """Return the files of a job's output that are judged."""
    output = workload["output"]
    found = {
        "metrics": {"path": output["metrics"], "format": "json"},
        "provenance": {"path": "provenance.json", "format": "json"},
        "gpu": {"path": "gpu.jsonl", "format": "jsonl", "group_by": "uuid"},
    }
    if "launcher" in workload:
        found["legs"] = {"path": "legs.json", "format": "json"}
    if "progress" in output:
        found["progress"] = {"path": output["progress"], "format": "jsonl"}
    if workload.get("edge"):
        found["edge"] = {"path": "edge/edge.json", "format": "json"}
    return found


def _context(workload: Json, settings: Json, runtime: Json) -> Json:
    """Return the values that criteria may depend on (applies_when)."""
    return {
        **settings["context"],
        "accelerator": settings["accelerator"],
        "ecc": settings["gpu"].get("ecc", True),
        "runtime": runtime["kind"],
        "locked": runtime["locked"],
        "option": workload["option"],
        "nccl_tests": bool(settings["nccl_tests"]),
        "resumed": _resume(workload, settings) is not None,
    }


def _payload(workload: Json, staged: list[str], digests: Json, kit: Path, own: Json | None) -> str:
    """Return a SHA-256 of what the job runs and reads.

    It is part of the script, so that a run attaches only to a job with the same workload, kit and data.
    """
    parts = [tree.digest(Path(workload["folder"])), tree.digest(kit)]
    parts += [str(digests[name]) for name in staged if name in digests]
    parts += [] if own is None else [json.dumps(own, sort_keys=True, default=str)]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def paths(planned: Json, job: Json) -> Json:
    """Return where a job of this plan wrote: {output, logs: {stdout, stderr}, end_marker}.

    As in the job script, its output is by job and attempt. If slurmctld purged the job before reporting its logs, they
    are at the paths that the script sets.
    """
    identity, attempt = str(job["job_id"]), int(job["attempt"])
    logs = planned["logs"].replace("%j", identity)
    return {
        "output": planned["output"].replace("%j", identity) + (f".{attempt}" if attempt > 0 else ""),
        "logs": {"stdout": job["stdout"] or f"{logs}.out", "stderr": job["stderr"] or f"{logs}.err"},
        "end_marker": planned["submit"]["end_marker"].replace("%j", identity),
    }
