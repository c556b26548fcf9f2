# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens are staged from shards, *.npz files or a bucket, or as a stand-in of known entropy, and checked each time.

NumPy is not there: the module that reads *.npz files is replaced. tests/workloads/deepspeed has real ones and a bucket.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import types
import typing as t
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.pretraining import manifest as manifests
from kit.pretraining import markov
from kit.pretraining import tokens as kit_tokens

from tests.unit.conftest import ROOT
from tests.unit.kit.token_folders import make, numbers
from tests.unit.scripts import load

tokens = load(ROOT / "files/datasets/pretraining_tokens/stage.py")


def run(target: Path, source: str, url: str | None = None, **options: t.Any) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", tokens.staging_asset.stage(tokens.asset(url), target, source, **options))


def left_beside(target: Path) -> list[str]:
    return [path.name for path in target.parent.iterdir() if path.name.startswith(".") and path.suffix != ".lock"]


@pytest.fixture
def given(tmp_path: Path) -> Path:
    make(tmp_path / "so'urce; x")
    return tmp_path / "so'urce; x"


def test_shards_are_staged_once(given, tmp_path):
    target = tmp_path / "target"
    first, second = (run(target, "path", folder=given) for _each in range(2))
    assert (first["changed"], second["changed"]) == (True, False)
    assert first["description"] == (
        "tokens given by the site, 90 training and 10 validation tokens of a vocabulary of 200 "
        "(100 tokens of 2 bytes are 0.0 GB)"
    )
    found = {key: first[key] for key in ("tokens", "bytes", "vocab", "max_token", "entropy")}
    assert found == {"tokens": 100, "bytes": 200, "vocab": 200, "max_token": 99, "entropy": None}
    assert first["manifest_sha256"] == manifests.read(given).sha256 == manifests.read(target).sha256
    shards = [f"train-0000{number}.bin" for number in range(5)]
    assert sorted(path.name for path in target.iterdir()) == [
        "manifest.json",
        "provenance.json",
        *shards,
        "validation-00000.bin",
    ]
    assert left_beside(target) == []


def test_what_was_staged_elsewhere_can_be_given(given, tmp_path):
    run(tmp_path / "first", "path", folder=given)
    assert run(tmp_path / "second", "path", folder=tmp_path / "first")["tokens"] == 100


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("train-00001.bin", bytes(38), "train-00001.bin: 38 bytes, the manifest says 40"),
        ("train-00001.bin", bytes(40), "train-00001.bin: SHA-256 .*, the manifest says"),
        ("train-00001.bin", None, "train-00001.bin, which the manifest names, cannot be read: No such file"),
        ("manifest.json", b"{}", r"manifest\.json is not a manifest of tokens"),
        ("manifest.json", None, r"holds neither manifest\.json with its shards nor \*\.npz files"),
    ],
)
def test_damaged_shards_are_told_and_change_nothing(given, tmp_path, name, content, told):
    target = tmp_path / "target"
    run(target, "path", folder=shutil.copytree(given, tmp_path / "sound"))
    before = (target / "provenance.json").read_bytes()
    (given / name).unlink()
    if content is not None:
        (given / name).write_bytes(content)
        os.utime(given / name, (1, 1))
    with pytest.raises(KitError, match=told):
        run(target, "path", folder=given)
    assert (target / "provenance.json").read_bytes() == before
    assert left_beside(target) == []


def test_a_manifest_that_says_too_little_of_its_tokens_is_told(given, tmp_path):
    path = given / "manifest.json"
    text = path.read_text()
    path.write_text(text.replace('"max_token": 99', '"max_token": 59').replace('"vocab": 200', '"vocab": 60'))
    with pytest.raises(KitError, match=r"train-00003\.bin: token 60 at position 0 is not below the vocabulary of 60"):
        run(tmp_path / "target", "path", folder=given)
    path.write_text(text.replace('"max_token": 99', '"max_token": 98'))
    with pytest.raises(KitError, match="the largest token is 99, the manifest says 98"):
        run(tmp_path / "target", "path", folder=given)
    assert not (tmp_path / "target").exists()


