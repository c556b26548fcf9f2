# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What another user made, owns or may change on the share is not used (docs/security.md, the share)."""

from __future__ import annotations

import base64
import json
import os
import stat
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.mlops.hpc_validation.plugins.module_utils._folder_guard import refusal
from ansible_collections.mlops.hpc_validation.plugins.modules import share_tree
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils import _run

SOMEBODY = 4711


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> t.Callable[[Path], None]:
    """(path) → it, not what it points to, is from now on another user's, as the kernel would say."""
    owners: set[str] = set()
    real = os.lstat, os.stat

    def owned(found: os.stat_result, path: t.Any) -> os.stat_result:
        values = list(found[:10])
        values[stat.ST_UID] = SOMEBODY if os.fspath(path) in owners else found.st_uid
        return os.stat_result(values)

    monkeypatch.setattr(os, "lstat", lambda path, **more: owned(real[0](path, **more), path))
    monkeypatch.setattr(os, "stat", lambda path, **more: owned(real[1](path, **more), os.path.realpath(path)))
    return lambda path: owners.add(str(path))


@pytest.fixture
def deploy(capsys: pytest.CaptureFixture[str]) -> t.Callable[..., dict[str, t.Any]]:
    """(dest, files, folders) → what the module answered."""

    def run(dest: Path, files: tuple[str, ...] = (), folders: tuple[str, ...] = ()) -> dict[str, t.Any]:
        encoded = {name: base64.b64encode(b"ours").decode() for name in files}
        with (
            patch_module_args({"dest": str(dest), "_files": encoded, "folders": list(folders)}),
            pytest.raises(SystemExit),
        ):
            share_tree.main()
        return json.loads(capsys.readouterr().out)

    return run


def test_a_folder_of_another_user_is_refused(tmp_path, theirs):
    folder = tmp_path / "scripts"
    folder.mkdir()
    assert refusal(str(folder)) is None
    theirs(folder)
    assert refusal(str(folder)) == f"{folder} belongs to user {SOMEBODY}"


def test_a_link_of_another_user_is_refused_wherever_it_leads(tmp_path, theirs):
    own = tmp_path / "own"
    own.mkdir()
    link = tmp_path / "models"
    link.symlink_to(own)
    assert refusal(str(link)) is None
    theirs(link)
    assert "belongs to user" in str(refusal(str(link)))


def test_a_link_of_ones_own_to_a_folder_of_another_user_is_refused(tmp_path, theirs):
    other = tmp_path / "other"
    other.mkdir()
    link = tmp_path / "models"
    link.symlink_to(other)
    theirs(other)
    assert "is a link to a folder that belongs to user" in str(refusal(str(link)))
    other.rmdir()
    assert "not there" in str(refusal(str(link)))


def test_the_owner_of_a_share_may_own_what_is_in_it(tmp_path, theirs):
    folder = tmp_path / "scripts"
    folder.mkdir()
    theirs(folder)
    theirs(tmp_path)
    assert refusal(str(folder)) is None


@pytest.mark.parametrize(
    ("mode", "shared", "refused"),
    [(0o777, True, True), (0o777, False, True), (0o1777, True, False), (0o1777, False, True), (0o775, False, False)],
)
def test_a_folder_that_everybody_may_change_is_refused(tmp_path, mode, shared, refused):
    folder = tmp_path / "share"
    folder.mkdir()
    folder.chmod(mode)
    assert (refusal(str(folder), shared=shared) is not None) is refused


@pytest.mark.parametrize("bad", ["share", "share/scripts", "share/scripts/kit", "share/scripts/kit/gpu"])
def test_code_is_deployed_nowhere_another_user_may_write(deploy, tmp_path, bad):
    (tmp_path / "share/scripts/kit/gpu").mkdir(parents=True)
    assert deploy(tmp_path / "share/scripts", ("kit/gpu/probe.py",)).get("changed") is True
    (tmp_path / bad).chmod(0o777)
    answer = deploy(tmp_path / "share/scripts", ("kit/gpu/probe.py", "new.py"))
    assert answer["failed"]
    assert f"everybody may write to {tmp_path / bad}," in answer["msg"]
    assert not (tmp_path / "share/scripts/new.py").exists()


def test_the_layout_is_not_made_in_another_users_folders(deploy, theirs, tmp_path):
    (tmp_path / "jobs").mkdir()
    theirs(tmp_path / "jobs")
    answer = deploy(tmp_path, folders=("scripts", "jobs", "jobs/.markers"))
    assert answer["failed"]
    assert f"{tmp_path / 'jobs'} belongs to user {SOMEBODY}" in answer["msg"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs"]


def test_a_list_of_deployed_files_cannot_name_what_lies_elsewhere(deploy, theirs, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("x")
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "sub").symlink_to(victim)
    theirs(scripts / "sub")
    (scripts / share_tree.LIST).write_text('["sub/precious"]')
    assert deploy(scripts, ("a.py",))["failed"]
    assert (victim / "precious").exists()


@pytest.mark.parametrize("content", ["[" * 100_000, '["/etc/passwd"]', '["../victim"]', "9" * 5000])
def test_a_hostile_list_of_deployed_files_removes_nothing(deploy, tmp_path, content):
    (tmp_path / "victim").write_text("x")
    kit = tmp_path / "kit"
    kit.mkdir()
    (kit / share_tree.LIST).write_text(content)
    assert deploy(kit, ("a.py",))["removed"] == []
    assert (tmp_path / "victim").exists()


def test_results_are_writable_by_nobody_else_whatever_the_umask(tmp_path):
    plan = {"title": "t", "accelerator": "cuda", "workloads": []}
    before = os.umask(0)
    try:
        folder = _run.start(tmp_path / "results", plan, {"collection": None, "ansible": "2", "python": "3"})
        _run.record(folder, "findings", [])
        _run.finish(folder)
    finally:
        os.umask(before)
    written = [tmp_path / "results", *(tmp_path / "results").rglob("*")]
    assert {path.name for path in written} >= {"verdict.json", "junit.xml", "findings", "000.json", "plan.json"}
    assert [path for path in written if path.stat().st_mode & 0o022] == []
