# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fetch the two wheels that the kit itself needs, by pinned version and SHA-256 (pins.json), without pip."""

from __future__ import annotations

import hashlib
import http.client
import os
import platform
import re
import urllib.parse
import urllib.request
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

from kit import strict_json
from kit.errors import KitError
from kit.files import only_ours, write_atomic
from kit.host.indexes import index_urls

PINS = Path(__file__).with_name("pins.json")
TIMEOUT = 60  # seconds without an answer
PAGE_BYTES, WHEEL_BYTES = 64 << 20, 256 << 20
# What goes wrong between here and an index, whatever it serves.
UNANSWERED = (OSError, ValueError, LookupError, TypeError, http.client.HTTPException)


class Link(NamedTuple):
    """A file that an index lists."""

    name: str
    url: str
    sha256: str | None  # as the page has it


class _Links(HTMLParser):
    """Collects the (href, text) pairs of an index page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self._href: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self._href = dict(attrs).get("href")

    def handle_data(self, data: str) -> None:
        if self._href is not None:
            self.links.append((self._href, data.strip()))
            self._href = None


def _open(url: str) -> Any:
    """Open ``url``; send a user:password in it as basic authentication, as pip and uv do."""
    parts = urllib.parse.urlsplit(url)
    opener = urllib.request.build_opener()
    if parts.username:
        passwords = urllib.request.HTTPPasswordMgrWithPriorAuth()
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
        url = bare.geturl()
        user, password = urllib.parse.unquote(parts.username), urllib.parse.unquote(parts.password or "")
        passwords.add_password(None, url, user, password, is_authenticated=True)
        opener = urllib.request.build_opener(urllib.request.HTTPBasicAuthHandler(passwords))
    request = urllib.request.Request(  # noqa: S310 - a site may choose a file: index; the hash decides
        url,
        headers={"Accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.5", "User-Agent": "hpc-validation-kit"},
    )
    return opener.open(request, timeout=TIMEOUT)


def _bounded(answer: Any, limit: int) -> bytes:
    """Read an answer; raise ValueError if it has more than ``limit`` bytes."""
    content = bytes(answer.read(limit + 1))
    if len(content) > limit:
        raise ValueError(f"the answer has more than {limit} bytes")
    return content


def shown(url: str) -> str:
    """Return the URL without a password."""
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def links(index: str, project: str) -> list[Link]:
    """Return the files that an index's page (JSON or HTML) lists for a project. Raise one of `UNANSWERED`."""
    page = f"{index.rstrip('/')}/{project}/"
    with _open(page) as answer:
        body = _bounded(answer, PAGE_BYTES).decode("utf-8", "replace")
        kind = answer.headers.get_content_type()
    if kind.endswith("json"):
        return [
            Link(each["filename"], urllib.parse.urljoin(page, each["url"]), (each.get("hashes") or {}).get("sha256"))
            for each in strict_json.parse(body)["files"]
        ]
    parser = _Links()
    parser.feed(body)
    return [_link(page, href, text) for href, text in parser.links]


def _link(page: str, href: str, text: str) -> Link:
    url, _sep, fragment = urllib.parse.urljoin(page, href).partition("#")
    in_address = urllib.parse.unquote(urllib.parse.urlsplit(url).path).rpartition("/")[2]
    told = re.fullmatch(r"sha256=([0-9a-f]{64})", fragment)
    return Link(text if text.endswith(".whl") else in_address, url, told.group(1) if told else None)


def find_link(index: str, project: str, filename: str) -> str | None:
    """Return the address of ``filename`` on an index's page, or None if it is not listed."""
    return next((link.url for link in links(index, project) if link.name == filename), None)


def download(url: str) -> bytes:
    """Return a wheel. Raise one of `UNANSWERED`."""
    with _open(url) as answer:
        return _bounded(answer, WHEEL_BYTES)


def fetch(
    project: str,
    target: str | os.PathLike[str],
    version: str | None = None,
    *,
    indexes: Sequence[str] = (),
    wheelhouse: str | os.PathLike[str] | None = None,
    pins: Path = PINS,
    check: bool = False,
) -> tuple[Path, bool]:
    """Put ``project``'s pinned wheel into the folder ``target``; return (path, whether anything changed).

    If ``wheelhouse`` is given, use only that, else the first of ``indexes`` that has it; ``check`` fetches nothing.
    Raise KitError if the wheel is not pinned, not found, or not the pinned one.
    """
    pin = strict_json.read(pins).get(project)
    if pin is None or (version or pin["version"]) != pin["version"]:
        known = f"{project}=={pin['version']}" if pin else "nothing by that name"
        raise KitError(f"{project}=={version}: no hash is pinned for it ({pins.name} knows {known})")
    machine = platform.machine()
    wheel = pin["wheels"].get("any") or pin["wheels"].get(machine)
    if wheel is None:
        raise KitError(f"{project} {pin['version']}: no wheel is pinned for {machine}; install it on this node by hand")
    path = Path(target) / wheel["filename"]
    present = path.read_bytes() if path.is_file() else b""
    is_there = hashlib.sha256(present).hexdigest() == wheel["sha256"]
    if is_there and only_ours(path):
        return path, False
    if check:
        return path, True
    if is_there:
        content = present
    elif wheelhouse:
        content = _from_folder(Path(wheelhouse), wheel["filename"])
    else:
        content = _from_indexes(project, wheel, indexes)
    found = hashlib.sha256(content).hexdigest()
    if found != wheel["sha256"]:
        raise KitError(
            f"{wheel['filename']} has SHA-256 {found}, expected the pinned {wheel['sha256']}: the file is not "
            "the published one; check what the package index or wheel folder serves"
        )
    write_atomic(path, lambda stream: stream.write(content))
    return path, True


def _from_folder(wheelhouse: Path, filename: str) -> bytes:
    try:
        return (wheelhouse / filename).read_bytes()
    except OSError as error:
        raise KitError(
            f"{filename} is not in the wheel folder {wheelhouse} ({error.strerror}); put it there"
        ) from error


def _from_indexes(project: str, wheel: dict[str, str], indexes: Sequence[str]) -> bytes:
    problems = []
    for index in indexes or index_urls(None):
        try:
            link = find_link(index, project, wheel["filename"])
            if link is None:
                problems.append(f"{shown(index)}: it is not listed")
                continue
            return download(link)
        except UNANSWERED as error:
            problems.append(f"{shown(index)}: {error}")
    raise KitError(
        f"cannot fetch {wheel['filename']}: {'; '.join(problems)}. Check --index-url and the proxy, or use --wheelhouse"
    )
