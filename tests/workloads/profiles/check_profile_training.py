# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009, PT027 - unittest, for pytest is not in the runtime
"""What a profile says is what happens, key by key.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/profiles -p 'check_*.py'
"""

from __future__ import annotations

import json
import math
import unittest
from itertools import chain
from typing import Any
from unittest import mock

import torch
from acceptance import left
from encoder import Encoder
from kit.errors import KitError
from kit.pretraining import checkpoints
from kit.pretraining.checkpoints import NoneWholeError
from kit.profiles import arithmetic
from kit.profiles.check import merged
from kit.profiles.model import Profile
from schedule import learning_rate
from small_profile import SAMPLES, Case
from training import EARLY, LIMITED, Trainer


class Model(Case):
    """The encoder is the one that the profile describes."""

    def test_it_has_the_weights_that_the_arithmetic_counts(self) -> None:
        for changes in ({}, {"model": {"num_layers": 1, "num_heads": 4, "outputs": 3}}):
            profile = self.profile(**changes)
            counted = sum(weight.numel() for weight in Encoder(profile.model).parameters())
            self.assertEqual(counted, arithmetic.parameters(profile.model))

    def answers(self, **model: Any) -> torch.Tensor:
        """Return the answers of a model of these sizes with a fixed seed."""
        torch.manual_seed(1)
        profile = self.profile(model=model)
        made = Encoder(profile.model)
        made.train()
        torch.manual_seed(2)
        return made(torch.randn(5, 4, 8, generator=torch.Generator().manual_seed(3)))

    def test_attention_is_the_same_either_way(self) -> None:
        self.assertLess((self.answers(attention="sdpa") - self.answers(attention="math")).abs().max(), 1e-5)

    def test_heads_activation_and_dropout_change_what_comes_out(self) -> None:
        plain = self.answers()
        for model in ({"num_heads": 4}, {"activation": "relu"}, {"dropout": 0.5}):
            self.assertGreater((plain - self.answers(**model)).abs().max(), 1e-3, model)


class Steps(Case):
    """Batches, steps and their order."""

    def test_a_batch_in_four_parts_is_the_same_batch(self) -> None:
        _whole, whole = self.run_once(self.profile())
        _parts, parts = self.run_once(
            self.profile(training={"batch_size": 2, "gradient_accumulation_steps": 4}), output="parts"
        )
        self.assertEqual(parts.last, 24)
        for one, other in zip(whole.rows[:8], parts.rows[:8]):
            self.assertAlmostEqual(one["loss"], other["loss"], 5)

    def test_all_samples_are_read_once_in_an_epoch_and_the_next_has_another_order(self) -> None:
        from windows import Order

        for shuffle in (True, False):
            profile = self.profile(data={"shuffle": shuffle})
            read = [[*part] for part in Order(profile, 0, 1, 1, 16)]
            first, second = [*chain(*read[:8])], [*chain(*read[8:])]
            self.assertEqual(sorted(first), list(range(SAMPLES)))
            self.assertEqual(sorted(second), list(range(SAMPLES)))
            self.assertEqual(first == second, not shuffle)
            self.assertEqual([[*part] for part in Order(profile, 0, 1, 10, 16)], read[9:])

    def test_two_ranks_share_what_one_reads(self) -> None:
        from windows import Order

        alone = [[*part] for part in Order(self.profile(), 0, 1, 1, 8)]
        shared = self.profile(
            distributed={"enabled": True, "world_size": 2}, resources={"num_gpus": 2}, training={"batch_size": 4}
        )
        both = [[[*part] for part in Order(shared, rank, 2, 1, 8)] for rank in (0, 1)]
        self.assertEqual([one + other for one, other in zip(*both)], alone)

    def test_the_learning_rate_of_each_step_is_the_formulas(self) -> None:
        profile = self.profile()
        _trainer, done = self.run_once(profile)
        self.assertEqual([row["lr"] for row in done.rows], [learning_rate(profile, step) for step in range(1, 25)])
        self.assertEqual(done.rows[3]["lr"], 2e-3)
        self.assertAlmostEqual(done.rows[11]["lr"], 1e-6 + 0.5 * (2e-3 - 1e-6))
        self.assertEqual(done.rows[23]["lr"], 1e-6)
        constant = self.profile(training={"scheduler": {"name": "constant"}})
        self.assertEqual(learning_rate(constant, 24), 2e-3)

    def test_max_steps_and_a_limit_of_batches_end_a_training(self) -> None:
        _trainer, done = self.run_once(self.profile(training={"max_steps": 22}))
        self.assertEqual(done.last, 22)
        _trainer, done = self.run_once(self.profile(debug={"limit_batches": 5}), output="limited")
        self.assertEqual((done.last, done.ended), (5, LIMITED))

    def test_evaluations_and_rows_come_when_they_should(self) -> None:
        _trainer, done = self.run_once(self.profile(training={"log_every_steps": 5}))
        self.assertEqual([each["step"] for each in done.evaluations], [4, 8, 12, 16, 20, 24])
        self.assertEqual([row["step"] for row in done.rows if "loss" in row], [5, 10, 15, 20, 24])

    def test_data_that_is_not_the_profiles_is_refused(self) -> None:
        for changes, word in (
            ({"data": {"train_samples": 63}}, "train_samples is 63"),
            ({"model": {"input_features": 7}}, "train-inputs.npy is float32 of"),
            ({"model": {"outputs": 2}}, "train-answers.npy is float32 of"),
        ):
            with self.assertRaisesRegex(KitError, word):
                self.run_once(self.profile(**changes))


