# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every check of a preflight has one title, and every title a check that the code makes findings of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.titles import TITLES as EDGE_TITLES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._findings import complete
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.titles import TITLES as GPU_TITLES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import controller, host
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight.checks import TITLES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import held_back
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.titles import TITLES as SHARE_TITLES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share.use import EXPECTED

from tests.unit.conftest import ROOT

PLUGINS = ROOT / "plugins/plugin_utils"
CHECK = re.compile(r"(controller|login|runtime|scheduler|share|node|gpu)\.[a-z0-9_]+")
NO_CHECKS = {"gpu.unread", "gpu.jsonl"}  # a symptom that several checks share, and a file


def modules(package: str) -> Iterator[Path]:
    return (path for path in sorted((PLUGINS / package).glob("*.py")) if path.stem not in ("checks", "titles"))


def first_arguments(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the first argument of each call that makes a finding, and not of those that look up a remedy."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and call.args and "remedy" not in ast.unparse(call.func):
            yield call.args[0]


def constants(nodes: Iterator[ast.AST]) -> set[str]:
    """Return the check IDs among `nodes`."""
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {text for text in texts if CHECK.fullmatch(text)}


def made_by_preflight() -> set[str]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in modules("_preflight")]
    return {identity for tree in trees for identity in constants(first_arguments(tree))}


def named_in(package: str) -> set[str]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in modules(package)]
    return {identity for tree in trees for identity in constants(ast.walk(tree))} - NO_CHECKS


def test_every_check_in_the_code_of_preflight_has_a_title_and_every_title_a_check():
    own = set(TITLES) - set(GPU_TITLES) - set(SHARE_TITLES) - set(EDGE_TITLES)
    assert (made_by_preflight() - {"share.coherence"}) | {complete.ID} == own


def test_every_check_of_gpus_and_share_has_a_title_and_every_title_a_check():
    assert named_in("_gpu") == set(GPU_TITLES)
    assert named_in("_share") | {f"share.{name}" for name in EXPECTED} == set(SHARE_TITLES)


def test_one_id_has_one_title():
    assert not set(GPU_TITLES) & set(SHARE_TITLES)
    assert {**TITLES, **GPU_TITLES, **SHARE_TITLES, **EDGE_TITLES} == TITLES


def test_every_check_of_edge_hosts_is_one_that_only_their_workloads_depend_on():
    assert set(EDGE_TITLES) == set(held_back.EDGE)
    assert set(held_back.EDGE) <= set(held_back.CHECKS)


@pytest.mark.parametrize("path", list(modules("_preflight")), ids=lambda path: path.stem)
def test_no_title_is_made_elsewhere(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    words = {keyword.arg for keyword in ast.walk(tree) if isinstance(keyword, ast.keyword)}
    assert "title" not in words
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in TITLES.values()]


def test_no_title_names_a_bound():
    own = {identity: title for identity, title in TITLES.items() if identity not in {**GPU_TITLES, **SHARE_TITLES}}
    assert [title for title in own.values() if re.search(r"\d", title)] == []
    bounds = (controller.LEAST_ANSIBLE, host.LEAST_PYTHON, host.LEAST_APPTAINER)
    assert [title for title in TITLES.values() if any(bound in title for bound in bounds)] == []


def test_an_id_without_a_title_is_found():
    tree = ast.parse("judged('node.new', 'eq', 1, 1); remedies.remedy('node.old'); judged(x, symptom='node.other')")
    assert constants(first_arguments(tree)) == {"node.new"}
