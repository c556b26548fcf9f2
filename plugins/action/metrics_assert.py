# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of metrics_assert: checks the criteria, has the evidence collected, saves it, judges it."""

from __future__ import annotations

import datetime
import os
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.mlops.hpc_validation.plugins.module_utils import (
    _criteria,
    _criteria_spec,
    _evidence_baseline,
    _nul,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import Request, check
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence_log import PatternsError, compile_sets
from ansible_collections.mlops.hpc_validation.plugins.module_utils._metrics_assert_spec import (
    CONTROLLER_ONLY,
    MUTUALLY_EXCLUSIVE,
    argument_spec,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import _evidence_store, _judge_table, _log_patterns

MODULE = "mlops.hpc_validation.metrics_assert"


class ActionModule(ActionBase):
    """Judges on the controller what the module of the same name collected on the target."""

    _supports_check_mode = True
    _supports_async = False
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return verdict, criteria, table and the evidence's path; failed unless the verdict is pass."""
        result = super().run(tmp, task_vars)
        _validated, arguments = self.validate_argument_spec(
            argument_spec=argument_spec(), mutually_exclusive=MUTUALLY_EXCLUSIVE
        )
        options: dict[str, Any] = _evidence_store.plain(arguments)
        nul = _nul.refusal(options)
        if nul:
            raise AnsibleActionFail(nul)
        patterns = self._patterns(options["patterns"])
        criteria = self._criteria(options, patterns)

        path = options["evidence"] or options["save"]
        path = os.path.abspath(os.path.expanduser(path)) if path else None
        if options["evidence"]:
            document = self._saved(path)
        else:
            document = self._collected(options, patterns, task_vars)
            document.update(job=options["job"], context=options["context"])
            if options["legs"]:
                document = _evidence_baseline.with_legs(document, options["legs"])
        self._add_baseline(document, options["baseline"])
        if options["save"] and not self._task.check_mode:
            self._save(document, path)

        today = datetime.datetime.now(tz=datetime.timezone.utc).date()
        judged = _criteria.judge(document, criteria, references=options["references"], today=today)
        verdict = _criteria.overall(judged)
        table = _judge_table.render(options["workload"], verdict, judged)
        if not self._task.no_log:
            self._display.display(table)
        result.update(changed=False, verdict=verdict, criteria=judged, table=table, failed=False)
        if path and os.path.exists(path):
            result["evidence"] = path
        if verdict != "pass" and options["fail"] is not False:
            result.update(failed=True, msg=_judge_table.summary(options["workload"], verdict, judged))
        return result

    def _patterns(self, extra: dict[str, Any]) -> dict[str, Any]:
        try:
            sets = _log_patterns.with_own(_log_patterns.load(), extra)
            compile_sets(sets)
        except (_log_patterns.PatternSetError, PatternsError) as exc:
            raise AnsibleActionFail(f"log patterns: {exc}") from exc
        return sets

    def _criteria(self, options: dict[str, Any], patterns: dict[str, Any]) -> list[_criteria_spec.Criterion]:
        """Refuse what is malformed before anything is read or judged."""
        request = Request(
            job_id="",
            attempt=0,
            output=options["output"] or "/",
            files={**options["files"], **_evidence_baseline.leg_files(options["legs"])},
            logs={name: path for name, path in options["logs"].items() if path},
            end_marker=options["end_marker"],
            artifacts=options["artifacts"],
        )
        where = f"workload {options['workload']}: "
        wrong = [*check(request), *_evidence_baseline.check(options["legs"], options["files"])]
        errors = [] if options["evidence"] else [where + error for error in wrong]
        if options["output"] is None and (request.files or options["artifacts"]):
            errors.append(f"{where}output: expected the directory in which files and artifacts lie")
        criteria: list[_criteria_spec.Criterion] = []
        try:
            criteria = _criteria_spec.read(
                options["criteria"],
                options["overrides"],
                workload=options["workload"],
                pattern_sets=patterns,
                references=options["references"],
            )
        except _criteria_spec.CriteriaError as exc:
            errors += exc.errors
        if errors:
            raise AnsibleActionFail("nothing was judged; malformed:\n" + "\n".join(errors))
        return criteria

    def _saved(self, path: str) -> dict[str, Any]:
        try:
            return _evidence_store.load(path)
        except _evidence_store.EvidenceStoreError as exc:
            return _evidence_store.nothing_collected(str(exc))

    def _collected(
        self, options: dict[str, Any], patterns: dict[str, Any], task_vars: dict[str, Any] | None
    ) -> dict[str, Any]:
        job = options["job"] or {}
        attempt = job.get("attempt")
        numbered = isinstance(attempt, int) and not isinstance(attempt, bool)
        if not isinstance(job.get("job_id"), str) or not job["job_id"] or not numbered:
            return _evidence_store.nothing_collected("there is no job with a job_id and an attempt")
        arguments = {key: value for key, value in options.items() if key not in CONTROLLER_ONLY and value is not None}
        arguments["files"] = {**options["files"], **_evidence_baseline.leg_files(options["legs"])}
        arguments["patterns"] = patterns
        arguments["job"] = {"job_id": job["job_id"], "attempt": attempt}
        try:
            answer = self._execute_module(module_name=MODULE, module_args=arguments, task_vars=task_vars)
        except AnsibleConnectionFailure as exc:
            return _evidence_store.nothing_collected(f"the host cannot be reached: {exc}")
        except AnsibleError as exc:
            return _evidence_store.nothing_collected(f"the host could not read the evidence: {exc}")
        document = _evidence_store.plain(answer.get("document"))
        if answer.get("failed") or answer.get("unreachable") or not _evidence_store.is_evidence(document):
            told = " ".join(str(answer[key]) for key in ("msg", "module_stderr") if answer.get(key))
            return _evidence_store.nothing_collected(f"the host could not read the evidence: {told or 'no answer'}")
        return document

    def _add_baseline(self, document: dict[str, Any], path: str | None) -> None:
        if not path:
            return
        try:
            saved = _evidence_store.load(os.path.abspath(os.path.expanduser(path)))
        except _evidence_store.EvidenceStoreError as exc:
            blame = {"source": "baseline", "path": path, "problem": "unreadable", "detail": str(exc)}
            document["problems"].append(blame)
            return
        document["baseline"] = _evidence_baseline.stored(saved)

    def _save(self, document: dict[str, Any], path: str) -> None:
        """A verdict that cannot be checked later is none: evidence that could not be saved makes it undetermined."""
        try:
            _evidence_store.save(document, path)
        except OSError as exc:
            blame = {"source": _criteria.EVERYTHING, "path": path, "problem": "not_saved", "detail": str(exc)}
            document["problems"].append(blame)
