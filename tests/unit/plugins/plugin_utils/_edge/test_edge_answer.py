# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one line of a device: what it is, twice, torn, of another run; nothing in it raises anything but a problem."""

from __future__ import annotations

import contextlib
import json
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import answer, problem
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.problem import ProblemError
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.plugins.plugin_utils._edge.made_edge import LOOK, PLACE, answered

Json = dict[str, t.Any]


def done(stdout: str, rc: int = 0, stderr: str = "") -> Json:
    return {"rc": rc, "stdout": stdout, "stderr": stderr}


def line(document: t.Any) -> str:
    return f"{answer.MARK}{json.dumps(document)}\n"


def told(caught: pytest.ExceptionInfo[ProblemError]) -> tuple[str, str]:
    return caught.value.told["id"], caught.value.told["text"]


def test_the_line_is_found_among_others() -> None:
    assert answer.read(done(f"Welcome\r\n{line({'schema': 1, 'a': 2})}bye"), "python3") == {"schema": 1, "a": 2}


def test_an_answer_counts_however_the_program_ended() -> None:
    assert answer.read(done(line({"schema": 1}), 127), "python3") == {"schema": 1}


def test_the_end_of_what_a_program_said_is_told() -> None:
    with pytest.raises(ProblemError) as caught:
        answer.read(done("", 1, f"begin{'x' * 400}"), "python3")
    assert told(caught)[1] == f"it ended with exit code 1 and no answer: {'x' * 400}"


@pytest.mark.parametrize(
    ("result", "identity", "says"),
    [
        (
            done("", 127, "sh: 1: python3: not found"),
            "python",
            "python3 cannot be run there: sh: 1: python3: not found",
        ),
        (done("", 126), "python", "no reason is told"),
        (done("no", 1, "Traceback\n  oh\n"), "crashed", "exit code 1 and no answer: Traceback oh"),
        (done("", 139), "crashed", "exit code 139 and no answer: it said nothing"),
        (done(line({"schema": 1}) * 2), "result", "it answered 2 times"),
        (done(f"{answer.MARK}{{"), "result", "its answer cannot be read"),
        (done(f'{answer.MARK}{{"schema": 1, "schema": 1}}'), "result", "appears twice"),
        (done(answer.MARK + "[" * 100_000), "result", "its answer cannot be read"),
        (done(line([1])), "result", "not a document of schema 1"),
        (done(line({"schema": 2})), "result", "not a document of schema 1"),
    ],
)
def test_what_is_no_answer_is_told(result: Json, identity: str, says: str) -> None:
    with pytest.raises(ProblemError) as caught:
        answer.read(result, "python3")
    assert told(caught)[0] == identity
    assert says in told(caught)[1]


def test_an_answer_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "MAX_CHARACTERS", 40)
    most = f"{answer.MARK}{json.dumps({'schema': 1}).ljust(40 - len(answer.MARK))}"
    assert answer.read(done(most), "python3") == {"schema": 1}
    with pytest.raises(ProblemError, match="more than 40 characters"):
        answer.read(done(line({"schema": 1, "more": "x" * 30})), "python3")


def test_numbers_that_json_does_not_have_stay_visible() -> None:
    assert answer.read(done(f'{answer.MARK}{{"schema": 1, "a": NaN}}'), "p")["a"] == "NaN"


def test_a_look_has_its_values() -> None:
    assert answer.look(LOOK) == {key: value for key, value in LOOK.items() if key != "schema"}
    assert answer.look({**LOOK, "free_mb": "much", "libc": None})["free_mb"] is None


@pytest.mark.parametrize(
    "change", [{"python": 3.11}, {"machine": None}, {"libc": 2.36}, {"board": []}, {"device": 1}, {"home": {}}]
)
def test_a_look_of_other_types_is_refused(change: Json) -> None:
    with pytest.raises(ProblemError, match=f"result: {next(iter(change))} is .*; expected text"):
        answer.look({**LOOK, **change})


def test_what_a_device_calls_itself_cannot_move_a_cursor() -> None:
    assert "\x1b" not in answer.look({**LOOK, "board": "a\x1b[2Jb"})["board"]


def test_a_measurement_is_taken_whole() -> None:
    assert answer.measured(answered(), PLACE) == answered()
    told = answered(problem={"id": "space", "text": "too\nlittle"}, measured=None, folder=None)
    assert answer.measured(told, PLACE)["problem"] == {"id": "space", "text": "too little"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"folder": "/home/a/.hpc_validation/20250101T000000Z-000000"}, "expected a folder of the run"),
        ({"folder": None}, "it is of null"),
        ({"folder": f"/x/{PLACE}/other"}, "expected a folder of the run"),
        ({"measured": None}, "neither a result nor a problem"),
        ({"measured": {}}, "neither a result nor a problem"),
        ({"measured": [1]}, "measured is a list of 1; expected an object"),
        ({"problem": "full"}, "expected null, or id and text"),
        ({"problem": {"id": "Space", "text": "x"}}, "expected null, or id and text"),
        ({"problem": {"id": "space"}}, "expected null, or id and text"),
        ({"problem": {"id": "a\nb", "text": "x"}}, "expected null, or id and text"),
        ({"problem": []}, "expected null, or id and text"),
    ],
)
def test_what_is_no_measurement_of_this_run_is_told(changes: Json, says: str) -> None:
    with pytest.raises(ProblemError) as caught:
        answer.measured(answered(**changes), PLACE)
    assert told(caught)[0] == "result"
    assert says in told(caught)[1]


def test_a_text_is_one_line_of_bounded_length() -> None:
    found = problem.problem("files", "a\n\x1b[2J" + "b" * 2000)
    assert len(found["text"]) == problem.MOST
    assert found["text"].isprintable()
    assert problem.problem("files", "b" * problem.MOST)["text"] == "b" * problem.MOST
    assert problem.words({"id": "space", "text": "x"}) == "space: x"
    assert problem.words({"id": problem.LEFT_OUT, "text": "left out by --limit a"}) == "left out by --limit a"


def test_a_host_that_measured_nothing_has_a_document_with_its_problem() -> None:
    found = problem.problem("space", "full")
    assert problem.document(found) == {"schema": 1, "problem": {"id": "space", "text": "full"}}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(anything, st.sampled_from([*answered(), *LOOK]))
def test_nothing_that_a_device_says_raises_anything_else(value: t.Any, key: str) -> None:
    for read, whole in ((answer.look, LOOK), (lambda each: answer.measured(each, PLACE), answered())):
        with contextlib.suppress(ProblemError):
            read({**whole, key: value})
