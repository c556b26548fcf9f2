# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A reading put to one check, and findings that the caller decides. What is plain: _share/test_share_judge.py."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.titles import TITLES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import remedies
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.checker import Judge
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.reading import Reading

Json = dict[str, t.Any]
NODE = {"node": "compute01"}
UNREAD = Reading(missing="Timeout")
LACKS = Reading(missing="NotSupported", unsupported=True)
HUNG = Reading(missing="it does not answer", symptom="gpu.answers.hung")


def judge(**excuses: str) -> Judge:
    excused = {f"gpu.{name}": reason for name, reason in excuses.items()}
    return Judge("the_setting", TITLES, {"not_applicable": excused}, dict(NODE), "NVML")


def check(bound: t.Any, reading: Reading, **more: t.Any) -> Json:
    return judge().check_reading("gpu.memory", "ge", bound, reading, "nvmlCall", unit="GiB", detail="by hand", **more)


def told(finding: Json) -> tuple[t.Any, ...]:
    return tuple(finding[key] for key in ("verdict", "value", "bound", "unit", "why"))


def test_a_reading_is_put_to_its_test() -> None:
    finding = check(80, Reading(80))
    assert told(finding) == ("pass", 80, ">= 80", "GiB", "80 is >= 80: by hand")
    assert (finding["id"], finding["title"]) == ("gpu.memory", TITLES["gpu.memory"])
    assert (finding["source"], finding["where"], finding["remedy"]) == ("NVML: nvmlCall", NODE, None)
    assert told(check(Reading(80), Reading(79)))[:3] == ("fail", 79, ">= 80")
    assert told(check(80, Reading(0)))[:2] == ("fail", 0)


@pytest.mark.parametrize(
    ("symptom", "remedy"), [(None, "gpu.memory"), ("gpu.ecc_mode.pending", "gpu.ecc_mode.pending")]
)
def test_what_to_do_about_a_failure_goes_by_its_symptom(symptom: str | None, remedy: str) -> None:
    assert check(80, Reading(79), symptom=symptom)["remedy"] == remedies.remedy(remedy, NODE)


@pytest.mark.parametrize("needed", [True, False])
@pytest.mark.parametrize(("reading", "remedy"), [(UNREAD, "gpu.unread"), (HUNG, "gpu.answers.hung")])
def test_what_could_not_be_read_is_undetermined(reading: Reading, remedy: str, needed: bool) -> None:
    finding = check(80, reading, needed=needed, symptom="gpu.ecc_mode.pending")
    assert told(finding) == ("undetermined", None, ">= 80", "GiB", reading.missing)
    assert finding["remedy"] == remedies.remedy(remedy, NODE)


def test_what_the_part_lacks_fails_closed_where_it_is_needed() -> None:
    finding = check(80, LACKS)
    assert told(finding) == ("undetermined", None, ">= 80", "GiB", "NotSupported")
    assert finding["remedy"] == remedies.remedy("gpu.unsupported", NODE)
    recorded = check(80, LACKS, needed=False)
    assert told(recorded) == ("recorded", None, "-", "GiB", "NotSupported")
    assert (recorded["severity"], recorded["remedy"], recorded["source"]) == ("record", None, "NVML: nvmlCall")


@pytest.mark.parametrize(
    ("bound", "why", "remedy"),
    [
        (UNREAD, "Timeout", "gpu.unread"),
        (LACKS, "NotSupported", "gpu.unsupported"),
        (HUNG, "it does not answer", "gpu.answers.hung"),
        (None, "no expected value is known", "gpu.memory"),
        (Reading(), "no expected value is known", "gpu.memory"),
    ],
)
def test_without_a_bound_nothing_passes(bound: t.Any, why: str, remedy: str) -> None:
    finding = check(bound, Reading(80))
    assert told(finding) == ("undetermined", 80, "-", "GiB", why)
    assert finding["remedy"] == remedies.remedy(remedy, NODE)


def test_a_bound_that_the_part_lacks_is_recorded_where_it_is_not_needed() -> None:
    assert told(check(LACKS, Reading(80), needed=False)) == ("recorded", 80, "-", "GiB", "NotSupported")


def test_why_there_is_no_reading_goes_before_why_there_is_no_bound() -> None:
    assert told(check(LACKS, UNREAD, needed=False)) == ("undetermined", None, "-", "GiB", "Timeout")
    assert check(None, HUNG)["remedy"] == remedies.remedy("gpu.answers.hung", NODE)


@pytest.mark.parametrize("reading", [Reading(1), UNREAD, LACKS])
@pytest.mark.parametrize("bound", [80, None])
def test_what_is_excused_is_not_read(reading: Reading, bound: int | None) -> None:
    excusing = judge(memory="not\nours")
    finding = excusing.check_reading("gpu.memory", "ge", bound, reading, "nvmlCall", needed=False, unit="GiB")
    assert told(finding) == ("not_applicable", None, "-", None, "the inventory says: not ours")
    assert (finding["source"], finding["where"]) == ("NVML: nvmlCall", NODE)


@pytest.mark.parametrize("verdict", ["pass", "fail", "undetermined", "recorded"])
def test_what_the_caller_decides(verdict: str) -> None:
    finding = judge().decided("gpu.memory", verdict, 7, "some\nbound", "for\nreasons", "call")
    assert told(finding) == (verdict, 7, "some bound", None, "for reasons")
    wanting = verdict in ("fail", "undetermined")
    assert finding["remedy"] == (remedies.remedy("gpu.memory", NODE) if wanting else None)
    assert (finding["source"], finding["where"], finding["title"]) == ("NVML: call", NODE, TITLES["gpu.memory"])
    assert judge(memory="x").decided("gpu.memory", verdict, 7, "b", "w", "call")["verdict"] == "not_applicable"


def test_a_remedy_goes_by_the_symptom_of_what_was_decided() -> None:
    finding = judge().decided("gpu.memory", "fail", 7, "-", "why", "call", "gpu.unread")
    assert finding["remedy"] == remedies.remedy("gpu.unread", NODE)


def test_a_value_of_which_nothing_is_expected_is_recorded() -> None:
    keyed = judge().told("gpu.memory", Reading(7), "call", unit="GiB", key="memory_gib")
    assert told(keyed) == ("recorded", 7, "-", "GiB", "no value is expected (the_setting.memory_gib)")
    assert told(judge().told("gpu.memory", Reading(7), "call")) == ("recorded", 7, "-", None, "it is only reported")
    assert told(judge().told("gpu.memory", UNREAD, "call", key="x")) == ("recorded", None, "-", None, "Timeout")


def test_a_part_of_a_part_is_named_by_both() -> None:
    whole = judge()
    part = whole.of(gpu="GPU 1")
    assert part.record("gpu.memory", 7, "why", "call")["where"] == {**NODE, "gpu": "GPU 1"}
    assert (whole.where, part.expect, part.reader) == (NODE, whole.expect, "NVML")


def test_what_does_not_apply_says_why() -> None:
    finding = judge().not_applicable("gpu.memory", "it\nhas none", "call")
    assert told(finding) == ("not_applicable", None, "-", None, "it has none")
    assert (finding["source"], finding["where"], finding["severity"]) == ("NVML: call", NODE, "gate")
