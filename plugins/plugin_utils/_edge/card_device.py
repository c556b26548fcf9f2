# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a card says of one device: what it is, and what the model did on it. Pure; no content raises an exception."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import histogram
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

# What edge.json has of each host: the key, what it is, its unit.
FIGURES = (
    ("p50_ms", "latency p50", "ms"),
    ("p95_ms", "latency p95", "ms"),
    ("p99_ms", "latency p99", "ms"),
    ("max_ms", "highest latency", "ms"),
    ("per_second", "inferences a second", ""),
    ("cold_start_s", "cold start", "s"),
    ("memory_gb", "memory", "GB"),
    ("size_mb", "size of the file", "MB"),
    ("near", "share of answers as the cluster's", ""),
    ("temperature_c", "temperature", "°C"),
    ("throttle_events", "throttle events", ""),
    ("power_w", "power", "W"),
)
ENERGY = "energy of an inference"
FACTS = ("board", "machine", "kernel", "python", "onnxruntime", "numpy", "power_mode", "runtime", "model")
MODELS = ("float", "pruned", "int8")
MAX_NAMES = 20  # of rails
UNJUDGED = "edge.json does not have it"
NO_ANSWER = "the device answered nothing"
NO_ENGINE = "no engine was made: nothing makes one yet"
UNKNOWN = "nothing says whether something else ran there"


def describe(host: str, entry: t.Any, document: t.Any) -> Json:
    """Return the device: `entry` is its part of edge.json, `document` what it answered; None where there is none."""
    result = part(document, "measured")
    problem = problem_of(document, entry)
    calm = undisturbed(result, "latency", problem)
    figures = {key: measured(at(entry, key), problem or UNJUDGED) for key, _title, _unit in FIGURES}
    reasons = {problem, *(value for value in figures.values() if isinstance(value, str))}
    facts = {name: words(at(result, name)) or words(at(entry, name)) for name in FACTS}
    drawn = histogram.read(at(result, "latency")) if result else problem or NO_ANSWER
    return {
        "host": words(host) or "?",
        "problem": problem,
        **{name: None if fact in reasons else fact for name, fact in facts.items()},
        "sha256": digest(at(document, "deployed", "sha256")),
        "as_judged": _as_judged(at(entry, "as_judged"), problem),
        "undisturbed": calm,
        "repeats": _repeats(entry, result),
        "figures": figures,
        "energy_mj": _energy(entry, result, problem),
        "energy_of": _names(at(result, "soak", "energy_of")),
        "tensorrt_p50_ms": measured(
            at(result, "tensorrt", "p50_ms"), words(at(result, "tensorrt", "error")) or problem or NO_ENGINE
        ),
        "power_rails": _names(at(result, "soak", "power", "rails")),
        "models": _models(entry, result, problem),
        "histogram": None if isinstance(drawn, str) else histogram.file_name(host),
        "no_histogram": drawn if isinstance(drawn, str) else None,
    }


def problem_of(document: t.Any, entry: t.Any = None) -> str | None:
    """Return why the device measured nothing, by itself or by edge.json; None if it did or nothing is known of it."""
    if part(document, "measured"):
        return None
    problem, judged = at(document, "problem"), at(entry, "cold_start_s")
    said = [words(at(problem, key)) for key in ("id", "text")]
    if isinstance(judged, str) and judged:
        return words(judged)
    if any(said):
        return words(": ".join(each for each in said if each))
    if problem is not None:
        return words(f"it has a problem that is not told: {words(problem)}")
    return None if document is None else "what it answered has no measurement"


def undisturbed(result: Json, name: str, problem: str | None) -> t.Literal[True] | str:
    """Return True if nothing else ran on the device while that was measured, else why that is not said."""
    measurement = part(result, name)
    if measurement.get("undisturbed") is True:
        return True
    if measurement.get("undisturbed") is False:
        return words(f"disturbed: {words(measurement.get('disturbed_by')) or 'it does not say by what'}") or UNKNOWN
    return problem or UNKNOWN


def drawing(device: Json, host: str, document: t.Any, bound: t.Any) -> str | None:
    """Return the device's histogram as SVG, or None if there is none."""
    found = histogram.read(at(document, "measured", "latency"))
    if isinstance(found, str):
        return None
    calm = "undisturbed" if device["undisturbed"] is True else device["undisturbed"]
    told = f"{device['model'] or 'the model'}, {sum(found.counts):,} inferences; {calm}"
    return histogram.svg(found, host, told, bound)


def _as_judged(value: t.Any, problem: str | None) -> bool | str:
    return value if isinstance(value, bool) else words(value) or problem or UNJUDGED


def _repeats(entry: t.Any, result: Json) -> Measured:
    """Return how many measurements there were before the one that counts."""
    there, own = at(entry, "repeats"), result.get("repeats")
    return measured(len(own) if there is None and isinstance(own, list) else there, UNJUDGED)


def _energy(entry: t.Any, result: Json, problem: str | None) -> Measured:
    """Return the energy of an inference in millijoules, else why it is not known."""
    soak = part(result, "soak")
    reasons = [words(at(soak, name, "error")) for name in ("power", "energy")]
    why = "; ".join(each for each in reasons if each)
    lacking = problem or why or ("its result does not say" if soak else "there was no soak")
    value = at(entry, "millijoules_per_inference")
    return measured(soak.get("millijoules_per_inference") if value is None else value, lacking)


def _models(entry: t.Any, result: Json, problem: str | None) -> dict[str, dict[str, Measured]]:
    """Return the latency of each model, measured in turn; of a device that was disturbed meanwhile none is said."""
    told = {**part(result, "models"), **part(entry, "models")}
    lacking = problem or "the models were not measured in turn"
    calm = undisturbed(result, "compared", lacking)
    return {
        name: {key: measured(at(told, name, key), lacking) if calm is True else calm for key in ("p50_ms", "p99_ms")}
        for name in MODELS
    }


def _names(value: t.Any) -> list[str]:
    return [words(each) or "?" for each in entries(value)[:MAX_NAMES]]
