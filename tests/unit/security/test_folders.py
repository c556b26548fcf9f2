# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What another user made, owns or may change on the share is not used (docs/security.md, the share)."""

from __future__ import annotations

import base64
import json
import os
import pwd
import stat
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common.folder_guard import refusal
from ansible_collections.mlops.hpc_validation.plugins.modules import share_tree
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import runs

SOMEBODY = 4711


class Owned:
    """Says of paths that another user or group has them, as the kernel would: of the path itself, not of its target."""

    def __init__(self, monkeypatch):
        self.owners: dict[str, dict[int, int]] = {}
        self.real = os.lstat, os.stat
        monkeypatch.setattr(os, "lstat", lambda path, **more: self._as(self.real[0](path, **more), path))
        monkeypatch.setattr(os, "stat", self._stat)

    def __call__(self, path: Path, group: int | None = None) -> None:
        """From now on `path` is another user's, or, with `group`, of that group."""
        change = {stat.ST_UID: SOMEBODY} if group is None else {stat.ST_GID: group}
        self.owners.setdefault(str(path), {}).update(change)

    def _stat(self, path: t.Any, **more: t.Any) -> os.stat_result:
        found = self.real[1](path, **more)
        return found if isinstance(path, int) else self._as(found, os.path.realpath(path))

    def _as(self, found: os.stat_result, path: t.Any) -> os.stat_result:
        values = list(found[:10])
        for place, value in self.owners.get(os.fspath(path), {}).items():
            values[place] = value
        return os.stat_result(values)


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> Owned:
    """(path) → it is another user's; (path, group=…) → it is of that group."""
    return Owned(monkeypatch)


