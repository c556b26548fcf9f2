# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with a stand-in for BeeGFS's tools: beegfs_check runs whole, module and action, but Ansible's transport."""

from __future__ import annotations

import json
import os
import shutil
import time
import typing as t
from pathlib import Path
from unittest import mock

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.mlops.hpc_validation.plugins.action.beegfs_check import ActionModule
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import config
from ansible_collections.mlops.hpc_validation.plugins.modules import beegfs_check
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from hpcval_cluster import beegfs

from tests.unit.conftest import ROOT

STAND_IN = ROOT / "tests/cluster/image/beegfs_stand_in.py"
Json = dict[str, t.Any]


class Host:
    """A folder on PATH with the tools, their answers, and what a check of the servers on it finds."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys, self.monkeypatch = folder, capsys, monkeypatch
        (folder / "etc").mkdir()
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setattr(config, "FOLDER", str(folder / "etc"))

    def is_in(self, *scenarios: str, factor: float = 1.0) -> None:
        """Make the tools answer as in these scenarios, with waits by `factor`."""
        self.put(beegfs.plan([*scenarios, "client-absent"], factor))

    def answers(self, *told: Json, tool: str = "beegfs-ctl") -> None:
        """Make a tool answer only so."""
        document = {"factor": 1.0, "answers": told}
        self.put({f"bin/{tool}": None, f"{tool}/answers.json": json.dumps(document).encode()})

    def put(self, files: beegfs.Files) -> None:
        """Put files where the stand-in looks for them."""
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is not None:
                path.write_bytes(content)
            else:
                shutil.copyfile(STAND_IN, path)
                path.chmod(0o755)

    def check(self, **options: t.Any) -> Json:
        """Return the task's result of `checks: [servers]`, with the seconds that it took."""
        task = mock.MagicMock(
            args={"checks": ["servers"], "fail": False, **options}, async_val=0, check_mode=False, no_log=False
        )
        action = ActionModule(task, mock.MagicMock(), mock.MagicMock(), None, None, None)
        action._display = mock.MagicMock()
        action._execute_module = self._execute
        began = time.monotonic()
        result = action.run(task_vars={"inventory_hostname": "login"})
        result["seconds"] = time.monotonic() - began
        for finding in result["findings"]:
            assert schema.problems("finding", finding) == []
        return result

    def _execute(self, module_args: Json, **_other: t.Any) -> Json:
        with patch_module_args(module_args), pytest.raises(SystemExit):
            beegfs_check.main()
        return json.loads(self.capsys.readouterr().out)


def not_passed(result: Json) -> list[Json]:
    """Return the findings that decide something and did not pass."""
    return [finding for finding in result["findings"] if finding["verdict"] in ("fail", "undetermined")]


def recorded(result: Json) -> list[Json]:
    """Return the findings that only report."""
    return [finding for finding in result["findings"] if finding["verdict"] == "recorded"]
