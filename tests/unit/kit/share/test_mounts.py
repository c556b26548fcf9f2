# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mount is told from /proc, a dead one is left alone, and the guard says by its exit code what it met."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import typing as t
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.share import mounts

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures/beegfs/proc_fs"
CLIENT = "3F6-6B00FE9C-client"
LINE = "beegfs_nodev {share} beegfs rw,relatime,cfgFile=/etc/beegfs/beegfs-client.conf 0 0\n"


@pytest.fixture
def proc(tmp_path: Path) -> t.Callable[..., tuple[str, str]]:
    """(line of /proc/mounts, client's state, …) → the share and a /proc in which it is mounted."""

    def make(line: str = LINE, state: str = "healthy", client: str = CLIENT, **files: str) -> tuple[str, str]:
        share = tmp_path / "share"
        (share / "jobs").mkdir(parents=True, exist_ok=True)
        folder = tmp_path / "proc/fs/beegfs" / client
        folder.mkdir(parents=True)
        for source in ("healthy", state):
            for path in (FIXTURES / source).iterdir():
                (folder / path.name).write_text(path.read_text())
        for name, text in files.items():
            (folder / name).write_text(text)
        with (tmp_path / "proc/mounts").open("a") as stream:
            stream.write("/dev/sda / ext4 rw 0 0\n" + line.format(share=share))
        return str(share), str(tmp_path / "proc")

    return make


def test_escapes_of_proc_mounts_are_resolved_and_other_lines_left_out() -> None:
    text = "server:/a\\040b /mnt/my\\040share\\134x nfs4 rw,nosuid 0 0\nhalf a line\n\nnone relative fs rw 0 0\n"
    assert mounts.parse_mounts(text) == [
        {
            "device": "server:/a b",
            "mount_point": "/mnt/my share\\x",
            "fstype": "nfs4",
            "options": ["rw", "nosuid"],
        }
    ]


@given(st.text())
def test_no_text_breaks_the_parsers(text: str) -> None:
    mounts.mount_of("/mnt/beegfs", mounts.parse_mounts(text))
    mounts.parse_nodes(text)
    mounts.parse_states(text)
    mounts.parse_config(text)


def at(path: str, *points: str) -> t.Any:
    found = mounts.mount_of(
        path, [{"mount_point": point, "device": str(number)} for number, point in enumerate(points)]
    )
    return found and (found["mount_point"], found["device"])


def test_the_longest_prefix_and_the_last_mount_win() -> None:
    assert at("/mnt/beegfs/jobs", "/", "/mnt/beegfs", "/mnt") == ("/mnt/beegfs", "1")
    assert at("/mnt/beegfs2", "/", "/mnt/beegfs") == ("/", "0")
    assert at("/mnt/beegfs", "/", "/mnt/beegfs", "/mnt/beegfs") == ("/mnt/beegfs", "2")
    assert at("/mnt") is None


def test_a_link_to_the_mount_is_followed_without_touching_the_mount(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "loop").symlink_to("loop")
    points = [{"mount_point": f"{tmp_path}/real"}]
    assert mounts.resolve(f"{tmp_path}/link/jobs", points) == f"{tmp_path}/real/jobs"
    # What lies below a mount point is not looked at, be it a link or not there.
    (tmp_path / "real/inner").symlink_to("/etc")
    assert mounts.resolve(f"{tmp_path}/real/inner", points) == f"{tmp_path}/real/inner"
    mounts.resolve(f"{tmp_path}/loop", points)


def test_servers_and_connections_are_told() -> None:
    nodes = mounts.parse_nodes((FIXTURES / "tcp_fallback/storage_nodes").read_text())
    assert nodes[0]["connections"] == [
        {"protocol": "TCP", "count": 8, "peer": "10.99.0.1:8003", "fallback": True},
    ]
    assert [(link["protocol"], link["fallback"]) for link in nodes[1]["connections"]] == [
        ("TCP", True),
        ("RDMA", False),
    ]
    assert mounts.parse_nodes("a b [ID: 7]\n   Connections: <none>\n")[0]["connections"] == []
    assert (
        mounts.parse_nodes("a [ID: 7]\n   Connections not available [Error: Out of memory]\n")[0]["connections"] is None
    )
    assert mounts.parse_nodes("a [ID: 7]\n   Connections: something else\n")[0]["connections"] is None
    assert mounts.parse_nodes("a [ID: 7]\n")[0]["connections"] is None
    assert mounts.parse_nodes("a [ID: 1]\n   Connections: RDMA: 2; \n")[0]["connections"][0]["peer"] is None


