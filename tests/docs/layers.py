# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The diagram of docs/architecture.md: who may import whom, from the contracts of .importlinter."""

from __future__ import annotations

import configparser
from pathlib import Path

from tests.docs.pages import ROOT

CONTRACT = ROOT / ".importlinter"
PLUGINS = "ansible_collections.mlops.hpc_validation.plugins"
# Where the packages of each container lie.
FOLDERS = {
    f"{PLUGINS}.plugin_utils": ROOT / "plugins/plugin_utils",
    f"{PLUGINS}.module_utils": ROOT / "plugins/module_utils",
    "kit": ROOT / "files/kit",
}


def read(path: Path = CONTRACT) -> configparser.ConfigParser:
    """Return the linter's configuration."""
    config = configparser.ConfigParser()
    config.read(path, encoding="utf-8")
    return config


def layers(config: configparser.ConfigParser, container: str) -> list[list[str]]:
    """Return the layers of a container, the upper ones first; what is in one layer does not import each other."""
    for name in config.sections():
        section = config[name]
        if section.get("type") == "layers" and section["containers"].split() == [container]:
            return [
                [part.strip() for part in line.split("|")] for line in section["layers"].split("\n") if line.strip()
            ]
    raise ValueError(f"no contract of {CONTRACT.name} has layers of {container}")


def packages(config: configparser.ConfigParser, container: str) -> set[str]:
    """Return the packages that the contract names."""
    return {package for layer in layers(config, container) for package in layer}


def in_tree(container: str) -> set[str]:
    """Return the packages that there are."""
    folders = FOLDERS[container].iterdir()
    return {folder.name for folder in folders if folder.is_dir() and any(folder.glob("*.py"))}


def forbidden(config: configparser.ConfigParser, source: str, target: str) -> bool:
    """Say whether a contract forbids `source` to import `target`."""
    rules = [config[name] for name in config.sections() if config[name].get("type") == "forbidden"]
    return any(
        source in rule["source_modules"].split() and target in rule["forbidden_modules"].split() for rule in rules
    )


def diagram(config: configparser.ConfigParser) -> str:
    """Return the diagram in Mermaid: an arrow is `may import`, and so may each box import all that is below it."""
    lines = ["```mermaid", "flowchart TB"]
    entries, *halves = layers(config, PLUGINS)
    lines += [f'  {entry}["plugins/{entry}"]' for entry in entries]
    for (half,) in halves:
        lines += _boxes(half, f"plugins/{half}", layers(config, f"{PLUGINS}.{half}"))
    lines += _boxes("kit", "files/kit", layers(config, "kit"))
    names = [half for (half,) in halves]
    for entry in entries:
        allowed = next(half for half in names if not forbidden(config, f"{PLUGINS}.{entry}", f"{PLUGINS}.{half}"))
        lines.append(f"  {entry} --> {allowed}")
    lines += [f"  {upper} --> {lower}" for upper, lower in zip(names, names[1:])]
    return "\n".join([*lines, "```"])


def _boxes(name: str, title: str, rows: list[list[str]]) -> list[str]:
    """Return a box with one box for each layer."""
    lines = [f'  subgraph {name}["{title}"]', "    direction TB"]
    lines += [f'    {name}{number}["{" · ".join(row)}"]' for number, row in enumerate(rows)]
    lines += [f"    {name}{number} --> {name}{number + 1}" for number in range(len(rows) - 1)]
    return [*lines, "  end"]
