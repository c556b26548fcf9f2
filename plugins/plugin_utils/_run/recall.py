# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide whether a workload that is only needed by others must run, or whether its newest pass is still valid.

The pass is valid if it is recent, was of the same job script on the same cluster, drivers, GPUs and nodes, and if its
evidence passes today's criteria. Anything missing, damaged or unknown makes the workload run.
"""

from __future__ import annotations

import hashlib
import math
import time
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars, strict_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import expand_nodes, fold_nodes
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import read_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import log_patterns
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.saved import Rules, judge_saved
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import evidence as run_evidence
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import records, runs
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import verdict as run_verdict

Json = dict[str, t.Any]
SECONDS_OF_A_DAY = 86400
MAX_UUIDS = 3


class StaleError(Exception):
    """The newest run of the workload is not valid any more; the message says why."""


def recall(
    folder: Path, identity: str, script_sha256: str, judging: Json, now: float | None = None
) -> tuple[Json | None, str]:
    """Return the `earlier` pass for verdict.json, or None if the workload must run, and a line for people.

    `folder` is the folder of the current run, `script_sha256` is of the job script that it would submit, and `judging`
    its {overrides, references, context}, with the overrides of all workloads. Damaged runs never raise an exception.
    """
    now = time.time() if now is None else now
    try:
        earlier = _earlier(folder, identity, script_sha256, judging, now)
    except StaleError as exc:
        return None, f"{identity}: runs first: {scalars.printable(str(exc))}"
    except Exception as exc:  # no other error may prevent the workload from running
        why = f"looking for an earlier run failed: {type(exc).__name__}: {exc}"
        return None, f"{identity}: runs first: {scalars.printable(why)}"
    return earlier, f"{identity}: passed {_ago(now - earlier['finished'])} in run {earlier['run']}, not run again"


def _earlier(folder: Path, identity: str, script_sha256: str, judging: Json, now: float) -> Json:
    plan = read_json(folder / "plan.json")
    if plan["needs_days"] == 0:
        raise StaleError("hpc_validation_needs_days is 0")
    newest = _newest(folder, identity)
    ran, verdict, workload = newest.folder, newest.verdict, newest.workload
    if verdict["finished"] is None:
        raise StaleError(f"run {ran.name} did not finish")
    if workload["verdict"] != "pass":
        raise StaleError(f"it did not pass in run {ran.name}: {workload['why']}")
    age = now - verdict["finished"]
    if age < 0:
        raise StaleError("it passed at a time in the future")
    if not age <= plan["needs_days"] * SECONDS_OF_A_DAY:  # this form also rejects NaN
        raise StaleError(f"it passed {_ago(age)}, and hpc_validation_needs_days is {plan['needs_days']}")
    _require_same("accelerator", verdict["accelerator"], plan["accelerator"])
    _require_same("collection", verdict["versions"]["collection"], plan["versions"]["collection"])
    cluster = records.read(folder, "cluster.json")
    _require_same("cluster", verdict["cluster"]["cluster_name"], cluster["cluster_name"])
    then = strict_json.parse(_listed(ran, "cluster.json", verdict))
    _require_same("nodes", _nodes(then), _nodes(cluster))
    _require_same("job script", workload["job"]["script_sha256"], script_sha256)
    evidence = _evidence(ran, identity, verdict)
    if plan["accelerator"] != "cpu":
        probed = records.read(folder, "probed.json")
        _require_same("driver", evidence["provenance"]["driver_version"], _drivers(probed))
        _require_same_gpus(strict_json.parse(_listed(ran, "probed.json", verdict)), probed, _nodes_of(workload["job"]))
    (manifest,) = [each for each in plan["workloads"] if each["id"] == identity]
    _require_pass(evidence, manifest, judging, now)
    return {
        "run": verdict["run"],
        "finished": verdict["finished"],
        "sha256": hashlib.sha256(newest.content).hexdigest(),
    }


class _Run(t.NamedTuple):
    """Another run that included the workload, or whose verdict cannot be read, so that this is unknown."""

    folder: Path
    began: tuple[int, str]  # the run's number, which no clock affects, and its name, for older versions
    ended: float  # when it finished, or else when it began or was last written to
    content: bytes
    verdict: Json
    workload: Json
    unreadable: str = ""


def _newest(folder: Path, identity: str) -> _Run:
    """Return the newest other run of the workload. It must be both the last to begin and the last to end."""
    others = [other for other in runs.runs(folder.parent) if other != folder]
    told = [run for run in (_ran(other, identity) for other in others) if run]
    if not told:
        raise StaleError(f"{folder.parent} has no earlier run of it")
    began, ended = max(told, key=lambda run: run.began), max(told, key=lambda run: run.ended)
    for run in (began, ended):
        if run.unreadable:
            raise StaleError(f"the verdict of run {run.folder.name} cannot be read: {run.unreadable}")
    if began is not ended and ended.workload["verdict"] == "pass":
        raise StaleError(
            f"run {began.folder.name} began last and run {ended.folder.name} ended last: they overlapped, or a clock "
            "was set back"
        )
    return ended


def _ran(other: Path, identity: str) -> _Run | None:
    """Return the run in `other`, or None if it did not include the workload."""
    began = (runs.number(other), other.name)
    try:
        content = (other / "verdict.json").read_bytes()
        verdict = strict_json.parse(content)
        form = "verdict-1" if isinstance(verdict, dict) and verdict.get("schema") == 1 else "verdict"
        schema.require(form, verdict, str(other / "verdict.json"))
    except (OSError, ValueError, schema.SchemaError) as exc:
        written = max(path.stat().st_mtime for path in (other, other / "verdict.json") if path.exists())
        return _Run(other, began, written, b"", {}, {}, unreadable=str(exc))
    ended = verdict["started"] if verdict["finished"] is None else verdict["finished"]
    for workload in verdict["workloads"]:
        if workload["id"] == identity and run_verdict.is_of_this_run(workload):
            return _Run(other, began, ended if math.isfinite(ended) else math.inf, content, verdict, workload)
    return None


def _evidence(ran: Path, identity: str, verdict: Json) -> Json:
    name = f"evidence/{identity}.json"
    _listed(ran, name, verdict)
    return run_evidence.load(str(ran / name))


def _listed(ran: Path, name: str, verdict: Json) -> bytes:
    """Return a file of a run, if it is the one that its verdict lists."""
    content = (ran / name).read_bytes()
    listed = {each["path"]: each["sha256"] for each in verdict["evidence"]}
    if listed.get(name) != hashlib.sha256(content).hexdigest():
        raise StaleError(f"{ran / name} is not the one that its verdict lists")
    return content


def _require_pass(evidence: Json, manifest: Json, judging: Json, now: float) -> None:
    """Judge the saved evidence as metrics_assert does, in today's context."""
    if evidence.get("baseline", {}).get("source") == "stored":
        raise StaleError("its speed-up is relative to stored evidence, which is not checked again")
    rules = Rules.read(
        manifest,
        overrides=judging["overrides"].get(manifest["id"], {}),
        references=judging["references"],
        pattern_sets=log_patterns.load(),
    )
    judged = judge_saved(evidence, rules, now=now, context=judging["context"])
    if judged.verdict != "pass":
        unmet = [each for each in judged.criteria if each["verdict"] in ("fail", "undetermined")]
        odd = [f"{each['id']}: {each['why']}" for each in unmet]
        raise StaleError(f"by today's criteria it does not pass: {'; '.join(odd[:3]) or 'none applies'}")


