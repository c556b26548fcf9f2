# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings for the tests of this folder."""

from __future__ import annotations

import typing as t

Json = dict[str, t.Any]


def finding(identity: str = "gpu.ecc", verdict: str = "pass", *, node: str | None = "n1", **changes: t.Any) -> Json:
    """Return a finding about a node; `gpu` and `host` are places as well."""
    where = {"node": node, **{key: changes.pop(key) for key in ("gpu", "host", "target") if key in changes}}
    return {
        "id": identity,
        "title": "ECC errors",
        "verdict": verdict,
        "value": 0,
        "bound": "= 0",
        "unit": None,
        "source": "NVML",
        "why": "0 is = 0",
        "remedy": f"look at {node}" if verdict in ("fail", "undetermined") else None,
        "bound_from": "manifest",
        "severity": "gate",
        "where": {key: name for key, name in where.items() if name is not None},
        **changes,
    }
