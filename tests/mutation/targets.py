# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that are changed, and the tests that they are held against."""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.mutation import text_changes
from tests.mutation.changes import Change, changes

ROOT = Path(__file__).resolve().parents[2]
COLLECTION = "collections/ansible_collections/mlops/hpc_validation"
TARGETS = Path(__file__).with_name("targets.yml")


class MutationError(Exception):
    """The measurement itself is not sound."""


@dataclass(frozen=True)
class Target:
    """A file, the tests that it is held against, and its mutants that behave no differently."""

    path: str
    tests: list[str]
    equivalent: dict[str, str]

    @property
    def name(self) -> str:
        """What it is called by: the file's path up to the first dot."""
        return self.path.partition(".")[0]

    def is_called(self, pattern: str) -> bool:
        """Say whether a name of the command line means this file, its folder, or a pattern of either."""
        forms = (pattern, f"{pattern}/*", f"*/{pattern}", f"*/{pattern}/*")
        return any(fnmatch.fnmatch(self.name, form) for form in forms)

    @property
    def is_module(self) -> bool:
        """Say whether tests import it; else they open it."""
        return self.path.endswith(".py")

    @property
    def opened_as(self) -> str:
        """The path by which the tests import or open it."""
        return str(ROOT / (f"{COLLECTION}/{self.path}" if self.path.startswith("plugins/") else self.path))

    @property
    def imported_as(self) -> str:
        """The name by which the tests import it."""
        parts = Path(self.path).with_suffix("").parts
        return ".".join(
            parts[1:] if parts[0] == "files" else ("ansible_collections", "mlops", "hpc_validation", *parts)
        )

    def whole(self) -> ast.Module | str:
        """The file as it is."""
        text = (ROOT / self.path).read_text(encoding="utf-8")
        return ast.parse(text, self.path) if self.is_module else text

    def mutants(self) -> Iterator[tuple[Change, ast.Module | str]]:
        """Each mutant, which lasts until the next one is asked for."""
        whole = self.whole()
        if isinstance(whole, ast.Module):
            for change in changes(whole):
                yield change, whole
        elif self.path.endswith(".j2"):
            yield from text_changes.of_template(whole)
        else:
            yield from text_changes.of_assertions(whole)


def read_targets(names: list[str]) -> list[Target]:
    """Return the targets called for, all without names."""
    described = yaml.safe_load(TARGETS.read_text(encoding="utf-8"))
    targets = [
        Target(path, entry["tests"], {item["change"]: item["reason"] for item in entry.get("equivalent") or []})
        for path, entry in described.items()
    ]
    unknown = [name for name in names if not any(target.is_called(name) for target in targets)]
    if unknown:
        raise MutationError(f"no target {', '.join(unknown)}; there are {', '.join(each.name for each in targets)}")
    return [each for each in targets if not names or any(each.is_called(name) for name in names)]
