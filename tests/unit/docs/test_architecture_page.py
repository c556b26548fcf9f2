# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/architecture.md has the packages of the tree, with the directions of import that the linter's contracts hold."""

from __future__ import annotations

import re

import pytest

from tests.docs import layers
from tests.docs.__main__ import stale

CONFIG = layers.read()
# A row of the page's tables of packages: | `_slurm` | … |
ROW = re.compile(r"^\| `(_?[a-z]+(?:_[a-z]+)*)` \|", re.MULTILINE)
HEADINGS = {"plugin_utils": "### `plugins/plugin_utils`", "module_utils": "### `plugins/module_utils`"}


def listed(page: str, heading: str) -> list[str]:
    """Return the packages of the table below a heading."""
    _before, found, rest = page.partition(f"{heading}\n")
    assert found, heading
    return ROW.findall(rest.partition("\n#")[0])


def test_the_diagram_is_that_of_the_contracts():
    assert not stale("docs/architecture.md"), "run make pages"


@pytest.mark.parametrize("container", layers.FOLDERS)
def test_the_contracts_name_the_packages_of_the_tree(container):
    assert layers.packages(CONFIG, container) == layers.in_tree(container)


@pytest.mark.parametrize("half", HEADINGS)
def test_the_page_lists_the_packages_of_the_tree_once_each(root, half):
    page = (root / "docs/architecture.md").read_text(encoding="utf-8")
    assert sorted(listed(page, HEADINGS[half])) == sorted(layers.in_tree(f"{layers.PLUGINS}.{half}"))


def test_the_diagram_follows_the_contract(tmp_path):
    path = tmp_path / ".importlinter"
    text = layers.CONTRACT.read_text(encoding="utf-8")
    path.write_text(text.replace("    _run\n    _edge\n", "    _edge\n    _run\n"), encoding="utf-8")
    assert layers.diagram(layers.read(path)) != layers.diagram(CONFIG)


def test_modules_are_kept_from_the_controller_by_a_contract_of_their_own(tmp_path):
    assert "  modules --> module_utils" in layers.diagram(CONFIG).splitlines()
    path = tmp_path / ".importlinter"
    text = layers.CONTRACT.read_text(encoding="utf-8")
    path.write_text(text.replace("type = forbidden", "type = other"), encoding="utf-8")
    assert "  modules --> plugin_utils" in layers.diagram(layers.read(path)).splitlines()


def test_a_container_without_layers_is_refused():
    with pytest.raises(ValueError, match=r"no contract of \.importlinter has layers of elsewhere"):
        layers.layers(CONFIG, "elsewhere")
