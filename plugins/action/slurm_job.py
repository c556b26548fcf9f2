# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for Slurm jobs from the controller: progress, two clocks, interruption. Only the modules call Slurm."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.arguments import (
    FEW,
    SPEC,
    BadArgumentsError,
    check_window,
    job_specs,
)
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.job import has_ended
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.screen import fitted
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait import results
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.interrupt import Interrupted, InterruptGuard
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.limits import Limits
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.messages import submitted_lines, window_line
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.wait import Wait
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.waiting import Waiting
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._wait.window import Window

_JOB = "mlops.hpc_validation.slurm_job"
_INFO = "mlops.hpc_validation.slurm_job_info"
_RETRY_PAUSE = 5.0

display = Display()


def _all_attached(window: Window) -> bool:
    return not any(one.ours for one in window.jobs)


class ActionModule(ActionBase):
    """Submit or attach, then wait."""

    _supports_check_mode = True
    _supports_async = False
    _supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the task."""
        if self._task.async_val:
            raise AnsibleActionFail(
                "slurm_job cannot run with async: it waits itself and prints progress. For many jobs use jobs; "
                "to continue meanwhile use wait: false, and later job_id with wait: true."
            )
        result = super().run(tmp, task_vars)
        self._task_vars = task_vars
        _other, args = self.validate_argument_spec(argument_spec=SPEC)
        try:
            check_window(args)
            specs = job_specs(args)
        except BadArgumentsError as error:
            raise AnsibleActionFail(str(error)) from error
        self._args = args
        self._token = args["token"] or uuid.uuid4().hex
        self._looked: float | None = None
        self._cancellable = False
        self._cancelled: set[str] = set()
        if args["state"] == "absent":
            result.update(self._module(_JOB, dict(self._task.args)))
            return result
        if not specs:
            raise AnsibleActionFail("Give path, script, job_id or jobs.")
        if self._task.check_mode:
            return self._plan(result)
        with self._guarded():
            result.update(self._submit_and_wait(specs))
        return results.saved(result, args["save"]) if args["save"] else result

    def _plan(self, result: dict[str, Any]) -> dict[str, Any]:
        result.update(self._module(_JOB, dict(self._task.args)))
        plans = result.get("submitted", [])
        for plan in plans[:FEW]:
            display.display(f"slurm_job: {plan['name']}: {plan['plan']}")
        if more := plans[FEW:]:
            attached = sum(bool(plan["attached"]) for plan in more)
            display.display(f"slurm_job: {len(more)} more: would submit {len(more) - attached}, attach to {attached}")
        return result

    # -- what runs on the login node

    def _module(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        result = self._execute_module(module_name=name, module_args=args, task_vars=self._task_vars)
        result.pop("invocation", None)
        if result.pop("_ansible_parsed", True) is False:
            result["failed"] = True
        return result

    def _say(self, line: str) -> None:
        if not self._guard.orphaned():
            display.display(fitted(f"slurm_job: {line}"))

    # -- submission

    def _submit_and_wait(self, specs: list[dict[str, Any]]) -> dict[str, Any]:
        window = Window(specs, self._args["window"])
        positions = window.unsubmitted
        submitted = self._submit({})
        if submitted.get("failed"):
            return self._not_submitted(submitted)
        entries = submitted["submitted"]
        window.size = submitted.get("window", window.size)
        window.take(positions, entries, time.monotonic())
        answer = {key: value for key, value in submitted.items() if key in ("changed", "diff", "submitted")}
        if not self._args["wait"]:
            return {**answer, "attached": _all_attached(window), **self._look_once(window.jobs)}
        for line in submitted_lines(entries):
            self._say(line)
        if window.left.jobs:
            self._say(window_line(window.left.jobs, window.size, submitted.get("window_why", "")))
        self._looked = submitted.get("looked")
        failed = self._wait(window)
        if failed is not None:
            return self._not_submitted(failed)
        answer["changed"] = answer["changed"] or any(one.ours for one in window.jobs)
        waited = results.waited_for(window.jobs, self._cancelled, self._args["fail_on_state"])
        return {**answer, "attached": _all_attached(window), **waited}

    def _not_submitted(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a task that could not submit all its jobs: none of them is left behind."""
        cancelled = self._cancel_ours() if result.get("submitted") or self._cancellable else []
        return {**result, "cancelled": cancelled, "jobs": [], "jobs_by_key": {}, "job": None}

    def _submit(self, more: dict[str, Any]) -> dict[str, Any]:
        """Submit, and retry while slurmctld or the login node does not answer; the job was not submitted then."""
        end = time.monotonic() + self._args["controller_timeout"]
        while True:
            try:
                result = self._module(_JOB, {**self._task.args, "token": self._token, **more})
            except AnsibleConnectionFailure as error:
                # The connection may have broken after sbatch: the journal shows that to the next attempt.
                result = {"failed": True, "msg": f"The login node cannot be reached: {error}", "retry": True}
            if not (result.get("failed") and result.get("retry")) or time.monotonic() + _RETRY_PAUSE > end:
                return result
            self._say(f"{result['msg']} Retrying for {end - time.monotonic():.0f} s")
            time.sleep(_RETRY_PAUSE)
            self._reset_connection()

    def _submit_next(self, window: Window, wait: Wait) -> dict[str, Any] | None:
        """Submit as many more jobs as the window takes; return the result only if that failed."""
        positions = window.next(time.monotonic())
        if not positions:
            return None
        given = self._task.args.get("jobs")
        more = {"jobs": [given[position] for position in positions]} if given else {}
        submitted = self._submit({**more, "looked": self._looked})
        if submitted.get("failed"):
            return submitted
        now = time.monotonic()
        wait.add(window.take(positions, submitted["submitted"], now), now)
        return None

    # -- waiting

    def _wait(self, window: Window) -> dict[str, Any] | None:
        """Wait for all jobs, and submit those that follow; return a result only if a submission failed."""
        keys = ("controller_timeout", "progress_interval", "tail", "node_grace")
        limits = Limits(**{key: self._args[key] for key in keys})
        wait = Wait(window.jobs, limits, time.monotonic(), len(window.jobs) + window.left.jobs)
        self._cancellable = True
        held = ""
        while wait.open or window.left.jobs:
            failed = self._submit_next(window, wait)
            if failed is not None:
                return failed
            wait.add(window.give_up(time.monotonic()), time.monotonic())
            wait.left = window.left
            if wait.left.held and not held:
                self._say(f"held back until others have ended: {wait.left.held}")
            held = held or wait.left.held
            if wait.open:
                self._look(wait)
            elif window.left.jobs:
                time.sleep(min(_RETRY_PAUSE, window.wake(time.monotonic())))
                wait.tell(time.monotonic())
            for line in wait.take_lines():
                self._say(line)
        return None

    def _look(self, wait: Wait) -> None:
        """Ask once about the jobs that are waited for."""
        request = wait.request(time.monotonic())
        try:
            answer = self._module(_INFO, request)
        except AnsibleConnectionFailure as error:
            answer = {"failed": True, "msg": f"the login node cannot be reached: {error}"}
        failed = bool(answer.get("failed")) or "markers" not in answer
        if failed:
            wait.unreachable(str(answer.get("msg", "slurm_job_info failed")), time.monotonic())
        else:
            wait.observe(answer, request, time.monotonic())
        self._cancelled |= self._cancel_given_up(wait)
        if failed and wait.open:  # a failure may be immediate, without having waited on the login node
            time.sleep(_RETRY_PAUSE)
            self._reset_connection()

    def _cancel_given_up(self, wait: Wait) -> set[str]:
        """Cancel jobs of this task that are no longer waited for but still active."""
        given_up = [
            one
            for one in wait.jobs
            if one.ours
            and one.outcome in ("never_starts", "node_unavailable", "queue_timeout", "run_timeout")
            and not one.cancel_asked
            and not has_ended(one.job)
        ]
        if not given_up:
            return set()
        for one in given_up:
            one.cancel_asked = True
        result = self._module(_JOB, {"state": "absent", "jobs": [{"job_id": one.job_id} for one in given_up]})
        # One that ran has steps and output to look at.
        ran = [one for one in given_up if one.outcome == "run_timeout"]
        specs = [{"job_id": one.job_id, "comment": one.comment} for one in ran]
        looked = self._module(_INFO, {"jobs": specs, "tail": wait.limits.tail, "steps": wait.accounting}) if ran else {}
        # For a job that is still COMPLETING, the result of cancelling is the latest known state.
        ended = [job for job in looked.get("jobs", []) if has_ended(job)]
        after = {str(job["job_id"]): job for job in [*result.get("jobs", []), *ended]}
        for one in given_up:
            if after.get(one.job_id, {}).get("state", "UNKNOWN") != "UNKNOWN":
                one.take_cancelled(after[one.job_id])
            if result.get("failed"):
                one.add_reason(f"; it could not be cancelled: {result.get('msg')}")
        return set() if result.get("failed") else {one.job_id for one in given_up}

    def _look_once(self, jobs: list[Waiting]) -> dict[str, Any]:
        wait = Wait(jobs, Limits(), time.monotonic())
        if wait.open:
            request = {**wait.request(time.monotonic()), "hold": 0, "query": True, "nodes": []}
            answer = self._module(_INFO, request)
            if not answer.get("failed"):
                wait.observe(answer, request, time.monotonic())
        return results.looked_at(jobs, self._args["fail_on_state"])

    # -- being interrupted

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with InterruptGuard() as guard:
            self._guard = guard
            try:
                yield
            except Interrupted as interrupt:
                raise AnsibleActionFail(self._interrupted(str(interrupt))) from interrupt
            except BaseException as error:
                # A task's timeout, or a bug in the collection: leave no job behind either.
                self._interrupted(type(error).__name__)
                raise

    def _interrupted(self, cause: str) -> str:
        if self._args["on_interrupt"] == "leave":
            text = f"interrupted ({cause}); its jobs were not cancelled. Run the same task again to attach to them"
        else:
            self._guard.last_words(f"slurm_job: interrupted ({cause}); cancelling the jobs that this task submitted")
            ids = self._cancel_ours()
            text = f"interrupted ({cause}); cancelled: {' '.join(ids) or 'nothing, no job of this task was active'}"
        self._guard.last_words(fitted(f"slurm_job: {text}"))
        return text

    def _cancel_ours(self) -> list[str]:
        """Cancel what this task submitted, by its token in the journal; retry once over a new connection if needed."""
        keys = ("journal", "share")
        args = {"state": "absent", "token": self._token, **{key: self._args[key] for key in keys if self._args[key]}}
        error = ""
        for attempt in range(2):
            if attempt:
                self._reset_connection()
            try:
                result = self._module(_JOB, args)
            except AnsibleConnectionFailure as failure:
                error = str(failure)
                continue
            if not result.get("failed"):
                return [str(job_id) for job_id in result.get("cancelled", [])]
            error = str(result.get("msg"))
        self._guard.last_words(f"slurm_job: the jobs of this task could not be cancelled: {error}")
        return []

    def _reset_connection(self) -> None:
        with suppress(Exception):
            self._connection.reset()
