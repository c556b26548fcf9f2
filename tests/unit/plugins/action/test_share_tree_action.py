# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.mlops.hpc_validation.plugins.action.share_tree import ActionModule
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.tree import read_tree


def test_the_controllers_folder_is_read_without_links_and_caches(tmp_path):
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/a.pyc").write_bytes(b"x")
    (tmp_path / "a.py").write_text("1")
    assert set(read_tree(tmp_path)) == {"a.py"}
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match="not a regular file"):
        read_tree(tmp_path)


def test_a_lost_connection_is_a_failure_that_a_rescue_sees(monkeypatch):
    action = object.__new__(ActionModule)
    monkeypatch.setattr("ansible.plugins.action.ActionBase.run", lambda *_arguments: {})
    arguments = {"src": None, "dest": "/mnt/share/kit", "extra": {}, "folders": [], "also": []}
    monkeypatch.setattr(action, "validate_argument_spec", lambda **_: (None, arguments), raising=False)

    def lost(**_arguments):
        raise AnsibleConnectionFailure("Connection reset")

    monkeypatch.setattr(action, "_execute_module", lost, raising=False)
    answer = action.run(task_vars={})
    assert answer["failed"]
    assert "unreachable" not in answer
    assert "/mnt/share/kit was not deployed" in answer["msg"]


@pytest.fixture
def asked(monkeypatch):
    """(arguments) → what the action answered, and what it asked of the module."""

    def run(**given):
        action = object.__new__(ActionModule)
        monkeypatch.setattr("ansible.plugins.action.ActionBase.run", lambda *_arguments: {})
        arguments = {"src": None, "extra": {}, "folders": [], "also": [], **given}
        monkeypatch.setattr(action, "validate_argument_spec", lambda **_: (None, arguments), raising=False)
        module = []
        monkeypatch.setattr(action, "_execute_module", lambda **what: module.append(what) or {}, raising=False)
        return action.run(task_vars={}), module

    return run


def test_several_folders_are_one_call_of_the_module(asked, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.py").write_text(name)
    other = {"src": str(tmp_path / "b"), "dest": "/share/b", "extra": {"c": "x"}, "folders": ["d"]}
    _answer, module = asked(src=str(tmp_path / "a"), dest="/share/a", also=[other], group="ml")
    (call,) = module
    assert call["module_args"] == {
        "dest": "/share/a",
        "_files": {"a.py": "YQ=="},
        "folders": [],
        "also": [{"dest": "/share/b", "_files": {"b.py": "Yg==", "c": "eA=="}, "folders": ["d"]}],
        "group": "ml",
    }


@pytest.mark.parametrize(
    ("changed", "words"), [({"src": "/nowhere"}, "/nowhere on the controller is not a folder"), ({"src": "a\0"}, "NUL")]
)
def test_of_several_folders_one_that_cannot_be_read_keeps_all_from_being_deployed(asked, changed, words):
    other = {"src": None, "dest": "/share/b", "extra": {}, "folders": [], **changed}
    answer, module = asked(dest="/share/a", also=[other])
    assert answer["failed"]
    assert words in answer["msg"]
    assert module == []


@pytest.mark.parametrize("target", ["elsewhere", "inside", "nowhere"])
@pytest.mark.parametrize("place", ["link", "sub/link"])
def test_a_link_to_a_folder_is_refused_as_one_to_a_file_is(tmp_path, target, place):
    tree = tmp_path / "workload"
    (tree / "sub").mkdir(parents=True)
    (tree / "inside").mkdir()
    (tree / "inside/a.py").write_text("1")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/b.py").write_text("1")
    (tree / place).symlink_to({"elsewhere": tmp_path / "elsewhere", "inside": tree / "inside"}.get(target, "nowhere"))
    with pytest.raises(ValueError, match=f"{tree / place} is a link, not a regular file"):
        read_tree(tree)


def test_a_folder_that_cannot_be_read_is_not_left_out(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    real = os.scandir

    def scandir(path):
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(PermissionError):
        read_tree(tmp_path)
