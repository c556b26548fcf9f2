# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""new_workload and check_workload as Ansible calls them: on the controller, and told on the screen."""

from __future__ import annotations

from unittest import mock

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.mlops.hpc_validation.plugins.action import check_workload, new_workload


@pytest.fixture
def act(monkeypatch):
    """(action, arguments, check mode) → (its result, the lines on the screen)."""

    def run(action, check_mode=False, **arguments):
        screen = []
        shown = mock.MagicMock(display=lambda text, color=None: screen.extend([*text.strip().splitlines(), color]))
        monkeypatch.setattr(action, "Display", lambda: shown)
        task = mock.MagicMock(args=arguments, async_val=0, check_mode=check_mode, no_log=False)
        plugin = action.ActionModule(task, mock.MagicMock(), mock.MagicMock(), None, None, None)
        return plugin.run(task_vars={}), screen

    return run


def test_a_new_workload_is_made_and_has_no_fault(act, tmp_path):
    made, screen = act(new_workload, name="triad", dest=str(tmp_path))
    assert made["changed"] is True
    assert (made["folder"], made["id"]) == (str(tmp_path / "triad"), "TRIAD-1")
    assert made["files"] == sorted(path.name for path in (tmp_path / "triad").iterdir())
    assert screen[0].startswith(f"{tmp_path}/triad: workload TRIAD-1, ")
    for folder in (tmp_path, tmp_path / "triad"):
        checked, screen = act(check_workload, folder=str(folder))
        assert (checked["failed"], checked["changed"], checked["faults"]) == (False, False, [])
        assert checked["manifests"] == [str(tmp_path / "triad/workload.yml")]
        assert screen == ["1 manifest checked: no fault that can be found without a cluster", "green"]


def test_in_check_mode_nothing_is_made(act, tmp_path):
    made, screen = act(new_workload, check_mode=True, name="triad", dest=str(tmp_path))
    assert (made["changed"], made["id"], screen) == (True, "TRIAD-1", [])
    assert list(tmp_path.iterdir()) == []


def test_faults_of_all_manifests_are_told_and_fail(act, tmp_path):
    for name in ("one", "two"):
        act(new_workload, name=name, dest=str(tmp_path))
        manifest = tmp_path / name / "workload.yml"
        manifest.write_text(
            manifest.read_text().replace("queue: 600", "queue: \x1b[2J" if name == "one" else "queue: 0")
        )
    checked, screen = act(check_workload, folder=str(tmp_path))
    assert checked["failed"] is True
    assert [(fault["line"], fault["key"]) for fault in checked["faults"]] == [(1, ""), (9, "limits.queue")]
    assert set(checked["faults"][0]) == {"file", "line", "key", "why"}
    assert screen[1] == f"{tmp_path}/two/workload.yml:9: limits.queue: 0 is less than the minimum of 1"
    assert checked["msg"] == screen[2] == "2 manifests checked: 2 faults, as listed above"
    assert screen[3] == "red"
    assert "\x1b" not in "".join(screen)


def test_other_folders_are_known_where_they_are_named(act, tmp_path):
    act(new_workload, name="one", dest=str(tmp_path / "here"))
    act(new_workload, name="two", dest=str(tmp_path / "there"))
    manifest = tmp_path / "here/one/workload.yml"
    manifest.write_text(manifest.read_text().replace("category: 100", "needs: [TWO-1]\ncategory: 100"))
    alone, _screen = act(check_workload, folder=str(tmp_path / "here"))
    assert [fault["key"] for fault in alone["faults"]] == ["needs[0]"]
    known, _screen = act(check_workload, folder=str(tmp_path / "here"), known=[str(tmp_path / "there")])
    assert known["faults"] == []


@pytest.mark.parametrize(
    ("action", "arguments", "says"),
    [
        (new_workload, {"name": "Triad"}, "cannot be the name of a workload"),
        (new_workload, {"name": ""}, "add -e name=NAME"),
        (new_workload, {"name": "triad", "dest": "a\0b"}, "NUL"),
        (new_workload, {}, "name"),
        (check_workload, {"folder": ""}, "add -e folder=FOLDER"),
        (check_workload, {"folder": "/nowhere"}, "the folder /nowhere does not exist"),
        (check_workload, {"folder": "a\0b"}, "NUL"),
        (check_workload, {"folder": "/", "knwon": []}, "knwon"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(act, action, arguments, says):
    with pytest.raises(AnsibleActionFail, match=says):
        act(action, **arguments)