def test_a_healthy_mount_is_touched_and_whole(proc: t.Any) -> None:
    share, folder = proc()
    found = mounts.facts(share, "beegfs", 10, folder)
    assert found["problem"] is None
    assert found["config_file"] == "/etc/beegfs/beegfs-client.conf"
    assert found["client"]["id"] == CLIENT
    assert found["client"]["targets"]["storage"][2] == {
        "target": 201,
        "node": "stor2",
        "reachability": "online",
        "consistency": "good",
    }
    assert found["statfs"]["directory"] is True
    assert found["statfs"]["magic"] != mounts.BEEGFS_MAGIC


def test_the_kernels_own_answer_is_that_of_stat() -> None:
    said = subprocess.run(["stat", "-f", "-c", "%t", "/dev/shm"], capture_output=True, text=True, check=True).stdout
    assert mounts.statfs("/dev/shm")["magic"] == int(said, 16)
    with pytest.raises(FileNotFoundError):
        mounts.statfs("/no/such/place")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("no_connections", "no metadata server has a connection"),
        ("meta_offline", "no metadata server has a connection or is online"),
        ("no_nodes", "no metadata server"),
    ],
)
def test_a_mount_without_servers_is_reported_and_not_touched(proc: t.Any, state: str, words: str) -> None:
    share, folder = proc(state=state)
    found = mounts.facts(share, "beegfs", 10, folder)
    assert words in found["problem"]
    assert found["touched"] is False
    assert found["statfs"] is None


NONE = "bee1 [ID: 1]\n   Root: <yes>\n   Connections: <none>\n"


def test_an_idle_client_is_not_taken_for_a_dead_one(proc: t.Any) -> None:
    share, folder = proc(meta_nodes=NONE)  # the management server is connected and says that it is online
    assert mounts.facts(share, "beegfs", 10, folder)["touched"] is True


def test_nobody_can_say_that_a_server_without_connection_is_online_but_the_management_server(proc: t.Any) -> None:
    share, folder = proc(meta_nodes=NONE, mgmt_nodes="bee1 [ID: 1]\n   Connections: <none>\n")
    assert mounts.facts(share, "beegfs", 10, folder)["touched"] is False


def test_without_its_root_server_or_any_storage_a_share_is_not_touched(proc: t.Any) -> None:
    other = "bee2 [ID: 2]\n   Connections: RDMA: 1 (10.99.0.2:8005);\n"
    states = "[Target ID: 1] @ bee1: Offline / Good \n[Target ID: 2] @ bee2: Online / Good \n"
    share, folder = proc(meta_nodes=NONE + other, meta_target_state=states)
    assert "bee1 of the root directory" in mounts.facts(share, "beegfs", 10, folder)["problem"]


def test_a_share_without_any_storage_target_is_not_touched(proc: t.Any) -> None:
    share, folder = proc(storage_target_state="[Target ID: 101] @ stor1: Offline / Good \n")
    assert "all storage targets are offline" in mounts.facts(share, "beegfs", 10, folder)["problem"]


def test_several_clients_are_told_apart_by_their_configuration(proc: t.Any) -> None:
    proc(line="", state="other_configuration", client="OTHER")
    share, folder = proc()
    found = mounts.facts(share, "beegfs", 10, folder)
    assert found["clients"] == [CLIENT, "OTHER"]
    assert found["client"]["id"] == CLIENT


def test_a_mount_whose_client_cannot_be_told_is_not_touched(proc: t.Any) -> None:
    proc(line="", client="TWIN")
    share, folder = proc()
    found = mounts.facts(share, "beegfs", 10, folder)
    assert "2 clients" in found["problem"]
    assert found["clients"] == [CLIENT, "TWIN"]
    assert found["client"] is None
    assert found["touched"] is False


@pytest.mark.parametrize(
    ("line", "path", "words"),
    [
        ("", None, "nothing is mounted"),
        ("server:/x {share} nfs4 rw 0 0\n", None, "expected type beegfs, found nfs4"),
        (LINE, "relative/path", "not an absolute path"),
    ],
)
def test_what_is_no_mount_of_beegfs_is_a_problem(proc: t.Any, line: str, path: str | None, words: str) -> None:
    share, folder = proc(line=line)
    found = mounts.facts(path or share, "beegfs", 10, folder)
    assert words in found["problem"]
    assert found["touched"] is False


