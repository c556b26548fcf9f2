# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model's folder is whole, safetensors, and asks for no code of its own."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from kit.errors import KitError
from kit.staging.model_folder import PATTERNS, check_model

from tests.unit.kit.model_files import HTML_PAGE, LFS_POINTER, fill, model_files, sharded_files, weights

FIRST, SECOND = (f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
INDEX = "model.safetensors.index.json"


def index(**weight_map: t.Any) -> bytes:
    return json.dumps({"weight_map": weight_map}).encode()


def test_a_model_in_one_file(tmp_path: Path) -> None:
    found, facts = check_model(fill(tmp_path, {**model_files(), "README.md": b"x", "train.py": b"x"}), ["llama"])
    assert found == {name: tmp_path / name for name in model_files()}
    assert facts == {"model_type": "llama", "parameters": 44, "holds": "44 parameters"}


def test_a_model_in_several_files(tmp_path: Path) -> None:
    found, facts = check_model(fill(tmp_path, sharded_files("mistral")), ["llama", "mistral"])
    assert set(found) == set(sharded_files())
    assert (facts["model_type"], facts["parameters"]) == ("mistral", 44)


def test_one_file_goes_before_an_index_and_pickles_are_left_out(tmp_path: Path) -> None:
    files = {**sharded_files(), **model_files(), "pytorch_model.bin": b"\x80\x02"}
    assert set(check_model(fill(tmp_path, files), ["llama"])[0]) == set(model_files())


def test_a_sentencepiece_tokenizer_is_enough(tmp_path: Path) -> None:
    files = model_files()
    files["tokenizer.model"] = files.pop("tokenizer.json")
    assert "tokenizer.model" in check_model(fill(tmp_path, files), ["llama"])[0]


def test_links_such_as_the_hubs_cache_is_made_of_are_followed(tmp_path: Path) -> None:
    fill(tmp_path / "blobs", model_files())
    (tmp_path / "snapshot").mkdir()
    for name in model_files():
        (tmp_path / "snapshot" / name).symlink_to(tmp_path / "blobs" / name)
    assert set(check_model(tmp_path / "snapshot", ["llama"])[0]) == set(model_files())


def without(*names: str, **more: bytes) -> dict[str, bytes]:
    return {name: content for name, content in {**model_files(), **more}.items() if name not in names}


def with_(name: str, content: t.Any, files: dict[str, bytes] | None = None) -> dict[str, bytes]:
    return {**(files or model_files()), name: content if isinstance(content, bytes) else json.dumps(content).encode()}


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (without("config.json"), "not a model folder: config.json is missing"),
        (with_("config.json", b"{"), "config.json is not JSON"),
        (with_("config.json", []), "config.json is not a JSON object"),
        (with_("config.json", {}), "model_type is None, expected 'llama'"),
        (with_("config.json", {"model_type": "gpt2"}), "model_type is 'gpt2', expected 'llama'"),
        (with_("config.json", {"model_type": ["llama"]}), "model_type is"),
        (with_("config.json", HTML_PAGE), "config.json is an HTML or XML page"),
        (with_("config.json", b" " * (1 << 20) + b"{}"), "expected at most 1048576"),
        (
            with_("config.json", {"model_type": "llama", "auto_map": {"AutoModel": "m.M"}}),
            "config.json names the model's own code.*trust_remote_code: refused",
        ),
        (with_("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["t.T", None]}}), "trust_remote_code"),
        (without("tokenizer.json"), "has no tokenizer: expected tokenizer.json or tokenizer.model"),
        (with_("tokenizer.json", LFS_POINTER), "tokenizer.json is a Git LFS pointer"),
        (with_("tokenizer.model", b""), "tokenizer.model is an empty file"),
        (with_("tokenizer.json", b'{"model": '), "tokenizer.json is not JSON"),
        (with_("merges.txt", LFS_POINTER), "merges.txt is a Git LFS pointer"),
        (without("model.safetensors"), "has no weights: expected model.safetensors"),
        (
            {**without("model.safetensors"), "pytorch_model.bin": b"\x80\x02"},
            r"only as pickles \(pytorch_model.bin\).*run code.*refused",
        ),
        (with_("model.safetensors", weights()[:-1]), "model.safetensors has .* truncated"),
        (with_("model.safetensors", LFS_POINTER), "model.safetensors is a Git LFS pointer"),
        (with_("model.safetensors", HTML_PAGE), "model.safetensors is an HTML"),
        (with_(SECOND, weights()[:-1], sharded_files()), f"{SECOND} has .* truncated"),
        (with_(INDEX, b"{}", sharded_files()), "expected weight_map as an object"),
        (with_(INDEX, {"weight_map": {}}, sharded_files()), "expected weight_map as an object"),
        (with_(INDEX, index(a="../a.safetensors"), sharded_files()), "expected a safetensors file name"),
        (with_(INDEX, index(a="/etc/a.safetensors"), sharded_files()), "expected a safetensors file name"),
        (with_(INDEX, index(a="pytorch_model.bin"), sharded_files()), "expected a safetensors file name"),
        (with_(INDEX, index(a=1), sharded_files()), "expected a safetensors file name"),
        (with_(INDEX, index(a=FIRST), sharded_files()), f"{FIRST} has no tensor 'a'"),
        (
            {name: content for name, content in sharded_files().items() if name != SECOND},
            rf"{SECOND}, which {INDEX} names \(file 2 of 2\), is missing",
        ),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, files: dict[str, bytes], told: str) -> None:
    with pytest.raises(KitError, match=told):
        check_model(fill(tmp_path, files), ["llama"])


def test_a_folder_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(KitError, match=r"config\.json is missing"):
        check_model(tmp_path / "none", ["llama"])


def test_no_pickle_and_no_code_is_fetched() -> None:
    assert not [pattern for pattern in PATTERNS if pattern.endswith((".bin", ".pt", ".pth", ".pkl", ".py"))]
