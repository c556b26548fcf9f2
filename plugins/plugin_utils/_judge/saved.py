# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one place that computes a verdict: for the play, for an earlier pass that is to stand, for judging once again.

Pure. PRIVATE to the collection.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import spec, verdicts
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.criterion import Criterion

Json = dict[str, Any]


@dataclass(frozen=True)
class Rules:
    """What evidence is judged by: a workload's criteria, checked, and the references that they may ask for."""

    criteria: list[Criterion]
    references: Json | None

    @classmethod
    def read(
        cls, manifest: Json, *, overrides: Any, references: Any, pattern_sets: Iterable[str] | None = None
    ) -> Rules:
        """Return the rules of a manifest's `id` and `criteria` with an inventory's settings; raise CriteriaError."""
        criteria = spec.read(
            manifest["criteria"],
            overrides,
            workload=manifest["id"],
            pattern_sets=pattern_sets,
            references=references,
        )
        return cls(criteria, references)


@dataclass(frozen=True)
class Judged:
    """The verdict over all, and what it is made of: the job's own outcome and each criterion."""

    verdict: str
    criteria: list[Json]


def judge_saved(evidence: Json, rules: Rules, *, now: float, context: Json | None = None) -> Judged:
    """Judge evidence as of `now`, in `context` if given, else in that of when it was saved.

    Never raises for what the evidence holds.
    """
    if context is not None:
        evidence = {**evidence, "context": context}
    today = datetime.datetime.fromtimestamp(now, tz=datetime.timezone.utc).date()
    judged = verdicts.judge(evidence, rules.criteria, references=rules.references, today=today)
    return Judged(verdicts.overall(judged), judged)
