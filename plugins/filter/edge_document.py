# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: edge_document
version_added: 0.4.0
short_description: Make edge.json, on which a workload is judged that was measured on edge hosts
description:
  - Reads what M(mlops.hpc_validation.edge_host) wrote into the run's folder for each host, and the bundle and the
    metrics that the job left. C(deployed), C(bundle.sha256) and C(models.<name>.sha256) in these say what was judged.
  - A value that cannot be had is a text that says why, so that the judge finds no number, and the report shows the
    text.
options:
  _input:
    description: The hosts of the inventory's group, as P(mlops.hpc_validation.edge_hosts#filter) returned them.
    type: dict
    required: true
  folder:
    description: The run's folder on the controller.
    type: str
    required: true
  workload:
    description: The ID of the workload.
    type: str
    required: true
  job:
    description: Its job, as M(mlops.hpc_validation.slurm_job) returned it.
    type: dict
    required: true
  found:
    description: >-
      What M(ansible.builtin.stat) found of the bundle in the job's folder, or C(msg), why it could not be fetched.
    type: dict
  failures:
    description: Why there is no file of a host, by host, if that is known.
    type: dict
    default: {}
author:
  - the mlops.hpc_validation authors
"""

EXAMPLES = r"""
- name: Show it
  ansible.builtin.debug:
    msg: "{{ edge.hosts | mlops.hpc_validation.edge_document(run.folder, 'PROFILE-EMBEDDED', job) }}"
"""

RETURN = r"""
_value:
  description: The text of the file.
  type: str
"""

import typing as t
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import json_files
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import (
    bundle,
    document,
    judged,
    problem,
    results,
)


def edge_document(
    hosts: dict[str, t.Any],
    folder: str,
    workload: str,
    job: dict[str, t.Any],
    found: dict[str, t.Any] | None = None,
    failures: dict[str, t.Any] | None = None,
) -> str:
    """Return the text."""
    run, job = Path(str(folder)), plain(job)
    made, known = _made(run, str(workload), job, plain(found))
    told = {
        host: _told(run, str(workload), host, each, plain(failures or {}).get(host))
        for host, each in plain(hosts).items()
    }
    return json_files.encode(document.document(job, told, made, known)).decode()


def _made(
    run: Path, workload: str, job: dict[str, t.Any], found: dict[str, t.Any] | None
) -> tuple[bundle.Bundle | problem.ProblemError, str | problem.ProblemError]:
    """Return the bundle, and the SHA-256 of the model that the job judged; of each, or why it is not known."""
    try:
        made = bundle.read(results.bundle_path(run, workload), job, found)
    except problem.ProblemError as exc:
        return exc, exc
    try:
        return made, judged.sha256(results.metrics_path(run, workload), job, made)
    except judged.OtherBundleError as exc:
        return exc, exc
    except problem.ProblemError as exc:
        return made, exc


def _told(run: Path, workload: str, host: str, known: dict[str, t.Any], failure: str | None) -> document.Told:
    """Return what is known of a host: if it was not measured, what was found before stands."""
    packages = (known.get("wheelhouse") or {}).get("packages")
    if known.get("problem"):
        return document.Told(problem.document(known["problem"]), known.get("look"), packages)
    return document.Told(results.read(run, workload, host, failure), known.get("look"), packages)


class FilterModule:
    def filters(self) -> dict[str, t.Any]:
        return {"edge_document": edge_document}