@pytest.fixture
def npz(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of *.npz files, as far as can be seen without NumPy: each byte is a token."""

    def sources(folder: Path) -> list[t.Any]:
        return [numbers(list(path.read_bytes())) for path in sorted(folder.glob("*.npz"))]

    module = types.ModuleType("kit.pretraining.npz")
    vars(module)["sources"] = sources
    monkeypatch.setitem(sys.modules, "kit.pretraining.npz", module)
    monkeypatch.setattr("kit.pretraining.npz", module, raising=False)
    (tmp_path / "npz").mkdir()
    for number in range(2):
        (tmp_path / "npz" / f"{number}.npz").write_bytes(bytes(range(100 * number, 100 * number + 100)))
    return tmp_path / "npz"


def test_npz_files_are_converted_once(npz, tmp_path, monkeypatch):
    target = tmp_path / "target"
    first = run(target, "path", folder=npz)
    assert (first["changed"], first["tokens"], first["vocab"], first["max_token"]) == (True, 200, 50000, 199)
    assert kit_tokens.verify(target, scan=True)["verified_shards"] == 2
    assert manifests.read(target).source == "2 npz files given by the site"
    monkeypatch.setattr(tokens.converter, "convert", None)
    assert run(target, "path", folder=npz)["changed"] is False
    assert left_beside(target) == []


@pytest.mark.parametrize("changed", ["content", "time", "name", "vocab"])
def test_other_npz_files_are_converted_again(npz, tmp_path, monkeypatch, changed):
    target, path = tmp_path / "target", npz / "1.npz"
    run(target, "path", folder=npz)
    if changed == "content":
        path.write_bytes(bytes(range(99)))
    elif changed == "time":
        os.utime(path, (1, 1))
    elif changed == "name":
        path.rename(npz / "2.npz")
    else:
        monkeypatch.setattr(tokens, "VOCAB", 60000)
    assert run(target, "path", folder=npz, check=True)["changed"] is True
    assert run(target, "path", folder=npz)["changed"] is True
    assert run(target, "path", folder=npz)["changed"] is False


def test_npz_files_that_cannot_be_converted_tell_how_to(npz, tmp_path, monkeypatch):
    def refuse(*_arguments: t.Any, **_named: t.Any) -> t.NoReturn:
        raise kit_tokens.outside("1.npz", 3, 50256, 50000)

    monkeypatch.setattr(tokens.converter, "convert", refuse)
    with pytest.raises(KitError, match=r"1\.npz: token 50256 at position 3 .*another vocabulary than 50000.*--vocab"):
        run(tmp_path / "target", "path", folder=npz)
    assert left_beside(tmp_path / "target") == []


def test_shards_come_from_a_store_and_a_broken_transfer_is_continued(given, tmp_path, monkeypatch):
    target, url = tmp_path / "share/target", str(given)
    sound = (given / "train-00003.bin").read_bytes()
    (given / "train-00003.bin").write_bytes(bytes(40))
    with pytest.raises(KitError, match=r"train-00003\.bin: the object is damaged"):
        run(target, "download", url)
    assert not target.exists()
    kept = sorted(path.name for path in (target.parent / ".download-pretraining_tokens").glob("*.bin"))
    assert "train-00000.bin" in kept
    assert "train-00003.bin" not in kept
    (given / "train-00003.bin").write_bytes(sound)
    fetched = []
    fetch = kit_tokens.fetch
    monkeypatch.setattr(tokens.tokens, "fetch", lambda *args, **named: fetched.append(fetch(*args, **named)))
    first = run(target, "download", url)
    assert fetched[0]["fetched_shards"] == 6 - len(kept)
    assert (first["changed"], first["tokens"], first["source"]) == (True, 100, "download")
    assert first["description"].startswith(f"tokens from {url}, 90 training and 10 validation tokens")
    shutil.rmtree(given)
    assert run(target, "download", url)["changed"] is False  # nobody is asked any more
    assert left_beside(target) == []


def test_another_bucket_is_fetched(given, tmp_path):
    make(tmp_path / "other", range(50, 150))
    assert run(tmp_path / "target", "download", str(given))["max_token"] == 99
    assert run(tmp_path / "target", "download", str(tmp_path / "other"))["max_token"] == 149


def test_without_an_address_nothing_is_downloaded(tmp_path):
    with pytest.raises(KitError, match=r"published nowhere: give a bucket with url: gs://.* source: stand-in$"):
        run(tmp_path / "target", "download")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in with a hundredth of the tokens."""
    monkeypatch.setattr(tokens, "STAND_IN", {"train": 20_000, "validation": 1_000})
    monkeypatch.setattr(tokens, "STAND_IN_SHARD", 10_000)


@pytest.mark.usefixtures("small")
def test_the_stand_in_says_what_it_is_and_how_uncertain(tmp_path):
    first, second = (run(tmp_path / "target", "stand-in") for _each in range(2))
    assert (first["changed"], second["changed"]) == (True, False)
    assert first["description"] == (
        "stand-in for a corpus: tokens of a Markov chain, 20,000 training and 1,000 validation tokens of a vocabulary "
        "of 2,048, entropy 1.9398 nats a token (21,000 tokens of 2 bytes are 0.0 GB)"
    )
    found = manifests.read(tmp_path / "target")
    assert (found.entropy, found.vocab, found.source) == (markov.ENTROPY, 2048, "stand-in: a Markov chain")
    assert [shard.tokens for shard in found.shards] == [5000] * 4 + [1000]
    train = kit_tokens.Split(tmp_path / "target", found, "train")
    assert train.read(0, 8).tolist() == [96, 9, 83, 105, 0, 1018, 1511, 18]
    again = run(tmp_path / "again", "stand-in")
    assert (again["sha256"], again["manifest_sha256"]) == (first["sha256"], first["manifest_sha256"])


def test_the_whole_stand_in_is_two_million_tokens_in_several_shards():
    assert tokens.STAND_IN == {"train": 2_000_000, "validation": 100_000}
    assert tokens.STAND_IN_SHARD == 1 << 20


def test_every_choice_of_the_chain_is_part_of_the_recipe():
    recipe = tokens.asset().recipe
    assert recipe["chain"] == [2048, 8, 1 << 16, *markov.WEIGHTS]
    assert (recipe["seed"], recipe["tokens"], recipe["shard"]) == (0, tokens.STAND_IN, 1 << 20)


def command(*arguments: t.Any) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / "files/datasets/pretraining_tokens/stage.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "files"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, script, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False
    )