AUTOFS = "systemd-1 {share} autofs rw,relatime,fd=41,pgrp=1,timeout=600,direct 0 0\n"


def test_an_idle_automount_is_opened_once_and_what_it_mounts_is_looked_at(
    proc: t.Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    share, folder = proc(line=AUTOFS)
    whole = Path(folder, "mounts").read_text() + LINE.format(share=share)
    monkeypatch.setattr(mounts, "open_folder", lambda _path: Path(folder, "mounts").write_text(whole) and None)
    found = mounts.facts(share, "beegfs", 10, folder)
    assert (found["problem"], found["fstype"], found["touched"]) == (None, "beegfs", True)
    assert Path(folder, "mounts").read_text().count("beegfs_nodev") == 1
    monkeypatch.setattr(mounts, "open_folder", lambda _path: os._exit(9))  # it is mounted: not opened again
    assert mounts.facts(share, "beegfs", 10, folder)["problem"] is None


def test_an_automount_above_the_share_is_triggered_by_the_share(proc: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    share, folder = proc(line="")
    with Path(folder, "mounts").open("a") as stream:
        stream.write(AUTOFS.format(share=Path(share).parent))
    opened = Path(folder) / "opened"
    monkeypatch.setattr(mounts, "open_folder", lambda path: opened.write_text(path) and None)
    found = mounts.facts(share, "beegfs", 10, folder)
    assert opened.read_text() == share
    assert (found["mounted"], found["touched"]) == (False, False)
    assert "nothing was mounted" in found["problem"]


def refused(_path: str) -> t.NoReturn:
    raise FileNotFoundError(2, "No such file or directory", "/share")


@pytest.mark.parametrize(
    ("opened", "mounted", "words", "code"),
    [
        (lambda _path: None, False, "nothing was mounted", mounts.NOT_MOUNTED),
        (refused, False, "No such file or directory", mounts.NOT_MOUNTED),
        (lambda _path: signal.pause(), None, "did not answer in 0.3 s", mounts.NO_ANSWER),
    ],
)
def test_an_automount_that_mounts_nothing_is_no_share(
    proc: t.Any, monkeypatch: pytest.MonkeyPatch, opened: t.Any, mounted: bool | None, words: str, code: int
) -> None:
    share, folder = proc(line=AUTOFS)
    monkeypatch.setattr(mounts, "open_folder", opened)
    for share_type in mounts.TYPES:
        found = mounts.facts(share, share_type, 0.3, folder)
        assert (found["mounted"], found["mount_point"], found["touched"]) == (mounted, None, False)
        assert words in found["problem"]
        with pytest.raises(mounts.RefusalError) as refusal:
            mounts.guard(share, share_type, deadline=0.3, proc=folder)
        assert refusal.value.code == code


def test_the_guard_takes_a_client_that_cannot_be_told_for_no_dead_one(proc: t.Any) -> None:
    proc(line="", client="TWIN")
    share, folder = proc()
    with pytest.raises(mounts.RefusalError, match="2 clients") as refusal:
        mounts.guard(share, "beegfs", proc=folder)
    assert refusal.value.code == mounts.UNKNOWN


def test_unreadable_mounts_are_a_problem_and_not_an_answer(tmp_path: Path) -> None:
    found = mounts.facts("/mnt/beegfs", "beegfs", 10, str(tmp_path))
    assert found["mounted"] is None
    assert "cannot be read" in found["problem"]


def test_a_child_that_does_not_answer_is_given_up_and_killed(tmp_path: Path) -> None:
    begin = time.monotonic()
    with pytest.raises(mounts.NoAnswerError, match=r"0\.2 s"):
        mounts.in_child(lambda: (tmp_path / "pid").write_text(str(os.getpid())) and signal.pause(), 0.2)
    assert time.monotonic() - begin < 5
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda: os.stat("/no/such/place"), "No such file or directory: /no/such/place"),
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: os._exit(3), "exit code 3"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "signal 9"),
        (object, "TypeError"),
    ],
)
def test_what_goes_wrong_in_a_child_is_told(work: t.Any, words: str) -> None:
    with pytest.raises(mounts.ChildError, match=words):
        mounts.in_child(work, 10)


