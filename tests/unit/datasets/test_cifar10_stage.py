# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Staging CIFAR-10: from a folder, from the published archive and no other, by download, and its stand-in."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import types
import typing as t
from pathlib import Path

import pytest
from kit.errors import KitError

from tests.unit.conftest import ROOT
from tests.unit.kit.model_files import HTML_PAGE, fill
from tests.unit.kit.web_server import sending, serving
from tests.unit.scripts import load

from .test_cifar10_records import contents

cifar10 = load(ROOT / "files/datasets/cifar10/stage.py")
archive, records = cifar10.archive, cifar10.records


def pack(files: dict[str, bytes], folder: str = archive.FOLDER, **links: str) -> bytes:
    """An archive of these files, and of links."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as stream:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(content)
            stream.addfile(member, io.BytesIO(content))
        for name, leads_to in links.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.type, member.linkname = tarfile.SYMTYPE, leads_to
            stream.addfile(member)
    return packed.getvalue()


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch) -> t.Callable[[bytes], bytes]:
    """Take an archive for the published one."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)

    def publish(packed: bytes) -> bytes:
        monkeypatch.setattr(archive, "SHA256", hashlib.sha256(packed).hexdigest())
        monkeypatch.setattr(archive, "SIZE", len(packed))
        return packed

    return publish


Publish = t.Callable[[bytes], bytes]


def run(target: Path, source: str, **options: t.Any) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", cifar10.staging_asset.stage(cifar10.asset(), target, source, **options))