def _require_same(what: str, then: str | None, now: str | None) -> None:
    if not then or then != now:
        raise StaleError(f"{what} {then or 'unknown'} then, {now or 'unknown'} now")


def _require_same_gpus(then: Json, now: Json, ran_on: list[str]) -> None:
    """Require the same GPU UUIDs in both preflights, and that the earlier one saw the nodes that the job ran on."""
    unseen = fold_nodes(set(ran_on) - set(then["nodes"]))
    if unseen or not ran_on:
        raise StaleError(f"the GPUs of {unseen or 'its nodes'} were not checked then")
    before, after = set(then["gpus"]), set(now["gpus"])
    if not before or before != after:
        raise StaleError(f"GPUs {_some(before - after)} then, {_some(after - before)} now in their place")


def _some(uuids: set[str]) -> str:
    """Return some of the UUIDs, and the number of others."""
    more = f" and {len(uuids) - MAX_UUIDS} more" if len(uuids) > MAX_UUIDS else ""
    return ", ".join(sorted(uuids)[:MAX_UUIDS]) + more or "none"


def _nodes_of(job: Json) -> list[str]:
    """Return the nodes of a job, which verdicts since schema 2 name in one expression."""
    nodes: list[str] | str = job["nodes"]
    return expand_nodes(nodes) if isinstance(nodes, str) else nodes


def _nodes(cluster: Json) -> str:
    """Return the nodes with the GRES of each, those with equal GRES folded."""
    equal: dict[str, list[str]] = {}
    for node in cluster["nodes"]:
        equal.setdefault(_gres(node["gres"]), []).append(node["name"])
    return ", ".join(sorted(f"{fold_nodes(names)} {gres}".rstrip() for gres, names in equal.items()))


def _gres(gres: Json) -> str:
    return ",".join(f"{name}:{count}" for name, count in sorted(gres.items()))


def _drivers(probed: Json) -> str | None:
    """Return the drivers of all nodes that preflight looked at, or None if one reported none."""
    versions = {str(probed["drivers"].get(node) or "") for node in probed["nodes"]}
    return None if "" in versions else ", ".join(sorted(versions))


def _ago(seconds: float) -> str:
    days = seconds // SECONDS_OF_A_DAY
    return "less than a day ago" if days == 0 else "1 day ago" if days == 1 else f"{days:.0f} days ago"
