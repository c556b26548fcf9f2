# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009, PT027 - unittest, for pytest is not in the runtime
"""The single-GPU fine-tuning, with real PyTorch and transformers on the CPU and a tiny Mistral of random weights.

PYTHONPATH=files:files/workloads/sft_single_gpu PYTHON -m unittest discover -s tests/workloads/sft -p 'check_*.py'
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import sft_min_run
import sft_min_training as training
import torch
from kit.errors import KitError
from safetensors.torch import load_file, save_file
from sft_min_arguments import Settings
from sft_min_data import Sample, WorkloadError, sample_of, text_of
from sft_min_figures import Batch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import MistralConfig, MistralForCausalLM, PreTrainedTokenizerFast, Trainer, TrainingArguments

SCRIPT = Path(sft_min_run.__file__).with_name("train_sft_min.py")
ROWS = [
    {
        "instruction": f"Name the number after {n}.",
        "input": "" if n % 2 else f"The number is {n}.",
        "output": f"{n + 1}",
    }
    for n in range(40)
]
VOCABULARY = 300


def make_model(folder: Path) -> None:
    """Write a Mistral of two layers and its tokenizer."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<unk>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(map(text_of, ROWS), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        bos_token_id=1,
        eos_token_id=2,
    )
    MistralForCausalLM(config).save_pretrained(str(folder))
    fast.save_pretrained(str(folder))


