# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/guides/own-workload.md: its example is built from the page and passes, and its tables are those of the code."""

from __future__ import annotations

import json
import re
import typing as t
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import criterion
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import rows as judged_rows
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import checking, criteria_check, scaffold

from tests.unit.conftest import ROOT
from tests.unit.workloads.own_job import OwnJob

PAGE = (ROOT / "docs/guides/own-workload.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`workloads/([^`]+)`:\n\n```[a-z]+\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


def section(title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found, title
    return found[1]


def rows(title: str, first: str) -> list[list[str]]:
    """The cells of the table of a section whose first column has this head."""
    (table,) = re.findall(rf"^\| {first} \|.*?\n\|[-|]+\|\n((?:\|.*\n)+)", section(title), re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()]


def names(title: str, first: str) -> list[str]:
    """What stands in backquotes in the first column."""
    return [name for row in rows(title, first) for name in re.findall(r"`([^`]+)`", row[0])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example, built from the page."""
    assert set(FILES) == {"triad/workload.yml", "triad/train.py"}
    for path, text in FILES.items():
        target = tmp_path / "workloads" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return tmp_path / "workloads/triad"


def test_the_example_is_what_the_scaffold_makes(tmp_path: Path) -> None:
    made = scaffold.plan("triad", str(tmp_path)).files
    assert {path: made[path.removeprefix("triad/")] for path in FILES} == FILES
    assert f"`{(set(made) - {path.removeprefix('triad/') for path in FILES}).pop()}`" in PAGE


def test_the_example_is_short() -> None:
    lines = [line for text in FILES.values() for line in text.splitlines()]
    code = [line for line in lines if line.strip() and not line.lstrip().startswith(("#", "---", '"""'))]
    assert len(code) <= 70
    script = [line for line in FILES["triad/train.py"].splitlines() if line.strip()]
    assert len(script) <= 25


def test_the_example_has_no_fault_and_passes(folder: Path, tmp_path: Path) -> None:
    assert checking.check(folder / "workload.yml") == []
    script = folder / "train.py"
    script.write_text(script.read_text().replace("200_000", "2_000"))
    ran = OwnJob(folder, tmp_path / "share").run()
    assert ran.exit_code == 0
    judged = ran.judged()
    assert {name: each["verdict"] for name, each in judged.items()} == dict.fromkeys(judged, "pass")
    assert [name for name in judged if f"`{name}`" not in section("See each criterion fail")] == []


def test_the_faults_that_the_page_shows_are_those_that_are_found(folder: Path) -> None:
    manifest = folder / "workload.yml"
    manifest.write_text(manifest.read_text().replace("queue: 600", "queue: soon").replace("lt: 0.01", "lt: low"))
    shown = checking.report([manifest], checking.check(manifest))
    home = [line.replace(str(folder.parent), "/home/me/workloads") for line in shown]
    assert "```text\n" + "\n".join(home) + "\n```" in PAGE


def keys(schema: dict[str, t.Any], prefix: str = "") -> t.Iterator[tuple[str, bool]]:
    """Each key of the schema, dotted, and whether it is needed; the options' own are not entered."""
    for name, value in schema["properties"].items():
        yield prefix + name, name in schema.get("required", [])
        if "properties" in value:
            yield from keys(value, f"{prefix}{name}.")


def test_every_key_of_the_manifest_is_explained() -> None:
    schema = json.loads((ROOT / "files/schemas/manifest.json").read_text())
    told = {row[0].strip("`"): row[1] for row in rows("The manifest", "key")}
    assert told == {key: "yes" if needed else "" for key, needed in keys(schema)}
    (options,) = [row[2] for row in rows("The manifest", "key") if row[0] == "`options`"]
    of_option = schema["properties"]["options"]["additionalProperties"]["properties"]
    assert [key for key in of_option if f"`{key}`" not in options] == []


@pytest.mark.parametrize(
    ("key", "known"),
    [
        ("runtime", sorted(path.stem for path in (ROOT / "files/requirements").glob("*.txt"))),
        ("data", sorted(path.parent.name for path in (ROOT / "files/datasets").glob("*/source.yml"))),
        ("models", sorted(path.parent.name for path in (ROOT / "files/models").glob("*/source.yml"))),
    ],
)
def test_what_a_key_may_name_is_listed(key: str, known: list[str]) -> None:
    (told,) = [row[2] for row in rows("The manifest", "key") if row[0] == f"`{key}`"]
    assert re.findall(r"`([a-z0-9_]+)`", told) == known


def test_every_test_source_and_key_of_a_criterion_is_explained() -> None:
    assert sorted(names("Criteria", "test")) == sorted(criterion.ALL_TESTS)
    assert names("Criteria", "source") == list(criterion.SOURCES)
    assert sorted(names("Criteria", "key")) == sorted(set(criterion.COMMON_KEYS) - {"id", "title"})
    described = {row[0].strip("`"): row[2] for row in rows("Criteria", "source")}
    assert re.findall(r"`(\w+)`", described["log"]) == list(criterion.TESTS_OF["log"])
    assert re.findall(r"`(\w+)`", described["artifact"]) == list(criterion.TESTS_OF["artifact"])
    left_out = set(criterion.ALL_TESTS) - set(criterion.TESTS_OF["query"])
    assert set(re.findall(r"`(\w+)`", described["query"])) == left_out


def test_every_document_that_a_query_may_begin_with_is_explained() -> None:
    whole = {"output": {"progress": "progress.jsonl"}, "launcher": "torchrun"}
    documents = set(criteria_check.documents(whole)) - set(criteria_check.PARTS)
    assert set(names("Criteria", "document")) == documents | {"job"}


def test_every_reduction_of_rows_is_explained() -> None:
    assert names("What a job leaves", "reduction") == [*judged_rows.REDUCTIONS, *judged_rows.COUNTS]


def test_every_variable_of_the_job_script_is_explained() -> None:
    script = (ROOT / "roles/workload/templates/job.sbatch.j2").read_text(encoding="utf-8")
    exported = set(re.findall(r"^export ([A-Z_]+)", script, re.MULTILINE))
    assert "OUTPUT_DIR" in exported
    assert set(names("What a job finds", "variable")) == exported
