# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence for the judge's tests, and a criterion judged on it."""

from __future__ import annotations

import copy
import datetime

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import spec, verdicts
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import Artifact, Each, Log, Query

TODAY = datetime.date(2026, 11, 21)
END = {"job_id": "12", "attempt": 0, "exit_code": 0}


def field(**changes):
    """Return a reduced field."""
    reduced = {
        "count": 5,
        "first": 2.0,
        "last": 1.0,
        "min": 1.0,
        "max": 2.0,
        "mean": 1.5,
        "slope": -0.25,
        "slope_error": 0.05,
        "fit_first": 2.0,
        "fit_last": 1.0,
        "nulls": 0,
        "non_finite": 0,
        "other": 0,
    }
    return {**reduced, **changes}


def log(path, counts=None, **changes):
    """Return a searched log; `counts` are hits by pattern set."""
    counts = {"cuda_errors": 0, "nccl_errors": 0, **(counts or {})}
    hits = {
        name: [{"line": n + 1, "text": f"line {n}", "pattern": "p", "remedy": "look"} for n in range(count)]
        for name, count in counts.items()
    }
    return {
        "path": path,
        "bytes": 9,
        "lines": 2,
        "sha256": "0" * 64,
        "hits": hits,
        "counts": counts,
        "end": END,
        **changes,
    }


DATA = {"train.bin": {"size": 9, "sha256": "d1"}}


def provenance(**changes):
    """Return what a job on two GPUs says of what it ran on."""
    facts = {
        "job_id": "12",
        "attempt": 0,
        "node": "compute01",
        "driver_version": "570.1",
        "runtime": {"lock_sha256": "1c"},
        "container": None,
        "data": {"files": copy.deepcopy(DATA)},
    }
    return {**facts, **changes}


def alone():
    """Return what the metrics of a run on one GPU say of its work, as much for each rank as in whole()."""
    return {"world_size": 1, "batch_per_rank": 32, "batch": 32, "gpu_uuids": ["GPU-a"], "steady": {"seconds": 30.0}}


def leg(name, job, **metrics):
    """Return a leg of `job` on one GPU."""
    return {
        "leg": {"name": name, "ranks": 1, "exit_code": 0, "nodes": ["compute01"]},
        "job": job,
        "metrics": {"job_id": "12", "attempt": 0, **alone(), **metrics},
        "provenance": provenance(),
        "files": {},
        "problems": [],
    }


def with_stored(evidence, job=None, **parts):
    """Give the evidence a baseline of one stored run, which went as well as the own did and ended a day before.

    It has no legs then, so that legs.json tells of none but the measured.
    """
    evidence["job"].update(started=1e6, ended=1e6 + 60)
    evidence["files"] = {}
    stamp = {"job_id": "11", "attempt": 0}
    run = {
        "job": {**evidence["job"], **stamp, "started": 1e6 - 86460, "ended": 1e6 - 86400, **(job or {})},
        "metrics": {**evidence["metrics"], **stamp, **alone(), "throughput": 100.0},
        "provenance": provenance(**stamp),
        "files": {},
        "problems": [],
    }
    evidence["baseline"] = {"source": "stored", "runs": [{**run, **parts}]}
    for name in ("before", "after"):
        evidence["legs"].pop(name, None)
    return evidence


