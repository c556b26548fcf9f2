# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text file and the server for Prometheus, and that neither holds up a training."""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.pretraining.exporters import DEAD, Publisher, TextFile, remove_dead, serve
from kit.pretraining.exposition import Figures, families, labels, text
from prometheus_client.parser import text_string_to_metric_families

PATIENCE = 20.0  # seconds until a condition that must come true is given up


def until(condition) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.002)


def test_the_file_is_whole_and_anyone_may_read_it(tmp_path):
    file = TextFile(tmp_path, "12")
    before = os.umask(0o077)
    try:
        file.write("a 1\n")
        file.write("a 2\n")
    finally:
        os.umask(before)
    assert [path.name for path in tmp_path.iterdir()] == ["hpc_pretraining-12.prom"]
    assert file.path.read_text() == "a 2\n"
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o644


def test_a_folder_that_is_missing_is_refused_and_not_made(tmp_path):
    folder = tmp_path / "metrics"
    with pytest.raises(KitError, match=r"metrics \(watch.textfile\) is not a folder on this node; create it there"):
        TextFile(folder, "12")
    folder.mkdir()
    file = TextFile(folder, "12")
    folder.rmdir()
    with pytest.raises(KitError, match="is not a folder on this node"):
        file.write("a 1\n")
    assert not folder.exists()


def test_what_trainings_left_that_have_ended_is_removed(tmp_path):
    now = time.time()

    def left(name: str, age: float) -> Path:
        path = tmp_path / name
        path.write_text("a 1\n")
        os.utime(path, (now - age, now - age))
        return path

    dead = left("hpc_pretraining-1.prom", DEAD + 1)
    kept = [left("hpc_pretraining-2.prom", DEAD - 1), left("other.prom", 10 * DEAD)]
    link = tmp_path / "hpc_pretraining-3.prom"
    link.symlink_to(kept[1])
    os.utime(link, (0, 0), follow_symlinks=False)
    remove_dead(tmp_path, now)
    assert not dead.exists()
    assert all(path.exists() for path in kept)
    assert link.is_symlink()
    os.utime(kept[0], (0, 0))
    TextFile(tmp_path, "12")
    assert not kept[0].exists()


def test_another_users_file_stays(tmp_path, monkeypatch):
    path = tmp_path / "hpc_pretraining-1.prom"
    path.write_text("a 1\n")
    os.utime(path, (0, 0))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    remove_dead(tmp_path, time.time())
    assert path.exists()


class Written:
    """A file that can fail and hang, and a log."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.said: list[str] = []
        self.current = "a 1\n"
        self.error: Exception | None = None
        self.tries = 0

    def publisher(self, every: float = 0.001, heartbeat: float = 1000.0) -> Publisher:
        return Publisher(lambda: self.current, self.write, self.said.append, every, heartbeat)

    def write(self, shown: str) -> None:
        self.tries += 1
        if self.error:
            raise self.error
        self.texts.append(shown)


def test_a_text_is_written_when_it_changes_and_at_the_end():
    written = Written()
    publisher = written.publisher()
    until(lambda: written.texts == ["a 1\n"])
    written.current = "a 2\n"
    until(lambda: written.texts == ["a 1\n", "a 2\n"])
    publisher.close()
    assert written.texts == ["a 1\n", "a 2\n"]
    assert written.said == []


def test_the_last_text_is_written_before_the_end():
    written = Written()
    publisher = written.publisher(every=1000.0)
    until(lambda: written.texts == ["a 1\n"])
    written.current = "a 2\n"
    publisher.close()
    assert written.texts == ["a 1\n", "a 2\n"]


def test_a_heartbeat_renews_what_is_the_same():
    written = Written()
    publisher = written.publisher(heartbeat=0.01)
    until(lambda: len(written.texts) >= 3)
    publisher.close()
    assert set(written.texts) == {"a 1\n"}


@pytest.mark.parametrize("error", [KitError("no folder"), OSError(28, "No space left on device")])
def test_a_failure_is_told_once_and_so_is_its_end(error):
    written = Written()
    written.error = error
    publisher = written.publisher()
    until(lambda: written.tries >= 3)
    assert written.said == [
        f"the metrics for Prometheus are not written: {error}; the training goes on without them",
    ]
    written.error = None
    until(lambda: len(written.said) == 2)
    publisher.close()
    assert written.texts[0] == "a 1\n"
    assert written.said[1:] == ["the metrics for Prometheus are written again"]


def test_a_log_that_cannot_be_written_ends_nothing():
    written = Written()
    written.error = OSError("gone")

    def say(_text: str) -> None:
        raise OSError(9, "Bad file descriptor")

    publisher = Publisher(lambda: written.current, written.write, say, 0.001, 1000.0)
    until(lambda: written.tries >= 3)
    publisher.close()


def test_a_write_that_hangs_does_not_hold_up_the_end():
    begun, released = threading.Event(), threading.Event()

    def write(_text: str) -> None:
        begun.set()
        released.wait(PATIENCE)

    publisher = Publisher(lambda: "a 1\n", write, print, 0.001, 1000.0)
    assert begun.wait(PATIENCE)
    publisher.close(patience=0.01)
    assert not released.is_set()
    released.set()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_the_server_answers_with_what_the_file_has():
    figures = [Figures(step=3, loss=float("nan"), skipped_steps=2, solo_seconds=(0.1, 0.2))]
    port = free_port()

    def found():
        return families(figures[0], labels("12", "gpt"), ["a", "b"])

    def asked() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
            return answer.read().decode()

    def samples(shown: str) -> set[tuple[str, str, str]]:
        return {
            (each.name, str(sorted(each.labels.items())), str(float(each.value)))
            for family in text_string_to_metric_families(shown)
            for each in family.samples
        }

    end = serve(found, "127.0.0.1", port)
    try:
        assert samples(asked()) == samples(text(found()))
        figures[0] = Figures(step=4)
        assert samples(asked()) == samples(text(found()))
        with pytest.raises(OSError, match="in use"):
            serve(found, "127.0.0.1", port)
    finally:
        end()
    with pytest.raises(OSError, match="refused"):
        asked()
