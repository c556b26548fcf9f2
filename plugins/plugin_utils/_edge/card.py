# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the deployment card: which model a run leaves, what it did on each device, where it came from, what is unknown.

Pure. No content of the evidence raises an exception: jobs and devices wrote it, so where a number is expected there is
a number or a text that says why there is none. The page for people is made from this document alone (card_page.py).
"""

from __future__ import annotations

import re
import typing as t
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.presentable import presentable
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import (
    card_commands,
    card_device,
    pareto,
    unmeasured,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.values import (
    Json,
    Measured,
    at,
    digest,
    entries,
    measured,
    part,
    words,
)

WORKLOADS = ("embedded_profile",)  # by name
MADE = re.compile(r"card-[^/]*\.(md|json)|latency-[^/]*\.svg")  # in the run's folder
PLAIN = re.compile(r"edge/bundle-[A-Z0-9.-]{1,80}\.zip")  # what needs no quoting
MODELS = card_device.MODELS
MAX_HOSTS = 200
MAX_NOTES = 2000  # characters
MAX_FILES = 50
NOT_THERE = "metrics.json does not have it"
AMISS = ("fail", "undetermined", "waived")
PROFILE = (
    *(("metadata", key) for key in ("document", "name", "version", "owner", "description", "created", "target")),
    ("metadata", "purpose"),
    *(("compliance", key) for key in ("data_classification", "license", "approved_by")),
)
FILES = {name: f"{name}.json" for name in ("metrics", "provenance", "edge")}  # by their names in the evidence


@dataclass(frozen=True)
class Sources:
    """What a card is made of, whatever of it is there."""

    verdict: Json  # of the run
    workload: Json  # its part of the verdict
    evidence: t.Any = None
    profile: t.Any = None
    hosts: Mapping[str, t.Any] = field(default_factory=dict)  # what each device answered

    @property
    def metrics(self) -> t.Any:
        """The job's metrics."""
        return at(self.evidence, "metrics")

    @property
    def names(self) -> list[str]:
        """The hosts, those that were judged and those that answered; not more than MAX_HOSTS."""
        judged = [name for name in part(self.evidence, "edge", "hosts") if isinstance(name, str)]
        return sorted({*judged, *self.hosts})[:MAX_HOSTS]


def document(sources: Sources) -> Json:
    """Return the card."""
    verdict, workload, metrics = sources.verdict, sources.workload, sources.metrics
    devices = [
        card_device.describe(host, at(sources.evidence, "edge", "hosts", host), sources.hosts.get(host))
        for host in sources.names
    ]
    models = [_model(name, metrics) for name in MODELS if at(metrics, "models", name) is not None]
    deployed = words(at(metrics, "deployed"))
    card = {
        "schema": 1,
        **{key: words(verdict.get(key)) for key in ("run", "accelerator")},
        "workload": words(workload.get("id")),
        **{key: words(workload.get(key)) for key in ("title", "verdict", "why")},
        "profile": _profile(sources),
        "deployed": {
            "model": deployed,
            **{
                key: next((model[key] for model in models if model["name"] == deployed), None)
                for key in ("file", "sha256", "bytes")
            },
        },
        "bound_ms": measured(at(sources.evidence, "edge", "limits", "latency_ms"), "edge.json does not have it"),
        "criteria": _criteria(workload),
        "models": models,
        **_compared(models, devices),
        "devices": devices,
        "made": _made(metrics),
        "provenance": _provenance(sources),
        "not_measured": [],
        "deploy": _deploy(sources, deployed, models),
    }
    card["not_measured"] = unmeasured.of(card, sources.evidence)
    return t.cast(Json, presentable(card))


def drawings(sources: Sources, card: Json) -> dict[str, str]:
    """Return the histograms, as SVG by the name of the file."""
    bound = at(sources.evidence, "edge", "limits", "latency_ms")
    found = {
        device["histogram"]: card_device.drawing(device, host, sources.hosts.get(host), bound)
        for host, device in zip(sources.names, card["devices"])
    }
    return {name: drawn for name, drawn in found.items() if name and drawn}


def is_made(path: str) -> bool:
    """Return whether a file of the run's folder, by its path there, is a card or part of one."""
    return MADE.fullmatch(path) is not None


def _profile(sources: Sources) -> Json:
    """Return what the profile says of itself; two keys of it are in the metrics too."""
    found = {key: words(at(sources.profile, section, key)) for section, key in PROFILE}
    for key in ("document", "name"):
        found[key] = found[key] or words(at(sources.metrics, "profile", key))
    return {
        **found,
        "task": words(at(sources.profile, "model", "task")),
        "notes": words(at(sources.profile, "notes"), MAX_NOTES),
    }


def _model(name: str, metrics: t.Any) -> Json:
    said = part(metrics, "models", name)
    error = said.get("error")
    return {
        "name": name,
        "file": words(said.get("file")),
        "sha256": digest(said.get("sha256")),
        "bytes": measured(said.get("bytes"), NOT_THERE),
        "opset": measured(said.get("opset"), NOT_THERE),
        "ir": measured(said.get("ir"), NOT_THERE),
        "error": measured(said.get("mae") if error is None else error, NOT_THERE),
        "p50_ms": measured(said.get("p50_ms"), NOT_THERE),
        "p99_ms": measured(said.get("p99_ms"), NOT_THERE),
    }


def _criteria(workload: Json) -> Json:
    judged = [each for each in entries(workload.get("criteria")) if isinstance(each, dict)]
    counts = Counter(words(each.get("verdict")) or "?" for each in judged)
    return {
        "counts": dict(sorted(counts.items())),
        "not_passed": [_criterion(each) for each in judged if each.get("verdict") in AMISS],
        "not_applicable": [_criterion(each) for each in judged if each.get("verdict") == "not_applicable"],
    }


