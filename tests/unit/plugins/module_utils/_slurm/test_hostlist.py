# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expanding and folding of Slurm's node lists."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import hostlist
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("compute[01-02]", ["compute01", "compute02"]),
        ("n1", ["n1"]),
        ("n[1-2,5],gpu-[001-002]x", ["n1", "n2", "n5", "gpu-001x", "gpu-002x"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("", []),
        ("None assigned", []),
        ("(null)", []),
        ("n[1-", []),
        ("n[2-1]", []),
        ("n[1-999999999]", []),
        ("n;rm", []),
    ],
)
def test_node_lists(expression: str, expected: list[str]) -> None:
    assert hostlist.expand_nodes(expression) == expected


@given(st.text(alphabet="n[]0123456789,-ab;", max_size=60))
def test_node_lists_never_raise(expression: str) -> None:
    assert all(name and "[" not in name and ";" not in name for name in hostlist.expand_nodes(expression))


@pytest.mark.parametrize("nothing", ["", " ", "(null)", "None", "None assigned", "N/A"])
def test_no_nodes_are_none(nothing: str) -> None:
    assert hostlist.expand_nodes(nothing) == []


@pytest.mark.parametrize("expression", ["n[1-x]", "n[-2]", "n[1-2]x[1", "n[3-1],a", "n[1,]", "a,n[2-1]", "n[1-2-3]"])
def test_a_node_list_is_read_whole_or_not_at_all(expression: str) -> None:
    assert hostlist.expand_nodes(expression) == []


def test_a_node_list_is_bounded() -> None:
    assert len(hostlist.expand_nodes("n[1-65536]")) == 65536
    assert hostlist.expand_nodes("n[1-65537]") == []
    assert hostlist.expand_nodes("n[1-65536],m") == []
    assert hostlist.expand_nodes("n[1-65535],m")[-2:] == ["n65535", "m"]
    assert hostlist.expand_nodes("n[1-40000,1-40000]") == []
    assert hostlist.expand_nodes("r[1-300]n[1-300]") == []
    assert hostlist.expand_nodes("n[1-40000],m[1-40000]") == []
    assert hostlist.expand_nodes("a,,b") == ["a", "b"]


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["n1"], "n1"),
        (["n2", "n1", "n2"], "n[1-2]"),
        ([f"n{i:03d}" for i in range(1, 100) if i != 98], "n[001-097,099]"),
        (["n9", "n10", "n11"], "n[9-11]"),
        (["n999", "n1000"], "n[999-1000]"),
        (["n1", "n01", "n2", "n02"], "n[1-2,01-02]"),
        (["r1n2", "r1n1", "r2n1"], "r1n[1-2],r2n1"),
        (["gpu-003", "login", "gpu-001"], "gpu-[001,003],login"),
        (["n", "n1"], "n,n1"),
        (["n1x", "n2x"], "n1x,n2x"),
        (["1", "2"], "[1-2]"),
    ],
)
def test_names_fold_as_slurm_writes_them(names: list[str], folded: str) -> None:
    assert hostlist.fold_nodes(names) == folded


@given(st.lists(st.from_regex(r"[a-c.-]{1,3}[0-9]{0,3}[a-c]?[0-9]{0,3}", fullmatch=True), max_size=30))
def test_what_was_folded_expands_to_the_same_names(names: list[str]) -> None:
    assert sorted(hostlist.expand_nodes(hostlist.fold_nodes(names))) == sorted(set(names))
