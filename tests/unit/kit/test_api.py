# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users' workloads import of the kit. A change here is one that they notice: see kit.API_VERSION."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

import kit
import pytest

# By module: each public name with its parameters; of a class those of its methods, and its other public names.
API: dict[str, dict[str, Any]] = {
    "errors": {"KitError": {}},
    "files": {
        "METRICS_FILE": "metrics.json",
        "json_line": "row",
        "only_ours": "path",
        "plain": "value",
        "sha256": "path",
        "sync_directory": "path",
        "write_atomic": "path, fill, mode=420, durable=True",
        "write_json": "path, document, durable=True",
    },
    "job": {
        "Job": {
            "__new__": "_cls, job_id, attempt",
            "job_id": "property",
            "attempt": "property",
            "stamp": "property",
        },
        "current_job": "environment=None",
        "node_file": "path",
        "node_name": "environment=None",
    },
    "metrics": {
        "Progress": {
            "__init__": "self, path, markers_folder=None, job=None, *, append=False, every=0.0",
            "row": "self, **fields",
            "close": "self",
        },
        "write_metrics": "path, metrics, job=None",
    },
    "quote": {"LENGTH": 2000, "quoted": "text"},
    "staged": {
        "STAND_IN": "stand-in",
        "FACTS": ("name", "source", "description", "revision", "train", "test", "rows"),
        "is_stand_in": "folder",
        "read_staged": "folder, *, hashed=True",
    },
}


def parameters(function: Any) -> str:
    """The parameters as they are written, without their types."""
    found = [each.replace(annotation=each.empty) for each in inspect.signature(function).parameters.values()]
    return str(inspect.Signature(found)).strip("()")


def described(value: Any) -> Any:
    if inspect.isclass(value):
        made = ("__init__", "__new__")
        names = {name: each for name, each in vars(value).items() if name in made or not name.startswith("_")}
        return {name: parameters(each) if callable(each) else "property" for name, each in names.items()}
    return parameters(value) if callable(value) else value


def public_names(module: ModuleType) -> dict[str, Any]:
    """What the module itself defines, as described in API."""
    own = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and not inspect.ismodule(value) and _is_own(module, name, value)
    }
    return {name: described(value) for name, value in own.items()}


def _is_own(module: ModuleType, name: str, value: Any) -> bool:
    return value.__module__ == module.__name__ if callable(value) else name.isupper()


@pytest.mark.parametrize("name", API)
def test_the_names_that_workloads_import_are_these(name: str) -> None:
    assert public_names(importlib.import_module(f"kit.{name}")) == API[name]


def test_the_version_is_that_of_these_names() -> None:
    assert kit.API_VERSION == 1


def test_the_guide_describes_each_name(root: Any) -> None:
    page = (root / "docs/guides/own-workload.md").read_text(encoding="utf-8")
    section = page.partition("## The kit")[2].partition("\n## ")[0]
    assert f"`kit.API_VERSION` is {kit.API_VERSION}" in section
    names = [f"kit.{module}.{name}" for module, names in API.items() for name in names]
    assert [name for name in names if f"`{name}`" not in section and f"`{name}(" not in section] == []
