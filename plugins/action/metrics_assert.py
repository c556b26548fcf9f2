# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of metrics_assert: check the criteria, have the evidence collected, save and judge it."""

from __future__ import annotations

import os
import time
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import collector
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.collector import Request, check
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.log import PatternsError, compile_sets
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.options import (
    CONTROLLER_ONLY,
    MUTUALLY_EXCLUSIVE,
    argument_spec,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import legs, log_patterns, spec
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.saved import Rules, judge_saved
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import criteria_table
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.screen import fitted
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import evidence

MODULE = "mlops.hpc_validation.metrics_assert"


class ActionModule(ActionBase):
    """Judge on the controller what the module of the same name collected on the target."""

    _supports_check_mode = True
    _supports_async = False
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return verdict, criteria, table and the evidence's path; failed unless the verdict is pass."""
        result = super().run(tmp, task_vars)
        _validated, arguments = self.validate_argument_spec(
            argument_spec=argument_spec(), mutually_exclusive=MUTUALLY_EXCLUSIVE
        )
        options: dict[str, Any] = plain(arguments)
        nul = no_nul.refusal(options)
        if nul:
            raise AnsibleActionFail(nul)
        patterns = self._patterns(options["patterns"])
        rules = self._rules(options, patterns)

        path = options["evidence"] or options["save"]
        path = os.path.abspath(os.path.expanduser(path)) if path else None
        if options["evidence"]:
            document = self._saved(path)
        else:
            document = self._collected(options, patterns, task_vars)
            document.update(job=options["job"], context=options["context"])
            if options["legs"]:
                document = legs.with_legs(document, options["legs"])
        self._add_baseline(document, options["baseline"])
        if options["save"] and not self._task.check_mode:
            self._save(document, path)

        judged = judge_saved(document, rules, now=time.time())
        table = criteria_table.render(options["workload"], judged.verdict, judged.criteria)
        if not self._task.no_log:
            seconds = (options["job"] or {}).get("run_seconds")
            short = criteria_table.brief(options["workload"], judged.verdict, judged.criteria, seconds)
            self._display.display(fitted(table if self._display.verbosity else short))
        result.update(changed=False, verdict=judged.verdict, criteria=judged.criteria, table=table, failed=False)
        if path and os.path.exists(path):
            result["evidence"] = path
        if judged.verdict != "pass" and options["fail"] is not False:
            result.update(failed=True, msg=criteria_table.summary(options["workload"], judged.verdict, judged.criteria))
        return result

    def _patterns(self, extra: dict[str, Any]) -> dict[str, Any]:
        try:
            sets = log_patterns.with_own(log_patterns.load(), extra)
            compile_sets(sets)
        except (log_patterns.PatternSetError, PatternsError) as exc:
            raise AnsibleActionFail(f"log patterns: {exc}") from exc
        return sets

    def _rules(self, options: dict[str, Any], patterns: dict[str, Any]) -> Rules:
        """Reject malformed settings before anything is read or judged."""
        request = Request(
            job_id="",
            attempt=0,
            output=options["output"] or "/",
            files={**options["files"], **legs.leg_files(options["legs"])},
            logs={name: path for name, path in options["logs"].items() if path},
            end_marker=options["end_marker"],
            artifacts=options["artifacts"],
        )
        where = f"workload {options['workload']}: "
        wrong = [*check(request), *legs.check(options["legs"], options["files"])]
        errors = [] if options["evidence"] else [where + error for error in wrong]
        if options["output"] is None and (request.files or options["artifacts"]):
            errors.append(f"{where}output: expected the directory of the files and artifacts")
        try:
            rules = Rules.read(
                {"id": options["workload"], "criteria": options["criteria"]},
                overrides=options["overrides"],
                references=options["references"],
                pattern_sets=patterns,
            )
        except spec.CriteriaError as exc:
            errors += exc.errors
        if errors:
            raise AnsibleActionFail("Nothing was judged, because these settings are invalid:\n" + "\n".join(errors))
        return rules

    def _saved(self, path: str) -> dict[str, Any]:
        try:
            return evidence.load(path)
        except evidence.EvidenceStoreError as exc:
            return evidence.nothing_collected(str(exc))

    def _collected(
        self, options: dict[str, Any], patterns: dict[str, Any], task_vars: dict[str, Any] | None
    ) -> dict[str, Any]:
        job = options["job"] or {}
        attempt = job.get("attempt")
        numbered = isinstance(attempt, int) and not isinstance(attempt, bool)
        if not isinstance(job.get("job_id"), str) or not job["job_id"] or not numbered:
            return evidence.nothing_collected("there is no job with a job_id and an attempt")
        arguments = {key: value for key, value in options.items() if key not in CONTROLLER_ONLY and value is not None}
        arguments["files"] = {**options["files"], **legs.leg_files(options["legs"])}
        arguments["patterns"] = patterns
        arguments["job"] = {"job_id": job["job_id"], "attempt": attempt}
        try:
            answer = self._execute_module(module_name=MODULE, module_args=arguments, task_vars=task_vars)
        except AnsibleConnectionFailure as exc:
            return evidence.nothing_collected(f"the host cannot be reached: {exc}")
        except AnsibleError as exc:
            return evidence.nothing_collected(f"the host could not read the evidence: {exc}")
        document = plain(answer.get("document"))
        if answer.get("failed") or answer.get("unreachable") or not evidence.is_evidence(document):
            told = " ".join(str(answer[key]) for key in ("msg", "module_stderr") if answer.get(key))
            return evidence.nothing_collected(f"the host could not read the evidence: {told or 'no answer'}")
        return document

    def _add_baseline(self, document: dict[str, Any], path: str | None) -> None:
        if not path:
            return
        try:
            saved = evidence.load(os.path.abspath(os.path.expanduser(path)))
        except evidence.EvidenceStoreError as exc:
            blame = {"source": "baseline", "path": path, "problem": "unreadable", "detail": str(exc)}
            document["problems"].append(blame)
            return
        document["baseline"] = legs.stored(saved)

    def _save(self, document: dict[str, Any], path: str) -> None:
        """Save the evidence. If that fails, the verdict is undetermined, since it could not be checked later."""
        try:
            evidence.save(document, path)
        except OSError as exc:
            blame = {"source": collector.EVERYTHING, "path": path, "problem": "not_saved", "detail": str(exc)}
            document["problems"].append(blame)
