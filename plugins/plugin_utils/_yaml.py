# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one reader of YAML: what would be dropped, or stand for more than is written, is refused with its lines."""

from __future__ import annotations

import typing as t
from pathlib import Path

import yaml

YAMLError = yaml.YAMLError
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """YAML without aliases and merge keys, and without keys that stand twice."""

    def compose_node(self, parent: t.Any, index: t.Any) -> t.Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.composer.ComposerError(None, None, "an alias is used; write the value out", event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: t.Any, deep: bool = False) -> dict[t.Any, t.Any]:
        if isinstance(node, yaml.MappingNode):
            self._require_unique(node)
        return super().construct_mapping(node, deep=deep)

    def _require_unique(self, node: yaml.MappingNode) -> None:
        lines: dict[t.Any, int] = {}
        for key_node, _value in node.value:
            if key_node.tag == _MERGE:
                why = "a merge key (<<) is used; write the values out"
                raise yaml.constructor.ConstructorError(None, None, why, key_node.start_mark)
            key = self.construct_object(key_node)
            if not isinstance(key, t.Hashable):
                raise yaml.constructor.ConstructorError(None, None, "a key is no scalar", key_node.start_mark)
            line = key_node.start_mark.line + 1
            if key in lines:
                why = f"the key {key!r} stands twice, on lines {lines[key]} and {line}; keep one of them"
                raise yaml.constructor.ConstructorError(None, None, why, key_node.start_mark)
            lines[key] = line

    def whole_number(self, node: yaml.ScalarNode) -> int:
        value: int = self.construct_yaml_int(node)
        if abs(value) >= 1 << 63:  # Python itself refuses to print one of thousands of digits
            raise yaml.constructor.ConstructorError(None, None, "a number has more than 64 bits", node.start_mark)
        return value


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.whole_number)


def parse(text: str) -> t.Any:
    """Return the one YAML document in `text`. Raise YAMLError."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except (ValueError, RecursionError) as exc:  # no such date, thousands of digits, nested too deeply
        raise YAMLError(str(exc)) from exc


def read(path: Path) -> t.Any:
    """Return the one YAML document at `path`. Raise OSError or YAMLError."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as exc:
        raise YAMLError(f"byte {exc.start} is not UTF-8") from exc
