# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The share is used and measured in a folder of its own that goes away, and a share that hangs is left alone."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
import typing as t
import zlib
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import findings as share_findings
from kit.share import folder as share_folder
from kit.share import look as share
from kit.share import mounts
from kit.share import speed as share_speed
from kit.share import stripe as share_stripe
from kit.share import use as share_use

MIB = 1 << 20


@pytest.fixture
def options(tmp_path: Path) -> t.Callable[..., share.Options]:
    """Options for a folder on this machine's disk that a /proc of our own says is a mount."""
    path = tmp_path / "share"
    (path / "jobs").mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/mounts").write_text(f"/dev/sda / ext4 rw 0 0\nserver:/x {path} nfs4 rw,relatime 0 0\n")

    def make(**changed: t.Any) -> share.Options:
        given = {"path": str(path), "type": "other", "size": MIB, "reserve": 0, "tool": "own", "deadline": 30.0}
        return share.Options(**{**given, "proc": str(tmp_path / "proc"), "node": "compute01", **changed})

    return make


def left(chosen: share.Options) -> list[str]:
    return sorted(path.name for path in (Path(chosen.path) / "jobs").iterdir())


def test_a_good_file_system_passes_every_check_and_nothing_is_left(options: t.Any) -> None:
    facts = share.collect(options(checks=("mount", "use")))
    assert schema.problems("share", facts) == []
    assert [name for name, check in facts["use"]["checks"].items() if check["error"] or check["missing"]] == []
    findings = share_findings.findings(
        facts, {"free_gib": 0, "free_inodes": 0}, node="compute01", share_type="other", checks=["mount", "use"]
    )
    assert [f for f in findings if f["verdict"] not in ("pass", "recorded", "not_applicable")] == []
    assert left(options()) == []
    assert facts["use"]["folder"]["removed"] is True


def test_throughput_and_metadata_are_measured(options: t.Any) -> None:
    facts = share.collect(options(checks=("speed",), size=3 * MIB + 5))
    assert schema.problems("share", facts) == []
    speed = facts["speed"]
    assert (speed["tool"], speed["size_mib"], speed["error"]) == ("own", 3, None)
    for figure in share_speed.FIGURES:
        assert (speed[f"{figure}_mib_s"] or 0) > 0 or "direct" in figure, speed["problems"]
    metadata = speed["metadata"]
    assert metadata["files"] == share_speed.FILES
    per_file = sum(1 / metadata[f"{key}_per_s"] for key in ("creates", "stats", "unlinks"))
    assert metadata["million_files"]["extrapolated"] is True
    assert metadata["million_files"]["seconds"] == pytest.approx(1e6 * per_file)
    assert facts["use"] is None
    assert left(options()) == []


def test_what_own_code_writes_is_of_the_size_asked_and_synced(tmp_path: Path) -> None:
    assert share_speed.own("write_buffered", tmp_path, 2 * MIB) > 0
    written = (tmp_path / "buffered.data").read_bytes()
    assert len(zlib.compress(written[:MIB], 1)) > MIB * 0.9  # storage that compresses must not appear fast
    assert (tmp_path / "buffered.data").stat().st_size == 2 * MIB
    assert share_speed.own("read_buffered", tmp_path, 2 * MIB) > 0
    with pytest.raises(OSError, match="cut short"):
        share_speed.own("read_buffered", tmp_path, 3 * MIB)