class Learning(Case):
    """Optimizer, clipping, precision and what is frozen."""

    def step(self, **training: Any) -> list[torch.Tensor]:
        """Return the weights after a few steps."""
        trainer, _done = self.run_once(
            self.profile(training=training), output=str(len(list(self.output.iterdir()))), last=6
        )
        return [weight.detach().clone() for weight in trainer.module.parameters()]

    def apart(self, one: list[torch.Tensor], other: list[torch.Tensor]) -> float:
        """Return the largest difference."""
        return max((a - b).abs().max().item() for a, b in zip(one, other))

    def test_a_training_learns(self) -> None:
        _trainer, done = self.run_once(self.profile())
        self.assertLess(done.evaluations[-1]["mae"], 0.9 * done.evaluations[0]["mae"])

    def test_each_setting_of_the_optimizer_counts(self) -> None:
        plain = self.step()
        for optimizer in (
            {"lr": 1e-3},
            {"weight_decay": 0.5},
            {"betas": [0.5, 0.999]},
            {"betas": [0.9, 0.9]},
            {"eps": 1e-3},
            {"name": "adam", "weight_decay": 0},
        ):
            self.assertGreater(self.apart(plain, self.step(optimizer=optimizer)), 1e-6, optimizer)
        self.assertGreater(self.apart(plain, self.step(gradient_clipping={"max_norm": 0.01})), 1e-6)
        self.assertGreater(self.apart(plain, self.step(loss={"name": "mae"})), 1e-6)

    def test_activations_that_are_computed_again_change_no_bit(self) -> None:
        self.assertEqual(self.apart(self.step(), self.step(activation_checkpointing=True)), 0)

    def test_half_precision_computes_in_it_and_learns(self) -> None:
        for dtype, scale in (("float16", "dynamic"), ("bfloat16", None)):
            mixed = {"enabled": True, "dtype": dtype, "loss_scale": scale}
            seen: list[torch.dtype] = []

            def note(*given: Any, into: list[torch.dtype] = seen) -> None:
                into.append(given[2].dtype)

            with self.joined() as joined:
                trainer = self.trainer(joined, self.profile(training={"mixed_precision": mixed}), output=dtype)
                trainer.module.blocks[0].f1.register_forward_hook(note)
                done = trainer.run()
            self.assertEqual({*seen}, {getattr(torch, dtype)})
            self.assertLess(done.evaluations[-1]["mae"], done.evaluations[0]["mae"])
            self.assertEqual("loss_scale" in done.rows[-1], dtype == "float16")

    def test_a_gradient_that_overflows_lowers_the_scale_and_moves_nothing(self) -> None:
        mixed = {"enabled": True, "dtype": "float16", "loss_scale": "dynamic"}
        with self.joined() as joined:
            trainer = self.trainer(joined, self.profile(training={"mixed_precision": mixed}))
            trainer.module.head.weight.register_hook(lambda gradient: gradient * math.inf)
            before = self.weights(trainer)
            done = trainer.run(1)
        self.assertEqual(done.scale_falls, 1)
        self.assert_same(before, self.weights(trainer))

    def test_a_fixed_scale_stays(self) -> None:
        mixed = {"enabled": True, "dtype": "float16", "loss_scale": 128.0}
        _trainer, done = self.run_once(self.profile(training={"mixed_precision": mixed}))
        self.assertEqual({row["loss_scale"] for row in done.rows if "loss_scale" in row}, {128.0})

    def test_a_fixed_scale_stays_after_an_overflow_whose_norm_is_no_figure(self) -> None:
        mixed = {"enabled": True, "dtype": "float16", "loss_scale": 128.0}
        with self.joined() as joined:
            trainer = self.trainer(joined, self.profile(training={"mixed_precision": mixed}))
            handle = trainer.module.head.weight.register_hook(lambda gradient: gradient * math.inf)
            done = trainer.run(2, before_step=lambda step: handle.remove() if step == 2 else None)
        self.assertEqual((done.scale_falls, [row["loss_scale"] for row in done.rows]), (1, [128.0, 128.0]))
        self.assertEqual([row["step"] for row in done.rows if "grad_norm" in row], [2])

    def transfer(self, freeze: int, epochs: list[int], **changes: Any) -> Profile:
        """Return a profile with frozen blocks."""
        transfer = {"freeze_layers": freeze, "unfreeze_epochs": epochs}
        own = {
            "metadata": {"purpose": "transfer"},
            "training": {"begins_with": "/of/another", "optimizer": {"lr": 1e-4}},
            "transfer_learning": transfer,
        }
        return self.profile(**merged(own, changes))

    def test_frozen_tensors_keep_every_bit_until_they_open_and_move_then(self) -> None:
        with self.joined() as joined:
            trainer = self.trainer(joined, self.transfer(2, [2, 3]))
            begin = self.weights(trainer)
            moved = []
            for last in (8, 16, 24):
                trainer.run(last)
                now = self.weights(trainer)
                moved.append(
                    {
                        name.split(".")[1] if name.startswith("blocks") else name.split(".")[0]
                        for name in now
                        if not torch.equal(now[name], begin[name])
                    }
                )
        self.assertEqual(moved[0], {"2", "norm", "head"})
        self.assertEqual(moved[1], {"1", "2", "norm", "head"})
        self.assertEqual(moved[2], {"0", "1", "2", "norm", "head", "input", "positions"})

    def test_the_optimizer_holds_no_weight_that_is_frozen(self) -> None:
        with self.joined() as joined:
            trainer = self.trainer(joined, self.transfer(2, []))
            held = {id(weight) for group in trainer.optimizer.param_groups for weight in group["params"]}
            frozen = [weight for weight in trainer.module.parameters() if not weight.requires_grad]
            self.assertTrue(frozen)
            self.assertFalse(held & {id(weight) for weight in frozen})

    def test_a_training_that_begins_with_weights_has_them(self) -> None:
        trainer, _done = self.run_once(self.profile())
        given = self.weights(trainer)
        with self.joined() as joined:
            self.assert_same(given, self.weights(self.trainer(joined, self.profile(), "next", begins_with=given)))


