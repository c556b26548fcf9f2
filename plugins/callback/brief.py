# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: brief
type: stdout
version_added: 0.4.0
short_description: A line for each phase of a play, and what fails
description:
  - >-
    Shows a line for each role of a play with its outcome and time, what the collection's actions say meanwhile, and
    whatever fails, as a whole and at once. A task that takes long is named while it runs.
    With C(-v) the output is that of the default callback.
  - >-
    Nothing is left out but tasks that went well: warnings, differences, and what C(debug) and C(assert) say are shown.
  - It is only used if C(stdout_callback) or C(ANSIBLE_STDOUT_CALLBACK) names it.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
options:
  patience:
    description: Seconds after which a running task is named, again after twice as long, and so on.
    type: float
    default: 30
    env:
      - name: MLOPS_HPC_VALIDATION_BRIEF_PATIENCE
    ini:
      - section: callback_brief
        key: patience
author:
  - mlops.hpc_validation authors (@mlops)
"""

import os
import time
import typing as t

from ansible import constants, context
from ansible.plugins.callback.default import CallbackModule as Default
from ansible.utils import color
from ansible.utils.fqcn import add_internal_fqcns
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.screen import Patience, Phases, fitted

# These print their own outcome, in more words than their result has.
SAY_IT_THEMSELVES = {
    "mlops.hpc_validation.validation_run": "verdict",
    "mlops.hpc_validation.check_workload": "faults",
}
TELL_PROGRESS = ("mlops.hpc_validation.slurm_job",)

SHORT = 60  # JSON of this length still fits behind the host's name


class CallbackModule(Default):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "mlops.hpc_validation.brief"

    def __init__(self) -> None:
        super().__init__()
        # To Ansible NO_COLOR is a boolean; whoever sets it to anything wants no colours (no-color.org).
        if os.environ.get("NO_COLOR") and not constants.ANSIBLE_FORCE_COLOR:
            color.ANSIBLE_COLOR = False
        self._phases = Phases(time.monotonic)
        self._patience: Patience | None = None
        self._amiss = 0
        self._is_unsaid = False  # whether something failed that did not say how itself

    @property
    def _is_brief(self) -> bool:
        return int(self._display.verbosity) == 0

    def _say(self, line: str | None) -> None:
        if line:
            self._display.display(line)

    def v2_playbook_on_start(self, playbook: t.Any) -> None:
        if not self._is_brief:
            super().v2_playbook_on_start(playbook)
            return
        name = str(playbook._file_name).rpartition("/")[2]
        checked = " in check mode" if context.CLIARGS.get("check") else ""
        self._say(f"{name}{checked} (-v shows every task)")

    def v2_playbook_on_play_start(self, play: t.Any) -> None:
        if self._is_brief:
            self._play = play
        else:
            super().v2_playbook_on_play_start(play)

    def v2_playbook_on_no_hosts_matched(self) -> None:
        if self._is_brief and self._play.hosts == []:
            return  # it names no host, since there is nothing to do: not one that was not found
        if self._is_brief:  # the default callback has named the play before
            self._say(f"PLAY [{self._play.get_name().strip()}]")
        super().v2_playbook_on_no_hosts_matched()

    def v2_playbook_on_task_start(self, task: t.Any, is_conditional: bool) -> None:
        if self._is_brief:
            self._begin(task, "TASK")
        else:
            super().v2_playbook_on_task_start(task, is_conditional)

    def v2_playbook_on_handler_task_start(self, task: t.Any) -> None:
        if self._is_brief:
            self._begin(task, "RUNNING HANDLER")
        else:
            super().v2_playbook_on_handler_task_start(task)

    def _begin(self, task: t.Any, prefix: str) -> None:
        self._task_type_cache[task._uuid] = prefix
        one_by_one = self._play.strategy not in add_internal_fqcns(("free", "host_pinned"))
        self._last_task_name = task.get_name().strip() if one_by_one else None
        self._say(self._phases.enter(task._role.get_name() if task._role else None))
        if self._patience is None:
            self._patience = Patience(self.get_option("patience"), self._say)
        if task.action in TELL_PROGRESS:
            self._patience.end()
        else:
            self._patience.begin(self._phases.current, task.get_name().strip())

    def v2_playbook_on_include(self, included_file: t.Any) -> None:
        if not self._is_brief:
            super().v2_playbook_on_include(included_file)

    def v2_runner_on_ok(self, result: t.Any) -> None:
        self._note(result.result)
        if not self._is_brief or self._run_is_verbose(result):
            super().v2_runner_on_ok(result)
        else:
            self._handle_warnings_and_exception(result)

    def _note(self, told: dict[str, t.Any]) -> None:
        """Take note of a task that went well and says that something else did not."""
        amiss = told.get("amiss")
        if isinstance(amiss, int):
            if amiss > self._amiss:
                self._phases.failed()
            self._amiss = amiss
        if told.get("verdict") in ("fail", "undetermined"):
            self._phases.failed()

    def v2_runner_on_skipped(self, result: t.Any) -> None:
        if self._is_brief:
            self._handle_warnings_and_exception(result)
        else:
            super().v2_runner_on_skipped(result)

    def v2_runner_item_on_ok(self, result: t.Any) -> None:
        if not self._is_brief or self._run_is_verbose(result):
            super().v2_runner_item_on_ok(result)

    def v2_runner_item_on_skipped(self, result: t.Any) -> None:
        if not self._is_brief:
            super().v2_runner_item_on_skipped(result)

    def v2_runner_on_failed(self, result: t.Any, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            self._phases.failed()
        told = SAY_IT_THEMSELVES.get(result.task.action)
        if self._is_brief and told is not None and told in result.result:
            self._handle_warnings(result.result)
        else:
            self._is_unsaid = True
            super().v2_runner_on_failed(result, ignore_errors)

    def v2_runner_on_unreachable(self, result: t.Any) -> None:
        self._phases.failed()
        self._is_unsaid = True
        super().v2_runner_on_unreachable(result)

    def v2_playbook_on_stats(self, stats: t.Any) -> None:
        if not self._is_brief:
            super().v2_playbook_on_stats(stats)
            return
        if self._patience is not None:
            self._patience.end()
        self._say(self._phases.end())
        is_to_tell = self._is_unsaid and (stats.failures or stats.dark)
        if is_to_tell or (stats.custom and self.get_option("show_custom_stats")):
            super().v2_playbook_on_stats(stats)

    def _dump_results(self, *args: t.Any, **kwargs: t.Any) -> str:
        text = str(super()._dump_results(*args, **kwargs))
        if not self._is_brief:
            return text
        is_one_line = "\n" not in text and len(text) > SHORT
        return fitted(f"\n{text}" if is_one_line else text)
