# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read YAML strictly: reject, with line numbers, whatever would be dropped or would expand to more than is written."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass
from pathlib import Path

import yaml

YAMLError = yaml.YAMLError
Place = tuple[t.Any, ...]  # the keys and positions that lead to a value: ("criteria", 2, "gt")
_MERGE = "tag:yaml.org,2002:merge"
_NULL = "tag:yaml.org,2002:null"
_NOT_PLAIN = re.compile(r"[-+]?0[0-9_]+\Z|.*[:_]")  # octal, with base 60, or with underscores


@dataclass(frozen=True)
class Refusal:
    """Why a document is rejected, and on which line."""

    line: int
    why: str


@dataclass(frozen=True)
class Source:
    """A document read for its author: its value, the lines of its keys, and everything that is rejected."""

    value: t.Any
    lines: dict[Place, int]
    refused: list[Refusal]

    def line(self, place: Place) -> int:
        """Return the line of the key or element at `place`, or of the nearest one around it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


class _Loader(yaml.SafeLoader):
    """YAML without aliases, merge keys and duplicate keys."""

    def refuse(self, error: type[yaml.error.MarkedYAMLError], why: str, mark: yaml.Mark) -> None:
        raise error(None, None, why, mark)

    def compose_node(self, parent: t.Any, index: t.Any) -> t.Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            self.refuse(yaml.composer.ComposerError, "an alias is used; write the value out", event.start_mark)
            self.get_event()
            return yaml.ScalarNode(_NULL, "", event.start_mark, event.end_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: t.Any, deep: bool = False) -> dict[t.Any, t.Any]:
        if isinstance(node, yaml.MappingNode):
            self._require_unique(node)
        return super().construct_mapping(node, deep=deep)

    def _require_unique(self, node: yaml.MappingNode) -> None:
        refuse, error = self.refuse, yaml.constructor.ConstructorError
        lines: dict[t.Any, int] = {}
        kept = []
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                refuse(error, "a merge key (<<) is used; write the values out", key_node.start_mark)
                continue
            key = self.construct_object(key_node)
            line = key_node.start_mark.line + 1
            if not isinstance(key, t.Hashable):
                refuse(error, "a key is not a scalar", key_node.start_mark)
            elif key in lines:
                why = f"the key {key!r} appears twice, on lines {lines[key]} and {line}; keep one of them"
                refuse(error, why, key_node.start_mark)
            else:
                lines[key] = line
                kept.append((key_node, value_node))
        node.value = kept

    def whole_number(self, node: yaml.ScalarNode) -> int | None:
        value: int = self.construct_yaml_int(node)
        self._require_plain(node, value)
        if abs(value) >= 1 << 63:  # Python refuses to print a number of thousands of digits
            self.refuse(yaml.constructor.ConstructorError, "a number has more than 64 bits", node.start_mark)
            return None
        return value

    def number(self, node: yaml.ScalarNode) -> float:
        value: float = self.construct_yaml_float(node)
        self._require_plain(node, value)
        return value

    def _require_plain(self, node: yaml.ScalarNode, value: float) -> None:
        """Refuse a number that YAML 1.1 reads as another than its author may mean: 010 is 8, and 1:30 is 90."""
        if _NOT_PLAIN.match(node.value):
            why = f"{node.value} is read as {value}; write that, or put it in quotes if it is a text"
            self.refuse(yaml.constructor.ConstructorError, why, node.start_mark)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.whole_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.number)


class _Reviewer(_Loader):
    """Continues after a refusal and collects them all: authors of a document want to see every fault at once."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.refused: list[Refusal] = []

    def refuse(self, error: type[yaml.error.MarkedYAMLError], why: str, mark: yaml.Mark) -> None:
        del error
        refusal = Refusal(mark.line + 1, why)
        if refusal not in self.refused:  # a node may be constructed twice
            self.refused.append(refusal)

    def review(self) -> Source:
        root = self.get_single_node()
        value = None if root is None else self.construct_document(root)
        lines: dict[Place, int] = {}
        if root is not None:
            self._note(root, (), root.start_mark.line + 1, lines)
        return Source(value, lines, self.refused)

    def _note(self, node: yaml.Node, place: Place, line: int, lines: dict[Place, int]) -> None:
        lines[place] = line
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                self._note(value, (*place, self.construct_object(key)), key.start_mark.line + 1, lines)
        elif isinstance(node, yaml.SequenceNode):
            for position, value in enumerate(node.value):
                self._note(value, (*place, position), value.start_mark.line + 1, lines)


def parse(text: str) -> t.Any:
    """Return the single YAML document in `text`. Raise YAMLError."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except (ValueError, RecursionError) as exc:  # no such date, thousands of digits, nested too deeply
        raise YAMLError(str(exc)) from exc


def review(text: str) -> Source:
    """Return the single YAML document in `text` with its lines and everything that `parse` would reject.

    Text that is not YAML at all ends the reading there; the value is then null.
    """
    try:
        return _Reviewer(text).review()
    except (YAMLError, ValueError, RecursionError) as exc:
        line, why = 1, str(exc)
        if isinstance(exc, yaml.error.MarkedYAMLError) and exc.problem_mark:
            line, why = exc.problem_mark.line + 1, ": ".join(part for part in (exc.context, exc.problem) if part)
        return Source(None, {}, [Refusal(line, f"it is not YAML: {why}")])


def read(path: Path) -> t.Any:
    """Return the single YAML document at `path`. Raise OSError or YAMLError."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as exc:
        raise YAMLError(f"byte {exc.start} is not UTF-8") from exc
