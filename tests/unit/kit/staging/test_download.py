# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A download is whole or refused, in bounded size and time, and says what to do without internet."""

from __future__ import annotations

import http.server
import time
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.staging import download

from tests.unit.kit.web_server import Answer, sending, serving

CONTENT = b"some data"
WITHOUT_INTERNET = "without internet use --source path, or --source stand-in"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def fetch(answer: Answer, folder: Path) -> bytes:
    with serving(answer) as url:
        download.download(url, folder / "file", len(CONTENT))
    return (folder / "file").read_bytes()


def endlessly(request: http.server.BaseHTTPRequestHandler) -> None:
    """Send on and on, without an announced length."""
    request.send_response(200)
    request.end_headers()
    while True:
        request.wfile.write(bytes(1 << 16))


def drop_by_drop(request: http.server.BaseHTTPRequestHandler) -> None:
    """Send a byte at a time, each within the time that a silence may last."""
    request.send_response(200)
    request.end_headers()
    for _each in CONTENT:
        request.wfile.write(b"x")
        time.sleep(0.1)


def silently(request: http.server.BaseHTTPRequestHandler) -> None:
    """Promise what never comes."""
    sending(b"some", len(CONTENT))(request)
    time.sleep(0.5)


def test_a_file_is_downloaded(tmp_path: Path) -> None:
    assert fetch(sending(CONTENT), tmp_path) == CONTENT


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda request: request.send_error(404), "HTTP Error 404"),
        (lambda request: request.wfile.write(b"nonsense\r\n"), "nonsense"),
        (sending(b"some"), "it ended after 4 of 9 bytes"),
        (sending(b"some", len(CONTENT)), "it ended after 4 of 9 bytes"),
        (sending(b""), "it ended after 0 of 9 bytes"),
        (sending(CONTENT + b"!"), "it sends more than the expected 9 bytes"),
        (endlessly, "it sends more than the expected 9 bytes"),
    ],
)
def test_what_is_not_the_file_is_refused(tmp_path: Path, answer: Answer, told: str) -> None:
    with pytest.raises(KitError, match=told) as caught:
        fetch(answer, tmp_path)
    assert str(caught.value).startswith("cannot download http://127.0.0.1")
    assert WITHOUT_INTERNET in str(caught.value)


def test_a_download_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PATIENCE", 0.2)
    with pytest.raises(KitError, match=r"\d of 9 bytes received in 0 s"):
        fetch(drop_by_drop, tmp_path)


def test_a_silent_server_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "SILENCE", 0.1)
    with pytest.raises(KitError, match="timed out"):
        fetch(silently, tmp_path)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/file", "unheard-of://x/file"])
def test_no_server_at_all_is_told(tmp_path: Path, url: str) -> None:
    with pytest.raises(KitError, match=f"cannot download {url}: .*{WITHOUT_INTERNET}"):
        download.download(url, tmp_path / "file", 1)


def test_a_folder_that_cannot_be_written_is_no_fault_of_the_network(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        fetch(sending(CONTENT), tmp_path / "none")
