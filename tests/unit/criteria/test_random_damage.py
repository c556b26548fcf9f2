# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random evidence of which all is judged: whatever one thing in it is not there, not finite or not its own, no pass.

`make test-slow` looks at ten thousand of them (HPC_VALIDATION_EXAMPLES).
"""

from __future__ import annotations

import copy
import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import collector
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import spec
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import verdicts as judge_verdicts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.criteria import job_folder
from tests.unit.criteria.job_folder import ABSENT, STAMP, TODAY

EXAMPLES = int(os.environ.get("HPC_VALIDATION_EXAMPLES", "40"))
END = f"hpc-validation-end job=12 attempt=0 exit=0 nonce={job_folder.NONCE}\n"
PATTERNS = {"oom": job_folder.PATTERNS["oom"]}
BETWEEN = [-1e7, 1e7]
NO_NUMBERS = [
    *(None, ABSENT, float("nan"), float("inf"), float("-inf"), "NaN", "Infinity", "-Infinity", {"non_finite": "NaN"}),
    *("", "1", "1e3", True, False, [], {}, [None], 10**400, {"count": 1, "last": 1}),
]
NO_CELLS = ["", " ", "nan", "NaN", "inf", "-Infinity", "1e999", "none", "1_000", "0005", "+0", "true", "٣", "1.", "0x1"]
OTHERS = [{"job_id": "13"}, {"job_id": 12}, {"job_id": None}, {"attempt": 1}, {"attempt": None}, {"attempt": False}]
NO_JOBS = [
    *({"state": state} for state in ("RUNNING", "CANCELLED", "UNKNOWN", "TIMEOUT", None)),
    *({"exit_code": code} for code in (None, 1, True, "0", float("nan"))),
    *({"job_id": other} for other in (None, "", "13", 12)),
    *({"attempt": other} for other in (None, 1, "0")),
]

numbers = st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6)
names = st.sampled_from("abcdef")
reductions = st.sampled_from(["first", "last", "min", "max", "mean"])


@dataclass
class Case:
    """What a job leaves behind, with the criteria that judge each part of it, and what was done to it."""

    metrics: dict[str, Any]
    rows: list[dict[str, Any]]
    form: str
    criteria: list[dict[str, Any]]
    job: dict[str, Any]
    files: dict[str, bytes | None] = field(default_factory=dict)
    blamed: set[str] = field(default_factory=set)

    def ids(self, start: str) -> set[str]:
        """Return the ids of the criteria that read what is called so."""
        return {criterion["id"] for criterion in self.criteria if criterion["id"].startswith(start)}


def _criterion(identity: str, **body: Any) -> dict[str, Any]:
    return {"id": identity, "title": "t", **body}


@st.composite
def cases(draw: Any, job: dict[str, Any]) -> Case:
    """Draw what is all well."""
    metrics = draw(
        st.dictionaries(
            names,
            numbers
            | st.lists(numbers, min_size=1, max_size=3)
            | st.dictionaries(names, numbers, min_size=1, max_size=3),
            min_size=1,
            max_size=4,
        )
    )
    columns = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    row = st.fixed_dictionaries({"uuid": st.sampled_from(["GPU-a", "GPU-b"]), **dict.fromkeys(columns, numbers)})
    rows = draw(st.lists(row, min_size=1, max_size=6))
    criteria = []
    for name, value in metrics.items():
        if isinstance(value, (list, dict)):
            each = {"over": f"metrics.{name}", "query": "@", "count": len(value), "between": BETWEEN}
            criteria.append(_criterion(f"metrics.{name}", each=each))
        else:
            criteria.append(_criterion(f"metrics.{name}", query=f"metrics.{name}", between=BETWEEN))
    groups = len({row["uuid"] for row in rows})
    for name in columns:
        query = f"fields.{name}.{draw(reductions)}"
        each = {"over": "rows.groups", "query": query, "count": groups, "between": BETWEEN}
        criteria.append(_criterion(f"rows.{name}", query=f"rows.{query}", between=BETWEEN))
        criteria.append(_criterion(f"rows.{name}.each", each=each))
    criteria.append(_criterion("log", log=["stdout", "stderr"], absent="oom"))
    criteria.append(_criterion("model", artifact="model.pt", exists=True))
    return Case(metrics, rows, draw(st.sampled_from(["jsonl", "csv"])), criteria, copy.deepcopy(job))


def _written(case: Case) -> dict[str, bytes]:
    rows = [{**STAMP, **row} for row in case.rows]
    if case.form == "csv":
        columns = list(rows[0])
        text = ",".join(columns) + "\n" + "".join(",".join(str(row[name]) for name in columns) + "\n" for row in rows)
    else:
        text = "".join(json.dumps({key: item for key, item in row.items() if item != ABSENT}) + "\n" for row in rows)
    metrics = json.dumps(job_folder.merged({}, {**STAMP, **case.metrics}))
    return {
        "metrics": metrics.encode(),
        "rows": text.encode(),
        "stdout": END.encode(),
        "stderr": END.encode(),
        "model": b"weights",
    }


PATHS = {"metrics": "output/metrics.json", "model": "output/model.pt", "stdout": "stdout", "stderr": "stderr"}


def judged(case: Case) -> dict[str, str]:
    """Return the verdicts by id, and over all by the empty id, of what the real reader makes of the files."""
    paths = {**PATHS, "rows": f"output/rows.{case.form}"}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "output").mkdir()
        (Path(folder) / "end.json").write_text(json.dumps({**STAMP, "exit_code": 0, "nonce": job_folder.NONCE}))
        for name, content in {**_written(case), **case.files}.items():
            if content is not None:
                path = Path(folder) / paths[name]
                path.write_bytes(content)
                job_folder.date(path)
        request = collector.Request(
            **STAMP,
            output=f"{folder}/output",
            files={
                "metrics": {"path": "metrics.json", "format": "json"},
                "rows": {"path": f"rows.{case.form}", "format": case.form, "group_by": "uuid"},
            },
            logs={name: f"{folder}/{name}" for name in ("stdout", "stderr")},
            artifacts=["model.pt"],
            patterns=PATTERNS,
            settle=0.0,
            end_marker=f"{folder}/end.json",
        )
        evidence = {
            "schema": 1,
            "versions": dict(collector.VERSIONS),
            "job": case.job,
            "context": {},
            "logs": {},
            "artifacts": {},
            "files": {},
            "problems": [],
        }
        for source in request.sources():  # by collect's own reader, without a process for each example
            collector._enter(evidence, collector._read(request, source, 0.0))
    criteria = spec.read(case.criteria, workload="W", pattern_sets=PATTERNS)
    entries = judge_verdicts.judge(evidence, criteria, today=TODAY)
    return {"": judge_verdicts.overall(entries), **{entry["id"]: entry["verdict"] for entry in entries}}


def damage_metrics(draw: Any, case: Case) -> None:
    """Put what is no number in the place of one."""
    name = draw(st.sampled_from(sorted(case.metrics)))
    value, wrong = case.metrics[name], draw(st.sampled_from(NO_NUMBERS))
    if isinstance(value, dict):
        value[draw(st.sampled_from(sorted(value)))] = wrong
    elif isinstance(value, list):
        place = draw(st.integers(0, len(value) - 1))
        value[place : place + 1] = [] if wrong == ABSENT else [wrong]
    else:
        case.metrics[name] = wrong
    case.blamed = {f"metrics.{name}"}


def damage_cell(draw: Any, case: Case) -> None:
    """Put what is no number into a row."""
    row = draw(st.sampled_from(case.rows))
    name = draw(st.sampled_from(sorted(set(row) - {"uuid"})))
    row[name] = draw(st.sampled_from(NO_CELLS if case.form == "csv" else NO_NUMBERS))
    case.blamed = case.ids(f"rows.{name}")


def damage_owner(draw: Any, case: Case) -> None:
    """Let a document or a row be another job's, or nobody's."""
    other = draw(st.sampled_from(OTHERS))
    name = draw(st.sampled_from(["metrics", "rows"]))
    if name == "metrics":
        case.metrics.update(other)
    elif case.form == "csv":
        of_text = {"job_id": "012"} if other == {"job_id": 12} else other  # CSV has no texts and numbers
        draw(st.sampled_from(case.rows)).update(of_text)
    else:
        draw(st.sampled_from(case.rows)).update(other)
    case.blamed = case.ids(f"{name}.")


def damage_bytes(draw: Any, case: Case) -> None:
    """Tear a file: cut it within a row, leave a hole, take it away or empty it."""
    name = draw(st.sampled_from(["metrics", "rows", "stdout", "stderr", "model"]))
    content = _written(case)[name]
    how = draw(st.sampled_from(["missing", "empty", "cut", "hole"]))
    if how == "missing" or (name == "model" and how in ("cut", "hole")):
        case.files[name] = None
    elif how == "empty":
        case.files[name] = b""
    else:
        place = draw(st.integers(0, len(content) - 3))
        # Whole rows fewer are fewer rows, though the last one's line feed is missing: an object ends with its brace.
        while content[:place].endswith(b"\n") or content[place : place + 1] == b"\n":
            place -= 1
        after = b"" if how == "cut" else b"\0" + content[place + 1 :]
        case.files[name] = content[: max(place, 0)] + after
    case.blamed = case.ids({"stdout": "log", "stderr": "log", "model": "model"}.get(name, f"{name}."))


def damage_job(draw: Any, case: Case) -> None:
    """Let Slurm say something else of the job, or nothing."""
    case.job.update(draw(st.sampled_from(NO_JOBS)))


DAMAGES = [damage_metrics, damage_cell, damage_owner, damage_bytes, damage_job]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@settings(max_examples=max(1, EXAMPLES // len(DAMAGES)), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_nothing_that_is_missing_not_finite_or_foreign_ends_in_a_pass(damage, example, data):
    case = data.draw(cases({**example("job"), **STAMP, "exit_code": 0}))
    if data.draw(st.integers(0, 9)) == 0:
        assert set(judged(case).values()) == {"pass"}
    damage(data.draw, case)
    verdicts = judged(case)
    assert verdicts[""] in ("fail", "undetermined")
    assert all(verdicts[name] in ("fail", "undetermined") for name in case.blamed), verdicts