def test_the_command_line_stages_a_folder_and_a_store(given, tmp_path):
    done = command("--target", tmp_path / "target", "--source", "path", "--from", given)
    assert (done.returncode, done.stderr, json.loads(done.stdout)["tokens"]) == (0, "", 100)
    done = command("--target", tmp_path / "other", "--source", "download", "--url", given)
    assert (done.returncode, json.loads(done.stdout)["tokens"]) == (0, 100)
    assert done.stderr.splitlines()[5].startswith("6 of 6 shards: ")


def test_a_key_that_others_can_read_is_one_line_on_stderr(tmp_path):
    key = tmp_path / "key.json"
    key.write_text("{}")
    key.chmod(0o644)
    options = ["--source", "download", "--url", "gs://bucket/x", "--credentials", key]
    done = command("--target", tmp_path / "target", *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(
        f"stage pretraining_tokens: credentials {key}: the file has mode 0644, so other users"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["--source", "stand-in", "--url", "gs://bucket/x"],
        ["--source", "download", "--credentials", "/x"],
        ["--source", "path"],
        ["--source", "download", "--revision", "main"],
    ],
)
def test_wrong_usage_is_refused(tmp_path, arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        tokens.main(["--target", str(tmp_path / "target"), *arguments])
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err
    assert not (tmp_path / "target").exists()
