# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the libraries of the locked versions say of errors has all been reviewed: library_texts/*.yml."""

from __future__ import annotations

import json
import shutil
import typing as t
import uuid
from pathlib import Path

import pytest
import yaml

from tests.integration.conftest import CACHE, CLUSTER, ROOT
from tests.integration.environments import installed, on_login

FOLDER = Path(__file__).with_name("library_texts")


@pytest.fixture
def payload() -> t.Iterator[str]:
    """The kit, the locks and the script on the share, where no play looks; the path as the cluster sees it."""
    name = f"tests-{uuid.uuid4().hex}"
    local = CACHE / "clusters" / CLUSTER / "share" / name
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "files", local, ignore=ignore)
    shutil.copy(FOLDER / "extract.py", local)
    yield f"/mnt/beegfs/{name}"
    shutil.rmtree(local)


@pytest.mark.slow
def test_no_text_of_an_error_is_new(payload: str) -> None:
    done = on_login(installed("pytorch", payload), f"{payload}/extract.py")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    new = {}
    for name, library in found.items():
        reviewed = yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))
        groups = [*reviewed["hit"], *reviewed["innocent"]]
        known = {text for group in groups for text in group["texts"]}
        assert library["version"].partition("+")[0] == reviewed["version"]
        assert library["texts"], f"nothing was found in {name}: extract.py no longer reads it"
        new[name] = sorted(set(library["texts"]) - known)
    assert not any(new.values()), new
