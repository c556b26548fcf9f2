# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings: judged criteria that name the part at fault (schema finding.json)."""

from __future__ import annotations

import typing as t

Json = dict[str, t.Any]


def finding(
    identity: str,
    title: str,
    verdict: str,
    *,
    value: t.Any,
    bound: str,
    source: str,
    why: str,
    remedy: str | None = None,
    where: Json | None = None,
) -> Json:
    """A finding; one that is only recorded decides nothing."""
    return {
        "id": identity,
        "title": title,
        "verdict": verdict,
        "value": value,
        "bound": bound,
        "unit": None,
        "source": source,
        "why": why,
        "remedy": remedy,
        "bound_from": "manifest",
        "severity": "record" if verdict == "recorded" else "gate",
        "where": where or {},
    }


def step_failed(step: str, title: str, why: str, where: Json, remedy: str | None = None) -> Json:
    """The finding for a step of ours that could not be carried out: undetermined, since nothing was measured."""
    return finding(
        f"step.{step}",
        title,
        "undetermined",
        value=None,
        bound="completes",
        source=step,
        why=why,
        remedy=remedy,
        where={"step": step, **where},
    )
