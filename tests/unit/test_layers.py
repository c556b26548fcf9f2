# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may import whom (.importlinter): each contract is broken on purpose, and the linter names who broke it."""

from __future__ import annotations

import os
import shutil
import subprocess

from tests.unit.conftest import ROOT

PLUGINS = "ansible_collections.mlops.hpc_validation.plugins"
# The module that breaks a contract, and what it imports: from a room above its own, beside it, or of another house.
BREAKS = {
    "plugin_utils: each package imports those below it": (
        f"{PLUGINS}.plugin_utils._judge.broken",
        f"{PLUGINS}.plugin_utils._gpu.facts",
    ),
    "module_utils: each package imports those below it": (
        f"{PLUGINS}.module_utils._slurm.broken",
        f"{PLUGINS}.module_utils._evidence.log",
    ),
    "Plugins import plugin_utils, which imports module_utils": (
        f"{PLUGINS}.module_utils._common.broken",
        f"{PLUGINS}.plugin_utils._common.paths",
    ),
    "What runs on hosts takes nothing from the controller": (
        f"{PLUGINS}.modules.broken",
        f"{PLUGINS}.plugin_utils._common.plain",
    ),
    "Ansible is for plugins alone": (f"{PLUGINS}.plugin_utils._wait.broken", "ansible"),
    "The kit and the plugins know nothing of each other": (f"{PLUGINS}.action.broken", "kit.errors"),
    "kit: each package imports those below it": ("kit.gpu.broken", "kit.training.device"),
}


def test_each_contract_can_be_broken(tmp_path):
    collections = tmp_path / "collections"
    plugins, kit = collections / PLUGINS.replace(".", "/"), tmp_path / "files/kit"
    shutil.copytree(ROOT / "plugins", plugins, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "files/kit", kit, ignore=shutil.ignore_patterns("__pycache__"))
    for breaker, imported in BREAKS.values():
        folder = kit.parent if breaker.startswith("kit.") else collections
        (folder / f"{breaker.replace('.', '/')}.py").write_text(f"import {imported}\n")
    told = subprocess.run(
        ["lint-imports", "--config", str(ROOT / ".importlinter"), "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{collections}:{kit.parent}", "NO_COLOR": "1", "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1, told.stdout + told.stderr
    for contract, (breaker, imported) in BREAKS.items():
        assert f"{contract} BROKEN" in told.stdout
        assert f"{breaker} -> {imported}" in told.stdout
