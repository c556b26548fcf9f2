# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The brief screen, as ansible-playbook shows it for plays on the controller: nothing that matters is lost."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import typing as t
from pathlib import Path

import pytest

from tests.unit.conftest import ROOT

Json = dict[str, t.Any]
# What the checkout's ansible.cfg says, and Ansible's defaults: ansible-test has settings of its own.
BRIEF = {
    "ANSIBLE_STDOUT_CALLBACK": "mlops.hpc_validation.brief",
    "ANSIBLE_CALLBACK_RESULT_FORMAT": "yaml",
    "ANSIBLE_LOCALHOST_WARNING": "False",
    "ANSIBLE_HOST_PATTERN_MISMATCH": "warning",
}
QUIET = [{"ansible.builtin.set_fact": {"quiet": each}, "name": "Quiet"} for each in range(9)]


@pytest.fixture
def play(tmp_path: Path) -> t.Callable[..., tuple[int, list[str]]]:
    """Play tasks; return the exit code and the lines that are not blank."""

    def play(tasks: list[Json], *options: str, **environment: str) -> tuple[int, list[str]]:
        book = tmp_path / "book.yml"
        book.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
        ended = subprocess.run(
            ["ansible-playbook", str(book), *options],
            cwd=ROOT,
            env={**os.environ, **BRIEF, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return ended.returncode, [line for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]

    return play


def test_what_goes_well_is_not_shown_and_what_is_said_is(play: t.Callable[..., tuple[int, list[str]]]) -> None:
    code, lines = play([*QUIET, {"ansible.builtin.debug": {"msg": "look at this"}}])
    assert code == 0
    assert any("look at this" in line for line in lines)
    assert len(lines) <= 5
    assert lines[0].startswith("book.yml")
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize(("hosts", "told"), [("[]", False), ("nobody", True), ("localhost:!localhost", True)])
def test_a_play_that_names_no_host_is_no_news(tmp_path: Path, hosts: str, told: bool) -> None:
    book = tmp_path / "book.yml"
    empty = {"name": "Perhaps", "hosts": f"{{{{ {hosts} }}}}" if hosts == "[]" else hosts, "tasks": []}
    last = {"hosts": "localhost", "gather_facts": False, "tasks": [{"ansible.builtin.debug": {"msg": "the end"}}]}
    book.write_text(json.dumps([empty, last]))
    ended = subprocess.run(
        ["ansible-playbook", str(book)],
        cwd=ROOT,
        env={**os.environ, **BRIEF},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 0
    assert "the end" in ended.stdout
    assert ("Perhaps" in ended.stdout, "no hosts matched" in ended.stdout) == (told, told)
    assert ("WARNING" in ended.stdout + ended.stderr) == (hosts == "nobody")


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_failure_is_shown_whole_and_adds_only_itself(play: t.Callable[..., tuple[int, list[str]]], form: str) -> None:
    words = "word " * 60
    code, lines = play(
        [*QUIET, {"ansible.builtin.fail": {"msg": words}, "name": "Break"}, *QUIET], ANSIBLE_CALLBACK_RESULT_FORMAT=form
    )
    assert code != 0
    assert any("Break" in line for line in lines)
    assert "".join(lines).count("word") >= 60
    told = lines[next(n for n, line in enumerate(lines) if line.startswith("fatal:")) :]
    assert max(map(len, told)) <= 120
    assert any("failed=1" in line for line in lines)
    assert not any("Quiet" in line for line in lines)


def test_a_task_that_lasts_is_named_while_it_runs(play: t.Callable[..., tuple[int, list[str]]]) -> None:
    lasts = {"ansible.builtin.command": {"cmd": "sleep 1.5"}, "name": "Install everything"}
    code, lines = play([*QUIET, lasts], MLOPS_HPC_VALIDATION_BRIEF_PATIENCE="1")
    assert code == 0
    assert ["for", "1", "s:", "Install", "everything"] in [line.split() for line in lines]


def test_what_an_assertion_says_is_shown(play: t.Callable[..., tuple[int, list[str]]]) -> None:
    _code, lines = play([{"ansible.builtin.assert": {"that": [True], "success_msg": "all is well"}}])
    assert any("all is well" in line for line in lines)


def test_a_failure_is_shown_under_its_own_task(play: t.Callable[..., tuple[int, list[str]]]) -> None:
    guilty = {"ansible.builtin.fail": {"msg": "no"}, "name": "Guilty", "ignore_errors": True}
    _code, lines = play([guilty, {"ansible.builtin.command": {"cmd": "true"}, "name": "Innocent"}])
    assert any(line.startswith("TASK [Guilty]") for line in lines)
    assert not any("Innocent" in line for line in lines)


def test_what_said_itself_what_is_wrong_is_not_told_twice(
    play: t.Callable[..., tuple[int, list[str]]], tmp_path: Path
) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/workload.yml").write_text("id: X-1\n")
    task = {"mlops.hpc_validation.check_workload": {"folder": str(tmp_path / "broken")}}
    code, lines = play([task])
    assert code != 0
    assert any("workload.yml" in line for line in lines)
    assert not any(word in line for line in lines for word in ("[ERROR]", "fatal:", "RECAP"))


def test_custom_statistics_are_shown(play: t.Callable[..., tuple[int, list[str]]]) -> None:
    task = {"ansible.builtin.set_stats": {"data": {"answer": 42}}}
    _code, lines = play([task], ANSIBLE_SHOW_CUSTOM_STATS="1")
    assert any("answer" in line and "42" in line for line in lines)


def test_a_play_without_hosts_is_named(tmp_path: Path) -> None:
    book = tmp_path / "book.yml"
    book.write_text(json.dumps([{"name": "For nobody", "hosts": "nobody", "gather_facts": False, "tasks": []}]))
    argv = ["ansible-playbook", str(book), "-i", "localhost,"]
    brief = {**os.environ, **BRIEF}
    ended = subprocess.run(argv, cwd=ROOT, env=brief, capture_output=True, text=True, check=False, timeout=120)
    assert "PLAY [For nobody]" in ended.stdout
    assert "no hosts matched" in ended.stdout


def on_a_terminal(book: Path, **environment: str) -> str:
    """Play a book with a terminal as its screen, and return what it shows."""
    ours, theirs = pty.openpty()
    known = {key: value for key, value in os.environ.items() if "COLOR" not in key}
    play = subprocess.Popen(
        ["ansible-playbook", str(book)],
        cwd=ROOT,
        env={**known, **BRIEF, "TERM": "xterm", **environment},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal's other end is closed
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    play.wait(60)
    return shown.decode()


@pytest.mark.parametrize(("value", "colours"), [(None, True), ("", True), ("1", False), ("anything", False)])
def test_there_are_colours_on_a_terminal_unless_no_color_is_set(
    tmp_path: Path, value: str | None, colours: bool
) -> None:
    book = tmp_path / "book.yml"
    tasks = [{"ansible.builtin.debug": {"msg": "hello"}}]
    book.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    shown = on_a_terminal(book, **({} if value is None else {"NO_COLOR": value}))
    assert "hello" in shown
    assert ("\x1b[0;3" in shown) is colours


def test_with_v_every_task_is_shown(play: t.Callable[..., tuple[int, list[str]]]) -> None:
    code, lines = play(QUIET, "-v")
    assert code == 0
    assert sum(line.startswith("TASK [Quiet]") for line in lines) == 9
    assert any(line.startswith("PLAY RECAP") for line in lines)


def test_warnings_and_differences_are_shown(play: t.Callable[..., tuple[int, list[str]]], tmp_path: Path) -> None:
    copy = {"ansible.builtin.copy": {"content": "new\n", "dest": str(tmp_path / "file"), "mode": "0600"}}
    code, lines = play([copy], "--diff")
    assert code == 0
    assert any(line.startswith("+new") for line in lines)


def test_a_host_that_cannot_be_reached_is_shown(tmp_path: Path) -> None:
    book = tmp_path / "book.yml"
    book.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.ping": {}}]}]))
    argv = ["ansible-playbook", str(book), "-i", "gone.invalid,", "-e", "ansible_connection=ssh"]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode != 0
    assert "UNREACHABLE" in ended.stdout + ended.stderr


def test_the_checkout_uses_it_and_nothing_else_loads_it() -> None:
    assert "stdout_callback = mlops.hpc_validation.brief" in (ROOT / "ansible.cfg").read_text()
    assert not (ROOT / "playbooks/callback_plugins").exists()
