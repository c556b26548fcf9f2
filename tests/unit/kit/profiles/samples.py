# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The profiles of the document, and changes of them."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[4] / "files/workloads/training_profiles/Config_Samples"
HPC = (FOLDER / "95-00-06-02-A-101_Training_Profile_HPC.yaml").read_text(encoding="utf-8")
EMBEDDED = (FOLDER / "95-00-06-02-A-102_Training_Profile_Embedded.yaml").read_text(encoding="utf-8")


def line_of(text: str, path: str) -> int:
    """The number of the line with this key, dotted."""
    lines = text.split("\n")
    at = 0
    for depth, part in enumerate(path.split(".")):
        form = re.compile(rf"{'  ' * depth}{re.escape(part)}:")
        at = next(number for number in range(at, len(lines)) if form.match(lines[number]))
    return at + 1


def changed(text: str, **values: str) -> str:
    """The text with what stands at these keys (training__epochs is training.epochs) replaced; `-` takes a key away."""
    for name, value in values.items():
        path = name.replace("__", ".")
        lines = text.split("\n")
        at = line_of(text, path) - 1
        indent = len(lines[at]) - len(lines[at].lstrip())
        end = at + 1
        while end < len(lines) and (lines[end].startswith(" " * (indent + 1)) or not lines[end].strip()):
            end += 1
        lines[at:end] = [] if value == "-" else [f"{' ' * indent}{path.rpartition('.')[2]}: {value}"]
        text = "\n".join(lines)
    return text
