# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of gpu_probe: check the expectations, have the node queried, judge its facts."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible_collections.mlops.hpc_validation.plugins.module_utils._probe.gpu import (
    CONTROLLER_ONLY,
    argument_spec,
    problems,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.plain import plain
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import node as gpu_node
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.expect import GPU
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu.titles import TITLES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._probe.action import (
    NotAskedError,
    ProbeAction,
)

MODULE = "mlops.hpc_validation.gpu_probe"


class ActionModule(ProbeAction):
    """Judge on the controller what the module of the same name read on the node."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return facts, findings, verdict and table; failed unless the verdict is pass."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validated, arguments = self.validate_argument_spec(argument_spec=argument_spec())
        options: dict[str, Any] = plain(arguments)
        wrong = problems(options) + GPU.problems(options["expect"], TITLES)
        if wrong:
            raise AnsibleActionFail("Nothing was read, because these settings are invalid:\n" + "\n".join(wrong))
        since = options["expect"].get("xid_since")
        options["since"] = options["since"] or (None if since is None else str(since))
        host = str(options["node"] or (task_vars or {}).get("inventory_hostname", "node"))

        asked = {key: value for key, value in options.items() if key not in CONTROLLER_ONLY}
        try:
            facts = self.ask(MODULE, asked, task_vars)
        except NotAskedError as exc:
            facts = {"schema": 1, "node": host, "source": "none", "error": str(exc), "gpus": []}
        told = facts.get("node")
        node = options["node"] or (told if isinstance(told, str) and told else host)
        findings = gpu_node.findings(
            facts,
            options["expect"],
            node=node,
            kernel_log=options["kernel_log"],
            simulated=options["simulated"],
            health=options["health"],
        )
        title = f"gpu_probe on {node}" + (" (simulated GPUs)" if options["simulated"] else "")
        return {**result, **self.tell(title, facts, findings, fail=options["fail"]), "node": node}
