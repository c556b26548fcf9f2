# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the facts of one part, with what the inventory excuses and what the part does not have. PRIVATE."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, replace

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import findings, remedies
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.reading import Reading

Json = dict[str, t.Any]


class Item(t.NamedTuple):
    """One of several similar things: a server, a target, a mirror group."""

    name: str
    test: str
    bound: t.Any
    value: t.Any
    missing: str | None = None  # why there is no value, if known
    detail: str | None = None
    record: bool = False
    symptom: str | None = None  # has the remedy, if that is not the check's own
    number: int | None = None  # of the target or server, for the commands in its remedy


@dataclass(frozen=True)
class Judge:
    """Judge the facts of one part, named by `where`; `expect` is what the inventory expects, with defaults."""

    setting: str  # the name of that setting in the inventory
    titles: t.Mapping[str, str]  # of all checks
    expect: Json
    where: Json
    reader: str = ""  # what read the facts, if each source is to name it
    note: str = ""  # added to each reason

    def of(self, **where: str) -> Judge:
        """Return the judge of a part of this one."""
        return replace(self, where={**self.where, **where})

    def check(
        self,
        identity: str,
        test: str,
        bound: t.Any,
        value: t.Any,
        source: str,
        *,
        unit: str | None = None,
        missing: str | None = None,
        detail: str | None = None,
        record: bool = False,
        symptom: str | None = None,
        number: int | None = None,
        **where: t.Any,
    ) -> Json:
        """Test `value`, None being undetermined; `where` adds to the place, such as target or path."""
        place = {**self.where, **{key: scalars.printable(str(name)) for key, name in where.items()}}
        return self.excused(identity, source, place) or findings.judged(
            identity,
            self.titles[identity],
            test,
            bound,
            value,
            source=self._source(source),
            unit=unit,
            where=place,
            missing=missing,
            detail="; ".join(filter(None, (detail, self.note))),
            record=record,
            symptom=symptom,
            fill={"number": number},
        )

    def check_reading(
        self,
        identity: str,
        test: str,
        bound: t.Any,
        reading: Reading,
        source: str,
        *,
        needed: bool = True,
        unit: str | None = None,
        detail: str | None = None,
        symptom: str | None = None,
    ) -> Json:
        """Test a reading. A value that a part does not support fails closed if it is `needed`, else it is recorded.

        `bound` may be a reading itself.
        """
        excused = self.excused(identity, source)
        if excused:
            return excused
        asked = bound if isinstance(bound, Reading) else Reading(bound)
        absent = reading if reading.missing else asked
        if absent.missing:
            if absent.unsupported and not needed:
                return self.record(identity, reading.value, absent.missing, source, unit=unit)
            detail = None
            family = identity.partition(".")[0]
            symptom = absent.symptom or f"{family}.{'unsupported' if absent.unsupported else 'unread'}"
        if asked.value is None:
            why = absent.missing or "no expected value is known"
            return {**self.decided(identity, "undetermined", reading.value, "-", why, source, symptom), "unit": unit}
        return self.check(
            identity,
            test,
            asked.value,
            reading.value,
            source,
            unit=unit,
            missing=absent.missing,
            detail=detail,
            symptom=symptom,
        )

    def each(self, identity: str, items: list[Item], *, source: str, what: str, unit: str | None = None) -> list[Json]:
        """Return one finding if all `items` pass, else one for each item that does not, named as target."""
        excused = self.excused(identity, source)
        if excused:
            return [excused]
        judged = [self._one(identity, item, source, unit) for item in items]
        wanting = [finding for finding in judged if finding["verdict"] != "pass"]
        if any(finding["verdict"] != "recorded" for finding in wanting) or (judged and len(wanting) == len(judged)):
            return wanting
        good = len(judged) - len(wanting)
        missing = f"which {what} there are was not reported"
        return [self.check(identity, "eq", good, good or None, source, unit=what, missing=missing), *wanting]

    def _one(self, identity: str, item: Item, source: str, unit: str | None) -> Json:
        return self.check(
            identity,
            item.test,
            item.bound,
            item.value,
            source,
            unit=unit,
            missing=item.missing,
            detail=item.detail,
            record=item.record,
            symptom=item.symptom,
            number=item.number,
            target=item.name,
        )

    def decided(
        self, identity: str, verdict: str, value: t.Any, bound: str, why: str, source: str, symptom: str | None = None
    ) -> Json:
        """Return a finding that the caller decided, with its remedy, or the finding that excuses it."""
        wanting = verdict in ("fail", "undetermined")
        return self.excused(identity, source) or findings.finding(
            identity,
            self.titles[identity],
            verdict,
            value=scalars.bounded(value),
            bound=scalars.printable(bound),
            source=self._source(source),
            why=scalars.printable(why),
            remedy=remedies.remedy(symptom or identity, self.where) if wanting else None,
            where=dict(self.where),
        )

    def record(self, identity: str, value: t.Any, why: str, source: str, *, unit: str | None = None) -> Json:
        """Return a finding that only reports."""
        return {**self.decided(identity, "recorded", value, "-", why, source), "unit": unit}

    def told(self, identity: str, reading: Reading, source: str, *, unit: str | None = None, key: str = "") -> Json:
        """Record a value without an expectation; `key` is the setting that would make it judged."""
        why = reading.missing or (f"no value is expected ({self.setting}.{key})" if key else "it is only reported")
        return self.record(identity, reading.value, why, source, unit=unit)

    def excused(self, identity: str, source: str, where: Json | None = None) -> Json | None:
        """Return the finding for a check that the inventory says does not apply, or None."""
        reason = self.expect["not_applicable"].get(identity)
        return self.not_applicable(identity, f"the inventory says: {reason}", source, where) if reason else None

    def not_applicable(self, identity: str, reason: str, source: str, where: Json | None = None) -> Json:
        """Return the finding for a check that does not apply; `where` is the place, if not the whole part."""
        return findings.not_applicable(
            identity,
            self.titles[identity],
            scalars.printable(reason),
            source=self._source(source),
            where=dict(self.where) if where is None else where,
        )

    def _source(self, source: str) -> str:
        return f"{self.reader}: {source}" if self.reader else source
