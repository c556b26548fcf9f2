# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the deployment cards of a run into its folder, from the verdict and what the run left there. PRIVATE.

card-<id>.md       the card for people
card-<id>.json     the same as a document (schema card.json)
latency-<host>.svg how long the inferences on a device took
"""

from __future__ import annotations

import typing as t
import urllib.parse
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common.atomic import write_atomic
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import read_json, write_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import card, card_page, results
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import readback
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import verdict as run_verdict

Json = dict[str, t.Any]
MAX_PROFILE = 1 << 20  # bytes


def write(folder: Path, verdict: Json) -> list[str]:
    """Write a card for each workload that leaves a model for devices; return a line for the screen for each.

    A card decides nothing: one that cannot be made is told, and the verdict stands.
    """
    return [
        _written(folder, verdict, workload)
        for workload in verdict["workloads"]
        if workload["name"] in card.WORKLOADS and run_verdict.is_of_this_run(workload)
    ]


def _written(folder: Path, verdict: Json, workload: Json) -> str:
    identity = workload["id"]
    page = folder / f"card-{identity}.md"
    try:
        sources = _sources(folder, verdict, workload)
        document = card.document(sources)
        schema.require("card", document, f"the card of {identity}")
        for name, drawing in card.drawings(sources, document).items():
            write_atomic(str(folder / name), drawing.encode())
        write_json(page.with_suffix(".json"), document)
        write_atomic(str(page), card_page.markdown(document).encode())
    except Exception as exc:  # whatever it is, it must not hide the verdict, which is written already
        return f"no card:  {identity}: {type(exc).__name__}: {scalars.bounded(str(exc))}"
    return f"card:     {page}"


def _sources(folder: Path, verdict: Json, workload: Json) -> card.Sources:
    identity = workload["id"]
    evidence = readback.evidence(folder, identity)
    there = (folder / results.FOLDER / identity).glob("*.json")
    hosts = [urllib.parse.unquote(path.name.removesuffix(".json")) for path in there]
    return card.Sources(
        verdict,
        workload,
        evidence,
        _profile(folder / results.FOLDER / f"profile-{identity}.json", evidence),
        {host: results.read(folder, identity, host) for host in hosts},
    )


def _profile(path: Path, evidence: t.Any) -> t.Any:
    """Return the profile that the job read, of its evidence or as it was fetched; None if it is neither."""
    judged = evidence.get("profile") if isinstance(evidence, dict) else None
    try:
        if judged is not None or path.stat().st_size > MAX_PROFILE:
            return judged
        return read_json(path)
    except (OSError, ValueError, RecursionError):
        return None
