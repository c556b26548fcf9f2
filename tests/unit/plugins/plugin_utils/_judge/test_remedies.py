# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a symptom."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import findings, remedies


def test_every_remedy_says_what_to_do_and_where_it_is_from() -> None:
    import yaml

    for path in remedies.FOLDER.glob("*.yml"):
        for symptom, entry in yaml.safe_load(path.read_text()).items():
            assert set(entry) == {"remedy", "source"}, symptom
            assert len(entry["remedy"]) > 20, symptom
    assert len(remedies.load()) > 20


def test_names_are_filled_in_and_what_is_not_known_stays_a_placeholder() -> None:
    assert "slurmd on compute07" in remedies.remedy("scheduler.confinement", {"node": "compute07"})
    assert "slurmd on <node>" in remedies.remedy("scheduler.confinement")


def test_a_symptom_without_a_remedy_is_a_defect_of_ours() -> None:
    with pytest.raises(remedies.RemedyError, match="has no remedy"):
        remedies.remedy("scheduler.nonsense")


@pytest.mark.parametrize("text", ["", "[]", "a: {remedy: x", "a: {source: x}"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.yml").write_text(text)
    with pytest.raises(remedies.RemedyError, match=str(tmp_path)):
        remedies.load(tmp_path)


def test_the_same_symptom_twice_is_refused(tmp_path: Path) -> None:
    for name in ("a.yml", "b.yml"):
        (tmp_path / name).write_text("gpu.lost: {remedy: x, source: y}")
    with pytest.raises(remedies.RemedyError, match=r"gpu\.lost"):
        remedies.load(tmp_path)


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (2, "pass"),
        (3, "fail"),
        (None, "undetermined"),
        (True, "undetermined"),
        ("2", "undetermined"),
        (float("nan"), "undetermined"),
    ],
)
def test_a_finding_is_judged_as_a_criterion_is(value: object, verdict: str) -> None:
    found = findings.judged("node.clock", "Clock", "le", 2, value, source="x", where={"node": "n1"}, unit="s")
    assert schema.problems("finding", found) == []
    assert (found["verdict"], found["bound"], found["unit"]) == (verdict, "<= 2", "s")
    assert (found["remedy"] is None) == (verdict == "pass")


@pytest.mark.parametrize(
    ("version", "verdict", "why"),
    [
        ("3.11.2", "pass", "3.11.2 is >= 3.9"),
        ("3.9", "pass", "3.9 is >= 3.9"),
        ("3.8.19", "fail", "3.8.19 is not >= 3.9"),
        ("three", "undetermined", "unknown"),
        (3.11, "undetermined", "unknown"),
    ],
)
def test_versions_are_compared_part_by_part(version: object, verdict: str, why: str) -> None:
    found = findings.version_at_least("node.python", "Python", "3.9", version, source="x", missing="unknown")
    assert (found["verdict"], found["why"], found["bound"]) == (verdict, why, ">= 3.9")
