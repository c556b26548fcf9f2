# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Downloads from the hub: only what is needed, pinned, continued, compared; refusals say what to do."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import types
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.staging import hub

from tests.unit.kit.fake_hub import COMMIT, FakeHub, RefusedError
from tests.unit.kit.model_files import model_files

TOKEN = "hf_CaNaRy5ecret"
SOURCE = hub.Source("model", "some/model", ("config.json", "*.safetensors", "data/*.parquet"))
GATED = "https://huggingface.co/some/model"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "HF_ENDPOINT", "HF_HOME", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_HUB_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    module = FakeHub({**model_files(), "pytorch_model.bin": b"\x80\x02", "modeling.py": b"x", "README.md": b"x"})
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return module


def download(folder: Path, revision: str = "main") -> hub.Download:
    return hub.download(SOURCE, folder / "model", revision)


def test_only_what_is_needed_comes_from_a_commit_that_was_resolved_once(tmp_path: Path, fake: FakeHub) -> None:
    found = download(tmp_path)
    assert found.commit == COMMIT
    assert found.folder == tmp_path / f".download-model-{COMMIT[:12]}"
    assert sorted(fake.fetched) == ["config.json", "model.safetensors"]
    weights = found.folder / "model.safetensors"
    assert found.digests == {weights: hashlib.sha256(weights.read_bytes()).hexdigest()}
    (_asked_by, asked), (_fetched_by, fetched) = fake.calls
    assert (asked["repo"], asked["repo_type"], asked["revision"]) == ("some/model", "model", "main")
    assert (fetched["repo"], fetched["repo_type"], fetched["revision"]) == ("some/model", "model", COMMIT)
    assert fetched["allow_patterns"] == ["config.json", "model.safetensors"]
    assert {"*.bin", "*.pt", "*.pkl"} <= set(fetched["ignore_patterns"])


def test_without_a_token_none_is_sent_whatever_the_home_holds(tmp_path: Path, fake: FakeHub) -> None:
    download(tmp_path)
    assert [options["token"] for _called, options in fake.calls] == [False, False]


def test_the_token_is_passed_and_written_nowhere(
    tmp_path: Path, fake: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    download(tmp_path)
    assert [options["token"] for _called, options in fake.calls] == [TOKEN, TOKEN]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]


def test_the_librarys_own_files_do_not_go_into_the_home(tmp_path: Path, fake: FakeHub) -> None:
    download(tmp_path)
    assert os.environ["HF_HOME"] == str(tmp_path / ".download-model-home")
    assert os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] == "1"
    assert fake.fetched


def test_an_interrupted_download_is_kept_and_continued(tmp_path: Path, fake: FakeHub) -> None:
    fake.stop_after = 1
    with pytest.raises(KitError, match=r"the connection was reset.*Run it again, fetched files are kept"):
        download(tmp_path)
    assert fake.fetched == ["config.json"]
    fake.stop_after = None
    download(tmp_path)
    assert fake.fetched == ["config.json", "model.safetensors"]


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"short", "has 5 bytes, the hub lists"), (None, "was not received: run it again")],
)
def test_a_file_that_is_not_what_the_hub_lists_is_fetched_again(
    tmp_path: Path, fake: FakeHub, content: bytes | None, told: str
) -> None:
    fake.sent["model.safetensors"] = content
    with pytest.raises(KitError, match=rf"model\.safetensors of some/model {told}"):
        download(tmp_path)
    fake.sent.clear()
    assert download(tmp_path).commit == COMMIT
    assert fake.fetched[-1] == "model.safetensors"


def test_a_file_that_was_damaged_on_the_way_is_fetched_again(tmp_path: Path, fake: FakeHub) -> None:
    sound = fake.files["model.safetensors"]
    fake.sent["model.safetensors"] = sound[:-1] + bytes([sound[-1] ^ 1])
    with pytest.raises(KitError, match=r"has SHA-256 .*, the hub lists .*: run it again"):
        download(tmp_path)
    fake.sent.clear()
    assert download(tmp_path).commit == COMMIT


def test_a_mirror_that_lists_no_sizes_is_believed(
    tmp_path: Path, fake: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake, "entry", lambda name: {"rfilename": name, "size": None, "lfs": None})
    assert download(tmp_path).digests == {}