@pytest.fixture
def fio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[[str], None]:
    """Put a fio on PATH that does what the text says."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def put(script: str) -> None:
        (folder / "fio").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "fio").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    return put


def test_fio_gives_the_same_figures_by_the_same_names(options: t.Any, fio: t.Any) -> None:
    job = '{"jobs": [{"write": {"bw_bytes": 104857600}, "read": {"bw_bytes": 209715200}}]}'
    fio(f"[ \"$1\" = --version ] && echo fio-3.33 || echo 'note: x\n{job}'")
    speed = share.collect(options(checks=("speed",), tool="auto"))["speed"]
    assert speed["tool"] == "fio-3.33"
    assert [speed[f"{figure}_mib_s"] for figure in share_speed.FIGURES] == [100.0, 100.0, 200.0, 200.0]


def test_fio_is_told_to_do_what_own_code_does(tmp_path: Path) -> None:
    argv = share_speed.fio_arguments("write_direct", tmp_path, 8 * MIB)
    assert {"--rw=write", "--direct=1", "--end_fsync=1", f"--size={8 * MIB}", f"--bs={MIB}"} <= set(argv)
    assert "--direct=0" in share_speed.fio_arguments("read_buffered", tmp_path, MIB)


@pytest.mark.parametrize("script", ["echo broken >&2; exit 1", "echo '{}'", 'echo \'{"jobs": [{"write": 7}]}\''])
def test_a_fio_that_fails_leaves_no_figure_but_a_reason(options: t.Any, fio: t.Any, script: str) -> None:
    fio(script)
    speed = share.collect(options(checks=("speed",), tool="fio"))["speed"]
    assert all(speed[f"{figure}_mib_s"] is None for figure in share_speed.FIGURES)
    assert set(share_speed.FIGURES) <= set(speed["problems"])


def test_a_fio_that_does_not_say_its_version_is_not_used(
    options: t.Any, fio: t.Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fio("exec sleep 60")
    monkeypatch.setattr(share_speed, "VERSION_SECONDS", 0.2)
    speed = share.collect(options(checks=("speed",), tool="fio"))["speed"]
    assert (speed["tool"], list(speed["problems"])) == (None, ["tool"])
    assert "timed out after 0.2 seconds" in speed["problems"]["tool"]
    speed = share.collect(options(checks=("speed",), tool="auto"))["speed"]
    assert speed["tool"] == "own"
    assert speed["write_buffered_mib_s"] > 0


def test_no_fio_where_fio_is_asked_for(options: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    speed = share.collect(options(checks=("speed",), tool="fio"))["speed"]
    assert speed["problems"] == {"tool": "fio is not on PATH"}
    assert speed["tool"] is None


def test_the_reserve_is_made_sure_of_before_anything_is_written(options: t.Any) -> None:
    chosen = options(reserve=1 << 60)
    before = os.stat(Path(chosen.path) / "jobs").st_mtime_ns
    facts = share.collect(chosen)
    assert "less than the reserve" in facts["use"]["error"]
    assert facts["use"]["checks"] == {}
    assert facts["speed"]["error"] == facts["use"]["error"]
    assert os.stat(Path(chosen.path) / "jobs").st_mtime_ns == before


def test_a_folder_that_cannot_be_made_is_told_and_a_foreign_one_not_removed(
    options: t.Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = share.collect(options(folder="none"))
    assert "No such file or directory" in facts["use"]["error"]
    monkeypatch.setattr(share_folder, "private_name", lambda: ".check-theirs-1")
    theirs = Path(options().path) / "jobs/.check-theirs-1"
    theirs.mkdir()
    facts = share.collect(options())
    assert "File exists" in facts["use"]["error"]
    assert theirs.exists()


def test_a_check_that_is_refused_and_one_that_crashes_are_told_apart(
    options: t.Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_folder: Path) -> t.NoReturn:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setitem(share_use.CHECKS, "hard_link", refuse)
    monkeypatch.setitem(share_use.CHECKS, "append", lambda _folder: os._exit(9))
    checks = share.collect(options(checks=("use",)))["use"]["checks"]
    assert checks["hard_link"]["error"] == "Operation not supported"
    assert checks["append"]["error"] is None
    assert "exit code 9" in checks["append"]["missing"]
    assert checks["utime"]["seen"]


def test_after_a_check_that_hangs_nothing_more_is_done_on_the_share(
    options: t.Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(share_use.CHECKS, "rename", lambda _folder: signal.pause())
    begin = time.monotonic()
    facts = share.collect(options(deadline=0.5))
    assert time.monotonic() - begin < 10
    assert facts["use"]["checks"]["fsync_read_back"]["seen"]
    assert "did not answer in 0.5 s" in facts["use"]["checks"]["rename"]["missing"]
    assert "not done" in facts["use"]["checks"]["utime"]["missing"]
    assert facts["use"]["folder"]["removed"] is False
    assert "does not answer" in facts["speed"]["error"]
    assert all(facts["speed"][f"{figure}_mib_s"] is None for figure in share_speed.FIGURES)


@pytest.mark.parametrize("name", ["remove", "leftovers", "make"])
def test_a_share_that_stops_answering_while_it_is_tidied_up_is_not_touched_again(
    options: t.Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The parent itself looks at nothing on the share, and starts no child after the one that did not answer."""
    chosen = options(deadline=0.5, checks=("use",))
    monkeypatch.setattr(share_use, "CHECKS", {"utime": share_use.utime})
    parent = os.getpid()
    touched: list[str] = []

    def watched(function: t.Any) -> t.Any:
        def call(path: t.Any, *more: t.Any, **options: t.Any) -> t.Any:
            if os.getpid() == parent and str(path).startswith(f"{chosen.path}/"):
                touched.append(str(path))
            return function(path, *more, **options)

        return call

    for each in ("lstat", "stat", "scandir", "listdir", "rmdir", "mkdir", "open"):
        monkeypatch.setattr(os, each, watched(getattr(os, each)))
    children: list[object] = []
    real = mounts.each_in_child
    monkeypatch.setattr(mounts, "each_in_child", lambda works, seconds: children.append(works) or real(works, seconds))
    monkeypatch.setattr(share_folder, name, lambda *_: signal.pause())
    folder = share.collect(chosen)["use"]["folder"]
    assert folder["removed"] is (name == "leftovers")  # then it is gone
    assert "not answer" in folder["error"]
    assert touched == []
    # mounts, statfs; make; utime, jobs' striping; remove; leftovers
    assert len(children) == {"make": 3, "remove": 5, "leftovers": 6}[name]


