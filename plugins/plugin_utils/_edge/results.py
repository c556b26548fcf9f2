# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the controller keeps what each edge host answered, and how it is read back. PRIVATE to the collection."""

from __future__ import annotations

import typing as t
import urllib.parse
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import strict_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common.atomic import write_atomic
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import encode_compact
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import answer, problem
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.problem import ProblemError

Json = dict[str, t.Any]
FOLDER = "edge"
MAX_BYTES = answer.MAX_CHARACTERS


def bundle_path(run: Path, workload: str) -> Path:
    """Return where the bundle of a workload is in a run's folder."""
    return run / FOLDER / f"bundle-{workload}.zip"


def metrics_path(run: Path, workload: str) -> Path:
    """Return where the metrics of the workload's job are in a run's folder."""
    return run / FOLDER / f"metrics-{workload}.json"


def device_folder(run: Path, workload: str) -> str:
    """Return the name of the folder on a device: one for each workload, or the next would replace its model."""
    return f"{run.name}-{workload}"


def path(run: Path, workload: str, host: str) -> Path:
    """Return where the answer of a host is; a name that is no file's is written in another way."""
    return run / FOLDER / workload / f"{urllib.parse.quote(host, safe='')}.json"


def write(run: Path, workload: str, host: str, document: Json) -> Path:
    """Write the answer of a host as a whole or not at all, and return where. Raise OSError."""
    place = path(run, workload, host)
    write_atomic(str(place), encode_compact(document))
    return place


def read(run: Path, workload: str, host: str, without: str | None = None) -> Json:
    """Return the answer of a host, of this run, or a document whose problem says why there is none.

    `without` is that reason, if it is known.
    """
    place = path(run, workload, host)
    try:
        with place.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ProblemError("result", f"{place} has more than {MAX_BYTES} bytes")
        document = strict_json.parse(content, parse_constant=str)
        if not isinstance(document, dict) or document.get("schema") != 1:
            raise ProblemError("result", f"{place} is not a document of schema 1")
        return answer.measured(document, device_folder(run, workload))
    except ProblemError as exc:
        return problem.document(exc.told)
    except FileNotFoundError:
        return problem.document(problem.problem("result", without or "it was not measured"))
    except (OSError, ValueError, RecursionError) as exc:
        return problem.document(problem.problem("result", f"{place} cannot be read: {exc}"))
