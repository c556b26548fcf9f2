from __future__ import annotations

import base64
import json
import os

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.mlops.hpc_validation.plugins.modules import share_tree


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
    assert not (dest / "sub/b.py").exists()


def test_nothing_else_is_ever_removed(deploy, tmp_path):
    (tmp_path / "users-own").write_text("precious")
    deploy(tmp_path, {"a.py": b"1"})
    deploy(tmp_path, {"b.py": b"1"})
    deploy(tmp_path, {}, folders=["scripts"])
    assert (tmp_path / "users-own").read_text() == "precious"
    assert (tmp_path / "b.py").exists()


@pytest.mark.parametrize("content", ["", "{", "null", "[1]", '["../victim", "/victim"]'])
def test_a_damaged_list_removes_nothing(deploy, tmp_path, content):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    dest = tmp_path / "kit"
    dest.mkdir()
    (dest / share_tree.LIST).write_text(content)
    assert deploy(dest, {"a.py": b"1"})["changed"]
    assert victim.exists()


def test_check_mode_changes_nothing_and_shows_the_difference(deploy, tmp_path):
    deploy(tmp_path / "kit", {"a.py": b"old\n"})
    answer = deploy(tmp_path / "kit", {"a.py": b"new\n"}, check=True)
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
