# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run's folder, results/<run>/: what was planned, what was recorded on the way, and the verdict made of both.

verdict.json         undetermined from the first moment, promoted at the end
junit.xml            made from verdict.json
record.md            the single-GPU baseline written down for people, where the run had it: from verdict and evidence
plan.json            what was selected, on which accelerator, and the run's number
cluster.json         what slurm_cluster_info returned
probed.json          which nodes and GPUs preflight looked at, and what it found there
workloads/<id>.json  one judged workload, or which earlier pass of it stands
findings/<n>.json    lists of findings
recorded.json        which of these were recorded, with their SHA-256
evidence/<id>.json   what the criteria were judged on
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
import typing as t
from collections import Counter
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils import _numbers
from ansible_collections.mlops.hpc_validation.plugins.module_utils._atomic import write_atomic
from ansible_collections.mlops.hpc_validation.plugins.module_utils._criteria import overall
from ansible_collections.mlops.hpc_validation.plugins.module_utils._criteria_spec import JOB_ID
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import (
    _findings,
    _record,
    _records,
    _scheduler_facts,
    _schema,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._files import read_json, write_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu_hours import gpu_hours
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._junit import junit_xml

Json = dict[str, t.Any]
RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}")
MADE_OF_IT = ("verdict.json", "junit.xml", _record.FILE)
NOT_FINISHED = "the run did not finish: it was interrupted or killed, or it still goes on"


class RunError(Exception):
    """The run's folder is missing or damaged, or what is to be recorded does not fit its schema."""


def verdict_of(verdicts: t.Iterable[str]) -> str:
    """One verdict of many: fail before undetermined before pass; nothing that passed is undetermined."""
    seen = set(verdicts)
    for verdict in ("fail", "undetermined", "pass"):
        if verdict in seen:
            return verdict
    return "undetermined"


def start(results: Path, plan: Json, versions: Json, now: float | None = None) -> Path:
    """Makes results/<run>/ with an honest, undetermined verdict in it and returns the folder.

    `plan`: {title, accelerator, workloads: [manifest, …]}. Raises RunError if nothing can be written there.
    """
    now = time.time() if now is None else now
    ids = [workload["id"] for workload in plan["workloads"]]
    if len(set(ids)) < len(ids):
        raise RunError(f"a workload is planned twice: {', '.join(ids)}")
    run = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now)) + "-" + secrets.token_hex(3)
    folder = results / run
    try:
        results.mkdir(mode=0o755, parents=True, exist_ok=True)
        folder.mkdir(mode=0o755)
        count = 1 + max(map(number, runs(results)), default=0)
        write_json(folder / "plan.json", {**plan, "run": run, "number": count, "started": now, "versions": versions})
        _write(folder, _assemble(folder, finished=None))
    except OSError as exc:
        raise RunError(
            f"the results cannot be written to {folder}: {exc.strerror}; set hpc_validation_results"
        ) from exc
    return folder