@pytest.fixture
def deploy(capsys: pytest.CaptureFixture[str]) -> t.Callable[..., dict[str, t.Any]]:
    """(dest, files, folders, …) → what the module answered."""

    def run(dest: Path, files: tuple[str, ...] = (), folders: tuple[str, ...] = (), **more: t.Any) -> dict[str, t.Any]:
        encoded = {name: base64.b64encode(b"ours").decode() for name in files}
        with (
            patch_module_args({"dest": str(dest), "_files": encoded, "folders": list(folders), **more}),
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
    refused = refusal(str(folder))
    assert refused is not None
    assert refused.why.startswith(f"{folder} belongs to user {SOMEBODY} (mode 07")
    assert refused.command.startswith("chown ")
    assert refused.command.endswith(f" {folder}")


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
    assert "does not exist" in str(refusal(str(link)))


def test_the_owner_of_a_share_may_own_what_is_in_it(tmp_path, theirs):
    folder = tmp_path / "scripts"
    folder.mkdir()
    theirs(folder)
    theirs(tmp_path)
    assert refusal(str(folder)) is None


PROJECT = 4712


@pytest.mark.parametrize(
    ("mode", "group", "known", "refused"),
    [
        (0o2775, PROJECT, True, False),
        (0o775, PROJECT, True, False),
        (0o2755, PROJECT, True, True),  # only its owner may write
        (0o3775, PROJECT, True, True),  # only its owner may remove what others made
        (0o2775, 4713, True, True),  # of a group that is not trusted
        (0o2775, 4714, True, True),  # which is trusted, and the owner no member of it
        (0o2775, PROJECT, False, True),  # whose owner nobody knows
    ],
)
@pytest.mark.parametrize("linked", [False, True])
def test_a_member_of_the_projects_group_may_own_its_folder(
    tmp_path, theirs, monkeypatch, mode, group, known, refused, linked
):
    folder = tmp_path / "project"
    folder.mkdir()
    folder.chmod(mode)
    theirs(folder)
    theirs(folder, group=group)
    place = folder
    if linked:
        place = tmp_path / "link"
        place.symlink_to(folder)
    person = pwd.struct_passwd(("pi", "x", SOMEBODY, 100, "", "/", "/bin/sh"))
    users = {SOMEBODY: person, os.geteuid(): pwd.getpwuid(os.geteuid())} if known else {}
    monkeypatch.setattr(pwd, "getpwuid", users.__getitem__)
    monkeypatch.setattr(os, "getgrouplist", lambda name, first: [first, PROJECT] if name == "pi" else [first])
    found = refusal(str(place), groups={0, PROJECT, 4714})
    assert (found is not None) is refused
    if found:
        assert "belongs to user" in found.why


@pytest.mark.parametrize(
    ("mode", "shared", "refused"),
    [
        (0o777, True, True),
        (0o777, False, True),
        (0o1777, True, False),
        (0o1777, False, True),
        (0o775, False, False),
        (0o2775, False, False),
        (0o2755, False, False),
        (0o772, False, True),
    ],
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
    assert f"everybody may write to {tmp_path / bad}, which belongs to user " in answer["msg"]
    assert "(mode 0777, group " in answer["msg"]
    assert f": chmod o-w {tmp_path / bad};" in answer["msg"]
    assert not (tmp_path / "share/scripts/new.py").exists()


@pytest.mark.parametrize("mode", [0o777, 0o2777, 0o773])
@pytest.mark.parametrize("bad", ["site", "site/projects"])
def test_every_folder_on_the_way_from_the_root_is_looked_at(deploy, tmp_path, bad, mode):
    dest = tmp_path / "site/projects/ml/share"
    dest.mkdir(parents=True)
    (tmp_path / bad).chmod(mode)
    for answer in (deploy(dest, ("a.py",)), deploy(dest, folders=("jobs",))):
        assert answer["failed"]
        assert f"everybody may write to {tmp_path / bad}, " in answer["msg"]
        assert f": chmod o-w {tmp_path / bad};" in answer["msg"]
    assert list(dest.iterdir()) == []
    (tmp_path / bad).chmod(0o1777)
    assert deploy(dest, ("a.py",))["changed"]


def test_a_folder_on_the_way_belongs_to_nobody_else(deploy, theirs, tmp_path):
    dest = tmp_path / "site/projects/share"
    dest.mkdir(parents=True)
    theirs(tmp_path / "site")
    answer = deploy(dest, ("a.py",))
    assert answer["failed"]
    assert f"{tmp_path / 'site'} belongs to user {SOMEBODY} " in answer["msg"]
    assert list(dest.iterdir()) == []


@pytest.mark.parametrize("mode", [0o2775, 0o775, 0o770, 0o3775])
@pytest.mark.parametrize("bad", ["project", "project/share", "project/share/scripts"])
def test_a_group_may_write_only_if_it_is_trusted(deploy, theirs, tmp_path, bad, mode):
    dest = tmp_path / "project/share/scripts"
    dest.mkdir(parents=True)
    theirs(tmp_path / bad, group=SOMEBODY)
    (tmp_path / bad).chmod(mode)
    if mode == 0o3775 and bad != "project/share/scripts":  # the sticky bit, on the way: nobody can rename the others'
        assert deploy(dest, ("a.py",))["changed"]
        return
    answer = deploy(dest, ("a.py",))
    assert answer["failed"]
    assert f"the members of group {SOMEBODY} may write to {tmp_path / bad}, " in answer["msg"]
    assert f"(mode {mode:04o}, group {SOMEBODY})" in answer["msg"]
    assert f"chmod g-w {tmp_path / bad}, " in answer["msg"]
    assert f"hpc_validation_share_group: {SOMEBODY}" in answer["msg"]
    assert list(dest.iterdir()) == []
    assert deploy(dest, ("a.py",), group=str(SOMEBODY + 1))["failed"]
    assert deploy(dest, ("a.py",), group=str(SOMEBODY))["changed"]


def test_the_users_own_group_may_write(deploy, theirs, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getegid", lambda: SOMEBODY)
    dest = tmp_path / "share"
    dest.mkdir()
    theirs(dest, group=SOMEBODY)
    dest.chmod(0o2775)
    assert deploy(dest, ("a.py",))["changed"]


@pytest.mark.parametrize("group", ["no such group", "a\0b", "-1", "٣"])
def test_a_group_that_is_none_is_refused_in_words(deploy, tmp_path, group):
    answer = deploy(tmp_path / "share", ("a.py",), group=group)
    assert answer["failed"]
    assert "hpc_validation_share_group" in answer["msg"] or "NUL" in answer["msg"]
    assert not (tmp_path / "share").exists()


@pytest.mark.parametrize("relative", [False, True])
def test_a_link_on_the_way_is_followed_folder_by_folder(deploy, tmp_path, relative):
    real = tmp_path / "disk/open/share"
    real.mkdir(parents=True)
    (tmp_path / "mnt").mkdir()
    link = tmp_path / "mnt/share"
    link.symlink_to("../disk/open/share" if relative else real)
    assert deploy(link, ("a.py",))["changed"]
    (tmp_path / "disk/open").chmod(0o777)
    for dest in (link, link / "scripts/kit"):
        answer = deploy(dest, ("b.py",))
        assert answer["failed"]
        assert f"everybody may write to {tmp_path / 'disk/open'}, " in answer["msg"]
    assert sorted(path.name for path in real.iterdir()) == [share_tree.LIST, "a.py"]


def test_links_in_a_circle_are_refused_in_words(deploy, tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert deploy(tmp_path / "a/share", ("a.py",))["failed"]


@pytest.mark.parametrize("name", ["a.py", "kit/a.py", share_tree.LIST])
@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646, 0o600, 0o755, 0o4644, 0o000])
def test_a_file_that_others_could_change_is_renewed(deploy, tmp_path, name, mode):
    files = ("a.py", "kit/a.py")
    assert deploy(tmp_path / "share", files)["changed"]
    assert not deploy(tmp_path / "share", files)["changed"]
    path = tmp_path / "share" / name
    content = path.read_bytes()
    path.chmod(mode)
    before = path.stat().st_ino
    with path.open("rb"):  # another user's open file: what is written into it later must not be what jobs run
        assert deploy(tmp_path / "share", files)["written"] == [name]
        assert path.stat().st_ino != before
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert path.read_bytes() == content
    assert not deploy(tmp_path / "share", files)["changed"]


def test_a_file_of_another_owner_is_renewed_whatever_it_holds(deploy, theirs, tmp_path):
    deploy(tmp_path / "share", ("a.py", "b.py"))
    theirs(tmp_path / "share/a.py")
    planned = deploy(tmp_path / "share", ("a.py", "b.py"), _ansible_check_mode=True)
    assert planned["written"] == ["a.py"]
    before = (tmp_path / "share/a.py").stat().st_ino
    assert deploy(tmp_path / "share", ("a.py", "b.py"))["written"] == ["a.py"]
    assert (tmp_path / "share/a.py").stat().st_ino != before


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
        folder = runs.start(tmp_path / "results", plan, {"collection": None, "ansible": "2", "python": "3"})
        runs.record(folder, "findings", [])
        runs.finish(folder)
    finally:
        os.umask(before)
    written = [tmp_path / "results", *(tmp_path / "results").rglob("*")]
    assert {path.name for path in written} >= {
        "verdict.json",
        "junit.xml",
        "findings",
        "000.json.gz",
        "findings.json.gz",
    }
    assert [path for path in written if path.stat().st_mode & 0o022] == []