def test_one_child_does_one_thing_after_another() -> None:
    answers = mounts.each_in_child([os.getpid, lambda: "a\nb", os.getpid], 10)
    assert answers[0] == answers[2] != os.getpid()
    assert answers[1] == "a\nb"
    assert mounts.each_in_child([], 10) == []


def test_what_goes_wrong_keeps_none_of_the_rest_from_being_done() -> None:
    works: list[t.Any] = [lambda: 1, lambda: 1 / 0, lambda: os._exit(3), lambda: 2, lambda: os._exit(4)]
    first, zero, three, second, four = mounts.each_in_child(works, 10)
    assert (first, second) == (1, 2)
    assert [str(error) for error in (zero, three, four)] == [
        "ZeroDivisionError: division by zero",
        "it ended with exit code 3 and without an answer",
        "it ended with exit code 4 and without an answer",
    ]


def test_each_has_so_many_seconds_and_nothing_is_begun_after_one_that_does_not_answer(tmp_path: Path) -> None:
    works = [lambda: time.sleep(0.3)] * 3
    assert mounts.each_in_child(works, 0.6) == [None] * 3
    later = tmp_path / "later"
    found = mounts.each_in_child([lambda: 1, signal.pause, later.touch, later.touch], 0.3)
    assert found[0] == 1
    assert [(type(each), str(each)) for each in found[1:]] == [(mounts.NoAnswerError, "it did not answer in 0.3 s")] * 3
    assert not later.exists()


def test_a_child_returns_much_and_keeps_nothing_of_its_parents_open() -> None:
    assert mounts.in_child(lambda: "x" * 300_000, 10) == "x" * 300_000
    assert mounts.in_child(lambda: os.readlink("/proc/self/fd/1"), 10) == "/dev/null"


def guard(root: Path, *words: str) -> tuple[int, str]:
    """Run it as a job does: from stdin, with nothing of the kit in reach."""
    argv = [sys.executable, "-I", "-", "guard", *words]
    source = (root / "files/kit/share/mounts.py").read_bytes()
    done = subprocess.run(argv, input=source, capture_output=True, cwd="/", timeout=60, check=False)
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stderr.decode()


@pytest.fixture
def share() -> t.Iterator[Path]:
    """A folder on a file system that is no root: a memory file system of this machine's."""
    folder = Path("/dev/shm") / f"hpcval-guard-{os.getpid()}"
    (folder / "jobs").mkdir(parents=True)
    (folder / "jobs/token").write_text("1f3a\n")
    yield folder
    (folder / "jobs").chmod(0o700)
    (folder / "jobs/token").unlink()
    (folder / "jobs").rmdir()
    folder.rmdir()


def test_the_guard_is_content_and_leaves_nothing(root: Path, share: Path) -> None:
    words = ["--path", str(share), "--type", "other", "--token", "jobs/token:1f3a"]
    assert guard(root, *words) == (0, "")
    assert guard(root, *words[:4])[0] == 0
    assert [path.name for path in (share / "jobs").iterdir()] == ["token"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--token", "jobs/token:other"], 82, "other content"),
        (["--token", "jobs/none:1f3a"], 82, "No such file"),
        (["--write-to", "none"], 83, "No such file"),
        (["--type", "beegfs"], 80, "expected type beegfs, found tmpfs"),
        (["--path", "/proc/nothing-here"], 80, "No such file"),
        (["--path", "/"], 80, "nothing is mounted"),
        (["--proc", "/nonexistent"], 85, "cannot be read"),
    ],
)
def test_the_guard_says_by_its_code_what_it_met(
    root: Path, share: Path, words: list[str], code: int, said: str
) -> None:
    found, message = guard(root, "--path", str(share), "--type", "other", *words)
    assert (found, said in message) == (code, True), message


@pytest.mark.parametrize(("state", "code"), [("healthy", 80), ("no_connections", 81), ("meta_offline", 81)])
def test_the_guard_of_a_beegfs_mount(root: Path, proc: t.Any, state: str, code: int) -> None:
    path, folder = proc(state=state)  # the healthy one is no BeeGFS to the kernel
    assert guard(root, "--path", path, "--type", "beegfs", "--proc", folder)[0] == code


