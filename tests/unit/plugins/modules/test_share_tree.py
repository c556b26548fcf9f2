from __future__ import annotations

import base64
import json
import os

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.mlops.hpc_validation.plugins.modules import share_tree
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.tree import read_tree

from tests.unit.conftest import ROOT

# As every release has written it, so that what an earlier one left is understood.
LIST = ".share_tree.json"


@pytest.fixture
def deploy(capsys):
    """(dest, files, check mode, …) → what the module answered."""

    def run(dest, files, check=False, **parameters):
        encoded = {name: base64.b64encode(content).decode() for name, content in files.items()}
        arguments = {"dest": str(dest), "_files": encoded, "_ansible_check_mode": check, **parameters}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            share_tree.main()
        return json.loads(capsys.readouterr().out)

    return run


def test_files_are_made_changed_and_removed_and_the_second_time_nothing(deploy, tmp_path):
    dest = tmp_path / "kit"
    assert deploy(dest, {"a.py": b"1", "sub/b.py": b"2"})["changed"]
    again = deploy(dest, {"a.py": b"1", "sub/b.py": b"2"})
    assert not again["changed"]
    third = deploy(dest, {"a.py": b"3"})
    assert third["changed"]
    assert (dest / "a.py").read_bytes() == b"3"
    assert not (dest / "sub").exists()


def test_nothing_else_is_ever_removed(deploy, tmp_path):
    (tmp_path / "users-own").write_text("precious")
    deploy(tmp_path, {"a.py": b"1"})
    deploy(tmp_path, {"b.py": b"1"})
    deploy(tmp_path, {}, folders=["scripts"])
    assert (tmp_path / "users-own").read_text() == "precious"
    assert (tmp_path / "b.py").exists()


def test_several_folders_are_deployed_in_one_call(deploy, tmp_path):
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    one = {"dest": str(second), "_files": {"sub/b.py": base64.b64encode(b"2").decode()}, "folders": ["made"]}
    other = {"dest": str(third), "_files": {"c.py": base64.b64encode(b"3").decode()}}
    planned = deploy(first, {"a.py": b"1"}, also=[one, other], check=True)
    assert list(tmp_path.iterdir()) == []
    done = deploy(first, {"a.py": b"1"}, also=[one, other])
    assert done == planned
    assert done["written"] == [
        *(LIST, "a.py"),
        *(f"{second}/{LIST}", f"{second}/sub/b.py"),
        *(f"{third}/{LIST}", f"{third}/c.py"),
    ]
    assert done["made"] == [f"{second}/made"]
    assert [
        (folder / name).read_text() for folder, name in ((first, "a.py"), (second, "sub/b.py"), (third, "c.py"))
    ] == [*("1", "2", "3")]
    assert not deploy(first, {"a.py": b"1"}, also=[one, other])["changed"]
    later = deploy(first, {"a.py": b"1"}, also=[{**one, "_files": {"d.py": ""}}, other])
    assert later["removed"] == [f"{second}/sub/b.py"]
    assert later["emptied"] == [f"{second}/sub"]


def test_of_several_folders_each_is_looked_at_before_the_first_is_deployed(deploy, tmp_path):
    answer = deploy(tmp_path / "a", {"a.py": b"1"}, also=[{"dest": "relative", "_files": {}}])
    assert "dest: expected an absolute path, found relative" in answer["msg"]
    answer = deploy(tmp_path / "a", {"a.py": b"1"}, also=[{"dest": str(tmp_path / "b"), "_files": {"../c": ""}}])
    assert f"../c would lie outside {tmp_path}/b" in answer["msg"]
    answer = deploy(tmp_path / "a", {"a.py": b"1"}, also=[{"dest": str(tmp_path / "b")}])
    assert "only with its action plugin" in answer["msg"]
    assert list(tmp_path.iterdir()) == []


