# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What came of a row, against what must come."""

from __future__ import annotations

import json
import re
import typing as t
from collections.abc import Callable

from tests.faults.rows import Expected, Names, Row
from tests.faults.scene import Play, on_cluster

Json = dict[str, t.Any]
GPU = re.compile(r"%(\w+)/(\d)")
AMISS = ("fail", "undetermined")
UUID = re.compile(r"^uuid=(.+)$", re.MULTILINE)


def judged(verdict: Json) -> list[Json]:
    """Every criterion of a verdict, the findings that did not pass, and the others folded."""
    told = [*verdict["findings"], *verdict["checks"]]
    return [*told, *(c for workload in verdict["workloads"] for c in workload["criteria"])]


def _meant(words: str, job: Callable[[], str]) -> str:
    """The words, with the job's id for %j, or for %compute01/0 the UUID of that node's GPU."""
    asked = GPU.fullmatch(words)
    told = UUID.search(on_cluster("gpu", asked[1], asked[2])) if asked else None
    return told[1] if told else words.replace("%j", job()) if "%j" in words else words


def says(text: str, words: str) -> bool:
    """Whether the words stand in the text; a number at their edge is a whole one there too."""
    before = r"(?<![\d.])" if words[:1].isdigit() else ""
    after = r"(?!\.?\d)" if words[-1:].isdigit() else ""
    return re.search(before + re.escape(words) + after, text) is not None


def _named(verdict: Json, names: Names, job: Callable[[], str]) -> str | None:
    found = [item for item in judged(verdict) if item["id"] == names.id]
    if not found:
        return f"{names.id} is not in the verdict"
    if all(item["verdict"] != names.verdict for item in found):
        return f"{names.id} is {', '.join(item['verdict'] for item in found)}, not {names.verdict}"
    texts = [json.dumps(item, ensure_ascii=False) for item in found if item["verdict"] == names.verdict]
    wanted = [_meant(words, job) for words in names.says]
    missing = [words for words in wanted if not any(says(text, words) for text in texts)]
    return f"{names.id} does not say {missing}: {texts}" if missing else None


def _of_play(play: Play, expected: str | None, code: int) -> list[str]:
    if (code == 0) != (expected == "pass"):
        return [f"ansible-playbook ended with {code} where the verdict must be {expected}"]
    if expected is None:
        return ["a refused play says pass"] if any('"pass"' in run.read_text() for run in play.runs) else []
    if not play.runs:
        return ["the play left no run"]
    got = play.verdict["verdict"]
    return [] if got == expected else [f"the verdict is {got}, not {expected}: {play.verdict['why']}"]


def _others(plays: list[Play], expect: Expected) -> list[str]:
    """What is amiss beside what the row names: a second failure where there is one fault would send people astray."""
    amiss = AMISS if expect.alone else ("fail",)
    known = {*(names.id for names in expect.names), *expect.also}
    found = [item for play in plays if play.runs for item in judged(play.verdict) if item["verdict"] in amiss]
    return [f"{item['id']} is {item['verdict']} too: {item['why']}" for item in found if item["id"] not in known]


def _unsaid(play: Play, expected: list[str], job: Callable[[], str]) -> list[str]:
    screen = " ".join(play.screen.split())
    return [words for words in expected if not says(screen, _meant(words, job))]


def problems(
    row: Row, plays: list[Play], seconds: float, patience: float = 1, job: Callable[[], str] = str
) -> list[str]:
    """What did not come out as the row states; [] where everything did.

    `patience` is how many times the row's time the verdict may take: a machine that does other work too is no fault.
    `job` tells the canary's job id.
    """
    expect = row.expect
    first, last = plays[0], plays[-1]
    found = _of_play(first, expect.verdict, first.finish())
    if (len(plays) > 1) != (expect.second is not None):
        found.append(f"{len(plays)} plays, and the row says of the second: {expect.second}")
    if expect.second is not None and len(plays) > 1:
        found += [f"second play: {problem}" for problem in _of_play(last, expect.second, last.finish())]
    for names in expect.names:
        play = last if names.of == "second" else first
        problem = _named(play.verdict, names, job) if play.runs else f"{names.id} is not named: there is no run"
        found += [problem] if problem else []
    if first.runs and expect.why not in first.verdict["why"]:
        found.append(f"the run does not say {expect.why!r}: {first.verdict['why']}")
    found += _others(plays, expect)
    found += [f"the screen does not say {words!r}" for words in _unsaid(first, expect.screen, job)]
    found += [f"the second screen does not say {words!r}" for words in _unsaid(last, expect.second_screen, job)]
    if seconds > expect.within * patience:
        found.append(f"it took {seconds:.0f} s, and {expect.within * patience:.0f} s are allowed")
    return found


def submissions(row: Row, count: int) -> list[str]:
    """What is amiss with the number of jobs that Slurm saw."""
    return [] if count == row.expect.jobs else [f"Slurm saw {count} jobs of {row.workload}, not {row.expect.jobs}"]
