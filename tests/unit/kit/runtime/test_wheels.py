# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetching a pinned wheel from an index served on this machine."""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import json
import threading
import typing as t
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.host.indexes import index_urls
from kit.runtime import wheels

NAME = "tool-1.0-py3-none-any.whl"
CONTENT = b"a wheel"


class Index(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; as JSON where the page says so, and only with the password where one is set."""

    password: str | None = None
    asked: t.ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        wanted = base64.b64encode(f"user:{self.password}".encode()).decode()
        if self.password and self.headers.get("Authorization") != f"Basic {wanted}":
            self.send_error(401)
            return
        super().do_GET()

    def guess_type(self, path: t.Any) -> str:
        if str(path).endswith("index.html") and Path(path).read_bytes().startswith(b"{"):
            return "application/vnd.pypi.simple.v1+json"
        return super().guess_type(path)

    def log_message(self, *_other: t.Any) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Path]:
    """A served folder with ``files/`` and ``simple/tool/``; ``site / 'url'`` holds its address."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "site"
    (folder / "simple" / "tool").mkdir(parents=True)
    (folder / "files").mkdir()
    (folder / "files" / NAME).write_bytes(CONTENT)
    Index.asked.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Index, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    (folder / "url").write_text(f"http://127.0.0.1:{server.server_port}/simple")
    yield folder
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def pins(tmp_path: Path) -> Path:
    path = tmp_path / "pins.json"
    wheel = {"filename": NAME, "sha256": hashlib.sha256(CONTENT).hexdigest()}
    path.write_text(json.dumps({"tool": {"version": "1.0", "wheels": {"any": wheel}}}))
    return path


def page(site: Path, text: str) -> list[str]:
    """Write the index page of ``tool``; return the indexes to ask."""
    (site / "simple" / "tool" / "index.html").write_text(text)
    return [(site / "url").read_text()]


HTML = f'<html><a href="other.whl">other.whl</a> <a href="../../files/{NAME}#sha256=0">{NAME}</a></html>'
JSON = json.dumps({"files": [{"filename": NAME, "url": f"../../files/{NAME}"}]})


@pytest.mark.parametrize("text", [HTML, JSON], ids=["html", "json"])
def test_a_wheel_is_fetched_once(site: Path, pins: Path, tmp_path: Path, text: str) -> None:
    indexes = page(site, text)
    target = tmp_path / "a folder; 'quoted'"
    assert wheels.fetch("tool", target, "1.0", indexes=indexes, pins=pins) == (target / NAME, True)
    assert (target / NAME).read_bytes() == CONTENT
    Index.asked.clear()
    assert wheels.fetch("tool", target, None, indexes=indexes, pins=pins) == (target / NAME, False)
    assert Index.asked == []


def test_a_damaged_copy_is_fetched_again(site: Path, pins: Path, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(CONTENT[:3])
    assert wheels.fetch("tool", tmp_path, None, indexes=page(site, HTML), pins=pins)[1] is True
    assert (tmp_path / NAME).read_bytes() == CONTENT


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646])
def test_a_copy_that_others_could_change_is_written_anew_without_the_index(
    site: Path, pins: Path, tmp_path: Path, mode: int
) -> None:
    path, _changed = wheels.fetch("tool", tmp_path, None, indexes=page(site, HTML), pins=pins)
    path.chmod(mode)
    inode = path.stat().st_ino
    assert wheels.fetch("tool", tmp_path, None, indexes=["file:///nowhere"], pins=pins, check=True) == (path, True)
    assert wheels.fetch("tool", tmp_path, None, indexes=["file:///nowhere"], pins=pins) == (path, True)
    assert (path.stat().st_mode & 0o777, path.stat().st_ino != inode) == (0o644, True)
    assert wheels.fetch("tool", tmp_path, None, indexes=["file:///nowhere"], pins=pins) == (path, False)


