# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cells of matrix.yml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

MATRIX = Path(__file__).with_name("matrix.yml")
GROUPS = ("slurm", "controller", "node")


@dataclass(frozen=True)
class Cell:
    """What is to be tried: a Slurm release, a controller, or a Python of the nodes."""

    group: str
    slurm: str
    slurmdbd: bool
    python: str = ""
    packages: str = ""

    @property
    def id(self) -> str:
        """What --only and docs/support.json call it."""
        if self.group == "slurm":
            return f"slurm-{self.slurm}{'-slurmdbd' if self.slurmdbd else ''}"
        return f"{self.group}-python{self.python}"

    @property
    def cluster(self) -> tuple[str, bool]:
        """Cells that agree in this follow each other on one cluster."""
        return self.slurm, self.slurmdbd


def read(path: Path = MATRIX) -> list[Cell]:
    """Return every cell, in the order of the file."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    cells = [Cell(group=group, **row) for group in GROUPS for row in document[group]]
    identities = [cell.id for cell in cells]
    if set(document) != set(GROUPS) or len(set(identities)) != len(identities):
        raise ValueError(f"{path}: an unknown group, or one cell twice")
    return cells


def by_cluster(cells: list[Cell]) -> list[list[Cell]]:
    """Return the cells in groups of one cluster, the largest first, so that two workers end at about the same time."""
    groups: dict[tuple[str, bool], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.cluster, []).append(cell)
    return sorted(groups.values(), key=len, reverse=True)
