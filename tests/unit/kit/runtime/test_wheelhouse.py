# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wheels of a lock for another machine, from an index served on this one."""

from __future__ import annotations

import hashlib
import json
import typing as t
from pathlib import Path

import pytest
from kit.__main__ import main
from kit.errors import KitError
from kit.runtime import wheelhouse

from tests.unit.kit.web_server import serving

ARM = "manylinux_2_27_aarch64.manylinux_2_28_aarch64"
PC = "manylinux_2_17_x86_64.manylinux2014_x86_64"


class Site:
    """An index: its wheels, by project, and what was asked of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wheels: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.url = ""
        self.as_json = True
        self.with_hashes = True

    def add(self, name: str, content: bytes | None = None) -> str:
        """Add a wheel; return its SHA-256."""
        self.wheels[name] = name.encode() if content is None else content
        return hashlib.sha256(self.wheels[name]).hexdigest()

    def lock(self, **packages: str) -> Path:
        """Write a lock with the hashes of all wheels of each package."""
        lines = []
        for name, version in packages.items():
            own = [file for file in self.wheels if file.startswith(f"{name}-")]
            hashes = " ".join(f"--hash=sha256:{hashlib.sha256(self.wheels[file]).hexdigest()}" for file in own)
            lines.append(f"{name}=={version} {hashes}\n")
        path = self.folder / "lock.txt"
        path.write_text("".join(lines))
        return path

    def answer(self, request: t.Any) -> None:
        self.asked.append(request.path)
        kind, name = request.path.strip("/").split("/")[-2:]
        content, form = self.wheels.get(name), "application/octet-stream"
        if kind == "simple":
            own = [file for file in self.wheels if file.startswith(f"{name}-")]
            content, form = self.page(own) if own else (None, form)
        if content is None:
            request.send_error(404)
            return
        request.send_response(200)
        request.send_header("Content-Type", form)
        request.end_headers()
        request.wfile.write(content)

    def page(self, names: list[str]) -> tuple[bytes, str]:
        hashes = {name: hashlib.sha256(self.wheels[name]).hexdigest() for name in names if self.with_hashes}
        if self.as_json:
            files = [
                {"filename": name, "url": f"../../files/{name}", "hashes": {"sha256": hashes[name]} if hashes else {}}
                for name in names
            ]
            return json.dumps({"files": files}).encode(), "application/vnd.pypi.simple.v1+json"
        fragments = {name: f"#sha256={hashes[name]}" if hashes else "" for name in names}
        links = "".join(f'<a href="../../files/{name}{fragments[name]}">{name}</a>' for name in names)
        return links.encode(), "text/html"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Site]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Site(tmp_path)
    with serving(made.answer) as url:
        made.url = url.replace("/file", "/simple")
        yield made


def fetch(site: Site, lock: Path, python: str = "3.11", machine: str = "aarch64", **more: t.Any) -> tuple[list, bool]:
    """Return the names that were fetched, and whether anything changed."""
    libc = more.pop("libc", None)
    wanted = wheelhouse.target(python, machine, libc)
    more.setdefault("indexes", [site.url])
    found, changed = wheelhouse.fetch(lock, wanted, site.folder / "out", **more)
    assert all(path.parent == site.folder / "out" and path.is_file() for path in found)
    return sorted(path.name for path in found), changed


# -- which wheel


@pytest.mark.parametrize(
    ("tags", "python", "machine", "fits"),
    [
        ("cp311-cp311-manylinux_2_28_aarch64", "3.11", "aarch64", True),
        ("cp311-cp311-manylinux_2_28_aarch64", "3.12", "aarch64", False),
        ("cp311-cp311-manylinux_2_28_aarch64", "3.11", "x86_64", False),
        ("cp311-cp311-musllinux_1_2_aarch64", "3.11", "aarch64", False),
        ("cp311-cp311-linux_aarch64", "3.11", "aarch64", False),
        ("cp311-cp311-macosx_11_0_arm64", "3.11", "aarch64", False),
        ("cp313-cp313t-manylinux_2_28_aarch64", "3.13", "aarch64", False),
        ("cp38-abi3-manylinux2014_x86_64", "3.11.4", "x86_64", True),
        ("cp312-abi3-manylinux2014_x86_64", "3.11", "x86_64", False),
        ("cp38-cp38-manylinux2010_x86_64", "3.8", "x86_64", True),
        ("cp38-cp38-manylinux1_x86_64.manylinux_2_5_x86_64", "3.8.10", "x86_64", True),
        ("py3-none-any", "3.8", "aarch64", True),
        ("py2.py3-none-any", "3.8", "aarch64", True),
        ("py38-none-any", "3.9", "aarch64", True),
        ("py310-none-any", "3.9", "aarch64", False),
        ("py2-none-any", "3.9", "aarch64", False),
        ("cp39-none-any", "3.9", "aarch64", True),
        ("cp38-none-any", "3.9", "aarch64", False),
        ("py3-none-manylinux2014_aarch64", "3.9", "aarch64", True),
        ("pp39-pypy39_pp73-manylinux2014_x86_64", "3.9", "x86_64", False),
        ("cp3-cp3-any", "3.9", "x86_64", False),
    ],
)
def test_which_wheels_run_on_a_machine(tags, python, machine, fits):
    found = wheelhouse.fit(f"a-1-{tags}.whl", wheelhouse.target(python, machine))
    assert (found is not None) is fits


@pytest.mark.parametrize(("libc", "fits"), [(None, True), ("2.31", True), ("2.27", True), ("2.17", False)])
def test_a_wheel_that_needs_a_newer_library_is_left_out(libc, fits):
    found = wheelhouse.fit(f"a-1-cp311-cp311-{ARM}.whl", wheelhouse.target("3.11", "aarch64", libc))
    assert (found is not None) is fits


def test_of_several_the_best_is_taken(site):
    for tags in (
        "py3-none-any",
        "cp39-abi3-manylinux_2_31_aarch64",
        f"cp39-abi3-{ARM}",
        f"cp311-cp311-{ARM}",
        "cp311-cp311-manylinux_2_31_aarch64",
    ):
        site.add(f"tool-1.0-{tags}.whl")
    assert fetch(site, site.lock(tool="1.0"))[0] == [f"tool-1.0-cp311-cp311-{ARM}.whl"]


@pytest.mark.parametrize(
    ("python", "machine", "libc"),
    [
        ("2.7", "x86_64", None),
        ("3", "x86_64", None),
        ("3.11", "../x", None),
        ("3.11", "x86_64", "musl"),
    ],
)
def test_a_machine_that_cannot_be_meant_is_refused(python, machine, libc):
    with pytest.raises(KitError, match=r"--(python|machine|libc) .*: expected"):
        wheelhouse.target(python, machine, libc)


# -- fetching


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("with_hashes", [True, False])
def test_wheels_are_fetched_once(site, as_json, with_hashes):
    site.as_json, site.with_hashes = as_json, with_hashes
    names = [f"numpy-2.0-cp311-cp311-{ARM}.whl", "tool-1.0-py3-none-any.whl"]
    for name in (*names, f"numpy-2.0-cp311-cp311-{PC}.whl", "numpy-2.1-py3-none-any.whl", "tool-1.0.tar.gz"):
        site.add(name)
    lock = site.lock(numpy="2.0", tool="1.0")
    assert fetch(site, lock) == (names, True)
    assert (site.folder / "out" / names[0]).read_bytes() == site.wheels[names[0]]
    assert [path for path in site.asked if path.startswith("/files")] == [f"/files/{name}" for name in names]
    site.asked.clear()
    assert fetch(site, lock) == (names, False)
    assert site.asked == []


def test_what_is_there_and_another_is_fetched_again(site):
    name = "tool-1.0-py3-none-any.whl"
    site.add(name)
    (site.folder / "out").mkdir()
    (site.folder / "out" / name).write_bytes(b"another")
    assert fetch(site, site.lock(tool="1.0")) == ([name], True)
    assert (site.folder / "out" / name).read_bytes() == site.wheels[name]


def test_a_copy_that_others_could_change_is_written_anew_without_the_index(site):
    site.add("tool-1.0-py3-none-any.whl")
    lock = site.lock(tool="1.0")
    fetch(site, lock)
    (path,) = (site.folder / "out").iterdir()
    path.chmod(0o666)
    assert fetch(site, lock, indexes=["file:///nowhere"])[1] is True
    assert path.stat().st_mode & 0o777 == 0o644
    assert fetch(site, lock, indexes=["file:///nowhere"])[1] is False


def test_a_further_index_is_asked(site):
    site.add("tool-1.0-py3-none-any.whl")
    assert fetch(site, site.lock(tool="1.0"), indexes=[f"{site.url}/empty", site.url])[1] is True


def test_a_wheel_that_is_none_of_the_locks_is_passed_over_or_refused(site):
    site.add(f"tool-1.0-cp311-cp311-{ARM}.whl")
    lock = site.lock(tool="1.0")
    site.add("tool-1.0-cp311-cp311-manylinux_2_17_aarch64.whl", b"not locked")
    assert fetch(site, lock)[0] == [f"tool-1.0-cp311-cp311-{ARM}.whl"]
    site.wheels[f"tool-1.0-cp311-cp311-{ARM}.whl"] = b"changed"
    for path in (site.folder / "out").iterdir():
        path.unlink()
    with pytest.raises(KitError, match=r"whose SHA-256 is none of the lock's"):
        fetch(site, lock)
    site.with_hashes = False
    with pytest.raises(KitError, match=r"has SHA-256 [0-9a-f]{64}, which is none of the lock's for tool 1\.0"):
        fetch(site, lock)
    assert list((site.folder / "out").iterdir()) == []


def test_without_a_wheel_it_is_said_for_what_there_is_one(site):
    for minor in range(11, 21):
        site.add(f"onnxruntime-1.32.0-cp3{minor}-cp3{minor}-{ARM}.whl")
    site.add("onnxruntime-1.32.0-cp311-cp311-win_amd64.whl")
    with pytest.raises(KitError) as told:
        fetch(site, site.lock(onnxruntime="1.32.0"), "3.8", libc="2.31")
    text = str(told.value)
    assert text.startswith(
        "no wheel of onnxruntime 1.32.0 for Python 3.8 on aarch64 with glibc 2.31: http://127.0.0.1:"
    )
    assert f"has it for cp311-cp311-{ARM}, " in text
    assert " and 2 more" in text
    assert "win_amd64" not in text


def test_without_the_version_or_the_project_it_is_said(site):
    lock = site.lock(tool="1.0")
    lock.write_text(f"tool==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(KitError, match=r"no wheel of tool 1\.0 for Python 3\.11 on aarch64: .*404"):
        fetch(site, lock)
    site.add("tool-2.0-py3-none-any.whl")
    with pytest.raises(KitError, match=r"has none of this version"):
        fetch(site, lock)


def test_a_password_is_not_told(site):
    lock = site.folder / "lock.txt"
    lock.write_text(f"tool==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(KitError) as told:
        fetch(site, lock, indexes=[site.url.replace("//", "//user:s3cret@")])
    assert "s3cret" not in str(told.value)


def test_a_folder_of_wheels_is_used_alone(site):
    name = f"numpy-2.0-cp311-cp311-{ARM}.whl"
    site.add(name)
    lock = site.lock(numpy="2.0")
    store = site.folder / "store"
    store.mkdir()
    (store / f"numpy-2.0-cp311-cp311-{PC}.whl").write_bytes(b"x")
    with pytest.raises(KitError, match=rf"{store} has it for cp311-cp311-{PC}\. "):
        fetch(site, lock, wheelhouse=store)
    (store / name).write_bytes(b"damaged")
    with pytest.raises(KitError, match=r"whose SHA-256 is none of the lock's"):
        fetch(site, lock, wheelhouse=store)
    (store / name).write_bytes(site.wheels[name])
    assert fetch(site, lock, wheelhouse=store) == ([name], True)
    assert fetch(site, lock, wheelhouse=store) == ([name], False)
    with pytest.raises(KitError, match="has none of this version"):
        fetch(site, lock, "3.11", "x86_64", wheelhouse=site.folder / "none")
    assert site.asked == []


# -- the command


def test_the_command_tells_what_there_is(site, capsys, monkeypatch):
    name = "Some_Tool-1.0-py3-none-any.whl"
    digest = site.add(name)
    lock = site.folder / "lock.txt"
    lock.write_text(f"some-tool==1.0 --hash=sha256:{digest}\n")
    store = site.folder / "store"
    store.mkdir()
    (store / name).write_bytes(site.wheels[name])
    out = site.folder / "out"
    command = ["kit", "wheelhouse", f"--lock={lock}", "--python=3.8", "--machine=x86_64", f"--output={out}"]
    monkeypatch.setattr("sys.argv", [*command, f"--wheelhouse={store}"])
    assert main() == 0
    assert json.loads(capsys.readouterr().out) == {
        "folder": str(out),
        "wheels": [{"file": name, "sha256": digest, "bytes": len(name)}],
        "packages": {"some-tool": "1.0"},
        "changed": True,
    }
    monkeypatch.setattr("sys.argv", [*command, f"--index-url={site.url}"])
    assert main() == 0
    assert json.loads(capsys.readouterr().out)["changed"] is False
    (out / name).unlink()
    assert main() == 1
    assert "kit wheelhouse: no wheel of some-tool 1.0" in capsys.readouterr().err
