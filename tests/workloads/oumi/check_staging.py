# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009, PT027 - unittest, for pytest is not in the runtime
"""Models and datasets of the hub as the scripts stage them, with the real libraries: PyArrow, Transformers, the hub's.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/oumi -p 'check_*.py'
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import typing as t
import unittest
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import kit
import pyarrow
import torch
from kit.errors import KitError
from kit.staging.model_folder import check_model
from pyarrow import parquet
from transformers import AutoModelForCausalLM, AutoTokenizer

FILES = Path(kit.__file__).resolve().parents[1]
TURN = ("user", "assistant")


def run(script: str, target: Path, *options: str) -> dict[str, t.Any]:
    """Stage by a script's command line, as the play does; return its answer."""
    command = [sys.executable, str(FILES / script), "--target", str(target), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return t.cast("dict[str, t.Any]", json.loads(done.stdout))


def load(script: str) -> t.Any:
    """Import a script that has no siblings."""
    spec = importlib.util.spec_from_file_location(script.replace("/", "_"), FILES / script)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class StandIns(unittest.TestCase):
    """All stand-ins, staged once."""

    folder: Path
    answers: dict[str, dict[str, t.Any]]

    @classmethod
    def setUpClass(cls) -> None:
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name, "sha're; x")
        scripts = ("models/smollm_135m", "models/mistral_7b", "datasets/no_robots", "datasets/alpaca_cleaned")
        cls.answers = {
            script: run(f"{script}/stage.py", cls.folder / Path(script).name, "--source", "stand-in")
            for script in scripts
        }

    def tokenizer(self, name: str) -> t.Any:
        return AutoTokenizer.from_pretrained(self.folder / name, local_files_only=True)

    def model(self, name: str, **options: t.Any) -> t.Any:
        return AutoModelForCausalLM.from_pretrained(self.folder / name, local_files_only=True, **options)

    def rows(self, name: str) -> list[list[dict[str, str]]]:
        text = (self.folder / "no_robots" / name).read_text(encoding="utf-8")
        return [json.loads(line)["messages"] for line in text.splitlines()]

    def test_they_are_named_so_and_nothing_else_lies_there(self) -> None:
        for script, answer in self.answers.items():
            self.assertTrue(answer["description"].startswith("stand-in for "), script)
            self.assertTrue(answer["changed"], script)
        left = [path.name for path in self.folder.iterdir() if path.name.startswith(".") and path.suffix != ".lock"]
        self.assertEqual(left, [])

    def test_the_models_load_offline_and_are_small(self) -> None:
        for name, kind in (("smollm_135m", "llama"), ("mistral_7b", "mistral")):
            with self.subTest(name):
                model, tokenizer = self.model(name), self.tokenizer(name)
                self.assertEqual((model.config.model_type, model.dtype), (kind, torch.bfloat16))
                self.assertEqual(model.num_parameters(), self.answers[f"models/{name}"]["parameters"])
                self.assertTrue(500_000 < model.num_parameters() < 1_500_000)
                self.assertEqual((len(tokenizer), model.config.vocab_size), (1500, 1500))
                self.assertEqual(model.config.eos_token_id, tokenizer.eos_token_id)
                with torch.inference_mode():
                    logits = model(**tokenizer("What colour is the lamp?", return_tensors="pt")).logits
                self.assertTrue(torch.isfinite(logits).all())

    def test_the_tokenizers_have_the_real_ones_marks(self) -> None:
        smollm, mistral = self.tokenizer("smollm_135m"), self.tokenizer("mistral_7b")
        self.assertEqual((smollm.bos_token, smollm.eos_token), ("<|endoftext|>", "<|endoftext|>"))
        self.assertEqual((mistral.bos_token, mistral.eos_token, mistral.unk_token), ("<s>", "</s>", "<unk>"))
        self.assertEqual((smollm.pad_token, mistral.pad_token), (None, None))
        self.assertEqual(mistral("lamp")["input_ids"][0], mistral.bos_token_id)
        self.assertNotEqual(smollm("lamp")["input_ids"][0], smollm.bos_token_id)

    def test_whatever_is_tokenized_comes_back(self) -> None:
        for name in ("smollm_135m", "mistral_7b"):
            tokenizer = self.tokenizer(name)
            for text in ("What is 12 plus 30?", "Größe: 12 µm, 猫\n\n\tx", "<html>"):
                ids = tokenizer(text, add_special_tokens=False)["input_ids"]
                self.assertEqual(tokenizer.decode(ids), text)

    def test_the_rows_are_many_and_short(self) -> None:
        train, held_out = self.rows("train.jsonl"), self.rows("held_out.jsonl")
        self.assertEqual((len(train), len(held_out)), (1200, 100))
        tokenizer = self.tokenizer("smollm_135m")
        lengths = [sum(len(tokenizer(turn["content"])["input_ids"]) for turn in row) for row in train]
        self.assertLess(statistics.median(lengths), 60)
        for row in (*train, *held_out):
            self.assertEqual(tuple(turn["role"] for turn in row), TURN * (len(row) // 2))

    def test_a_stand_in_learns_from_the_texts(self) -> None:
        """Ten steps at a fine-tuning's learning rate lower the loss, as S1's do."""
        rows = json.loads((self.folder / "alpaca_cleaned" / "train.json").read_text(encoding="utf-8"))
        tokenizer, model = self.tokenizer("mistral_7b"), self.model("mistral_7b", dtype=torch.float32)
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
        losses = []
        for step in range(10):
            chosen = [f"{row['instruction']}\n{row['input']}\n{row['output']}" for row in rows[step * 4 : step * 4 + 4]]
            loss = sum(
                model(input_ids=ids, labels=ids).loss
                for ids in (tokenizer(text, return_tensors="pt").input_ids for text in chosen)
            )
            losses.append(loss.item() / 4)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.assertLess(losses[-1], losses[0] - 0.05, losses)

    def test_they_are_not_staged_twice_and_come_out_the_same(self) -> None:
        for script, answer in self.answers.items():
            with self.subTest(script):
                again = run(f"{script}/stage.py", self.folder / Path(script).name, "--source", "stand-in", "--verify")
                self.assertEqual((again["changed"], again["sha256"]), (False, answer["sha256"]))
        other = run("models/smollm_135m/stage.py", self.folder / "again", "--source", "stand-in")
        self.assertEqual(other["sha256"], self.answers["models/smollm_135m"]["sha256"])

    def test_a_staged_model_can_be_given_to_another_share(self) -> None:
        given = self.folder / "mistral_7b"
        answer = run("models/mistral_7b/stage.py", self.folder / "given", "--source", "path", "--from", str(given))
        self.assertEqual(answer["sha256"], self.answers["models/mistral_7b"]["sha256"])
        self.assertTrue(answer["description"].startswith("a Mistral model's folder, given by the site"))

    def test_a_model_in_several_files_as_transformers_writes_it(self) -> None:
        folder = self.folder / "sharded"
        self.model("mistral_7b").save_pretrained(folder, max_shard_size="500KB")
        self.tokenizer("mistral_7b").save_pretrained(folder)
        shards = sorted(folder.glob("model-*-of-*.safetensors"))
        self.assertGreater(len(shards), 2)
        found, facts = check_model(folder, ["mistral"])
        self.assertEqual(facts["parameters"], self.answers["models/mistral_7b"]["parameters"])
        self.assertLess({path.name for path in shards}, set(found))
        shards[0].write_bytes(shards[0].read_bytes()[:-1])
        with self.assertRaisesRegex(KitError, "truncated"):
            check_model(folder, ["mistral"])
        shards[0].unlink()
        with self.assertRaisesRegex(KitError, "is missing"):
            check_model(folder, ["mistral"])


class NoRobots(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder, self.script = Path(scratch.name), load("datasets/no_robots/stage.py")
        self.script.make_stand_in(self.folder)
        self.train = self.folder / "data" / "train-00000-of-00001.parquet"

    def refuse(self, told: str) -> None:
        with self.assertRaisesRegex(KitError, told):
            self.script.prepare(self.folder)

    def test_the_stand_ins_files_have_the_hubs_columns(self) -> None:
        schema = parquet.read_schema(self.train)
        self.assertEqual(tuple(schema.names), self.script.COLUMNS)
        self.assertEqual(str(schema.field("messages").type), "list<element: struct<content: string, role: string>>")

    def test_a_file_that_was_cut_short(self) -> None:
        self.train.write_bytes(self.train.read_bytes()[:-100])
        self.refuse("train-00000-of-00001.parquet: this parquet file is damaged")

    def test_a_file_with_damage_in_it(self) -> None:
        content = bytearray(self.train.read_bytes())
        middle = len(content) // 2
        content[middle : middle + 2000] = b"\xff" * 2000
        self.train.write_bytes(bytes(content))
        self.refuse("train-00000-of-00001.parquet")

    def test_other_columns(self) -> None:
        parquet.write_table(pyarrow.table({"text": ["x"] * 1000}), self.train)
        self.refuse("no column 'prompt': its columns are text, expected prompt, prompt_id, messages, category")

    def test_messages_of_another_type(self) -> None:
        columns = dict.fromkeys(self.script.COLUMNS, ["x"] * 1000)
        parquet.write_table(pyarrow.table(columns), self.train)
        self.refuse("row 1: messages is str, expected a list")
        parquet.write_table(
            pyarrow.table({**columns, "messages": [[{"role": "user", "content": 1}]] * 1000}), self.train
        )
        self.refuse("row 1: the content of message 1 is int, expected text")

    def test_no_rows(self) -> None:
        parquet.write_table(parquet.read_table(self.train).slice(0, 0), self.train)
        self.refuse("split train has 0 usable rows")


if __name__ == "__main__":
    unittest.main()
