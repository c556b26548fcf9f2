# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit watch` shows a screen whatever the files of a training hold."""

from __future__ import annotations

import json

from kit.pretraining.observed import observe
from kit.pretraining.overview import screen

from tests.unit.kit.training_folder import training
from tests.unit.kit.training_rows import BEGAN

NOW = BEGAN + 4004
STRANGE = [None, True, -1, 0, 10**400, 1e308, "x", "", [], [None], {}, {"a": {}}]


def test_whatever_a_field_holds_there_is_a_screen(tmp_path):
    folder = training(tmp_path)
    for name in ("training_metrics.jsonl", "performance_metrics.jsonl"):  # fewer rows are read faster
        (folder / name).write_text("".join((folder / name).read_text().splitlines(keepends=True)[:3]))
    documents = [path for path in [*folder.rglob("*.json*"), *(tmp_path / "jobs").rglob("*.json")] if path.is_file()]
    assert len(documents) == 12
    tried = 0
    for path in documents:
        text = path.read_text()
        last = json.loads(text.splitlines()[-1])
        nested = [(last[key], inner) for key in last if isinstance(last[key], dict) for inner in last[key]]
        for holder, key in [*((last, key) for key in last), *nested]:
            before = holder[key]
            for value in STRANGE:
                holder[key] = value
                path.write_text("".join([*text.splitlines(keepends=True)[:-1], json.dumps(last)]))
                assert screen(observe(folder, NOW)).startswith("Job 12")
                tried += 1
            holder[key] = before
        path.write_text(text)
    assert tried > 1000
