# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the stand-in puts together is what the real tool printed, wherever both are at hand."""

from __future__ import annotations

import pytest
from hpcval_cluster import beegfs_states

TABLE = ("--listtargets", "--longnodes", "--pools")
PUT_TOGETHER = [
    [*TABLE, f"--nodetype={kind}", *more]
    for kind in beegfs_states.KINDS
    for more in (["--state"], ["--state", "--spaceinfo", beegfs_states.LIMITED])
] + [["--listnodes", f"--nodetype={kind}", "--reachable", "--errorcodes"] for kind in beegfs_states.KINDS]


def values(text: str) -> list[list[str]]:
    """The words of each line, without rulers and log."""
    lines = [line for line in text.split("\n") if line.strip() and set(line) - {"=", " "}]
    return [line.split() for line in lines if not line.startswith("(0) ")]


@pytest.mark.parametrize("state", beegfs_states.recorded())
def test_what_is_put_together_is_what_was_recorded(state):
    if state in beegfs_states.BORROWED:
        return  # nothing of it was recorded twice
    found = beegfs_states.answers(state)
    for words in PUT_TOGETHER:
        both = [answer for answer in found if sorted(answer["words"]) == sorted(words)]
        assert both, (state, words)
        first, *others = both
        for other in others:
            assert (other["rc"], values(other.get("at_once", "") + other["out"])) == (
                first["rc"],
                values(first.get("at_once", "") + first["out"]),
            )


def test_every_state_was_recorded_with_both_streams():
    assert len(beegfs_states.recorded()) == 58
    for state in beegfs_states.recorded().values():
        assert all({"out", "err", "rc", "seconds", "killed"} <= set(row) for row in state["rows"])


def test_words_of_one_target_are_edited_and_of_no_other():
    answers = beegfs_states.edited(beegfs_states.answers("both-mirrored-healthy"), "storage", 201, {"Good": "Bad"})
    changed = [line for answer in answers for line in answer["out"].split("\n") if " Bad " in line]
    assert len(changed) >= 3
    assert all(" 201 " in line for line in changed)
