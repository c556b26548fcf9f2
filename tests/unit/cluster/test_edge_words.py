# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of `cluster edge`."""

from __future__ import annotations

import pytest
from hpcval_cluster import edge_words
from hpcval_cluster.state import ClusterError


def test_healthy_ends_all_that_goes_on_and_what_comes_after_it_begins():
    change = edge_words.parse(["busy=on", "gone=silent", "healthy", "memory=440"])
    assert change.acts == {**edge_words.OFF, "memory": "440"}
    assert change.texts
    assert change.modes


def test_a_word_changes_nothing_else():
    change = edge_words.parse(["throttled=1", "full=on"])
    assert change == edge_words.Change(acts={"throttled": "1", "full": "on"})


@pytest.mark.parametrize("word", ["throttled=0", "busy=off", "memory=off", "full=off", "gone=off", "unreadable=none"])
def test_each_word_can_be_taken_back(word):
    edge_words.parse([word])


@pytest.mark.parametrize(
    "word",
    [
        "",
        "hot",
        "hot=warm",
        "hot=-1",
        "hot=150001",
        "power=2",
        "power=x0",
        "power=x101",
        "mode=100W",
        "unreadable=cpu",
        "throttled=on",
        "throttled=1001",
        "busy=1",
        "memory=on",
        "memory=481",
        "full=1",
        "gone=yes",
        "disk=full",
    ],
)
def test_what_is_not_known_is_refused_with_what_is(word):
    with pytest.raises(ClusterError, match="expected"):
        edge_words.parse([word])
