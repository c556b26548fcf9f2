# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of a run, results/<run>/: its plan, its records, and the verdict made of both.

verdict.json         undetermined until the run has finished
findings.json.gz     every finding, as columns
junit.xml            made from verdict.json
record.md            the record of the single-GPU baseline for people, if the run had it: from verdict and evidence
card-<id>.md, .json, latency-<host>.svg  the deployment card of an embedded profile: see cards.py
plan.json            what was selected, on which accelerator, and the run's number
cluster.json         what slurm_cluster_info returned
probed.json          which nodes and GPUs preflight looked at, and what it found there
workloads/<id>.json  one judged workload, or its earlier pass that is still valid
findings/<n>.json.gz lists of findings, as columns
recorded.json        the list of these records with their SHA-256
evidence/<id>.json   what the criteria were judged on
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common.atomic import write_atomic
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import read_json, write_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import columns
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings.columns import Table
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import record as report_record
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.junit import junit_xml
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import (
    as_planned,
    held_back,
    readback,
    records,
    schema_1,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import verdict as run_verdict

Json = dict[str, t.Any]
RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}")


class RunError(Exception):
    """The run's folder is missing or damaged, or a document to record does not match its schema."""


def start(results: Path, plan: Json, versions: Json, now: float | None = None) -> Path:
    """Create results/<run>/ with an undetermined verdict and return the folder.

    `plan`: {title, accelerator, workloads: [manifest, …]}, and `left_out`, what is not to be run: [{id, name, title,
    why}, …]. Raise RunError if nothing can be written there.
    """
    now = time.time() if now is None else now
    ids = [workload["id"] for workload in plan["workloads"]]
    if len(set(ids)) < len(ids):
        raise RunError(f"a workload appears twice in the plan: {', '.join(ids)}")
    run = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now)) + "-" + secrets.token_hex(3)
    folder = results / run
    try:
        results.mkdir(mode=0o755, parents=True, exist_ok=True)
        folder.mkdir(mode=0o755)
        count = 1 + max(map(number, runs(results)))
        write_json(folder / "plan.json", {**plan, "run": run, "number": count, "started": now, "versions": versions})
        _write(folder, *run_verdict.of_run(folder, finished=None))
    except OSError as exc:
        raise RunError(
            f"the results cannot be written to {folder}: {exc.strerror}; set hpc_validation_results"
        ) from exc
    return folder