def number(folder: Path) -> int:
    """Where in the order of runs this one began: more than those that were there then, whatever the clock said.

    0 where it is not known, as of runs of versions that did not count.
    """
    try:
        told = read_json(folder / "plan.json")["number"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0
    return told if isinstance(told, int) and not isinstance(told, bool) and told > 0 else 0


def runs(results: Path) -> list[Path]:
    """The folders of all runs. Raises OSError."""
    return [path for path in results.iterdir() if RUN_ID.fullmatch(path.name)]


def record(folder: Path, kind: str, document: t.Any) -> None:
    """Adds what one step found: `workload`, `findings` (a list), `cluster` and `probed` (facts).

    A workload is {id, job, data, criteria}, or {id, earlier} where nobody asked for it and an earlier pass stands.

    Raises RunError naming what does not fit.
    """
    _require_run(folder)
    try:
        if kind == "findings":
            if not isinstance(document, list):
                raise RunError(f"findings cannot be recorded: expected a list, got {document!r}")
            for finding in document:
                _schema.require("finding", finding, "finding")
            _records.add_findings(folder, document)
        elif kind == "workload":
            _record_workload(folder, document)
        elif kind in ("cluster", "probed"):
            _records.add(folder, f"{kind}.json", document)
        else:
            raise RunError(f"{kind!r} cannot be recorded; expected workload, findings, cluster or probed")
    except _schema.SchemaError as exc:
        raise RunError(str(exc)) from exc
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise RunError(f"{kind} cannot be recorded in {folder}: {type(exc).__name__}: {exc}") from exc


def _record_workload(folder: Path, document: Json) -> None:
    asked = {each["id"]: each.get("asked", True) for each in read_json(folder / "plan.json")["workloads"]}
    identity, is_earlier = document["id"], "earlier" in document
    if identity not in asked:
        raise RunError(f"{identity} is not in the plan of {folder}")
    if is_earlier and asked[identity]:
        raise RunError(f"{identity} was asked for: an earlier pass is no answer")
    if is_earlier:
        _schema.require("earlier", document["earlier"], f"earlier pass of {identity}")
    else:
        job, criteria, _data = (document[key] for key in ("job", "criteria", "data"))
        if job is not None:
            _schema.require("job", job, f"job of {identity}")
        for criterion in criteria:
            _schema.require("judged", criterion, f"criterion of {identity}")
    _records.add(folder, f"workloads/{identity}.json", document)
    if is_earlier:  # told at once: should this run be killed, it is not the newest run of the workload
        _write(folder, _assemble(folder, finished=None))


def amiss(folder: Path) -> int:
    """How many of the findings recorded so far are a failure or undetermined; one that cannot be read is."""
    return sum(finding["verdict"] in ("fail", "undetermined") for finding in _recorded_findings(folder))


def passed(folder: Path) -> list[str]:
    """The ids of the workloads that have been recorded so far and passed, now or earlier."""
    workloads = read_json(folder / "plan.json")["workloads"]
    return [each["id"] for each in workloads if _has_passed(_workload(folder, each, finished=None))]


def finish(folder: Path, now: float | None = None) -> Json:
    """Makes the verdict of what was recorded, writes verdict.json and junit.xml and returns the verdict.

    What was planned and not recorded, or cannot be read back, is undetermined. Raises RunError if it cannot be written.
    """
    _require_run(folder)
    try:
        verdict = _assemble(folder, finished=time.time() if now is None else now)
        _schema.require("verdict", verdict, str(folder / "verdict.json"))
        _write(folder, verdict)
        for workload in verdict["workloads"]:
            if workload["name"] in _record.WORKLOADS and "earlier" not in workload:
                evidence = _evidence(folder / "evidence" / f"{workload['id']}.json")
                write_atomic(str(folder / _record.FILE), _record.markdown(verdict, workload, evidence).encode())
    except (OSError, ValueError, _schema.SchemaError) as exc:
        raise RunError(f"the verdict of {folder} cannot be written: {exc}") from exc
    return verdict


def _require_run(folder: Path) -> None:
    if not RUN_ID.fullmatch(folder.name) or not (folder / "plan.json").is_file():
        raise RunError(f"{folder} is not the folder of a run")


def _write(folder: Path, verdict: Json) -> None:
    write_json(folder / "verdict.json", verdict)
    write_atomic(str(folder / "junit.xml"), junit_xml(verdict))


def _assemble(folder: Path, finished: float | None) -> Json:
    plan = read_json(folder / "plan.json")
    workloads: list[Json] = []
    for manifest in plan["workloads"]:  # those that a workload needs come before it
        workloads.append(_workload(folder, manifest, finished, unmet(manifest, workloads)))
    findings = _recorded_findings(folder)
    cluster = _facts(folder, "cluster", findings)
    probed = _facts(folder, "probed", findings)
    if finished is None:
        verdict, why = "undetermined", NOT_FINISHED
    else:
        parts = [workload["verdict"] for workload in workloads] + [finding["verdict"] for finding in findings]
        # A probe that passed proves no training: where that was asked for, only workloads can carry a pass, and where
        # the nodes were asked for, only nodes that were looked at.
        proven = bool((probed or {}).get("nodes")) if plan.get("probes_only") else _any_passed(workloads)
        verdict = verdict_of(parts if proven else [part for part in parts if part != "pass"])
        why = _why(verdict, workloads, findings)
    slurm = (cluster or {}).get("version")
    document = {
        "schema": 1,
        "run": plan["run"],
        "title": plan["title"],
        "verdict": verdict,
        "why": why,
        "started": plan["started"],
        "finished": finished,
        "accelerator": plan["accelerator"],
        "coverage": _coverage(folder, workloads, cluster, probed, findings),
        "gpu_hours": gpu_hours(workloads),
        "versions": {**plan["versions"], "slurm": slurm if isinstance(slurm, str) else None},
        "cluster": cluster,
        "workloads": workloads,
        "findings": findings,
        "evidence": _inventory(folder),
    }
    return t.cast(Json, _printable(document))


def _printable(value: t.Any) -> t.Any:
    """A copy in which no text moves a terminal's cursor, and no number is one that JSON has not.

    Much of it was said by nodes, jobs and other people.
    """
    if isinstance(value, str):
        return _numbers.printable(value)
    if isinstance(value, dict):
        return {_printable(key): _printable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_printable(item) for item in value]
    return _numbers.show(value) if _numbers.is_non_finite(value) else value


def unmet(manifest: Json, workloads: list[Json]) -> str:
    """Which of the workloads that this one needs did not pass, in words; one that is not in the run is not asked."""
    needed = [each for each in workloads if each["id"] in manifest.get("needs", []) and not _has_passed(each)]
    return ", ".join(f"{each['id']} {'failed' if each['verdict'] == 'fail' else 'is undetermined'}" for each in needed)


def _has_passed(workload: Json) -> bool:
    return workload["verdict"] == "pass" or "earlier" in workload


def _workload(folder: Path, manifest: Json, finished: float | None, lacking: str = "") -> Json:
    name = f"workloads/{manifest['id']}.json"
    blank = {
        "id": manifest["id"],
        "name": manifest["name"],
        "title": manifest["title"],
        "job": None,
        "data": {},
        "criteria": [],
    }
    try:
        recorded = _records.read(folder, name)
        if "earlier" in recorded:
            earlier = recorded["earlier"]
            _schema.require("earlier", earlier, name)
            # No pass of this run: it decides nothing here but whether the workloads that need it run.
            return {
                **blank,
                "verdict": "recorded",
                "why": f"passed in run {earlier['run']}, not run again",
                "earlier": earlier,
            }
        for criterion in recorded["criteria"]:
            _schema.require("judged", criterion, name)
    except FileNotFoundError:
        why = f"not_run: {lacking}" if lacking else "not_run: the run ended before it was judged, see the findings"
        why = NOT_FINISHED if finished is None else why
        return {**blank, "verdict": "undetermined", "why": why}
    except (OSError, ValueError, TypeError, KeyError, _schema.SchemaError) as exc:
        return {**blank, "verdict": "undetermined", "why": f"{folder / name} cannot be read back: {exc}"}
    criteria = recorded["criteria"]
    amiss = _not_as_planned(manifest, criteria)
    judged = verdict_of([overall(criteria), *(["undetermined"] if amiss else [])])
    odd = [c for c in criteria if c["verdict"] == judged and c["severity"] == "gate"] if judged != "pass" else []
    reasons = [*(f"{c['id']}: {c['why']}" for c in odd), *amiss]
    why = "every applicable criterion passed" if judged == "pass" else "; ".join(reasons)
    return {
        **blank,
        "verdict": judged,
        "why": why or "nothing was judged",
        "job": recorded["job"],
        "data": recorded["data"],
        "criteria": criteria,
    }


def _not_as_planned(manifest: Json, criteria: list[Json]) -> list[str]:
    """In which ways the judged criteria are not those of the plan and the job's own, each once."""
    planned = Counter([JOB_ID, *(criterion["id"] for criterion in manifest["criteria"])])
    found = Counter(criterion["id"] for criterion in criteria)
    ways = (("not judged", planned - found), ("judged and not planned, or twice", found - planned))
    return [f"{how}: {', '.join(sorted(names))}" for how, names in ways if names]


def _recorded_findings(folder: Path) -> list[Json]:
    findings: list[Json] = []
    try:
        names = _records.names_of_findings(folder)
    except (OSError, ValueError) as exc:
        return [_unread(folder / _records.INDEX, exc)]
    for name in names:
        try:
            findings += _records.read(folder, name)
        except (OSError, ValueError) as exc:
            findings.append(_unread(folder / name, exc))
    return findings


def _unread(path: Path, exc: Exception) -> Json:
    return _findings.step_failed("report", "A record of this run is read back", str(exc), {"path": str(path)})


def _any_passed(workloads: list[Json]) -> bool:
    return any(workload["verdict"] == "pass" for workload in workloads)


def _facts(folder: Path, kind: str, findings: list[Json]) -> Json | None:
    try:
        facts = _records.read(folder, f"{kind}.json")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as exc:
        findings.append(_unread(folder / f"{kind}.json", exc))
        return None
    wrong = _scheduler_facts.read(facts, _scheduler_facts.COUNTED)[1] if kind == "cluster" else _probed_amiss(facts)
    if wrong:
        findings.append(_unread(folder / f"{kind}.json", ValueError("; ".join(wrong))))
        return None
    return t.cast(Json, facts)


def _probed_amiss(facts: t.Any) -> list[str]:
    """Which of what preflight noted is of another kind than it can be."""
    if not isinstance(facts, dict):
        return [f"expected an object, not {_numbers.describe(facts)}"]
    kinds = {"nodes": str, "gpus": str, "left_out": dict}
    lists = {key: facts.get(key) or [] for key in kinds}
    wrong = [
        f"{key}: expected a list of {kind.__name__}, not {_numbers.show(facts[key])}"
        for key, kind in kinds.items()
        if not isinstance(lists[key], list) or not all(isinstance(entry, kind) for entry in lists[key])
    ]
    return wrong or [
        f"left_out: expected name and why, both texts, not {_numbers.show(left)}"
        for left in lists["left_out"]
        if not all(isinstance(left.get(key), str) for key in ("name", "why"))
    ]


def _why(verdict: str, workloads: list[Json], findings: list[Json]) -> str:
    if verdict == "pass" and not workloads:
        return f"nothing is amiss in {len(findings)} findings"
    if verdict == "pass":
        ran = len([each for each in workloads if "earlier" not in each])
        return f"{ran} of {ran} workloads passed"
    odd = [f"{w['id']}: {w['why']}" for w in workloads if w["verdict"] == verdict]
    odd = [f"{f['id']}: {f['why']}" for f in findings if f["verdict"] == verdict] + odd
    return "; ".join(odd) or "nothing was judged"


def _coverage(
    folder: Path, workloads: list[Json], cluster: Json | None, probed: Json | None, findings: list[Json]
) -> Json:
    if workloads:
        nodes_run = sorted({node for w in workloads if w["job"] for node in w["job"]["nodes"]})
        gpus_run = sorted({uuid for w in workloads for uuid in _gpus_seen(folder / "evidence" / f"{w['id']}.json")})
    else:
        nodes_run, gpus_run = (sorted((probed or {}).get(kind) or []) for kind in ("nodes", "gpus"))
    known = (cluster or {}).get("nodes")
    in_scope = [node for node in known if node.get("gres", {}).get("gpu")] if isinstance(known, list) else None
    narrowed = {left["name"]: left["why"] for left in (probed or {}).get("left_out") or []}
    left_out = []
    for node in in_scope or []:
        if node["name"] not in nodes_run:
            state = node.get("state") or "unknown"
            reason = node.get("reason") or narrowed.get(node["name"])
            why = f"{state}: {reason}" if reason else f"{state}; {_not_there(workloads)}"
            left_out.append({"name": node["name"], "why": why})
    return {
        "nodes": {"exercised": nodes_run, "in_scope": None if in_scope is None else len(in_scope)},
        "gpus": {
            "exercised": gpus_run,
            "in_scope": None if in_scope is None else sum(node["gres"]["gpu"] for node in in_scope),
        },
        "left_out": [*left_out, *(_also(narrowed, left_out, nodes_run)), *_checks_left_out(findings)],
    }


def _also(narrowed: dict[str, str], left_out: list[Json], nodes_run: list[str]) -> list[Json]:
    """What preflight left out beyond the nodes with GPUs."""
    told = {*(left["name"] for left in left_out), *nodes_run}
    return [{"name": name, "why": why} for name, why in sorted(narrowed.items()) if name not in told]


def _not_there(workloads: list[Json]) -> str:
    return "no selected workload was placed there" if workloads else "no job of the preflight ended well there"


def _checks_left_out(findings: list[Json]) -> list[Json]:
    """The checks that the inventory says do not apply, by its reason."""
    checks: dict[str, set[str]] = {}
    for finding in findings:
        if finding["verdict"] == "not_applicable":
            checks.setdefault(finding["why"], set()).add(finding["id"])
    return [{"name": f"checks {', '.join(sorted(names))}", "why": why} for why, names in sorted(checks.items())]


def _evidence(path: Path) -> t.Any:
    try:
        return read_json(path)
    except (OSError, ValueError):
        return None


def _gpus_seen(evidence: Path) -> list[str]:
    document = _evidence(evidence) or {}
    groups = (document.get("gpu") or {}).get("groups") or {}
    return [str(uuid) for uuid in groups]


def _inventory(folder: Path) -> list[Json]:
    files = []
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder).as_posix()
        if path.is_file() and relative not in MADE_OF_IT and not path.name.startswith("."):
            content = path.read_bytes()
            files.append({"path": relative, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()})
    return files


def results_folder(value: str) -> Path:
    """`value` as an absolute path, from the directory the user stands in."""
    return Path(os.path.abspath(os.path.expanduser(value)))