def test_what_it_guards_runs_only_if_all_is_well(root: Path, share: Path) -> None:
    words = ["--path", str(share), "--type", "other", "--token", "jobs/token:1f3a"]
    assert guard(root, *words, "--", "sh", "-c", "exit 7")[0] == 7
    assert guard(root, *words[:-1], "jobs/token:other", "--", "sh", "-c", "exit 7")[0] == 82
    assert guard(root, *words, "--", "/no/such/program") == (
        127,
        "guard: /no/such/program: No such file or directory\n",
    )


def test_a_module_of_the_share_runs_in_the_same_process_and_only_if_all_is_well(
    root: Path, share: Path, tmp_path: Path
) -> None:
    (tmp_path / "told.py").write_text(
        "import json, os, sys\n"
        "found = [sys.argv[1:], os.environ['PYTHONPATH'], __name__, os.getpid()]\n"
        "open(sys.argv[1], 'w').write(json.dumps(found))\n"
        "sys.exit(7)\n"
    )
    answer = tmp_path / "answer"
    words = ["--path", str(share), "--type", "other", "--token", "jobs/token:1f3a", "--modules", str(tmp_path)]
    command = ["--", "-m", "told", str(answer), "--", "-x"]
    assert guard(root, *words[:-3], "jobs/token:other", *words[-2:], *command)[0] == 82
    assert not answer.exists()
    shell = 'echo $$ > "$1"; shift; exec "$@"'
    argv = ["sh", "-c", shell, "sh", str(tmp_path / "pid"), sys.executable, "-I", "-", "guard", *words, *command]
    source = (root / "files/kit/share/mounts.py").read_bytes()
    assert subprocess.run(argv, input=source, timeout=60, check=False).returncode == 7
    process = int((tmp_path / "pid").read_text())
    assert json.loads(answer.read_text()) == [[str(answer), "--", "-x"], str(tmp_path), "__main__", process]


def test_a_module_without_a_folder_to_find_it_in_is_a_program_that_is_not_there(root: Path, share: Path) -> None:
    words = ["--path", str(share), "--type", "other"]
    assert guard(root, *words, "--", "-m", "told")[0] == 127
    assert guard(root, *words, "--modules", "/nowhere", "--", "-m")[0] == 127


def test_a_file_instead_of_the_share(root: Path, share: Path) -> None:
    assert guard(root, "--path", str(share / "jobs/token"), "--type", "other")[0] == 80


def test_facts_are_printed_as_one_document(root: Path, share: Path) -> None:
    argv = [sys.executable, "-I", "-", "facts", "--path", str(share), "--type", "other"]
    source = (root / "files/kit/share/mounts.py").read_bytes()
    done = subprocess.run(argv, input=source, capture_output=True, timeout=60, check=True)
    assert json.loads(done.stdout)["fstype"] == "tmpfs"


def test_it_imports_nothing_of_the_kit(root: Path) -> None:
    text = (root / "files/kit/share/mounts.py").read_text()
    assert "from kit" not in text
    assert "import kit" not in text


def test_a_simulated_client_is_looked_for_below_beegfs_whatever_the_mount_is(tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    proc = tmp_path / "proc"
    (proc / "fs/beegfs/1-A-client").mkdir(parents=True)
    (proc / "mounts").write_text(f"/dev/sda1 {share} ext4 rw 0 0\n")
    client = proc / "fs/beegfs/1-A-client"
    (client / "mgmt_nodes").write_text("bee1 [ID: 1]\n   Connections: <none>\n")
    (client / "meta_nodes").write_text("bee1 [ID: 1]\n   Root: <yes>\n   Connections: <none>\n")
    found = mounts.facts(str(share), "simulated", 5, str(proc))
    assert found["touched"] is False
    assert "was not touched" in found["problem"]
    (client / "config").write_text("sysMgmtdHost = bee1\n")
    (client.parent / "2-B-client").mkdir()
    assert "/proc/fs/beegfs holds 2 clients" in mounts.facts(str(share), "simulated", 5, str(proc))["problem"]
    assert mounts.facts(str(share), "other", 5, str(proc))["touched"] is True


def test_a_python_that_is_too_old_is_said_before_anything_else(root: Path) -> None:
    program = "import runpy, sys; sys.version_info = (3, 8); runpy.run_path(sys.argv[1], run_name='__main__')"
    argv = [sys.executable, "-c", program, str(root / "files/kit/share/mounts.py"), "guard", "--path", "/nowhere"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 86
    assert done.stderr.startswith("Python 3.")
