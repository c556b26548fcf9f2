# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of a run's results where people look for the latest, in addition to the job's own folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kit.errors import KitError
from kit.files import sha256, write_atomic
from kit.metrics import write_metrics

PUBLISHED_FILE = "published.json"


def publish(output: Path, results: Path, names: Iterable[str]) -> None:
    """Copy files of ``output`` to ``results``, each atomically, read them back, and record that in ``output``.

    The record, published.json, exists only if every file arrived. Raise KitError.
    """
    published = {}
    try:
        results.mkdir(parents=True, exist_ok=True)
        for name in names:
            content = (output / name).read_bytes()
            if results.resolve() != output.resolve():
                _write(results / name, content)
            published[name] = sha256(results / name)
            if published[name] != sha256(output / name):
                raise KitError(f"{results / name} differs from what was written: another run publishes there too")
    except OSError as error:
        raise KitError(
            f"the results cannot be published to {results}: {error.strerror}; let the submitting user write there, or "
            "have the workload publish elsewhere"
        ) from error
    write_metrics(output / PUBLISHED_FILE, {"directory": str(results), "sha256": published})


def _write(path: Path, content: bytes) -> None:
    write_atomic(path, lambda stream: stream.write(content))
