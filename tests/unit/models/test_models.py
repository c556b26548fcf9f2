# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The models' scripts: what they fetch, what they accept, and what the verdict says of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from kit.errors import KitError

from tests.unit.conftest import ROOT
from tests.unit.kit.fake_hub import COMMIT, FakeHub, RefusedError
from tests.unit.kit.model_files import fill, model_files, sharded_files
from tests.unit.scripts import load

NAMES = ("smollm_135m", "mistral_7b")
SCRIPTS = {name: load(ROOT / f"files/models/{name}/stage.py") for name in NAMES}
TYPES = {"smollm_135m": "llama", "mistral_7b": "mistral"}
PAGES = {
    "smollm_135m": "https://huggingface.co/HuggingFaceTB/SmolLM-135M",
    "mistral_7b": "https://huggingface.co/mistralai/Mistral-7B-v0.1",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "HF_ENDPOINT", "HF_HOME", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_HUB_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def stage(name: str, target: Path, source: str, **options: t.Any) -> dict[str, t.Any]:
    script = SCRIPTS[name]
    return t.cast("dict[str, t.Any]", script.asset.stage(script.ASSET, target, source, **options))


@pytest.mark.parametrize("make", [model_files, sharded_files])
def test_a_folder_is_staged_once(tmp_path: Path, name: str, make: t.Callable[[str], dict[str, bytes]]) -> None:
    files = make(TYPES[name])
    folder, target = fill(tmp_path / "so'urce; x", {**files, "pytorch_model.bin": b"x", "run.py": b"x"}), tmp_path / "m"
    first, second = (stage(name, target, "path", folder=folder) for _each in range(2))
    assert (first["changed"], second["changed"]) == (True, False)
    assert {path.name for path in target.iterdir()} == {*files, "provenance.json"}
    assert (first["model_type"], first["parameters"]) == (TYPES[name], 44)
    assert first["description"].endswith(", 44 parameters")
    assert json.loads((target / "provenance.json").read_text())["name"] == name


def test_a_download_says_what_it_is(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeHub({**sharded_files(TYPES[name]), "pytorch_model-00001-of-00002.bin": b"x", "onnx/model.onnx": b"x"})
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    answer = stage(name, tmp_path / "model", "download")
    assert sorted(fake.fetched) == sorted(sharded_files())
    assert (answer["revision"], answer["source"]) == (COMMIT, "download")
    assert f"{PAGES[name].removeprefix('https://huggingface.co/')} of the Hugging Face hub" in answer["description"]


def test_a_refusal_names_the_models_page_and_the_setting(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeHub(sharded_files(TYPES[name]))
    fake.download_error, fake.stop_after = RefusedError(401), 1
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    with pytest.raises(KitError, match=f"accept the licence on {PAGES[name]}, .*hpc_validation_hub_token"):
        stage(name, tmp_path / "model", "download")
    assert not (tmp_path / "model").exists()


def test_another_kind_of_model_is_refused(tmp_path: Path, name: str) -> None:
    folder = fill(tmp_path / "source", model_files("gpt2"))
    with pytest.raises(KitError, match=f"model_type is 'gpt2', expected '{TYPES[name]}'"):
        stage(name, tmp_path / "model", "path", folder=folder)


def test_what_is_known_of_a_stand_in_needs_no_pytorch(tmp_path: Path, name: str) -> None:
    script = SCRIPTS[name]
    assert script.ASSET.descriptions["stand-in"].startswith("stand-in for ")
    assert script.ASSET.recipe["design"]["model_type"] == TYPES[name]
    assert stage(name, tmp_path / "model", "stand-in", check=True)["changed"] is True
    assert script.ASSET.name == name


def test_the_stand_ins_take_over_the_real_ones_tokens() -> None:
    designs = {name: script.ASSET.recipe["design"] for name, script in SCRIPTS.items()}
    assert (designs["smollm_135m"]["begin"], designs["smollm_135m"]["end"]) == ("<|endoftext|>", "<|endoftext|>")
    assert (designs["mistral_7b"]["begin"], designs["mistral_7b"]["end"]) == ("<s>", "</s>")


def test_the_script_finds_its_own_stand_in(tmp_path: Path, name: str) -> None:
    script = str(ROOT / f"files/models/{name}/stage.py")
    options = ["--target", str(tmp_path / "m"), "--source", "path", "--from", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "files"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, script, *options], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"stage {name}: {tmp_path} is not a model folder")
