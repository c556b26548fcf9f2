# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Assemble baselines: other legs of the same job, or a run whose evidence was saved.

A baseline is {source: legs or stored, runs: [...]}. Each run is an evidence document; that of a leg has the leg's entry
of legs.json in `leg`. Pure. PRIVATE to the collection.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

LEGS = "legs"
STORED = "stored"
NAMES = ("before", "after")
MEASURED = "measured"  # the leg whose metrics are the job's own


def _source(name: str) -> str:
    """Return the name of a leg's file while it is collected; no document may be named `baseline`."""
    return f"baseline.{name}"


def leg_files(legs: dict[str, str] | None) -> dict[str, dict[str, str]]:
    """Return the files to read besides the requested ones: the metrics of each leg, at the path given for it."""
    return {_source(name): {"path": path, "format": "json"} for name, path in (legs or {}).items()}


def check(legs: dict[str, str] | None, files: dict[str, Any]) -> list[str]:
    """Return the errors in a request for `legs` and `files`."""
    errors = [f"files: {name!r}: expected a name other than the legs' own" for name in leg_files(legs) if name in files]
    if legs and LEGS not in files:
        errors.append("legs: expected a document legs among the files, which says how each leg ended")
    return errors


def with_legs(document: dict[str, Any], legs: Iterable[str]) -> dict[str, Any]:
    """Return the evidence with the documents of the legs moved into its baseline."""
    names = list(legs)
    sources = [_source(name) for name in names]
    result = {key: value for key, value in document.items() if key not in sources}
    result["files"] = {name: entry for name, entry in document["files"].items() if name not in sources}
    result["problems"] = [problem for problem in document["problems"] if problem["source"] not in sources]
    result["baseline"] = {"source": LEGS, "runs": [_run(document, name) for name in names]}
    return result


def _run(document: dict[str, Any], name: str) -> dict[str, Any]:
    own = {_source(name): "metrics", "provenance": "provenance"}  # all legs share the job's provenance
    problems = [problem for problem in document["problems"] if problem["source"] in own]
    return {
        "leg": {**_entry(document, name), "name": name},
        "job": document.get("job"),
        "files": {key: document["files"][source] for source, key in own.items() if source in document["files"]},
        "problems": [{**problem, "source": own[problem["source"]]} for problem in problems],
        **{key: document[source] for source, key in own.items() if source in document},
    }


def _entry(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a leg's entry in legs.json, or an empty object."""
    legs = document.get(LEGS)
    entry = legs.get(name) if isinstance(legs, dict) else None
    return entry if isinstance(entry, dict) else {}


def stored(evidence: dict[str, Any]) -> dict[str, Any]:
    """Return saved evidence as a baseline: its own legs if it has any, otherwise its run."""
    baseline = evidence.get("baseline")
    if isinstance(baseline, dict) and baseline.get("source") == LEGS:
        return {"source": STORED, "runs": baseline.get("runs")}
    return {"source": STORED, "runs": [{key: value for key, value in evidence.items() if key != "baseline"}]}