class Checkpoints(Case):
    """What is saved, what is kept, and what goes on from it."""

    def names(self, output: str = "out") -> list[str]:
        """Return the checkpoints that are there, newest first."""
        return [path.name for path in checkpoints.listed(self.output / output / "checkpoints")]

    def test_a_training_that_is_cut_off_comes_out_bit_by_bit_as_one_that_is_not(self) -> None:
        profile = self.profile(model={"dropout": 0.2})
        straight, _done = self.run_once(profile, output="straight")
        self.run_once(profile, last=12)
        resumed, done = self.run_once(profile)
        self.assertEqual((done.first, resumed.came_from["step"]), (13, 12))
        self.assert_same(self.weights(straight), self.weights(resumed))
        self.assertEqual(straight.stopping.best, resumed.stopping.best)

    def test_what_was_told_before_a_cut_is_told_with_the_rest(self) -> None:
        profile = self.profile()
        _straight, whole = self.run_once(profile, output="straight")
        self.run_once(profile, last=15)
        (self.output / "out/checkpoints/final_checkpoint_step_15/manifest.json").unlink()  # it goes on from step 12
        resumed, done = self.run_once(profile)
        self.assertEqual(done.first, 13)
        self.assertEqual([row["step"] for row in done.rows], list(range(1, 25)))
        self.assertEqual([row["loss"] for row in done.rows], [row["loss"] for row in whole.rows])
        self.assertEqual(done.evaluations, whole.evaluations)
        self.assertEqual(resumed._saver.saved, [6, 12, 18, 24])
        found = left(profile, done, resumed._saver.saved, {})
        self.assertEqual((found["evaluated_otherwise"], found["checkpoints"]["saved_otherwise"]), ([], []))

    def test_a_training_that_is_over_is_not_trained_again(self) -> None:
        for early in ({}, {"enabled": True, "patience": 1, "min_delta": 100.0}):
            output = f"out-{len(early)}"
            profile = self.profile(training={"early_stopping": early})
            first, done = self.run_once(profile, output=output)
            again, nothing = self.run_once(profile, output=output)
            self.assertEqual((nothing.last, nothing.ended), (done.last, done.ended))
            self.assertEqual(nothing.evaluations, done.evaluations)
            self.assert_same(self.weights(first), self.weights(again))

    def test_a_training_that_begins_sets_aside_what_another_has_left(self) -> None:
        self.run_once(self.profile(), last=6)
        (self.output / "out/checkpoints").rename(self.output / "elsewhere")
        _trainer, done = self.run_once(self.profile(), last=8)
        self.assertEqual([row["step"] for row in done.rows], list(range(1, 9)))
        (aside,) = (self.output / "out").glob("progress.jsonl.replaced-*")
        self.assertEqual(len(aside.read_text().splitlines()), 6)

    def test_with_workers_too(self) -> None:
        profile = self.profile(model={"dropout": 0.2}, data={"num_workers": 2, "prefetch_factor": 2})
        straight, _done = self.run_once(profile, output="straight")
        self.run_once(profile, last=12)
        self.assert_same(self.weights(straight), self.weights(self.run_once(profile)[0]))

    def test_with_frozen_blocks_too(self) -> None:
        transfer = {"freeze_layers": 2, "unfreeze_epochs": [2, 3]}
        own = {
            "metadata": {"purpose": "transfer"},
            "training": {"begins_with": "/of/another", "optimizer": {"lr": 1e-4}},
            "transfer_learning": transfer,
        }
        profile = self.profile(**own)
        straight, _done = self.run_once(profile, output="straight")
        self.run_once(profile, last=12)
        self.assert_same(self.weights(straight), self.weights(self.run_once(profile)[0]))

    def test_without_resumption_it_takes_no_folder_of_another_training(self) -> None:
        self.run_once(self.profile(), last=6)
        once = self.profile(fault_tolerance={"resume": False, "max_restarts": 0})
        with self.assertRaisesRegex(KitError, "has checkpoints of an earlier training"):
            self.run_once(once)
        trainer, done = self.run_once(once, output="another")
        self.assertEqual((done.first, trainer.came_from), (1, None))

    def test_the_best_is_kept_however_old_it_is(self) -> None:
        values = [3.0, 1.0, 2.0, 2.0, 2.0, 2.0]
        profile = self.profile(training={"checkpointing": {"every_steps": 4, "keep": 1}})
        scripted = mock.patch.object(Trainer, "evaluate", side_effect=[{"validation_loss": value} for value in values])
        with scripted, self.joined() as joined:
            trainer = self.trainer(joined, profile)
            trainer.run()
            self.assertEqual(trainer._saver.best().name, "checkpoint_step_8")
        self.assertEqual(self.names(), ["final_checkpoint_step_24", "checkpoint_step_8"])

    def test_so_many_are_kept_and_the_best(self) -> None:
        self.run_once(self.profile(training={"checkpointing": {"every_steps": 4, "keep": 3}}))
        self.assertEqual(self.names(), ["final_checkpoint_step_24", "checkpoint_step_20", "checkpoint_step_16"])

    def test_best_only_keeps_the_best_and_the_newest(self) -> None:
        profile = self.profile(training={"checkpointing": {"best_only": True, "every_steps": 4}})
        values = [3.0, 1.0, 2.0, 2.0, 2.0, 2.0]
        with mock.patch.object(Trainer, "evaluate", side_effect=[{"validation_loss": value} for value in values]):
            self.run_once(profile)
        self.assertEqual(self.names(), ["final_checkpoint_step_24", "checkpoint_step_8"])

    def test_a_damaged_one_is_refused_and_the_one_before_is_taken(self) -> None:
        self.run_once(self.profile(), last=18)
        file = next((self.output / "out/checkpoints/final_checkpoint_step_18").glob("*.safetensors"))
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        trainer, _done = self.run_once(self.profile())
        self.assertEqual(trainer.came_from["step"], 12)
        self.assertIn("SHA-256 differs", trainer.came_from["refused"]["final_checkpoint_step_18"])

    def test_other_settings_do_not_go_on(self) -> None:
        self.run_once(self.profile(), last=6)
        with self.assertRaisesRegex(NoneWholeError, "made with seed 42, this training has 7"):
            self.run_once(self.profile(reproducibility={"seed": 7}))

    def test_no_space_is_said_before_anything_is_written(self) -> None:
        full = mock.patch.object(checkpoints.shutil, "disk_usage", return_value=mock.Mock(free=1000))
        with full, self.assertRaisesRegex(KitError, "no space for checkpoint_step_6"):
            self.run_once(self.profile())
        self.assertEqual(self.names(), [])