def test_a_copy_of_another_user_is_written_anew(
    site: Path, pins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _changed = wheels.fetch("tool", tmp_path, None, indexes=page(site, HTML), pins=pins)
    monkeypatch.setattr(wheels, "only_ours", lambda _path: False)
    inode = path.stat().st_ino
    assert wheels.fetch("tool", tmp_path, None, indexes=["file:///nowhere"], pins=pins) == (path, True)
    assert path.stat().st_ino != inode


def test_another_file_under_that_name_is_refused_and_not_kept(site: Path, pins: Path, tmp_path: Path) -> None:
    (site / "files" / NAME).write_bytes(b"something else")
    with pytest.raises(KitError, match="expected the pinned"):
        wheels.fetch("tool", tmp_path / "out", None, indexes=page(site, HTML), pins=pins)
    assert not (tmp_path / "out").exists()


def test_a_further_index_is_asked_when_the_first_lacks_it(site: Path, pins: Path, tmp_path: Path) -> None:
    (good,) = page(site, HTML)
    assert wheels.fetch("tool", tmp_path / "out", None, indexes=[f"{good}/empty", good], pins=pins)[1] is True


def test_a_password_in_the_address_is_used_and_never_told(
    site: Path, pins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (url,) = page(site, HTML)
    monkeypatch.setattr(Index, "password", "sesame")
    right, wrong = (url.replace("//", f"//user:{word}@") for word in ("sesame", "s3cret"))
    assert wheels.fetch("tool", tmp_path / "out", None, indexes=[right], pins=pins)[1] is True
    with pytest.raises(KitError) as told:
        wheels.fetch("tool", tmp_path / "other", None, indexes=[wrong], pins=pins)
    assert "401" in str(told.value)
    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize("text", ["<html>nothing here</html>", "", '{"files": 1}', "{broken"])
def test_an_index_that_does_not_answer_sensibly_is_named(site: Path, pins: Path, tmp_path: Path, text: str) -> None:
    with pytest.raises(KitError, match=r"127\.0\.0\.1.*--index-url"):
        wheels.fetch("tool", tmp_path / "out", None, indexes=page(site, text), pins=pins)


def test_an_index_that_is_not_there_is_named(pins: Path, tmp_path: Path) -> None:
    with pytest.raises(KitError, match="file:///nowhere"):
        wheels.fetch("tool", tmp_path, None, indexes=["file:///nowhere"], pins=pins)


def test_a_wheel_folder_is_used_alone(site: Path, pins: Path, tmp_path: Path) -> None:
    indexes = page(site, HTML)
    assert (
        wheels.fetch("tool", tmp_path / "out", None, indexes=indexes, wheelhouse=site / "files", pins=pins)[1] is True
    )
    with pytest.raises(KitError, match="put it there"):
        wheels.fetch("tool", tmp_path / "other", None, indexes=indexes, wheelhouse=tmp_path, pins=pins)
    assert Index.asked == []


@pytest.mark.parametrize(("project", "version"), [("tool", "2.0"), ("other", "1.0"), ("../tool", None)])
def test_what_is_not_pinned_is_refused(pins: Path, tmp_path: Path, project: str, version: str | None) -> None:
    with pytest.raises(KitError, match="no hash is pinned"):
        wheels.fetch(project, tmp_path, version, pins=pins)


def test_check_fetches_nothing(site: Path, pins: Path, tmp_path: Path) -> None:
    assert wheels.fetch("tool", tmp_path / "out", None, indexes=page(site, HTML), pins=pins, check=True)[1] is True
    assert Index.asked == []
    assert not (tmp_path / "out").exists()


def test_the_index_comes_from_the_option_then_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    monkeypatch.delenv("UV_INDEX_URL", raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "https://pip.example/simple")
    assert index_urls(None, ["https://more.example"]) == ["https://pip.example/simple", "https://more.example"]
    assert index_urls("https://given.example") == ["https://given.example"]
    monkeypatch.delenv("PIP_INDEX_URL")
    with pytest.raises(KitError, match="no package index is configured"):
        index_urls(None)


def test_what_the_kit_pins_is_whole() -> None:
    pinned = json.loads(wheels.PINS.read_text())
    assert pinned.keys() == {"uv", "nvidia-ml-py"}
    for project, pin in pinned.items():
        for wheel in pin["wheels"].values():
            assert wheel["filename"].startswith(f"{project.replace('-', '_')}-{pin['version']}-")
            assert len(bytes.fromhex(wheel["sha256"])) == 32
