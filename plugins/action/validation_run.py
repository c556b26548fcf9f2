# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Works on the controller only: it never opens the host's connection, so it still reports when the host is gone."""

from __future__ import annotations

import platform
import typing as t
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.release import __version__ as ansible_version
from ansible.utils.display import Display
from ansible_collections.mlops.hpc_validation.plugins.module_utils import _nul
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import (
    _evidence_store,
    _expect,
    _expectations,
    _image_plan,
    _recall,
    _run,
    _schema,
    _summary,
    _workloads,
)

ERRORS = (
    _run.RunError,
    _workloads.WorkloadError,
    _image_plan.ImagePlanError,
    _expect.ExpectError,
    _schema.SchemaError,
)
ARGUMENTS = {
    "state": {"type": "str", "required": True, "choices": ["started", "recalled", "recorded", "finished"]},
    "results": {"type": "path"},
    "title": {"type": "str"},
    "accelerator": {"type": "str", "choices": ["cuda", "simulated", "cpu"]},
    "folders": {"type": "list", "elements": "path"},
    "categories": {"type": "list", "elements": "int", "default": []},
    "options": {"type": "dict", "default": {}},
    "only": {"type": "list", "elements": "str", "default": []},
    "probes_only": {"type": "bool", "default": False},
    "needs_days": {"type": "int", "default": 7},
    "run_tags": {"type": "list", "elements": "str", "default": ["all"]},
    "overrides": {"type": "dict", "default": {}},
    "runtimes": {"type": "dict", "default": {}},
    "references": {"type": "dict", "default": {}},
    "expected_gpu": {"type": "dict", "default": {}},
    "expected_node_gpus": {"type": "dict", "default": {}},
    "expected_share": {"type": "dict", "default": {}},
    "settings": {"type": "list", "elements": "str", "default": []},
    "folder": {"type": "path"},
    "kind": {"type": "str", "choices": ["workload", "findings", "cluster", "probed"]},
    "document": {"type": "raw"},
    "workload": {"type": "str"},
    "script_sha256": {"type": "str"},
    "context": {"type": "dict", "default": {}},
}
REQUIRED = [
    ("state", "started", ("results", "title", "accelerator", "folders")),
    ("state", "recalled", ("folder", "workload", "script_sha256")),
    ("state", "recorded", ("folder", "kind", "document")),
    ("state", "finished", ("folder",)),
]


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        del tmp
        _spec, given = self.validate_argument_spec(argument_spec=ARGUMENTS, required_if=REQUIRED)
        args: dict[str, t.Any] = _evidence_store.plain(given)  # as metrics_assert does, so that both read the same
        nul = _nul.refusal({key: value for key, value in args.items() if key != "document"})
        if nul:
            raise AnsibleActionFail(nul)
        try:
            result.update(getattr(self, "_" + args["state"])(args))
        except ERRORS as exc:
            result.update(failed=True, msg=str(exc))
        return result

    def _started(self, args: dict[str, t.Any]) -> dict[str, t.Any]:
        collection = Path(__file__).resolve().parents[2]
        _workloads.check_settings(args["settings"], _workloads.public_settings(collection))
        _workloads.check_needs_days(args["needs_days"])
        known = _workloads.find_workloads(args["folders"], args["options"])
        workloads = (
            [] if args["probes_only"] else _workloads.select(known, args["categories"], args["only"], args["run_tags"])
        )
        _workloads.check_criteria(workloads, known, args["overrides"], args["references"])
        _image_plan.check(args["runtimes"], [workload["id"] for workload in known])
        _expectations.check(args["expected_gpu"], args["expected_node_gpus"], args["expected_share"])
        versions = {
            "collection": _workloads.collection_version(collection),
            "ansible": ansible_version,
            "python": platform.python_version(),
        }
        plan = {
            "title": args["title"],
            "accelerator": args["accelerator"],
            "workloads": workloads,
            "probes_only": args["probes_only"],
            "needs_days": args["needs_days"],
        }
        folder = _run.start(_run.results_folder(args["results"]), plan, versions)
        waves = _workloads.waves(workloads)
        return {"changed": True, "folder": str(folder), "run": folder.name, "workloads": workloads, "waves": waves}

    def _recalled(self, args: dict[str, t.Any]) -> dict[str, t.Any]:
        folder, identity = Path(args["folder"]), args["workload"]
        judging = {key: args[key] for key in ("overrides", "references", "context")}
        earlier, line = _recall.recall(folder, identity, args["script_sha256"], judging)
        Display().display(line)
        if earlier:
            _run.record(folder, "workload", {"id": identity, "earlier": earlier})
        return {"changed": False, "msg": line, "passed": _run.passed(folder)}

    def _recorded(self, args: dict[str, t.Any]) -> dict[str, t.Any]:
        folder = Path(args["folder"])
        _run.record(folder, args["kind"], args["document"])
        return {"changed": False, "amiss": _run.amiss(folder), "passed": _run.passed(folder)}

    def _finished(self, args: dict[str, t.Any]) -> dict[str, t.Any]:
        folder = Path(args["folder"])
        verdict = _run.finish(folder)
        lines = _summary.summary(verdict, folder)
        colour = {"pass": "green", "fail": "red", "undetermined": "yellow"}[verdict["verdict"]]
        odd = [finding for finding in verdict["findings"] if finding["verdict"] in ("fail", "undetermined")]
        if self._task.check_mode:
            lines.insert(0, "CHECK MODE: nothing was submitted and nothing judged; what follows is no verdict")
        Display().display("\n" + "\n".join(lines) + "\n", color=colour)
        return {
            "changed": False,
            "failed": bool(odd) if self._task.check_mode else verdict["verdict"] != "pass",
            "msg": f"{verdict['verdict']}: {verdict['why']}",
            "verdict": verdict["verdict"],
            "folder": str(folder),
        }
