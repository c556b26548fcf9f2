# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the document expects a run's results, and how they get there. No PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from kit.files import sha256, write_atomic
from kit.metrics import write_metrics
from sft_min_data import WorkloadError

PUBLISHED_FILE = "published.json"


def runs_root(environment: Mapping[str, str]) -> Path | None:
    """Return the folder of all runs' results: RUNS_ROOT, else on the share; None where neither is named."""
    if environment.get("RUNS_ROOT"):
        return Path(environment["RUNS_ROOT"])
    share = environment.get("HPC_VALIDATION_SHARE")
    return Path(share, "results", "training") if share else None


def publish(output: Path, results: Path, names: Iterable[str]) -> None:
    """Copy files of ``output`` to ``results``, each whole or not at all, read them back, and note that in ``output``.

    The note, published.json, is there only when every file arrived. Raises WorkloadError.
    """
    published = {}
    try:
        results.mkdir(parents=True, exist_ok=True)
        for name in names:
            content = (output / name).read_bytes()
            if results.resolve() != output.resolve():
                write_atomic(results / name, lambda stream, content=content: stream.write(content))
            published[name] = sha256(results / name)
            if published[name] != sha256(output / name):
                raise WorkloadError(f"{results / name} is not what was written: another run publishes there too")
    except OSError as error:
        raise WorkloadError(
            f"the results cannot be published to {results}: {error.strerror}; let the submitting user write there, or "
            "choose another --run_name"
        ) from error
    write_metrics(output / PUBLISHED_FILE, {"directory": str(results), "sha256": published})
