# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every small change of a file that is no module: lines of a template deleted, what a role asserts made true."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import yaml

from tests.mutation.changes import Change

ASSERT = "ansible.builtin.assert"
_CONDITION = re.compile(r"(\{% (?:el)?if )(.+?)( %\})")


def of_template(text: str) -> Iterator[tuple[Change, str]]:
    """Yield the template without each of its lines that does something, and with each of its conditions decided."""
    lines = text.splitlines(keepends=True)
    seen: Counter[str] = Counter()
    for position, line in enumerate(lines):
        shown = line.strip()
        seen[shown] += 1
        scope = "template" if seen[shown] == 1 else f"template, {seen[shown]}"
        condition = _CONDITION.search(line)
        if condition and shown.startswith("{%"):
            for fixed in ("true", "false"):
                changed = _CONDITION.sub(rf"\g<1>{fixed}\g<3>", line)
                change = Change(position + 1, scope, f"if {condition[2]}", f"if {fixed}")
                yield change, "".join([*lines[:position], changed, *lines[position + 1 :]])
        elif shown and not shown.startswith("{%") and (not shown.startswith("#") or shown.startswith("#SBATCH")):
            yield Change(position + 1, scope, shown, "removed"), "".join([*lines[:position], *lines[position + 1 :]])


def of_assertions(text: str) -> Iterator[tuple[Change, str]]:
    """Yield the tasks with each condition that they assert made true."""
    for node in _asserted(yaml.compose(text, yaml.SafeLoader)):
        begin, end = node.start_mark, node.end_mark
        yield (
            Change(begin.line + 1, "assert", str(node.value), "true"),
            text[: begin.index] + "true" + text[end.index :],
        )


def _asserted(node: yaml.Node | None) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _asserted(item)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == ASSERT:
                (that,) = [given for name, given in value.value if name.value == "that"]
                yield from that.value if isinstance(that, yaml.SequenceNode) else [that]
            else:
                yield from _asserted(value)
