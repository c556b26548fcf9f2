# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m kit tokens`: what it makes, verifies, fetches and uploads, and how it says that it could not.

NumPy is not there: the module that reads *.npz files is replaced. tests/workloads/deepspeed has real ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
import typing as t
from pathlib import Path

import pytest
from kit.commands import tokens as command
from kit.errors import KitError
from kit.pretraining import manifest as manifests
from kit.pretraining.attempts import CREDENTIALS, StoreError

from tests.unit.kit.token_folders import make, numbers


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make(tmp_path / "tokens")
    return tmp_path / "tokens"


@pytest.fixture(autouse=True)
def npz(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were read."""
    read: list[Path] = []

    def sources(folder: Path) -> list[t.Any]:
        read.append(folder)
        return [numbers(range(60)), numbers(range(60, 100))]

    module = types.ModuleType("kit.pretraining.npz")
    vars(module)["sources"] = sources
    monkeypatch.setitem(sys.modules, "kit.pretraining.npz", module)
    monkeypatch.setattr("kit.pretraining.npz", module, raising=False)
    return read


def run(*arguments: t.Any) -> dict[str, t.Any]:
    parser = command.argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(list(map(str, arguments))))


def test_shards_are_made_from_npz_files(tmp_path, npz):
    into = tmp_path / "new/into"
    said = run("convert", tmp_path, into, "--vocab", 100, "--validation", 5, "--shard-bytes", 40, "--stated", 100)
    assert npz == [tmp_path]
    assert (said["tokens"], said["train_tokens"], said["validation_tokens"], said["shards"]) == (100, 95, 5, 6)
    assert (said["vocab"], said["max_token"], said["path"], said["source"]) == (100, 99, str(into), "2 npz files")
    assert said["size"] == "100 tokens of 2 bytes are 0.0 GB"
    assert run("verify", into, "--scan", "--stated", 100)["verified_shards"] == 6
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["into"]


def test_by_default_shards_are_large_and_few_tokens_held_out(tmp_path):
    assert run("convert", tmp_path, tmp_path / "into", "--vocab", 100)["validation_tokens"] == 1
    assert len(manifests.read(tmp_path / "into").splits["train"]) == 1


def test_nothing_is_overwritten(tmp_path, folder, npz):
    with pytest.raises(KitError, match="tokens exists; give the name of a new folder"):
        run("convert", tmp_path, folder, "--vocab", 100)
    assert npz == []


def test_without_numpy_it_is_said_which_python_has_it(monkeypatch, tmp_path):
    monkeypatch.delattr("kit.pretraining.npz")
    monkeypatch.setitem(sys.modules, "kit.pretraining.npz", None)
    with pytest.raises(KitError, match=f"^{sys.executable} has no NumPy .*: run this with the Python of the runtime"):
        run("convert", tmp_path, tmp_path / "into", "--vocab", 100)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--vocab", 0], "a vocabulary of 0 tokens"),
        (["--vocab", 100, "--validation", 100], "100 of 100 tokens for validation"),
        (["--vocab", 100, "--shard-bytes", 1], "shards of 1 bytes"),
        (["--vocab", 100, "--stated", 99], "99 tokens are stated, 100 are there"),
    ],
)
def test_what_cannot_be_made_leaves_nothing(tmp_path, options, told):
    with pytest.raises(KitError, match=told):
        run("convert", tmp_path, tmp_path / "into", *options)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_as_stated_is_told(folder):
    with pytest.raises(KitError, match="99 tokens are stated, 100 are there"):
        run("verify", folder, "--stated", 99)


def test_only_a_scan_looks_at_every_token(folder):
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"max_token": 99', '"max_token": 98'))
    assert run("verify", folder, "--workers", 1)["max_token"] == 98
    with pytest.raises(KitError, match="the largest token is 99"):
        run("verify", folder, "--scan")


def test_a_folder_goes_to_a_store_and_comes_back(folder, tmp_path, capsys):
    said = run("upload", folder, tmp_path / "store", "--workers", 1)
    assert said["verified_shards"] == 6
    assert capsys.readouterr().err.splitlines()[0] == "1 of 6 shards: train-00000.bin"
    digest = manifests.read(folder).sha256
    said = run("fetch", tmp_path / "store", tmp_path / "back", "--manifest-sha256", digest, "--workers", 1)
    assert (said["fetched_shards"], said["manifest_sha256"]) == (6, digest)
    assert capsys.readouterr().err.splitlines()[-1] == "6 of 6 shards: validation-00000.bin"
    with pytest.raises(KitError, match="expected 0000: other tokens"):
        run("fetch", tmp_path / "store", tmp_path / "other", "--manifest-sha256", "0000")


@pytest.mark.parametrize("action", ["fetch", "upload"])
def test_key_and_deadline_are_handed_on(monkeypatch, tmp_path, action):
    def refuse(url: str, **named: t.Any) -> t.NoReturn:
        raise StoreError(f"{url} {named}", CREDENTIALS)

    monkeypatch.setattr(command.store, "open_store", refuse)
    given = ["gs://b/x", tmp_path] if action == "fetch" else [tmp_path, "gs://b/x"]
    with pytest.raises(KitError, match=r"^gs://b/x \{'credentials': .*Path\('key'\), 'deadline': 3\.5\}$"):
        run(action, *given, "--credentials", "key", "--deadline", 3.5)
    with pytest.raises(KitError, match=r"^gs://b/x \{'credentials': None, 'deadline': 120\.0\}$"):
        run(action, *given)


def test_without_workers_nothing_is_done(folder):
    with pytest.raises(KitError, match="--workers 0: expected at least 1"):
        run("verify", folder, "--workers", 0)


def kit(root: Path, *arguments: t.Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", "-m", "kit", "tokens", *map(str, arguments)],
        env={"PATH": os.defpath, "PYTHONPATH": str(root / "files")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_command_line_answers_in_json_or_one_line(root, folder, tmp_path):
    done = kit(root, "verify", folder, "--scan")
    assert (done.returncode, done.stderr, json.loads(done.stdout)["tokens"]) == (0, "", 100)
    (folder / "train-00001.bin").write_bytes(b"")
    done = kit(root, "verify", folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"kit tokens: {folder}/train-00001.bin: 0 bytes, the manifest says 40; fetch or stage it again\n"
    )
    assert kit(root).returncode == 2
    assert kit(root, "convert", tmp_path, tmp_path / "x").returncode == 2
