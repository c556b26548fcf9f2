# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A row of the fault table is met only where the plays came out as it says; and no row says what cannot be meant."""

from __future__ import annotations

import pytest
import yaml

from tests.faults import outcome, rows


class Ended:
    """A play that has ended, as far as a row looks at it."""

    def __init__(self, verdict, criteria, screen="", why=""):
        self.verdict = {
            "verdict": verdict,
            "why": why,
            "findings": [],
            "checks": [],
            "workloads": [{"criteria": criteria}],
        }
        self.screen, self.runs = screen, [None]

    def finish(self):
        return 0 if self.verdict["verdict"] == "pass" else 2


def judged(identity, verdict, why=""):
    return {"id": identity, "verdict": verdict, "why": why}


SLOW = judged("T-6", "fail", "rank 1 (compute01 GPU-1): 0.1 is not >= 0.2")
WELL = judged("T-5", "pass")


def row(**expect):
    names = [rows.Names("T-6", "fail", ["rank 1 (compute01 GPU-"])]
    expected = {"within": 10, "verdict": "fail", "names": names, **expect}
    return rows.Row("slow", "ranks", "a rank is slow", "training", rows.Expected(**expected))


def test_what_comes_out_as_stated_is_no_problem():
    assert outcome.problems(row(alone=True), [Ended("fail", [SLOW, WELL])], 9) == []
    assert outcome.problems(row(why="interrupted"), [Ended("fail", [SLOW], why="it was interrupted")], 9) == []
    also = [SLOW, judged("T-3", "fail"), judged("T-4", "undetermined")]
    assert outcome.problems(row(also=["T-3"]), [Ended("fail", also)], 9) == []


@pytest.mark.parametrize(
    ("expect", "plays", "seconds", "problem"),
    [
        ({}, [Ended("fail", [judged("T-6", "fail", "rank 0 (compute01 GPU-0)")])], 9, "T-6 does not say"),
        ({}, [Ended("fail", [judged("T-6", "undetermined")])], 9, "T-6 is undetermined, not fail"),
        ({}, [Ended("fail", [WELL])], 9, "T-6 is not in the verdict"),
        ({}, [Ended("pass", [SLOW])], 9, "ansible-playbook ended with 0"),
        ({}, [Ended("fail", [SLOW])], 11, "it took 11 s, and 10 s are allowed"),
        ({"screen": ["GPU-hours"]}, [Ended("fail", [SLOW])], 9, "the screen does not say 'GPU-hours'"),
        ({"why": "interrupted"}, [Ended("fail", [SLOW], why="it ended")], 9, "the run does not say 'interrupted'"),
        ({}, [Ended("fail", [SLOW, judged("T-3", "fail", "idle")])], 9, "T-3 is fail too: idle"),
        ({"also": ["T-4"]}, [Ended("fail", [SLOW, judged("T-3", "fail", "idle")])], 9, "T-3 is fail too: idle"),
        ({"alone": True}, [Ended("fail", [SLOW, judged("T-5", "undetermined")])], 9, "T-5 is undetermined too"),
        ({"second": "fail"}, [Ended("fail", [SLOW])], 9, "1 plays, and the row says of the second: fail"),
        ({"second": "fail"}, [Ended("fail", [SLOW]), Ended("pass", [WELL])], 9, "second play: "),
    ],
)
def test_what_comes_out_otherwise_is(expect, plays, seconds, problem):
    assert any(text.startswith(problem) for text in outcome.problems(row(**expect), plays, seconds))


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("exit code 1", "exit code 1", True),
        ('"exit code 1"', "exit code 1", True),
        ("exit code 130", "exit code 1", False),
        ("0.95 is not = 0.1", "is not = 0", False),
        ("13 is not = 0", "3 is not = 0", False),
        ("0.3 is not = 0", "3 is not = 0", False),
        ("run: scancel 12.", "scancel 12", True),
        ("run: scancel 123", "scancel 12", False),
        ("UNKNOWN", "KNOW", True),
    ],
)
def test_a_number_is_said_only_as_a_whole(text, words, said):
    assert outcome.says(text, words) is said


def test_the_jobs_id_is_asked_for_and_the_screens_are_told_apart():
    plays = [Ended("fail", [SLOW], "cancelled: 41"), Ended("pass", [WELL], "attached to job 41")]
    expect = {"second": "pass", "screen": ["cancelled: %j"], "second_screen": ["attached to job %j"]}
    assert outcome.problems(row(**expect), plays, 9, job=lambda: "41") == []
    assert outcome.problems(row(**expect), plays, 9, job=lambda: "4") == [
        "the screen does not say 'cancelled: %j'",
        "the second screen does not say 'attached to job %j'",
    ]
    assert outcome.problems(row(**expect), plays[::-1], 9, job=lambda: "41") != []


GIVEN = {"id": "a", "group": "ranks", "fault": "f", "when": "training", "expect": {"within": 1, "verdict": "pass"}}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"group": "rank"}, "'rank' is none of"),
        ({"when": "sometimes"}, "'sometimes' is none of"),
        ({"workload": "parrot"}, "'parrot' is none of"),
        ({"expect": {"within": 1, "verdict": "waived"}}, "'waived' is none of"),
        ({"expect": {"within": 1, "verdict": "fail"}}, "a fault must be named"),
        ({"quickly": True}, "quickly"),
        (
            {"expect": {"within": 1, "verdict": "fail", "names": [{"id": "T-1", "verdict": "fail"}]}},
            "T-1 must say something",
        ),
    ],
)
def test_a_row_that_cannot_be_meant_so_is_refused(tmp_path, change, told):
    (tmp_path / "rows.yml").write_text(yaml.safe_dump([{**GIVEN, **change}]))
    with pytest.raises(rows.BadRowError, match=told):
        rows.load(tmp_path / "rows.yml")


def test_two_rows_of_one_id_are_refused(tmp_path):
    (tmp_path / "rows.yml").write_text(yaml.safe_dump([GIVEN]))
    assert [each.id for each in rows.load(tmp_path / "rows.yml")] == ["a"]
    (tmp_path / "rows.yml").write_text(yaml.safe_dump([GIVEN, GIVEN]))
    with pytest.raises(rows.BadRowError, match="same id"):
        rows.load(tmp_path / "rows.yml")
