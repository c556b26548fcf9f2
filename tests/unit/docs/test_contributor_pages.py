# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the pages for contributors name is there: files, links, make targets; and the hooks run the locked tools."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.unit.conftest import ROOT

PAGES = [
    *("CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md"),
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/adr/*.md")),
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/reference/*.md")),
]
# A path in code: `plugins/plugin_utils/_judge/spec.py`. One with <name> or * stands for many.
NAMED = re.compile(r"`((?:changelogs|docs|files|inventories|playbooks|plugins|roles|tests)/[\w./-]+)`")
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)#]+)(#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_is_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [name for name in NAMED.findall(text) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file(page):
    folder = (ROOT / page).parent
    text = CODE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    links = [link for link, _part in LINK.findall(text) if ":" not in link]
    assert [link for link in links if not (folder / link).exists()] == []


def test_the_index_lists_every_record():
    index = (ROOT / "docs/adr/README.md").read_text(encoding="utf-8")
    records = sorted(path.name for path in ROOT.glob("docs/adr/[0-9]*.md"))
    assert re.findall(r"\]\((\d{4}-[a-z0-9-]+\.md)\)", index) == records
    assert [name[:4] for name in records] == [f"{number:04}" for number in range(1, len(records) + 1)]


@pytest.mark.parametrize("name", sorted(path.name for path in ROOT.glob("docs/adr/[0-9]*.md")))
def test_a_record_has_its_parts_and_the_title_of_the_index(name):
    text = (ROOT / "docs/adr" / name).read_text(encoding="utf-8")
    title = text.splitlines()[0].removeprefix(f"# {name[:4]}: ")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert f"| [{name[:4]}]({name}) | {title} |" in (ROOT / "docs/adr/README.md").read_text(encoding="utf-8")


def test_every_make_target_of_the_guide_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    assert named <= targets


def test_the_hooks_run_the_tools_of_the_checkout():
    repos = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [repo["repo"] for repo in repos] == ["local"]
    hooks = repos[0]["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    assert [hook["id"] for hook in hooks if ".venv/bin/" not in hook["entry"]] == []


def test_the_example_of_a_pipeline_runs_sessions_that_exist():
    example = yaml.safe_load((ROOT / "docs/ci-example.yml").read_text(encoding="utf-8"))
    sessions = re.findall(r"^def ([a-z]\w*)\(session", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.MULTILINE)
    runs = [step["run"] for step in example["jobs"]["checks"]["steps"] if "run" in step]
    (called,) = re.findall(r"nox -s (.*)", "\n".join(runs))
    assert {"lint", "unit"} <= set(called.split()) <= set(sessions)
    assert (ROOT / "tests/setup-controller").is_file()