def test_of_several_folders_one_that_others_may_change_fails_the_call(deploy, tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    answer = deploy(tmp_path / "a", {"a.py": b"1"}, also=[{"dest": str(tmp_path / "open"), "_files": {"b.py": ""}}])
    assert answer["failed"]
    assert f"nothing was deployed to {tmp_path}/open" in answer["msg"]
    assert not (tmp_path / "open/b.py").exists()


def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def state_of(folder):
    """All that could change: names, kinds, contents, times."""
    return {path: (path.is_dir() or path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*")}


@pytest.fixture
def previous_kit(tmp_path):
    """The kit's folder as an earlier release left it, with its list."""
    lines = (ROOT / "tests/fixtures/share/kit-previous.txt").read_text().splitlines()
    names = [line for line in lines if not line.startswith("#")]
    kit = tmp_path / "share/scripts/kit"
    for name in names:
        (kit / name).parent.mkdir(parents=True, exist_ok=True)
        (kit / name).write_text("an earlier release's")
    (kit / LIST).write_text(json.dumps(sorted(names), indent=0) + "\n")
    return kit


@pytest.fixture
def present_kit():
    return {name: base64.b64decode(text) for name, text in read_tree(ROOT / "files/kit").items()}


def test_of_an_earlier_releases_kit_nothing_is_left(deploy, previous_kit, present_kit):
    (previous_kit / "gone").mkdir()
    (previous_kit / "gone/old.py").write_text("an earlier release's")
    old = files_below(previous_kit) - {LIST}
    (previous_kit / LIST).write_text(json.dumps(sorted(old), indent=0) + "\n")
    users_own = [previous_kit.parent / "users-own.py", previous_kit / "wheels/users-own.whl"]
    for path in users_own:
        path.parent.mkdir(exist_ok=True)
        path.write_text("precious")

    before = state_of(previous_kit.parent)
    planned = deploy(previous_kit, present_kit, check=True)
    assert state_of(previous_kit.parent) == before

    done = deploy(previous_kit, present_kit)
    assert done == planned
    assert set(done["removed"]) == old - set(present_kit)
    assert done["emptied"] == ["gone"]
    assert files_below(previous_kit) == {*present_kit, LIST, "wheels/users-own.whl"}
    assert [name for name, content in present_kit.items() if (previous_kit / name).read_bytes() != content] == []
    assert [path for path in previous_kit.rglob("*") if path.is_dir() and not any(path.iterdir())] == []
    assert [path.read_text() for path in users_own] == ["precious", "precious"]

    after = state_of(previous_kit.parent)
    assert not deploy(previous_kit, present_kit)["changed"]
    assert state_of(previous_kit.parent) == after


def test_an_interrupted_upgrade_is_finished_by_the_next(deploy, previous_kit, present_kit, monkeypatch):
    real = share_tree.write_atomic

    def full(path, content, mode):
        if path.endswith("/staged.py"):
            raise OSError(28, "No space left on device", path)
        real(path, content, mode)

    with monkeypatch.context() as patched:
        patched.setattr(share_tree, "write_atomic", full)
        assert deploy(previous_kit, present_kit)["failed"]
    assert not deploy(previous_kit, present_kit).get("failed")
    assert files_below(previous_kit) == {*present_kit, LIST}


def test_what_an_interrupted_upgrade_wrote_can_be_withdrawn(deploy, previous_kit, present_kit, monkeypatch):
    """The next release may not have it any more: also what was removed before the interruption leaves no folder."""
    real = share_tree.write_atomic

    def ended(path, content, mode):
        real(path, content, mode)
        if path.endswith("/new/added.py"):
            raise OSError(28, "No space left on device", path)

    with monkeypatch.context() as patched:
        patched.setattr(share_tree, "write_atomic", ended)
        assert deploy(previous_kit, {**present_kit, "new/added.py": b"1"})["failed"]
    assert (previous_kit / "new/added.py").exists()
    assert not deploy(previous_kit, present_kit).get("failed")
    assert files_below(previous_kit) == {*present_kit, LIST}
    assert not (previous_kit / "new").exists()


def test_a_file_has_one_name(deploy, tmp_path):
    """Under another one it would be withdrawn as soon as it was written."""
    dest = tmp_path / "kit"
    deploy(dest, {"conf/x.yml": b"1"})
    again = deploy(dest, {"conf//x.yml": b"1"}, folders=["./jobs/"])
    assert (again["written"], again["removed"], again["emptied"]) == ([], [], [])
    assert (dest / "conf/x.yml").read_bytes() == b"1"
    assert (dest / "jobs").is_dir()
    deploy(dest, {"a.yml": b"1"}, folders=["./jobs/"])
    assert (dest / "jobs").is_dir()
    assert not (dest / "conf").exists()


def test_a_folder_is_removed_only_if_nothing_is_left_or_wanted_in_it(deploy, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    dest = tmp_path / "kit"
    dest.mkdir()
    (dest / "link").symlink_to(tmp_path / "elsewhere")
    old = ["a/deep/x.py", "a/deep/y.py", "asked/x.py", "below/x.py", "link/x.py", "new/x.py", "own/deep/x.py"]
    deploy(dest, dict.fromkeys(old, b"1"))
    (dest / "own/users-own").write_text("precious")
    answers = [
        deploy(dest, {"new/z.py": b"1"}, check=check, folders=["asked", "below/that"]) for check in (True, False)
    ]
    assert answers[0] == answers[1]
    assert answers[1]["removed"] == old
    assert answers[1]["emptied"] == ["a/deep", "own/deep", "a"]
    left = {path.relative_to(dest).as_posix() for path in dest.rglob("*")}
    assert left == {LIST, "asked", "below", "below/that", "link", "new", "new/z.py", "own", "own/users-own"}


@pytest.mark.parametrize("content", ["", "{", "null", "[1]", '["../victim", "/victim"]', '["./a.py"]'])
def test_a_damaged_list_removes_nothing(deploy, tmp_path, content):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    dest = tmp_path / "kit"
    dest.mkdir()
    (dest / "a.py").write_bytes(b"0")
    (dest / share_tree.LIST).write_text(content)
    assert deploy(dest, {"a.py": b"1"})["changed"]
    assert victim.exists()
    assert (dest / "a.py").exists()
    assert not deploy(dest, {"a.py": b"1"})["changed"]


def test_check_mode_changes_nothing_and_shows_the_difference(deploy, tmp_path):
    deploy(tmp_path / "kit", {"a.py": b"old\n"})
    answer = deploy(tmp_path / "kit", {"a.py": b"new\n"}, check=True, _ansible_diff=True)
    assert answer["changed"]
    assert [(d["before"], d["after"]) for d in answer["diff"]] == [("old\n", "new\n")]
    assert (tmp_path / "kit/a.py").read_bytes() == b"old\n"


@pytest.mark.parametrize("name", ["../out", "/etc/out", "a/../../out", ""])
def test_nothing_is_written_outside(deploy, tmp_path, name):
    answer = deploy(tmp_path / "kit", {name: b"1"})
    assert answer["failed"]
    assert not (tmp_path / "out").exists()


def test_a_link_in_the_way_is_replaced_not_followed(deploy, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    dest = tmp_path / "kit"
    dest.mkdir()
    (dest / "a.py").symlink_to(victim)
    deploy(dest, {"a.py": b"1"})
    assert victim.read_text() == "precious"
    assert not (dest / "a.py").is_symlink()


def test_a_folder_that_cannot_be_made_says_what_to_do(deploy, tmp_path):
    (tmp_path / "file").write_text("")
    answer = deploy(tmp_path / "file" / "kit", {"a.py": b"1"})
    assert answer["failed"]
    assert "df -h" in answer["msg"]


def test_modes_do_not_depend_on_the_users_umask(deploy, tmp_path):
    before = os.umask(0o077)
    try:
        deploy(tmp_path / "kit", {"sub/a.py": b"1"})
    finally:
        os.umask(before)
    assert (tmp_path / "kit/sub").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "kit/sub/a.py").stat().st_mode & 0o777 == 0o644


def test_without_diff_mode_no_content_is_returned(deploy, tmp_path):
    assert "diff" not in deploy(tmp_path / "kit", {"a.py": b"1"})