def _criterion(judged: Json) -> Json:
    value = judged.get("value")
    return {
        **{key: words(judged.get(key)) for key in ("id", "title", "verdict", "bound", "unit", "why")},
        "value": value if scalars.is_number(value) else words(value),
    }


def _compared(models: list[Json], devices: list[Json]) -> Json:
    """Return which models are dominated, by what, and what could not be compared."""
    quantities: dict[str, dict[str, t.Any]] = {
        title: {model["name"]: model[key] for model in models}
        for key, title in (("error", "error"), ("bytes", "size"), ("p50_ms", "latency p50 on the cluster"))
    }
    for device in devices:
        told = {name: figures["p50_ms"] for name, figures in device["models"].items()}
        quantities[f"latency p50 on {device['host']}"] = told
    found = pareto.compare([model["name"] for model in models], quantities)
    return {"compared_by": found.by, "not_compared": found.left, "dominated": found.dominated}


def _made(metrics: t.Any) -> Json:
    """Return how the deployed model was made of the trained one."""
    pruned, whole = part(metrics, "pruning"), part(metrics, "quantization")
    test = part(metrics, "test")
    return {
        "from": words(at(metrics, "source", "from")),
        "from_error": _either(at(metrics, "source", "mae"), at(metrics, "source", "test", "mae")),
        "error": measured(test.get("mae"), NOT_THERE),
        "parameters": measured(at(metrics, "parameters"), NOT_THERE),
        "pruning": None
        if not pruned
        else {
            **{key: measured(pruned.get(key), NOT_THERE) for key in ("asked", "macs", "parameters", "extra_steps")},
            "tuned_error": _either(pruned.get("tuned_mae"), at(pruned, "tuned", "mae")),
            "control_error": _either(pruned.get("control_mae"), at(pruned, "control", "mae")),
        },
        "quantization": None
        if not whole
        else {
            "method": words(whole.get("method")),
            **{key: measured(whole.get(key), NOT_THERE) for key in ("whole", "near", "furthest")},
            "floats": [words(name) or "?" for name in entries(whole.get("floats"))[:MAX_FILES]],
            "calibration": {
                key: measured(at(metrics, "calibration", key), NOT_THERE) for key in ("samples", "mean", "deviation")
            },
        },
        "export_furthest": measured(at(metrics, "export", "furthest"), NOT_THERE),
    }


def _either(value: t.Any, other: t.Any) -> Measured:
    return measured(other if value is None else value, NOT_THERE)


def _provenance(sources: Sources) -> Json:
    evidence, workload, job = sources.evidence, sources.workload, part(sources.workload, "job")
    said = part(evidence, "provenance")
    return {
        "job": {key: words(job.get(key)) for key in ("job_id", "nodes", "state")},
        "code": {
            "collection": words(at(sources.verdict, "versions", "collection")),
            "script_sha256": digest(job.get("script_sha256")),
            "environment": words(at(said, "runtime", "key")),
            "lock_sha256": digest(at(said, "runtime", "lock_sha256")),
        },
        "data": {
            **{key: words(at(said, "data", key)) for key in ("name", "source", "description", "revision")},
            "told": sorted(f"{words(key)}: {words(value)}" for key, value in part(workload, "data").items()),
            "files": _files(part(said, "data", "files")),
        },
        "weights_sha256": digest(at(sources.metrics, "weights_sha256")),
        "from_weights_sha256": digest(at(sources.metrics, "source", "weights_sha256")),
        "evidence": _files({**part(evidence, "artifacts"), **_read(evidence)}),
        "environment": {
            words(name) or "?": {key: words(at(each, key)) for key in ("profile", "here")}
            for name, each in sorted(part(sources.metrics, "environment").items(), key=lambda pair: str(pair[0]))
        },
    }


def _read(evidence: t.Any) -> Json:
    """Return the files that were judged, by the names that they have in the job's output."""
    return {path: found for name, path in FILES.items() if (found := part(evidence, "files", name))}


def _files(listed: Json) -> list[Json]:
    return [
        {
            "name": words(name) or "?",
            "bytes": measured(at(each, "size"), "it is not told"),
            "sha256": digest(at(each, "sha256")),
        }
        for name, each in sorted(listed.items(), key=lambda pair: str(pair[0]))[:MAX_FILES]
    ]


def _deploy(sources: Sources, deployed: str | None, models: list[Json]) -> Json:
    """Return what is needed to put the same file on another device, and what is missing of it."""
    name = f"edge/bundle-{sources.workload.get('id')}.zip"
    kept = [each for each in entries(sources.verdict.get("evidence")) if at(each, "path") == name]
    bundle = digest(at(kept[0], "sha256")) if kept else None
    model = next((model["sha256"] for model in models if model["name"] == deployed), None)
    soak = at(sources.evidence, "edge", "limits", "soak_seconds")
    seconds = soak if scalars.is_number(soak) and 0 <= soak <= 86400 else 0
    why = None
    if deployed not in MODELS:
        why = "which model is deployed is not known"
    elif bundle is None or not PLAIN.fullmatch(name):
        why = f"{name} is not in this folder"
    elif model is None:
        why = "the SHA-256 of the model that was judged is not known"
    return {
        "bundle": name,
        "bundle_sha256": bundle,
        "soak_seconds": seconds,
        "why_not": why,
        "commands": []
        if why or not bundle or not model
        else card_commands.commands(name, bundle, f"{deployed}.onnx", model, seconds),
    }
