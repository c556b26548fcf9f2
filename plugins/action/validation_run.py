# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run on the controller only, without a connection to the host, so that it reports even if the host is unreachable."""

from __future__ import annotations

import platform
import time
import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.release import __version__ as ansible_version
from ansible.utils.display import Display
from ansible_collections.mlops.hpc_validation.plugins.action import validation_record
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import no_nul
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.paths import COLLECTION
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import expect
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import expectations
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import summary
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.screen import fitted
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import cards, interrupted, runs
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import (
    edge_group,
    images,
    leaving_out,
    manifests,
    selection,
    settings,
)

ERRORS = (
    runs.RunError,
    manifests.WorkloadError,
    images.ImagePlanError,
    expect.ExpectError,
    schema.SchemaError,
)
ARGUMENTS = {
    "state": {"type": "str", "required": True, "choices": ["started", "selected", "finished", "expanded"]},
    "results": {"type": "path"},
    "title": {"type": "str"},
    "accelerator": {"type": "str", "choices": ["cuda", "simulated", "cpu"]},
    "folders": {"type": "list", "elements": "path"},
    "categories": {"type": "list", "elements": "int", "default": []},
    "options": {"type": "dict", "default": {}},
    "everything": {"type": "bool", "default": False},
    "only": {"type": "list", "elements": "str", "default": []},
    "leave_out": {"type": "dict", "default": {}},
    "edge_hosts": {"type": "list", "elements": "str", "default": []},
    "probes_only": {"type": "bool", "default": False},
    "needs_days": {"type": "int", "default": 7},
    "window": {"type": "int", "default": 200},
    "node_grace": {"type": "float", "default": 60.0},
    "verdict_schema": {"type": "int", "choices": [1, 2], "default": 2},
    "run_tags": {"type": "list", "elements": "str", "default": ["all"]},
    "overrides": {"type": "dict", "default": {}},
    "by_workload": {"type": "dict", "default": {}},
    "runtimes": {"type": "dict", "default": {}},
    "references": {"type": "dict", "default": {}},
    "expected_gpu": {"type": "dict", "default": {}},
    "expected_node_gpus": {"type": "dict", "default": {}},
    "expected_share": {"type": "dict", "default": {}},
    "settings": {"type": "list", "elements": "str", "default": []},
    "folder": {"type": "path"},
}
MOVED = ("recalled", "recorded")  # until 0.5.0
REQUIRED = [
    ("state", "started", ("results", "title", "accelerator", "folders")),
    ("state", "selected", ("accelerator", "folders")),
    ("state", "finished", ("folder",)),
    ("state", "expanded", ("folder",)),
]


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        del tmp
        state = self._task.args.get("state")
        if state in MOVED:
            Display().deprecated(
                f"state={state} of validation_run is now a separate action, mlops.hpc_validation.validation_record",
                version="0.5.0",
                collection_name="mlops.hpc_validation",
            )
            return validation_record.answer(self, result)
        _spec, given = self.validate_argument_spec(argument_spec=ARGUMENTS, required_if=REQUIRED)
        args: dict[str, t.Any] = plain(given)  # as in metrics_assert, so that both read the same values
        nul = no_nul.refusal(args)
        if nul:
            raise AnsibleActionFail(nul)
        try:
            result.update(getattr(self, "_" + args["state"])(args))
        except ERRORS as exc:
            result.update(failed=True, msg=str(exc))
        return result

    def _started(self, args: dict[str, t.Any]) -> dict[str, t.Any]:
        workloads, left_out = _checked(args)
        versions = {
            "collection": settings.collection_version(COLLECTION),
            "ansible": ansible_version,
            "python": platform.python_version(),
        }
        plan = {
            "title": args["title"],
            "accelerator": args["accelerator"],
            "workloads": workloads,
            "left_out": [{key: each[key] for key in ("id", "name", "title", "why")} for each in left_out],
            "probes_only": args["probes_only"],
            "needs_days": args["needs_days"],
            "verdict_schema": args["verdict_schema"],
            "process": interrupted.process(),
        }
        results = runs.results_folder(args["results"])
        left = interrupted.interrupted(results, time.time())
        folder = runs.start(results, plan, versions)
        return {
            "changed": True,
            "folder": str(folder),
            "run": folder.name,
            "interrupted": left,
            "workloads": workloads,
            "waves": selection.waves(workloads),
            "edge_hosts": edge_group.of_run(workloads, args["edge_hosts"]),
        }

    def _selected(self, args: dict[str, t.Any]) -> dict[str, t.Any]:
        workloads, _left_out = _checked(args)
        return {"changed": False, "workloads": workloads, "waves": selection.waves(workloads)}

    def _expanded(self, args: dict[str, t.Any]) -> dict[str, t.Any]:
        path = runs.expand(Path(args["folder"]))
        line = f"{path} has every finding, as schema 1"
        Display().display(line)
        return {"changed": True, "folder": args["folder"], "msg": line}

    def _finished(self, args: dict[str, t.Any]) -> dict[str, t.Any]:
        folder = Path(args["folder"])
        verdict = runs.finish(folder)
        lines = summary.summary(verdict, folder, cards.write(folder, verdict))
        colour = {"pass": "green", "fail": "red", "undetermined": "yellow"}[verdict["verdict"]]
        odd = [finding for finding in verdict["findings"] if finding["verdict"] in ("fail", "undetermined")]
        if self._task.check_mode:
            lines.insert(0, "CHECK MODE: nothing was submitted or judged; the following is not a verdict")
        text = fitted("\n".join(lines))
        Display().display(f"\n{text}\n", color=colour)
        return {
            "changed": False,
            "failed": bool(odd) if self._task.check_mode else verdict["verdict"] != "pass",
            "msg": text,  # where another callback rules, such as AWX's, this is what people see
            "verdict": verdict["verdict"],
            "folder": str(folder),
        }


def _checked(args: dict[str, t.Any]) -> selection.Selected:
    """Return the workloads of the run and those left out, after checking all that the inventory says. Raise ERRORS."""
    settings.check_settings(args["settings"], settings.public_settings(COLLECTION))
    settings.check_needs_days(args["needs_days"])
    settings.check_window(args["window"], args["node_grace"])
    known = manifests.find_workloads(args["folders"], args["options"])
    selected = _selection(known, args)
    settings.check_ids(args["by_workload"], [workload["id"] for workload in known])
    settings.check_criteria(selected.run, known, args["overrides"], args["references"])
    images.check(args["runtimes"], [workload["id"] for workload in known])
    expectations.check(args["expected_gpu"], args["expected_node_gpus"], args["expected_share"])
    return selected


def _selection(known: list[dict[str, t.Any]], args: dict[str, t.Any]) -> selection.Selected:
    """Return the workloads of the run and those left out, after checking the settings. Raise WorkloadError."""
    leave_out = leaving_out.check(args["leave_out"], [workload["id"] for workload in known])
    if args["probes_only"]:
        return selection.Selected([], [])
    categories = None if args["everything"] else args["categories"]
    return selection.select(known, categories, args["only"], args["run_tags"], leave_out, args["edge_hosts"])
