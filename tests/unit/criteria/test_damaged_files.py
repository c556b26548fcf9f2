# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever becomes of a file, each criterion that reads it is left undetermined: no manifest has to say so."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import query
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import plan

from tests.unit.criteria import job_folder
from tests.unit.criteria.manifests import OPTIONS, WORKLOADS


def rewritten(path, change):
    path.write_bytes(change(path.read_bytes()))


def replaced_by_a_link(path):
    """The content is right and lies outside the folder."""
    output = next(folder for folder in path.parents if folder.name == "output")
    elsewhere = output.parent / "elsewhere"
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)


def replaced_by(make):
    def damage(path):
        path.unlink()
        make(path)

    return damage


DAMAGES = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: rewritten(path, lambda _whole: b""),
    "cut off": lambda path: rewritten(path, lambda whole: whole[:-9]),
    "not text": lambda path: rewritten(path, lambda whole: b"\xff\xfe" + whole),
    "of another job": lambda path: rewritten(path, lambda whole: whole.replace(b'"12"', b'"11"')),
    "of another attempt": lambda path: rewritten(path, lambda whole: whole.replace(b'"attempt": 0', b'"attempt": 1')),
    "of another time": lambda path: os.utime(path, (job_folder.WRITTEN - 9999, job_folder.WRITTEN - 9999)),
    "huge": lambda path: os.truncate(path, 3 << 20),
    "a link out of the folder": replaced_by_a_link,
    "a folder": replaced_by(lambda path: path.mkdir()),
    "a FIFO": replaced_by(os.mkfifo),
}
CASES = [
    pytest.param(workload, name, damage, id=f"{workload.name} {name} {damage}")
    for workload in WORKLOADS
    for name in sorted(plan.files(workload.manifest))
    for damage in DAMAGES
    # With another option it is the same reader.
    if workload not in OPTIONS or damage in ("missing", "cut off", "of another job")
]


def readers(workload, name, evidence):
    """Return the criteria that read a document, by evaluating them over whole evidence."""
    found = set()
    for criterion, data in workload.criteria.items():
        each, roots = data.get("each", {}), set()
        for expression in (data.get("query"), each.get("over")):
            if expression:
                query.evaluate(query.parse(expression), evidence, roots)
        tests = [test for body in (data, each) for test in (body.get("ratio_ge"), body.get("ratio_le")) if test]
        for test in tests:
            query.evaluate(query.parse(test["to"]), evidence, roots if test.get("of") == "own" else set())
        if any(test.get("of") != "own" for test in tests):
            roots |= {"metrics", "provenance", "legs"}  # by which a baseline is compared
        if name in roots:
            found.add(criterion)
    return found


def anywhere(judged, folder):
    """Leave out where the files are, which is another folder for each test."""
    return json.loads(json.dumps(judged).replace(str(folder), ""))


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory):
    """(workload, description) → evidence of its files as they are, and the judged criteria; once for each workload."""
    known = {}

    def of(workload, described):
        if workload.name not in known:
            folder = tmp_path_factory.mktemp("whole")
            job_folder.write(folder, described)
            whole = job_folder.collect(folder, workload.manifest, described, described["job"])
            assert whole["problems"] == []
            judged = job_folder.judge(workload.manifest, described, whole)
            known[workload.name] = whole, anywhere(judged, folder)
        return known[workload.name]

    return of


@pytest.mark.parametrize(("workload", "name", "damage"), CASES)
def test_a_damaged_file_decides_nothing(tmp_path, example, undamaged, workload, name, damage):
    described = {**workload.described, "job": {**example("job"), **workload.described["job"]}}
    whole, untouched = undamaged(workload, described)
    job_folder.write(tmp_path, described)
    path = tmp_path / "output" / plan.files(workload.manifest)[name]["path"]
    DAMAGES[damage](path)
    if damage not in ("missing", "of another time"):
        job_folder.date(path)
    evidence = job_folder.collect(tmp_path, workload.manifest, described, described["job"])
    judged = anywhere(job_folder.judge(workload.manifest, described, evidence), tmp_path)
    blamed = readers(workload, name, whole)
    for criterion in workload.criteria:
        entry = judged[criterion]
        if criterion not in blamed:
            assert entry == untouched[criterion]
        elif entry["severity"] == "record":
            assert "would be undetermined" in entry["why"]
        else:
            assert entry["verdict"] == "undetermined", f"{criterion}: {entry['why']}"
    gates = {criterion for criterion in blamed if judged[criterion]["severity"] == "gate"}
    assert judged[""]["verdict"] == ("undetermined" if gates else "pass")