def stage(folder: Path, name: str) -> None:
    """Let a folder say what it holds, as staging does."""
    files = {}
    for path in folder.iterdir():
        if path.name != "provenance.json":
            files[path.name] = {"size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    said = {"name": name, "source": "path", "description": f"a {name} for tests", "revision": None, "files": files}
    (folder / "provenance.json").write_text(json.dumps(said))


class Case(unittest.TestCase):
    """A staged model, a staged dataset and an output folder."""

    made: tempfile.TemporaryDirectory[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.made.cleanup)
        training.quiet()
        make_model(Path(cls.made.name, "model"))

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.share = Path(scratch.name, "my sha're")
        self.model, self.data, self.output = (self.share / name for name in ("mo del", "da ta", "out put"))
        shutil.copytree(Path(self.made.name, "model"), self.model)
        stage(self.model, "mistral_7b")
        self.write_rows(ROWS)

    def write_rows(self, rows: Any) -> None:
        """Stage other rows."""
        self.data.mkdir(exist_ok=True)
        (self.data / "train.json").write_text(json.dumps(rows))
        stage(self.data, "alpaca_cleaned")

    def settings(self, **changes: Any) -> Settings:
        """Return settings for a short run on the CPU."""
        values: dict[str, Any] = {
            "run_name": "mine",
            "model": self.model,
            "dataset": self.data,
            "output_dir": self.output,
            "results": self.share / "results/training/mine",
            "accelerator": "cpu",
            "max_steps": 4,
            "batch": Batch(1, 2, 64),
            "subset_size": 32,
            "seed": 1,
            "learning_rate": 1e-3,
            "lora": False,
            "started": 0.0,
        }
        return Settings(**{**values, **changes})

    def run_quietly(self, **changes: Any) -> dict[str, Any]:
        """Run the workload in this process."""
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return sft_min_run.run(self.settings(**changes))

    def written(self) -> dict[str, Any]:
        """Return metrics.json; a bare NaN in it is an error."""

        def refuse(word: str) -> None:
            raise AssertionError(f"{word} is not JSON")

        return json.loads((self.output / "metrics.json").read_text(), parse_constant=refuse)

    def load(self) -> Any:
        """Return the model that training begins with."""
        return training.load_model(self.model, torch.device("cpu"))


class Samples(Case):
    def test_a_text_begins_and_ends_as_the_tokenizer_says(self) -> None:
        tokenizer = training.load_tokenizer(self.model)
        sample = sample_of(tokenizer(text_of(ROWS[0]))["input_ids"], tokenizer.eos_token_id, 64)
        self.assertEqual((sample.input_ids[0], sample.input_ids[sample.length - 1]), (1, 2))
        self.assertIn("### Instruction:", tokenizer.decode(sample.input_ids[: sample.length]))

    def test_padding_changes_neither_loss_nor_gradient(self) -> None:
        model = self.load()
        found = []
        for length in (20, 64):
            sample = sample_of(range(1, 20), 2, length)
            run = training.Training(model, [sample], 1, Batch(1, 1, length), 1e-3, torch.device("cpu"))
            model.zero_grad()
            loss = run._loss([sample]) / (sample.length - 1)
            loss.backward()
            norm = math.sqrt(sum(float(p.grad.square().sum()) for p in model.parameters()))
            found.append((loss.item(), norm))
        self.assertAlmostEqual(found[0][0], found[1][0], places=5)
        self.assertAlmostEqual(found[0][1], found[1][1], places=4)

    def test_the_loss_is_the_one_that_transformers_computes(self) -> None:
        model = self.load()
        sample = sample_of(range(1, 40), 2, 64)
        ids, labels = torch.tensor([sample.input_ids]), torch.tensor([sample.labels])
        mask = (torch.arange(64) < sample.length).long()[None]
        theirs = model(input_ids=ids, labels=labels, attention_mask=mask).loss.item()
        run = training.Training(model, [sample], 1, Batch(1, 1, 64), 1e-3, torch.device("cpu"))
        self.assertAlmostEqual((run._loss([sample]) / (sample.length - 1)).item(), theirs, places=4)


class InOrder(Trainer):
    """transformers' own trainer, taking samples as they come."""

    def _get_train_sampler(self, *_given: Any) -> Any:
        return torch.utils.data.SequentialSampler(self.train_dataset)


class Trained(Case):
    def test_the_numbers_are_those_of_transformers_trainer(self) -> None:
        samples = [sample_of(range(1, 20 + number), 2, 64) for number in range(12)]
        ours = training.Training(self.load(), samples, 12, Batch(1, 3, 64), 1e-3, torch.device("cpu"))
        with mock.patch.object(training.Training, "_report"):
            ours.run(mock.Mock())
        arguments = TrainingArguments(
            output_dir=str(self.output),
            per_device_train_batch_size=1,
            gradient_accumulation_steps=3,
            max_steps=4,
            learning_rate=1e-3,
            lr_scheduler_type="linear",
            logging_steps=1,
            logging_strategy="steps",
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
            report_to=[],
        )
        rows = [
            {
                "input_ids": torch.tensor(sample.input_ids),
                "labels": torch.tensor(sample.labels),
                "attention_mask": (torch.arange(64) < sample.length).long(),
            }
            for sample in samples
        ]
        theirs = InOrder(model=self.load(), args=arguments, train_dataset=rows)
        with contextlib.redirect_stdout(io.StringIO()):
            theirs.train()
        logged = [row for row in theirs.state.log_history if "grad_norm" in row]
        self.assertEqual(len(logged), 4)
        for row, loss, norm, rate in zip(
            logged, ours.steps.loss, ours.steps.grad_norm, ours.steps.learning_rate, strict=True
        ):
            self.assertAlmostEqual(float(row["loss"]), loss, delta=2e-3)
            self.assertAlmostEqual(float(row["grad_norm"]), norm, delta=5e-3 * norm)
            self.assertAlmostEqual(float(row["learning_rate"]), rate, delta=1e-9)

    def test_it_learns_and_writes_everything(self) -> None:
        self.run_quietly(max_steps=10)
        metrics = self.written()
        self.assertTrue(metrics["completed"])
        for name in ("loss", "grad_norm", "learning_rate", "epoch", "step_seconds", "step_memory_bytes"):
            self.assertEqual(len(metrics[name]), 10, name)
        self.assertLess(metrics["loss"][-1], metrics["loss"][0])
        self.assertAlmostEqual(metrics["loss"][0], math.log(VOCABULARY), delta=0.5)
        self.assertEqual((metrics["learning_rate"][0], metrics["epoch"][-1]), (1e-3, 20 / 32))
        self.assertEqual((metrics["tokens_total"], metrics["approx_tokens"]), (10 * 2 * 64, 10 * 64))
        self.assertEqual(sum(metrics["step_tokens_non_padding"]), metrics["tokens_non_padding"])
        self.assertLess(metrics["tokens_non_padding"], metrics["tokens_total"])
        self.assertLessEqual(sum(metrics["step_seconds"]), metrics["train_seconds"])
        self.assertAlmostEqual(metrics["train_runtime_s"], metrics["train_seconds"] + metrics["save_seconds"], places=6)
        self.assertEqual(
            (metrics["device"], metrics["gpu"], metrics["mfu"], metrics["peak_flops"]), ("cpu", *[None] * 3)
        )
        self.assertEqual((metrics["layers"], metrics["attention_width"], metrics["sequence_length"]), (2, 32, 64))
        self.assertEqual(metrics["parameters"], sum(item.numel() for item in self.load().parameters()))
        self.assertEqual(metrics["trainable_parameters"], metrics["parameters"])
        self.assertEqual((metrics["model"], metrics["data"]["rows_used"]), ("mistral_7b", 32))
        self.assertEqual(metrics["libraries"]["torch"], torch.__version__)

    def test_every_step_is_a_row_as_it_ends(self) -> None:
        self.run_quietly()
        rows = [json.loads(line) for line in (self.output / "progress.jsonl").read_text().splitlines()]
        expected = {"step", "steps", "loss", "grad_norm", "learning_rate", "epoch", "step_seconds", "tokens"}
        self.assertLessEqual(expected | {"tokens_non_padding", "memory_bytes", "job_id"}, set(rows[0]))
        self.assertEqual([row["step"] for row in rows], [1, 2, 3, 4])
        metrics = self.written()
        for name in ("loss", "grad_norm", "learning_rate", "epoch"):
            self.assertEqual([row[name] for row in rows], metrics[name])

    def test_what_was_saved_is_what_was_trained(self) -> None:
        metrics = self.run_quietly()
        self.assertEqual(metrics["model_reload_difference"], 0.0)
        self.assertGreater(metrics["model_change"], 0.0)
        before, after = (load_file(folder / "model.safetensors") for folder in (self.model, self.output / "model"))
        self.assertEqual(set(before), set(after))
        self.assertTrue(any(not torch.equal(before[name], after[name]) for name in before))
        sizes = json.loads((self.output / "model/files.json").read_text())
        self.assertEqual(sizes["model.safetensors"], (self.output / "model/model.safetensors").stat().st_size)
        self.assertGreaterEqual(metrics["model_bytes"], 1.99 * metrics["trainable_parameters"])
        self.assertEqual(os.listdir(self.output / "model").count("tokenizer.json"), 1)

    def test_everybody_may_read_what_was_saved(self) -> None:
        self.run_quietly()
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (self.output / "model").iterdir()}
        self.assertEqual(set(modes.values()), {0o644}, modes)

    def test_a_save_that_keeps_the_old_weights_shows(self) -> None:
        def save_the_old(_model: Any, tokenizer: Any, folder: Path) -> dict[str, int]:
            return training.save(self.load(), tokenizer, folder)

        with mock.patch.object(sft_min_run, "save", save_the_old):
            metrics = self.run_quietly()
        self.assertGreater(metrics["model_reload_difference"], 0.5 * metrics["model_change"])

    def test_accumulated_micro_batches_are_one_batch(self) -> None:
        one, four = (self.run_quietly(batch=batch) for batch in (Batch(4, 1, 64), Batch(1, 4, 64)))
        for name in ("loss", "grad_norm"):
            for left, right in zip(one[name], four[name], strict=True):
                self.assertAlmostEqual(left, right, delta=1e-3 * right)

    def test_a_seed_repeats_and_another_differs(self) -> None:
        first, again, other = (self.run_quietly(seed=seed)["loss"] for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_an_adapter_alone_is_trained_and_saved(self) -> None:
        metrics = self.run_quietly(lora=True, learning_rate=1e-2)
        self.assertLess(metrics["trainable_parameters"], metrics["parameters"] / 4)
        self.assertEqual(list(metrics["model_files"]), ["adapter_model.safetensors"])
        self.assertGreater(metrics["model_change"], 0.0)
        self.assertEqual(metrics["model_reload_difference"], 0.0)
        self.assertEqual(metrics["architecture"], "MistralForCausalLM")

    def test_the_results_are_published(self) -> None:
        self.run_quietly()
        results = self.share / "results/training/mine"
        self.assertEqual(sorted(os.listdir(results)), ["metrics.json", "run_args.json"])
        for name in os.listdir(results):
            self.assertEqual((results / name).read_bytes(), (self.output / name).read_bytes())
        self.assertEqual(json.loads((results / "run_args.json").read_text())["grad_accum"], 2)
        self.assertEqual(json.loads((self.output / "published.json").read_text())["directory"], str(results))

    def test_fewer_rows_than_samples_are_passed_over_again(self) -> None:
        self.write_rows(ROWS[:3])
        self.assertEqual(self.run_quietly()["epoch"][-1], 8 / 3)


class Refusals(Case):
    def refuse(self, told: str, **changes: Any) -> None:
        """The run stops with such a message, of one line, and leaves nothing that could pass."""
        self.output.mkdir(exist_ok=True)
        (self.output / "metrics.json").write_text('{"completed": true}')  # of an earlier run by hand
        (self.output / "published.json").write_text("{}")
        with self.assertRaisesRegex((WorkloadError, KitError), told):
            self.run_quietly(**changes)
        self.assertFalse((self.output / "model").exists())
        self.assertFalse((self.output / "published.json").exists())

    def test_cuda_expected_and_missing(self) -> None:
        with mock.patch.object(torch.cuda, "is_available", return_value=False):
            self.refuse("expected a CUDA GPU, but PyTorch sees none", accelerator="cuda")
        self.assertFalse((self.output / "metrics.json").exists())

    def test_more_gpus_visible_than_allocated(self) -> None:
        with (
            mock.patch.object(torch.cuda, "is_available", return_value=True),
            mock.patch.object(torch.cuda, "device_count", return_value=8),
            mock.patch.dict(os.environ, {"SLURM_GPUS_ON_NODE": "1"}),
        ):
            self.refuse(r"allocated 1 GPU\(s\).*PyTorch sees 8.*ConstrainDevices", accelerator="cuda")

    def test_a_loss_that_is_not_finite(self) -> None:
        broken = mock.patch.object(
            training.functional, "cross_entropy", lambda logits, *_more, **_named: logits.sum() * math.nan
        )
        with broken:
            self.refuse("the loss became nan in step 1")
        metrics = self.written()
        self.assertFalse(metrics["completed"])
        self.assertEqual((metrics["loss"], metrics["step_seconds"], metrics["tokens_total"]), (["NaN"], [], 0))
        self.assertFalse((self.share / "results").exists())

    def test_a_gradient_that_is_not_finite(self) -> None:
        with mock.patch.object(training.nn.utils, "clip_grad_norm_", return_value=torch.tensor(math.inf)):
            self.refuse("the gradient's norm became inf in step 1")
        self.assertEqual(self.written()["grad_norm"], ["Infinity"])

    def test_a_learning_rate_that_explodes(self) -> None:
        self.refuse(r"became (nan|inf).*learning rate \([0-9.]*e\+", learning_rate=1e30)
        self.assertFalse(self.written()["completed"])

    def test_memory_that_runs_out(self) -> None:
        told = "CUDA out of memory. Tried to allocate 2.00 GiB."
        with mock.patch.object(training.Training, "_loss", side_effect=torch.OutOfMemoryError(told)):
            self.refuse(f"{told}.*--lora")
        self.assertFalse(self.written()["completed"])

    def test_a_model_without_its_parts(self) -> None:
        for name, told in (
            ("tokenizer.json", "has no tokenizer"),
            ("model.safetensors", "has no weights"),
            ("config.json", "config.json is missing"),
            ("provenance.json", "cannot read .*provenance.json.*stage it again"),
        ):
            with self.subTest(name):
                content = (self.model / name).read_bytes()
                (self.model / name).unlink()
                self.refuse(told)
                (self.model / name).write_bytes(content)

    def test_a_model_that_is_no_folder(self) -> None:
        self.refuse("is not a folder on this node", model=Path("mistralai/Mistral-7B-v0.1"))

    def test_weights_that_lack_a_tensor_are_not_made_up(self) -> None:
        weights = load_file(self.model / "model.safetensors")
        del weights["model.layers.1.mlp.up_proj.weight"]
        save_file(weights, self.model / "model.safetensors", metadata={"format": "pt"})
        stage(self.model, "mistral_7b")
        self.refuse("is missing 1 of its weights, such as model.layers.1.mlp.up_proj.weight")

    def test_weights_of_another_shape(self) -> None:
        config = json.loads((self.model / "config.json").read_text())
        (self.model / "config.json").write_text(json.dumps({**config, "intermediate_size": 96}))
        stage(self.model, "mistral_7b")
        self.refuse("cannot be loaded|lacks [0-9]+ of its weights")

    def test_a_tokenizer_of_another_model(self) -> None:
        sample = Sample((VOCABULARY,) * 64, (VOCABULARY,) * 64, 64)
        with mock.patch.object(sft_min_run, "sample_of", return_value=sample):
            self.refuse(f"token {VOCABULARY}, its vocabulary ends at {VOCABULARY - 1}")

    def test_samples_longer_than_the_model_reads(self) -> None:
        self.refuse("--seq_len 512 is more than the 256 positions", batch=Batch(1, 1, 512))

    def test_a_tokenizer_that_cannot_be_read(self) -> None:
        (self.model / "tokenizer.json").write_text("{}")
        stage(self.model, "mistral_7b")
        self.refuse("tokenizer cannot be read")

    def test_a_dataset_with_other_columns(self) -> None:
        self.write_rows([{"prompt": "a", "completion": "b"}])
        self.refuse("row 0 has no text instruction")

    def test_an_empty_dataset(self) -> None:
        self.write_rows([])
        self.refuse("has no rows")

    def test_a_damaged_dataset(self) -> None:
        (self.data / "train.json").write_text("[]")
        self.refuse("is damaged.*stage it again")

    def test_a_library_that_the_node_cannot_import(self) -> None:
        with mock.patch.dict(sys.modules, {"accelerate": None}):
            self.refuse("accelerate cannot be imported on ")

    def test_results_that_cannot_be_published(self) -> None:
        (self.share / "results").write_text("a file")
        with self.assertRaisesRegex(KitError, "cannot be published"):
            self.run_quietly()
        self.assertFalse((self.output / "published.json").exists())


class CommandLine(Case):
    def start(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the script as the job script does."""
        variables = {"MODEL_DIR": str(self.model), "DATA_DIR": str(self.data), "OUTPUT_DIR": str(self.output)}
        keep = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        return subprocess.run(
            [sys.executable, str(SCRIPT), *arguments],
            env={**keep, **variables, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def test_the_job_scripts_environment_is_enough(self) -> None:
        share = {"HPC_VALIDATION_SHARE": str(self.share), "HF_HOME": str(self.share / "huggingface")}
        arguments = ("--run_name", "smoke", "--max_steps", "2", "--seq_len", "32")
        done = self.start(*arguments, HPC_VALIDATION_ACCELERATOR="cpu", SLURM_JOB_ID="12", **share)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        metrics = self.written()
        self.assertEqual((metrics["job_id"], metrics["attempt"]), ("12", 0))
        self.assertEqual(metrics["paths"]["hf_home"], f"{self.share}/huggingface")
        self.assertTrue((self.share / "results/training/smoke/metrics.json").is_file())

    def test_without_a_gpu_it_stops_with_one_line(self) -> None:
        done = self.start(SLURM_JOB_ID="12", CUDA_VISIBLE_DEVICES="")
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("train_sft_min: expected a CUDA GPU"), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertFalse((self.output / "metrics.json").exists())


if __name__ == "__main__":
    unittest.main()
