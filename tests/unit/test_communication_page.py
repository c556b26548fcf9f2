# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/communication.md says of each message what the verdict says of it."""

from __future__ import annotations

import yaml


def table(root) -> str:
    """The page's table, from the patterns."""
    patterns = yaml.safe_load((root / "files/log_patterns/nccl_errors.yml").read_text())["patterns"]
    rows = [f"| `{entry['matches'][0]}` | {' '.join(entry['remedy'].split())} |" for entry in patterns]
    return "\n".join(["| A line such as | what to do |", "|---|---|", *rows]) + "\n"


def test_the_table_is_that_of_the_patterns(root):
    page = (root / "docs/communication.md").read_text()
    found = page.partition("<!-- messages -->\n")[2]
    assert found == table(root), f"put this below <!-- messages -->:\n{table(root)}"
