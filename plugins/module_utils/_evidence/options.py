# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of metrics_assert, shared by its module and its action plugin. PRIVATE to the collection."""

from __future__ import annotations

from typing import Any

# Handled entirely on the controller; these are not sent to the module.
CONTROLLER_ONLY = (
    "baseline",
    "context",
    "criteria",
    "evidence",
    "fail",
    "legs",
    "overrides",
    "references",
    "save",
    "workload",
)


def argument_spec() -> dict[str, Any]:
    """Return the argument specification."""
    return {
        "workload": {"type": "str", "default": "workload"},
        "job": {"type": "dict"},
        "output": {"type": "str"},
        "files": {
            "type": "dict",
            "default": {},
        },
        "logs": {
            "type": "dict",
            "default": {},
            "options": {"stdout": {"type": "str"}, "stderr": {"type": "str"}},
        },
        "end_marker": {"type": "str", "default": ""},
        "legs": {
            "type": "dict",
            "options": {"before": {"type": "str", "required": True}, "after": {"type": "str", "required": True}},
        },
        "artifacts": {"type": "list", "elements": "str", "default": []},
        "context": {"type": "dict", "default": {}},
        "criteria": {"type": "list", "elements": "dict"},
        "overrides": {"type": "dict", "default": {}},
        "references": {"type": "dict", "default": {}},
        "patterns": {"type": "dict", "default": {}},
        "baseline": {"type": "str"},
        "evidence": {"type": "str"},
        "save": {"type": "str"},
        "fail": {"type": "bool", "default": True},
        "timeout": {"type": "float", "default": 120.0},
        "settle": {"type": "float", "default": 5.0},
        "max_json_bytes": {"type": "int", "default": 1048576},
    }


MUTUALLY_EXCLUSIVE = [
    ("evidence", "job"),
    ("evidence", "output"),
    ("evidence", "save"),
    ("evidence", "legs"),
    ("baseline", "legs"),
]