def whole():
    """Return evidence of a job that went well, and of files that are not."""
    job = {
        "name": "training",
        "job_id": "12",
        "attempt": 0,
        "state": "COMPLETED",
        "exit_code": 0,
        "signal": 0,
        "derived_exit_code": 0,
        "steps": [{"id": "batch", "state": "COMPLETED", "exit_code": 0, "signal": 0}],
        "nodes": ["compute01"],
        "flags": [],
        "gpus": 2,
        "run_seconds": 63.0,
        "source": "squeue",
    }
    return {
        "schema": 1,
        "job": job,
        "context": {"accelerator": "cuda", "gpu_model": "H200", "gpu_count": 2, "fabric": "ib"},
        "metrics": {
            "job_id": "12",
            "attempt": 0,
            "accuracy": 0.97,
            "zero": 0,
            "two": 2.0,
            "loss": [3.0, 2.2, 1.4, 1.5, 1.0],
            "rising": [1.0, 2.0, 3.0],
            "flat": [1.0, 1.0, 1.0],
            "halved": [2.0, 1.5, 1.0],
            "below_zero": [0.0, -0.5, -1.0],
            "nan_loss": [1.0, {"non_finite": "NaN"}],
            "null_loss": [1.0, None],
            "empty": [],
            "nothing": None,
            "text": "0.99",
            "true": True,
            "nan": {"non_finite": "NaN"},
            "kit_nan": "NaN",
            "device": "cuda",
            "throughput": 180.0,
            "world_size": 2,
            "batch_per_rank": 32,
            "batch": 64,
            "steady": {"seconds": 31.0},
            "gpu_uuids": ["GPU-a", "GPU-b"],
            "gpus": [{"util": 80.0}, {"util": 90.0}],
            "mixed": [{"util": 80.0}, {"util": None}],
        },
        "provenance": provenance(),
        "legs": {
            "job_id": "12",
            "attempt": 0,
            "work": "weak",
            "steady_seconds": 30,
            **{name: {"exit_code": 0, "nodes": ["compute01"]} for name in ("before", "measured", "after")},
        },
        "progress": {
            "rows": 5,
            "malformed": 0,
            "series": {},
            "fields": {
                "loss": field(),
                "up": field(slope=0.5, fit_first=1.0, fit_last=3.0),
                "nan": field(non_finite=1),
            },
        },
        "torn": {"rows": 5, "malformed": 1, "series": {}, "fields": {"loss": field()}},
        "gpu": {
            "rows": 9,
            "malformed": 0,
            "series": {},
            "fields": {},
            "groups": {
                "GPU-a": {"rows": 5, "fields": {"util": field(mean=80.0)}},
                "GPU-b": {"rows": 4, "fields": {"util": field(mean=75.0)}},
            },
        },
        "logs": {"stdout": log("/jobs/12.out"), "stderr": log("/jobs/12.err")},
        "artifacts": {"model.pt": {"path": "/out/model.pt", "size": 100, "sha256": "0" * 64}},
        "files": {"metrics": {"path": "/out/metrics.json", "size": 1, "sha256": "0" * 64, "mtime": 1.0}},
        "baseline": {
            "source": "legs",
            "runs": [
                leg("before", copy.deepcopy(job), throughput=98.0, zero=0, text="100"),
                leg("after", copy.deepcopy(job), throughput=102.0, zero=0, text="100"),
            ],
        },
        "problems": [
            {"source": "lost", "path": "/out/lost.json", "problem": "truncated", "detail": "line 1"},
            {
                "source": "artifacts.gone.pt",
                "path": "/out/gone.pt",
                "problem": "missing",
                "detail": "there is no such file",
            },
            {"source": "artifacts.link.pt", "path": "/out/link.pt", "problem": "not_regular", "detail": "a link"},
        ],
    }


def one(evidence, references=None, override=None, **criterion):
    """Judge a single criterion; return it judged."""
    overrides = {"X": override} if override else None
    read = spec.read([{"id": "X", "title": "t", **criterion}], overrides, workload="W", references=references)
    judged = verdicts.judge(evidence, read, references=references, today=TODAY)
    assert [entry["id"] for entry in judged] == ["JOB", "X"]
    return judged[1]


def as_written(criterion):
    """Return what a manifest says of a source and its test, put together again from what was read of it."""
    source = criterion.source
    if isinstance(source, Artifact):
        return {"artifact": source.name, "exists": {"min_bytes": source.least_bytes}}
    if isinstance(source, Log):
        return {"log": list(source.names), "present" if source.wanted else "absent": source.patterns}
    assert isinstance(source, (Query, Each))
    test = {source.test.name: source.test.bound}
    if isinstance(source, Query):
        return {"query": source.expression.text, **test}
    number = source.number if isinstance(source.number, int) else source.number.text
    how_many = "count" if source.exactly else "at_least"
    return {"each": {"over": source.over.text, "query": source.query.text, how_many: number, **test}}


EACH = {"over": "gpu.groups", "query": "fields.util.mean", "count": "job.gpus"}
REFERENCES = {
    "fixed": 100,
    "by_model": [
        {"when": {"gpu_model": "H200"}, "value": 500},
        {"when": {"gpu_model": "H200", "gpu_count": 2}, "value": 180},
        {"when": {"gpu_model": "A100"}, "value": 1},
    ],
    "elsewhere": [{"when": {"gpu_model": "A100"}, "value": 180}],
    "twice": [{"when": {"gpu_model": "H200"}, "value": 1}, {"when": {"fabric": "ib"}, "value": 2}],
}


def is_whole(value):
    """True for a whole number; a boolean is none."""
    return isinstance(value, int) and not isinstance(value, bool)