class Watching(Case):
    """What a training tells."""

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a file."""
        return [json.loads(line) for line in (self.output / "out" / name).read_text().splitlines()]

    def test_rows_norms_and_histograms_are_on_the_share(self) -> None:
        trainer, done = self.run_once(self.profile())
        rows = self.rows("progress.jsonl")
        self.assertEqual([row["step"] for row in rows], list(range(1, 25)))
        self.assertTrue(all(row["grad_norm"] > 0 and row["samples_per_second"] > 0 for row in rows))
        histograms = self.rows("histograms.jsonl")
        self.assertEqual([row["step"] for row in histograms], [8, 16, 24])
        counted = {name: sum(found["counts"]) for name, found in histograms[-1]["weights"].items() if found["counts"]}
        self.assertEqual({name: dict(trainer.module.named_parameters())[name].numel() for name in counted}, counted)
        self.assertEqual(done.sink_rows, 27)
        self.assertLess(done.sink_seconds, done.seconds)
        self.assertEqual(len(self.rows("ranks/health-0.jsonl")), 1)

    def test_a_rank_gives_signs_of_life_as_often_as_it_should(self) -> None:
        self.run_once(self.profile(monitoring={"health_check_seconds": 0.01}))
        self.assertGreater(len(self.rows("ranks/health-0.jsonl")), 3)

    def test_throughput_can_be_left_out(self) -> None:
        self.run_once(self.profile(monitoring={"throughput": False}))
        self.assertNotIn("samples_per_second", self.rows("progress.jsonl")[0])

    def test_early_stopping_counts_evaluations(self) -> None:
        values = [3.0, 2.0, 2.0, 2.0, 2.0, 2.0]
        profile = self.profile(training={"early_stopping": {"patience": 2}})
        with mock.patch.object(Trainer, "evaluate", side_effect=[{"validation_loss": value} for value in values]):
            _trainer, done = self.run_once(profile)
        self.assertEqual((done.last, done.ended), (16, EARLY))

    def test_an_improvement_smaller_than_the_least_is_none(self) -> None:
        values = [3.0, 2.99, 2.98, 2.97, 2.96, 2.95]
        profile = self.profile(training={"early_stopping": {"patience": 2, "min_delta": 0.05}})
        with mock.patch.object(Trainer, "evaluate", side_effect=[{"validation_loss": value} for value in values]):
            _trainer, done = self.run_once(profile)
        self.assertEqual(done.last, 12)

    def test_early_stopping_that_is_off_does_not_stop(self) -> None:
        profile = self.profile(training={"early_stopping": {"patience": 1, "enabled": False}})
        with mock.patch.object(Trainer, "evaluate", return_value={"validation_loss": 1.0}):
            self.assertEqual(self.run_once(profile)[1].last, 24)

    def test_metrics_are_those_of_all_answers(self) -> None:
        with self.joined() as joined:
            trainer = self.trainer(joined, self.profile())
            found = trainer.evaluate()
            inputs, truth = trainer._validation[list(range(SAMPLES))]
            trainer.module.eval()
            apart = trainer.module(inputs).detach() - truth
        self.assertAlmostEqual(found["mae"], apart.abs().mean().item(), 6)
        self.assertAlmostEqual(found["rmse"], apart.square().mean().sqrt().item(), 6)
        self.assertAlmostEqual(found["r2"], 1 - (apart.square().mean() / truth.var(unbiased=False)).item(), 5)
        self.assertAlmostEqual(found["validation_loss"], apart.square().mean().item(), 6)

    def test_classes_have_an_accuracy_and_a_score(self) -> None:
        self.data(SAMPLES, classes=3)
        changes = {
            "model": {"task": "classification", "outputs": None, "num_classes": 3},
            "training": {"loss": {"name": "cross_entropy"}},
            "validation": {"metrics": ["loss", "accuracy", "f1"]},
        }
        _trainer, done = self.run_once(self.profile(**changes))
        last = done.evaluations[-1]
        self.assertGreater(last["accuracy"], 0.5)
        self.assertTrue(0 < last["f1"] <= 1)

    def test_a_loss_that_is_no_number_ends_the_training(self) -> None:
        with self.joined() as joined:
            trainer = self.trainer(joined, self.profile())
            trainer.module.head.bias.data.fill_(math.nan)
            with self.assertRaisesRegex(KitError, "the loss of the steps up to 1 is nan"):
                trainer.run()

    def test_the_profiler_leaves_a_trace(self) -> None:
        self.run_once(self.profile(debug={"profiler": True}))
        self.assertTrue(json.loads((self.output / "out/trace.json").read_text())["traceEvents"])

    def test_the_anomaly_switch_names_the_operation(self) -> None:
        with self.joined() as joined:
            trainer = self.trainer(joined, self.profile(debug={"detect_anomaly": True}))
            trainer.module.head.register_forward_hook(lambda _module, _given, answers: (answers * 0).sqrt())
            self.addCleanup(torch.autograd.set_detect_anomaly, False)
            with self.assertRaisesRegex(RuntimeError, "Backward0' returned nan"):
                trainer.run(1)


class Repeated(Case):
    """A seed repeats a training."""

    def test_two_trainings_are_the_same_and_another_seed_is_not(self) -> None:
        one, two, other = (
            self.weights(self.run_once(self.profile(reproducibility={"seed": seed}), output=name)[0])
            for name, seed in (("one", 42), ("two", 42), ("other", 43))
        )
        self.assert_same(one, two)
        self.assertFalse(torch.equal(one["head.weight"], other["head.weight"]))


if __name__ == "__main__":
    unittest.main()
