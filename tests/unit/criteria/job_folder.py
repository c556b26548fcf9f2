# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job's folder made from a description, read by the real reader and judged. README.md says how it is described."""

from __future__ import annotations

import datetime
import json
import os
import re
from pathlib import Path
from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import strict_json
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import collector, log
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import legs as judge_legs
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import log_patterns, spec, verdicts
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import plan

ABSENT = "(absent)"
SIZE = re.compile(r"\(([0-9]+) bytes\)")
LINK = re.compile(r"\(link: (.+)\)")
STAMP = {"job_id": "12", "attempt": 0}
# As `kit end` writes them: descriptions give the end line without the nonce.
NONCE = "00112233445566778899aabbccddeeff"
END_LINE = re.compile(r"(?m)^(hpc-validation-end job=12 attempt=0 exit=-?[0-9]+)$")
WRITTEN = 1795232630.0  # while the job of files/schemas/examples ran
TODAY = datetime.date(2026, 11, 21)
PATTERNS = log_patterns.load()
SEARCH = log.compile_sets(PATTERNS)


def merged(base: Any, change: Any) -> Any:
    """Return `base` with `change` merged in; what is `(absent)` is left out of mappings."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    result = {**base, **{key: merged(base.get(key), value) for key, value in change.items()}}
    return {key: value for key, value in result.items() if value != ABSENT}


def write(folder: Path, described: dict[str, Any]) -> None:
    """Write files and logs as they are described."""
    for name, content in described["files"].items():
        _write(folder / "output" / name, content)
    for name, text in described["logs"].items():
        _write(folder / name, END_LINE.sub(rf"\1 nonce={NONCE}", text))
    _write(folder / "end.json", {"exit_code": 0, "nonce": NONCE})


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, dict):
        path.write_text(json.dumps({**STAMP, **content}))
    elif isinstance(content, list):
        path.write_text("".join(json.dumps({**STAMP, **row}) + "\n" for row in content))
    elif size := SIZE.fullmatch(content):
        with path.open("wb") as stream:
            os.truncate(stream.fileno(), int(size[1]))
    elif link := LINK.fullmatch(content):
        path.symlink_to(link[1])
    else:
        path.write_text(content)
    date(path)


def date(path: Path) -> None:
    """Make it look as old as the job that it is described to be of."""
    os.utime(path, (WRITTEN, WRITTEN), follow_symlinks=False)


def collect(folder: Path, manifest: dict[str, Any], described: dict[str, Any], job: Any) -> dict[str, Any]:
    """Return the evidence that the real reader makes of the folder."""
    legs = plan.LEGS if "baseline" in manifest else {}
    request = collector.Request(
        **STAMP,
        output=str(folder / "output"),
        files={**plan.files(manifest), **judge_legs.leg_files(legs)},
        logs={name: str(folder / name) for name in ("stdout", "stderr")},
        end_marker=str(folder / "end.json"),
        artifacts=manifest["output"].get("artifacts", []),
        patterns=PATTERNS,
        settle=0.0,
    )
    vars(request)["search"] = SEARCH  # compiled once for all tests
    assert collector.check(request) == []
    # Without the child process, whose fork costs more than all else here; as text, as the child writes it.
    answers = (strict_json.parse(json.dumps(answer).encode()) for answer in collector.answers(request))
    evidence = collector.document(request, answers, "at all")
    evidence.update(job=job, context=described["context"])
    return judge_legs.with_legs(evidence, legs) if legs else evidence


def judge(manifest: dict[str, Any], described: dict[str, Any], evidence: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the judged criteria by id, and beside them the verdict over all under the empty id."""
    references = described.get("references", {})
    criteria = spec.read(manifest["criteria"], workload=manifest["id"], pattern_sets=PATTERNS, references=references)
    judged = verdicts.judge(evidence, criteria, references=references, today=TODAY)
    return {"": {"verdict": verdicts.overall(judged)}, **{entry["id"]: entry for entry in judged}}