@pytest.mark.parametrize("status", [401, 403])
def test_a_gated_model_without_a_token_says_what_to_do(tmp_path: Path, fake: FakeHub, status: int) -> None:
    fake.download_error = RefusedError(status, "Cannot access gated repo")
    with pytest.raises(
        KitError, match=rf"HTTP {status}\) without a token: accept the licence on {GATED}, .*hpc_validation_hub_token"
    ):
        download(tmp_path)


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_is_refused_says_whose_account_must_accept(
    tmp_path: Path, fake: FakeHub, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    fake.info_errors = [RefusedError(status, f"invalid {TOKEN}")]
    with pytest.raises(KitError, match=f"token of hpc_validation_hub_token: accept the licence on {GATED}") as error:
        download(tmp_path)
    assert TOKEN not in str(error.value)


def test_a_refusal_that_the_library_wraps_is_seen(tmp_path: Path, fake: FakeHub) -> None:
    wrapped = FileNotFoundError("An error happened while trying to locate the file on the Hub")
    wrapped.__cause__ = RefusedError(403)
    fake.download_error = wrapped
    with pytest.raises(KitError, match="hpc_validation_hub_token"):
        download(tmp_path)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RefusedError(404), "has no model some/model with the revision 'main'"),
        (RefusedError(429), "limits requests"),
        (RefusedError(500, "Server\n  Error"), "Server Error.*--source path, or --source stand-in"),
        (ConnectionError("[Errno 111] Connection refused"), "cannot download some/model from https://huggingface.co: "),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_what_else_goes_wrong_is_told(tmp_path: Path, fake: FakeHub, error: Exception, told: str) -> None:
    fake.info_errors = [error]
    with pytest.raises(KitError, match=told):
        download(tmp_path)


def test_neither_the_token_nor_a_mirrors_password_is_told(
    tmp_path: Path, fake: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setenv("HF_ENDPOINT", f"https://user:{TOKEN}2@mirror.example")
    fake.info_errors = [OSError(f"https://user:{TOKEN}2@mirror.example answers Bearer {TOKEN} with nothing")]
    with pytest.raises(KitError, match=r"https://[*]+@mirror\.example") as error:
        download(tmp_path)
    assert TOKEN not in str(error.value)


def test_too_little_space_is_told_before_anything_is_fetched(
    tmp_path: Path, fake: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: types.SimpleNamespace(free=10))
    with pytest.raises(KitError, match="has 0 MB free, some/model needs"):
        download(tmp_path)
    assert not fake.fetched


def test_what_a_killed_download_left_and_nobody_can_use_is_removed(tmp_path: Path, fake: FakeHub) -> None:
    notes = download(tmp_path).folder / ".cache/huggingface/download/data"
    notes.mkdir(parents=True)
    usable, unusable = notes / "abc=.0123.incomplete", notes / "abc=.0123.89abcdef.incomplete"
    for path in (usable, unusable):
        path.write_bytes(b"x")
    download(tmp_path)
    assert (usable.exists(), unusable.exists()) == (True, False)
    assert fake.fetched


def test_what_is_already_there_needs_no_space(tmp_path: Path, fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    download(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: types.SimpleNamespace(free=0))
    assert download(tmp_path).commit == COMMIT
    assert len(fake.fetched) == 2


@pytest.mark.parametrize("commit", ["", "main", "../../x", "A" * 40, None])
def test_an_answer_without_a_commit_is_refused(tmp_path: Path, fake: FakeHub, commit: str | None) -> None:
    fake.revisions["main"] = commit  # type: ignore[assignment]
    with pytest.raises(KitError, match="expected the commit of"):
        download(tmp_path)
    assert not fake.fetched


@pytest.mark.parametrize(
    "name", ["../x.safetensors", "/etc/x.safetensors", "a/../x.safetensors", "*.safetensors", ".x.safetensors"]
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, fake: FakeHub, name: str) -> None:
    fake.files[name] = b"x"
    with pytest.raises(KitError, match="not a safe file name"):
        download(tmp_path)
    assert not fake.fetched


def test_a_repository_without_what_is_needed_is_told(tmp_path: Path, fake: FakeHub) -> None:
    fake.files = {"pytorch_model.bin": b"x"}
    with pytest.raises(KitError, match=r"has none of config\.json"):
        download(tmp_path)


def test_without_the_library_the_runtime_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(KitError, match="has no huggingface_hub"):
        download(tmp_path)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "x.pt", "x.pkl", "x.pth", "x.ckpt", "modeling_x.py"])
def test_no_pickle_and_no_code_is_needed_whatever_the_patterns_say(name: str) -> None:
    assert not hub.Source("model", "some/model", ("*", name)).admits(name)


def test_a_source_knows_its_page_and_its_kind() -> None:
    assert hub.Source("dataset", "some/data", ("x",)).page == "https://huggingface.co/datasets/some/data"
    with pytest.raises(ValueError, match="expected one of model, dataset"):
        hub.Source("space", "some/space", ("x",))