def number(folder: Path) -> int:
    """Return the number of the run, higher than those of all runs that existed when it began, whatever the clock.

    It is 0 if unknown, as for runs of versions that did not number them.
    """
    try:
        told = read_json(folder / "plan.json")["number"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0
    return max(told, 0) if isinstance(told, int) and not isinstance(told, bool) else 0


def runs(results: Path) -> list[Path]:
    """Return the folders of all runs. Raise OSError."""
    return [path for path in results.iterdir() if RUN_ID.fullmatch(path.name)]


def record(folder: Path, kind: str, document: t.Any) -> None:
    """Record what one step found: `workload`, `findings` (any number of them), `cluster` or `probed` (facts).

    A workload is {id, job, data, criteria}, or {id, earlier} if it is only needed and an earlier pass is valid. It is
    recorded once: a second record would hide what the first one says.

    Raise RunError naming what is wrong.
    """
    _require_run(folder)
    try:
        if kind == "findings":
            if isinstance(document, (str, dict)):
                raise RunError(f"findings cannot be recorded: expected a list, found {document!r}")
            records.add_findings(folder, document)
        elif kind == "workload":
            _record_workload(folder, document)
        elif kind in ("cluster", "probed"):
            records.add(folder, f"{kind}.json", document)
        else:
            raise RunError(f"{kind!r} cannot be recorded; expected workload, findings, cluster or probed")
    except schema.SchemaError as exc:
        raise RunError(str(exc)) from exc
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise RunError(f"{kind} cannot be recorded in {folder}: {type(exc).__name__}: {exc}") from exc


def _record_workload(folder: Path, document: Json) -> None:
    asked = {each["id"]: each.get("asked", True) for each in read_json(folder / "plan.json")["workloads"]}
    identity, is_earlier = document["id"], "earlier" in document
    if identity not in asked:
        raise RunError(f"{identity} is not in the plan of {folder}")
    if is_earlier and asked[identity]:
        raise RunError(f"{identity} was selected: an earlier pass cannot replace its run")
    if is_earlier:
        schema.require("earlier", document["earlier"], f"earlier pass of {identity}")
    else:
        as_planned.require_whole(document, identity)
    records.add(folder, f"workloads/{identity}.json", document, once=True)
    if is_earlier:  # at once: if this run is killed, it must not count as the newest run of the workload
        _write(folder, *run_verdict.of_run(folder, finished=None))


def amiss(folder: Path) -> int:
    """Return how many of the findings so far fail or are undetermined; unreadable ones are undetermined.

    Those that only hold a workload back do not count.
    """
    return held_back.others(readback.findings(folder))


def not_submitted(folder: Path) -> dict[str, str]:
    """Return why each workload is not submitted that is held back, or needs one that is, by ID, in the plan's order."""
    held = held_back.reasons(readback.findings(folder))
    return held_back.with_dependents(held, read_json(folder / "plan.json")["workloads"])


def passed(folder: Path) -> list[str]:
    """Return the IDs of the workloads recorded so far that passed, in this run or earlier."""
    manifests = read_json(folder / "plan.json")["workloads"]
    workloads = [run_verdict.of_workload(folder, manifest, run_verdict.NOT_FINISHED) for manifest in manifests]
    return [workload["id"] for workload in workloads if run_verdict.has_passed(workload)]


def finish(folder: Path, now: float | None = None) -> Json:
    """Make the verdict from the records, write verdict.json and junit.xml, and return the verdict.

    What was planned but not recorded, or cannot be read back, is undetermined. Raise RunError if it cannot be written.
    """
    _require_run(folder)
    try:
        verdict, table = run_verdict.of_run(folder, finished=time.time() if now is None else now)
        content = columns.pack(table)
        write_atomic(str(folder / run_verdict.SIDECAR), content)
        verdict["sidecar"] = {
            "path": run_verdict.SIDECAR,
            "count": len(table),
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        _write(folder, verdict, table)
        for workload in verdict["workloads"]:
            if workload["name"] in report_record.WORKLOADS and run_verdict.is_of_this_run(workload):
                evidence = readback.evidence(folder, workload["id"])
                write_atomic(
                    str(folder / report_record.FILE), report_record.markdown(verdict, workload, evidence).encode()
                )
    except (OSError, ValueError, schema.SchemaError) as exc:
        raise RunError(f"the verdict of {folder} cannot be written: {exc}") from exc
    return verdict


def expand(folder: Path) -> Path:
    """Write the verdict of a run that has ended as schema 1 and return the path of the file. Raise RunError."""
    _require_run(folder)
    path = folder / "verdict-1.json"
    try:
        verdict = read_json(folder / "verdict.json")
        schema.require("verdict", verdict, str(folder / "verdict.json"))
        if verdict["sidecar"] is None:
            raise RunError(f"{folder}: {run_verdict.NOT_FINISHED}")
        content = (folder / verdict["sidecar"]["path"]).read_bytes()
        if hashlib.sha256(content).hexdigest() != verdict["sidecar"]["sha256"]:
            raise RunError(f"{folder / verdict['sidecar']['path']} is not the one that its verdict lists")
        document = schema_1.unfolded(folder, verdict, columns.unpack(content))
        schema.require("verdict-1", document, str(path))
        write_json(path, document)
    except (OSError, ValueError, schema.SchemaError) as exc:
        raise RunError(f"the verdict of {folder} cannot be expanded: {exc}") from exc
    return path


def _require_run(folder: Path) -> None:
    if not RUN_ID.fullmatch(folder.name) or not (folder / "plan.json").is_file():
        raise RunError(f"{folder} is not the folder of a run")


def _write(folder: Path, verdict: Json, table: Table) -> None:
    """Write the verdict in the form that the run's plan asks for, and junit.xml."""
    schema.require("verdict", verdict, str(folder / "verdict.json"))
    document = verdict
    if read_json(folder / "plan.json").get("verdict_schema") == 1:
        document = schema_1.unfolded(folder, verdict, table)
        schema.require("verdict-1", document, str(folder / "verdict.json"))
    write_json(folder / "verdict.json", document)
    write_atomic(str(folder / "junit.xml"), junit_xml(verdict))


def results_folder(value: str) -> Path:
    """Return `value` as an absolute path, relative to the user's current directory."""
    return Path(os.path.abspath(os.path.expanduser(value)))
