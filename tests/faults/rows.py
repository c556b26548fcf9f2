# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of faults.yml and the other tables: what is done to the cluster, when, and what must come of it."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field
from pathlib import Path

import yaml

TABLE = Path(__file__).with_name("faults.yml")
FLEET = Path(__file__).with_name("fleet.yml")
PRETRAINING = Path(__file__).with_name("pretraining.yml")
PROFILES = Path(__file__).with_name("profiles.yml")
EDGE = Path(__file__).with_name("edge.yml")
GROUPS = ("slurm", "job", "judge", "gpu", "ranks", "share", "play", "stage")
APART = {"pretraining": PRETRAINING, "profiles": PROFILES, "edge": EDGE, "fleet": FLEET}  # in tables of their own
MOMENTS = (
    *("before", "preflight", "staging", "deploying", "submitted", "pending"),
    *("running", "training", "completing", "judging", "reporting"),
)
WORKLOADS = ("canary", "ranks_canary", "pretraining", "training_profile", "embedded_training", "edge_job")
VERDICTS = ("pass", "fail", "undetermined")


@dataclass(frozen=True)
class Names:
    """The criterion or finding that must stand in verdict.json, and what it must say.

    %compute01/0 stands for the UUID of that node's GPU, %j for the canary's job id.
    """

    id: str
    verdict: str
    says: list[str] = field(default_factory=list)
    of: str = "first"


@dataclass(frozen=True)
class Expected:
    """What must come of it: the run's verdict, what it names, words on the screens, and how soon (seconds)."""

    within: float
    verdict: str | None = None  # None: the play is refused before there is a run
    names: list[Names] = field(default_factory=list)
    screen: list[str] = field(default_factory=list)
    why: str = ""  # words of the run's why
    alone: bool = False  # nothing but what it names may be undetermined either
    also: list[str] = field(default_factory=list)  # what else fails for the same reason; nothing but these may
    second: str | None = None  # the verdict of the play that the step `again` or `beside` starts
    second_screen: list[str] = field(default_factory=list)
    jobs: int = 1  # jobs of the canary that Slurm ever saw


@dataclass(frozen=True)
class Row:
    """One fault."""

    id: str
    group: str
    fault: str
    when: str
    expect: Expected
    workload: str = "canary"
    canary: str = "well"
    manifest: dict[str, t.Any] = field(default_factory=dict)
    settings: dict[str, t.Any] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    do: list[str] = field(default_factory=list)
    undo: list[str] = field(default_factory=list)
    quick: bool = False


class BadRowError(ValueError):
    """A row that cannot be meant so."""


def _one(given: dict[str, t.Any]) -> Row:
    try:
        expect = dict(given["expect"])
        names = [Names(**each) for each in expect.pop("names", [])]
        row = Row(**{**given, "expect": Expected(**expect, names=names)})
    except (KeyError, TypeError) as error:
        raise BadRowError(f"{given.get('id')}: {error}") from error
    choices = (
        (row.group, (*GROUPS, *APART)),
        (row.workload, WORKLOADS),
        (row.when, MOMENTS),
        (row.expect.verdict, (*VERDICTS, None)),
    )
    for value, known in choices:
        if value not in known:
            raise BadRowError(f"{row.id}: {value!r} is none of {known}")
    expected = row.expect
    told = expected.names or expected.screen or expected.second_screen or expected.why
    if not told and expected.verdict != "pass":
        raise BadRowError(f"{row.id}: a fault must be named")
    for name in row.expect.names:
        if name.verdict != "pass" and not name.says:
            raise BadRowError(f"{row.id}: {name.id} must say something")
    return row


def load(path: Path = TABLE) -> list[Row]:
    """Return the rows. Raises BadRowError where one cannot be meant so."""
    rows = [_one(given) for given in yaml.safe_load(path.read_text(encoding="utf-8"))]
    identities = [row.id for row in rows]
    if len(set(identities)) < len(identities):
        raise BadRowError("two rows have the same id")
    return rows