def check_staged(target: Path) -> dict[str, t.Any]:
    """See that the seven files are there and nothing else; return the provenance."""
    assert {path.name: path.read_bytes() for path in target.iterdir() if path.name != "provenance.json"} == contents()
    said = t.cast("dict[str, t.Any]", json.loads((target / "provenance.json").read_text()))
    assert (said["name"], said["train"], said["test"]) == ("cifar10", 50, 10)
    for name, content in contents().items():
        assert said["files"][name] == {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    beside = [path.name for path in target.parent.iterdir() if path.name.startswith(".") and path.suffix != ".lock"]
    assert beside == []
    return said


@pytest.mark.parametrize("below", ["", "cifar-10-batches-bin"])
def test_a_folder_is_staged_once(tmp_path: Path, below: str) -> None:
    source, target = tmp_path / "so'urce; x", tmp_path / "tar get"
    fill(source / below, {**contents(), "readme.html": b"not needed"})
    first, second = (run(target, "path", folder=source) for _each in range(2))
    assert (first["changed"], second["changed"], first["train"], first["test"]) == (True, False, 50, 10)
    assert check_staged(target)["source"] == "path"
    assert first["description"] == ("files in CIFAR-10's format, given by the site, 50 training and 10 test images")


def test_the_published_archive_in_a_folder_is_staged_once(tmp_path: Path, publish: Publish) -> None:
    fill(tmp_path / "given", {archive.NAME: publish(pack(contents()))})
    answers = [run(tmp_path / "target", "path", folder=tmp_path / "given") for _each in range(2)]
    assert [answer["changed"] for answer in answers] == [True, False]
    check_staged(tmp_path / "target")
    assert [path.name for path in (tmp_path / "given").iterdir()] == [archive.NAME]


def test_unpacked_files_come_before_the_archive(tmp_path: Path) -> None:
    fill(tmp_path, {**contents(), archive.NAME: b"not the published one"})
    assert cifar10.prepare(tmp_path)[1]["train"] == 50


def test_nothing_is_written_where_an_archive_says(tmp_path: Path, publish: Publish) -> None:
    outside = {"../../escaped": b"x", "/../escaped": b"x"}
    fill(tmp_path / "a/b", {archive.NAME: publish(pack({**contents(), **outside}, etc="/etc/passwd"))})
    assert archive.unpack(tmp_path / "a/b" / archive.NAME) == contents()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [archive.NAME]


@pytest.mark.parametrize("content", [pack(contents()), b"\x1f\x8b" + bytes(99), b"PAR1"])
def test_another_archive_is_not_even_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(tarfile, "open", None)
    fill(tmp_path, {archive.NAME: content})
    with pytest.raises(
        KitError, match=rf"has {len(content)} bytes and the SHA-256 .*, the published one 170052171 and"
    ):
        cifar10.prepare(tmp_path)


def test_a_login_page_in_place_of_the_archive_is_told(tmp_path: Path) -> None:
    fill(tmp_path, {archive.NAME: HTML_PAGE})
    with pytest.raises(KitError, match="is an HTML or XML page"):
        cifar10.prepare(tmp_path)


WITHOUT_TEST = {name: content for name, content in contents().items() if name != "test_batch.bin"}


@pytest.mark.parametrize(
    ("packed", "told"),
    [
        (pack(contents())[:-200], "cannot unpack"),
        (pack(contents(), folder="elsewhere"), r"cannot unpack .*cifar-10-batches-bin/data_batch_1\.bin"),
        (b"some data", "cannot unpack .*not a gzip file"),
        (pack(WITHOUT_TEST), r"cannot unpack .*cifar-10-batches-bin/test_batch\.bin"),
        (pack(WITHOUT_TEST, **{"test_batch.bin": "/etc/passwd"}), r"test_batch\.bin in .* is no file of at most"),
        (pack({**contents(), "test_batch.bin": bytes(40000)}), r"test_batch\.bin in .* is no file of at most 35000"),
    ],
)
def test_what_cannot_be_unpacked_is_told(
    tmp_path: Path, publish: Publish, monkeypatch: pytest.MonkeyPatch, packed: bytes, told: str
) -> None:
    monkeypatch.setattr(records, "MAX_BYTES", 35000)
    fill(tmp_path, {archive.NAME: publish(packed)})
    with pytest.raises(KitError, match=told):
        cifar10.prepare(tmp_path)


def test_a_download_is_staged_once(tmp_path: Path, publish: Publish, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "target"
    with serving(sending(publish(pack(contents())))) as url:
        monkeypatch.setattr(archive, "URL", url)
        assert run(target, "download")["changed"] is True
    assert run(target, "download")["changed"] is False  # nobody answers any more
    assert check_staged(target)["source"] == "download"


def test_a_download_that_is_not_the_published_one_changes_nothing(
    tmp_path: Path, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    run(target, "path", folder=fill(tmp_path / "given", contents()))
    packed = publish(pack(contents()))
    with serving(sending(packed[:-1] + b"!")) as url:
        monkeypatch.setattr(archive, "URL", url)
        with pytest.raises(KitError, match=f"SHA-256 .* fetch it again from {url}"):
            run(target, "download")
    assert check_staged(target)["source"] == "path"


def test_without_internet_it_is_told_what_to_do(tmp_path: Path, publish: Publish, monkeypatch: t.Any) -> None:
    publish(b"")
    monkeypatch.setattr(archive, "URL", "http://127.0.0.1:1/cifar-10-binary.tar.gz")
    with pytest.raises(KitError, match=r"cannot download .*--source path, or --source stand-in"):
        run(tmp_path / "target", "download")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("name", ["data_batch_1", "cifar-10-python.tar.gz"])
def test_the_pickled_version_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    fill(tmp_path, {name: b"\x80\x02"})
    with pytest.raises(KitError, match=f"; {name} is of the Python version, which is pickled$"):
        cifar10.prepare(tmp_path)


def test_an_incomplete_folder_is_told(tmp_path: Path) -> None:
    fill(tmp_path, WITHOUT_TEST)
    with pytest.raises(
        KitError, match=r"does not hold CIFAR-10's binary version: expected data_batch_1\.bin, .*tar\.gz$"
    ):
        cifar10.prepare(tmp_path)


def test_a_damaged_source_changes_nothing(tmp_path: Path) -> None:
    target, source = tmp_path / "target", fill(tmp_path / "given", contents())
    run(target, "path", folder=source)
    (source / "data_batch_2.bin").write_bytes(b"short")
    with pytest.raises(KitError, match=r"given does not hold CIFAR-10: data_batch_2\.bin: 5 bytes, expected whole"):
        run(target, "path", folder=source)
    check_staged(target)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, contents())

    def refuse(_name: str, content: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(content))

    monkeypatch.setattr(records, "_read", refuse)
    with pytest.raises(KitError, match=r"does not hold CIFAR-10: .*Permission denied: .*batches\.meta\.txt"):
        cifar10.prepare(tmp_path)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / "files/datasets/cifar10/stage.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "files"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, script, *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_the_command_line_answers_in_json_by_a_bare_python(tmp_path: Path) -> None:
    source = fill(tmp_path / "given", contents())
    done = command("--target", str(tmp_path / "target"), "--source", "path", "--from", str(source))
    assert (done.returncode, done.stderr, json.loads(done.stdout)["changed"]) == (0, "", True)


def test_a_problem_is_one_line_on_stderr(tmp_path: Path) -> None:
    done = command("--target", str(tmp_path / "target"), "--source", "path", "--from", str(tmp_path / "none"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("stage cifar10: ")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """What the stand-in was asked for, without scikit-learn."""
    asked: list[tuple[int, bool]] = []
    module = types.ModuleType("coloured_digits")

    def make(seed: int, shuffle_labels: bool) -> dict[str, bytes]:
        asked.append((seed, shuffle_labels))
        return contents()

    vars(module)["make"] = make
    monkeypatch.setitem(sys.modules, "coloured_digits", module)
    return asked


def test_the_stand_in_says_that_it_is_one_and_shuffled_labels_are_told(
    tmp_path: Path, made: list[tuple[int, bool]], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--target", str(tmp_path / "target"), "--source", "stand-in"]
    answers = []
    for further in ([], [], ["--shuffle-labels"]):
        assert cifar10.main([*options, *further]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert [answer["changed"] for answer in answers] == [True, False, True]
    assert made == [(cifar10.SEED, False), (cifar10.SEED, True)]
    assert all(answer["description"].startswith("stand-in for CIFAR-10: ") for answer in answers)
    assert ["SHUFFLED" in answer["description"] for answer in answers] == [False, False, True]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--source", "path"],
        ["--source", "stand-in", "--from", "/x"],
        ["--source", "other"],
        ["--source", "download", "--revision", "main"],
        ["--source", "download", "--shuffle-labels"],
    ],
)
def test_wrong_usage_is_refused(tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cifar10.main(["--target", str(tmp_path / "target"), *arguments])
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err
    assert not (tmp_path / "target").exists()
