# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page on profiles shows what the check says, and names keys that there are."""

from __future__ import annotations

import re

from kit.profiles import document
from kit.profiles.check import field_at, judged

from tests.unit.kit.profiles.samples import FOLDER, HPC, changed

PAGE = (FOLDER.parents[3] / "docs/profiles.md").read_text(encoding="utf-8")


def test_the_messages_on_the_page_are_those_of_the_copy_that_it_describes():
    copy = changed(
        HPC,
        model__num_heads="7",
        training__batch_size="64",
        training__optimizer__name="adam",
        data__num_workers="16",
    )
    (shown,) = re.findall(r"```text\n(mine\.yaml:.*?)```", PAGE, re.DOTALL)
    said = "".join(f"mine.yaml:{each}\n" for each in judged(document.parse(copy)).findings)
    assert shown == f"{said}mine.yaml: 3 errors, 1 warning\n"


def test_what_is_to_be_changed_is_a_key():
    table = PAGE.partition("## When it is slow")[2].partition("## ")[0]
    named = re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)", table)
    keys = [name for name in named if name != "gpu.jsonl"]
    assert len(keys) > 10
    assert [key for key in keys if field_at(tuple(key.split("."))) is None] == []