def test_a_folder_that_cannot_be_removed_is_told(options: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(_folder: Path) -> t.NoReturn:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(share_folder, "remove", busy)
    folder = share.collect(options(checks=("speed",)))["speed"]["folder"]
    assert (folder["removed"], folder["error"]) == (False, "Device or resource busy")


def test_connections_are_looked_at_again_after_use(options: t.Any, tmp_path: Path) -> None:
    """Of a simulated client too, which the kernel would know as beegfs, whatever is mounted."""
    client = tmp_path / "proc/fs/beegfs/1-A-client"
    client.mkdir(parents=True)
    (client / "mgmt_nodes").write_text("bee1 [ID: 1]\n   Connections: TCP: 1 (10.99.0.1:8008);\n")
    (client / "meta_nodes").write_text("bee1 [ID: 1]\n   Root: <yes>\n   Connections: TCP: 1 (10.99.0.1:8005);\n")
    nodes = client / "storage_nodes"
    nodes.write_text("stor1 [ID: 1]\n   Connections: <none>\n")
    real = share_use.utime

    def use(folder: Path) -> t.Any:
        nodes.write_text("stor1 [ID: 1]\n   Connections: TCP: 3 (10.99.0.1:8003);\n")
        return real(folder)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(share_use, "CHECKS", {"utime": use})
        chosen = options(type="simulated", checks=("use",), directories=("jobs",))
        mount = share.collect(chosen)["mount"]
        assert mount["problem"] is None
        assert mount["client"]["nodes"]["storage"][0]["connections"][0]["count"] == 3
        # A client that is gone by then is not taken for what it was.
        patch.setattr(share_use, "CHECKS", {"utime": lambda _folder: os.mkdir(client.parent / "2-B-client") or {}})
        mount = share.collect(chosen)["mount"]
        assert "holds 2 clients" in mount["problem"]
        assert mount["client"] is None


def test_striping_is_asked_of_a_simulated_share_too(options: t.Any, tmp_path: Path) -> None:
    (tmp_path / "proc/fs/beegfs/1-A-client").mkdir(parents=True)
    (tmp_path / "proc/fs/beegfs/1-A-client/meta_nodes").write_text("bee1 [ID: 1]\n   Connections: TCP: 1 (x:1);\n")
    facts = share.collect(options(type="simulated", checks=("use",), directories=("jobs", "none")))
    assert "Inappropriate ioctl" in facts["striping"]["jobs"]["error"]
    assert "No such file" in facts["striping"]["none"]["error"]


def test_a_dead_mount_is_not_touched(options: t.Any, tmp_path: Path) -> None:
    (tmp_path / "proc/mounts").write_text("/dev/sda / ext4 rw 0 0\n")
    facts = share.collect(options())
    assert facts["mount"]["touched"] is False
    assert facts["use"]["error"] == facts["mount"]["problem"]
    assert facts["use"]["folder"]["made"] is False
    assert schema.problems("share", facts) == []


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_the_folder_goes_away_when_it_is_told_to_stop(options: t.Any, root: Path, stop: int) -> None:
    chosen = options()
    code = (
        "import sys, signal, runpy; sys.path.insert(0, sys.argv.pop(1));"
        "from kit.share import use; use.CHECKS['rename'] = lambda folder: (print('there', flush=True), "
        "open(folder.parent.parent.parent / 'there', 'w').close(), signal.pause());"
        "runpy.run_module('kit', run_name='__main__')"
    )
    words = ["share", "--path", chosen.path, "--type", "other", "--proc", chosen.proc, "--reserve", "0"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(root / "files"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    marker = Path(chosen.path) / "there"
    deadline = time.monotonic() + 30
    while not marker.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left(chosen) != []
    process.send_signal(stop)
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert left(chosen) == []


def test_what_dead_runs_left_is_removed_after_a_day_and_nothing_else(tmp_path: Path) -> None:
    def folder(name: str, age: float) -> Path:
        path = tmp_path / name
        path.mkdir()
        (path / "file").write_text("x")
        os.utime(path, (time.time() - age, time.time() - age))
        return path

    old, host = 2 * share_folder.DAY, os.uname().nodename
    kept = [
        folder(".check-other-1", 60),
        folder(f".check-{host}-{os.getpid()}", old),  # alive
        folder(f".check-{host}-{os.getpid()}.0123abcd", old),
        folder(".check-other-3.0123abcg", old),
        folder("check-other-2", old),
        folder(".check-other-2x", old),
    ]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".check-other-3").symlink_to("elsewhere")
    gone = [folder(".check-other-4", old), folder(".check-other.site-4.01234567", old)]
    assert sorted(share_folder.leftovers(tmp_path)) == sorted(path.name for path in gone)
    assert all(path.exists() for path in kept)
    assert (tmp_path / "elsewhere").exists()


def test_two_processes_with_one_number_on_hosts_of_one_name_have_folders_of_their_own() -> None:
    names = {share_folder.private_name() for _each in range(100)}
    assert len(names) == 100
    assert all(name.startswith(f".check-{os.uname().nodename}-{os.getpid()}.") for name in names)


def test_the_private_folder_is_nobody_elses(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        share_folder.make(tmp_path / "x")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o7777 == 0o700
    with pytest.raises(FileExistsError):
        share_folder.make(tmp_path / "x")


def test_a_private_folder_that_cannot_be_made_private_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_other: object) -> t.NoReturn:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    with pytest.raises(PermissionError):
        share_folder.make(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_striping_is_asked_of_a_file_that_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="Inappropriate ioctl"):
        share_stripe.stripe_info(tmp_path)
    assert list(tmp_path.iterdir()) == []
    asked: list[int] = []

    def ioctl(_descriptor: int, number: int, _buffer: bytes) -> bytes:
        asked.append(number)
        return share_stripe._INFO.pack(1, 524288, 4)

    monkeypatch.setattr(share_stripe.fcntl, "ioctl", ioctl)
    assert share_stripe.stripe_info(tmp_path) == {
        "pattern": "raid0",
        "chunk_kib": 512,
        "targets": 4,
        "source": "ioctl",
        "error": None,
    }
    assert asked == [0x800C6619]
    assert list(tmp_path.iterdir()) == []


def test_striping_of_what_is_no_beegfs_says_why_not(options: t.Any) -> None:
    facts = share.collect(options(checks=("use",), directories=("jobs",)))
    assert facts["striping"]["jobs"]["error"] == "the share's type is other"


def test_a_lock_that_is_not_kept_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_use.fcntl, "flock", lambda *_: None)
    assert share_use.flock(tmp_path)["while_held"] == "granted"


def test_the_command_prints_the_facts_in_two_seconds(options: t.Any, root: Path) -> None:
    chosen = options()
    words = ["share", "--path", chosen.path, "--type", "other", "--proc", chosen.proc, "--reserve", "0", "--size", "8"]
    done = subprocess.run(
        [sys.executable, "-m", "kit", *words, "--node", "n1"],
        env={**os.environ, "PYTHONPATH": str(root / "files")},
        capture_output=True,
        timeout=60,
        check=True,
    )
    facts = json.loads(done.stdout)
    assert facts["node"] == "n1"
    assert list(facts["striping"]) == ["jobs"]  # where nothing is said, that of the folder that is used
    assert facts["seconds"] < 10  # 2 on an idle machine


@pytest.mark.parametrize(
    "words",
    [
        ["--checks", "use,all"],
        ["--checks", ""],
        ["--folder", "/etc"],
        ["--directories", "a,../b"],
        ["--size", "0"],
        ["--deadline", "0"],
        ["--reserve", "-1"],
    ],
)
def test_what_cannot_be_meant_is_refused(root: Path, words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kit", "share", "--path", "/mnt", *words],
        env={**os.environ, "PYTHONPATH": str(root / "files")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "kit share: " in done.stderr
    assert "Traceback" not in done.stderr


def test_the_deadline_bounds_the_look_at_the_mount_too(options: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "statfs", lambda _path: signal.pause())
    facts = share.collect(options(deadline=0.3))
    assert "did not answer in 0.3 s" in facts["mount"]["problem"]
    assert facts["mount"]["touched"] is True
    assert facts["use"]["error"] == facts["mount"]["problem"]
