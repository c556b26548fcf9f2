# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build findings: judged criteria that name the faulty part (schema finding.json)."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import comparisons, remedies
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import UndeterminedError

Json = dict[str, t.Any]
# The reason of each check of a GPU that answers none of them; tables fold these findings into one line.
SILENT = "the GPU as a whole does not answer"


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
    """Return a finding; one that is only recorded does not affect the verdict."""
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


def judged(
    identity: str,
    title: str,
    test: str,
    bound: t.Any,
    value: t.Any,
    *,
    source: str,
    unit: str | None = None,
    where: Json | None = None,
    missing: str | None = None,
    detail: str | None = None,
    symptom: str | None = None,
    fill: Json | None = None,
    record: bool = False,
) -> Json:
    """Apply `test` to `value`, as for a criterion, and return the finding.

    A value of None is undetermined, with `missing` as the reason. `detail` is added to the reason. The remedy comes
    from files/remedies, by `symptom` (default: `identity`), with `fill` added to `where`. With `record` the finding
    only reports.
    """
    try:
        if value is None:
            raise UndeterminedError(missing or "it was not reported")
        outcome = comparisons.judge_value(test, bound, value, _NO_NEEDS)
        verdict, why = ("pass" if outcome.met is True else "fail"), outcome.why
    except UndeterminedError as exc:
        verdict, why = "undetermined", str(exc)
    if detail:
        why = f"{why}: {detail}"
    if record:
        verdict, why = "recorded", f"only recorded (would be {verdict}): {why}"
    return {
        **finding(
            identity,
            title,
            verdict,
            value=scalars.bounded(value),
            bound=comparisons.bound_text(test, bound),
            source=scalars.printable(source),
            why=scalars.printable(why),
            remedy=remedies.remedy(symptom or identity, {**(where or {}), **(fill or {})})
            if verdict in ("fail", "undetermined")
            else None,
            where=where,
        ),
        "unit": unit,
    }


def version_at_least(identity: str, title: str, least: str, version: t.Any, **more: t.Any) -> Json:
    """Return the finding whether `version` is `least` or newer, both like 3.11 or 3.11.2; `more` as for `judged`."""
    found = judged(identity, title, "ge", _ordered(least), _ordered(version), **more)
    bound = f">= {least}"
    if found["verdict"] == "undetermined":
        return {**found, "bound": bound}
    numbers = f"{scalars.show(_ordered(version))} is"
    why = found["why"].replace(numbers, f"{version} is").replace(found["bound"], bound)
    return {**found, "value": version, "bound": bound, "why": why}


def is_version(version: t.Any) -> bool:
    """Return whether `version_at_least` can read it."""
    return _ordered(version) is not None


def _ordered(version: t.Any) -> int | None:
    """Return a number by which versions sort: 3.11.2 above 3.9."""
    match = re.match(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", version) if isinstance(version, str) else None
    return (
        None if match is None else sum(int(part or 0) * 10000**power for part, power in zip(match.groups(), (2, 1, 0)))
    )


def not_applicable(identity: str, title: str, reason: str, *, source: str, where: Json | None = None) -> Json:
    """Return the finding for a check that the inventory says does not apply; `reason` is the inventory's."""
    return {
        **finding(identity, title, "not_applicable", value=None, bound="-", source=source, why=reason, where=where),
        "severity": "gate",
    }


def _nothing(*_other: str) -> t.NoReturn:
    raise UndeterminedError("the bound of a probe has no reference")


_NO_NEEDS = comparisons.Needs(reference=_nothing, denominator=_nothing)


def step_failed(step: str, title: str, why: str, where: Json, remedy: str | None = None) -> Json:
    """Return the finding for a step of the collection that failed: undetermined, since nothing was measured."""
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
