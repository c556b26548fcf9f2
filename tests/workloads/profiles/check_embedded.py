# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: PT009, PT027 - unittest, for pytest is not in the runtime
"""A model is pruned, exported and put into whole numbers, and each says what it became.

PYTHONPATH=files PYTHON -m unittest discover -s tests/workloads/profiles -p 'check_*.py'
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any
from unittest import mock

import bundle
import embedded
import exporting
import numpy as np
import onnx
import quantising
import sessions
import torch
from acceptance import CHECKPOINTS, SOURCE, Leg
from encoder import Encoder
from kit.errors import KitError
from kit.profiles.check import usable
from kit.profiles.model import Profile
from kit.training.stall import Stall
from latency import interleaved
from pruning import prune, size
from small_profile import HOME, STEPS, Case
from train import result_facts

SIZES = {"hidden_size": 32, "num_layers": 2, "num_heads": 2, "feedforward_size": 64}


class Made(Case):
    """The parts of the leg `made`."""

    def setUp(self) -> None:
        super().setUp()
        torch.manual_seed(0)
        self.model = Encoder(self.profile(model=SIZES).model).eval()
        random = np.random.default_rng(3)
        self.windows = random.standard_normal((200, STEPS, 8)).astype(np.float32)

    def exported(self, name: str = "float.onnx") -> Path:
        """Export the model."""
        path = self.output / name
        exporting.export(self.model, path, *self.windows.shape[1:])
        return path

    def quantised(self, method: str, calibration: np.ndarray | None = None) -> tuple[dict[str, Any], np.ndarray]:
        """Put it into whole numbers; return what that says, and its answers."""
        path = self.output / f"{method}.onnx"
        found = quantising.quantize(self.exported(), path, method, calibration)
        return found, sessions.answers(path, self.windows)

    def test_pruning_leaves_the_width_and_says_what_is_left(self) -> None:
        before = size(self.model, torch.from_numpy(self.windows))
        found = prune(self.model, 0.3, torch.from_numpy(self.windows[:1]))
        self.assertLess(found["macs"], 0.9)
        self.assertEqual(found["before"], before)
        self.assertEqual(self.model(torch.from_numpy(self.windows)).shape, (200, 1))
        for each in found["blocks"]:
            self.assertEqual((each["feedforward"] % 8, each["head_size"] % 8), (0, 0))
        self.assertEqual(self.model.norm.normalized_shape, (32,))

    def test_a_pruned_model_learns_on(self) -> None:
        prune(self.model, 0.3, torch.from_numpy(self.windows[:1]))
        with self.joined() as joined:
            leg = self.leg(joined, self.profile(model=SIZES))
            with mock.patch.object(embedded, "EXTRA_STEPS", 4):
                found = embedded.tuned(leg, self.model, "pruned")
        self.assertGreater(found["mae"], 0)

    def test_an_export_answers_as_pytorch(self) -> None:
        path = self.exported()
        answers = sessions.answers(path, self.windows)
        self.assertLess(exporting.furthest(answers, exporting.torch_answers(self.model, self.windows)), 1e-5)
        told = exporting.describe(path)
        self.assertEqual((told["opset"], told["ir"], told["valid"]), (20, 10, True))

    def test_a_damaged_export_is_refused(self) -> None:
        path = self.exported()
        found = onnx.load(str(path))
        found.graph.node[0].op_type = "Nothing"
        onnx.save(found, str(path))
        with self.assertRaises(KitError):
            exporting.describe(path)
        self.assertEqual(exporting.furthest(np.array([[np.nan]]), np.array([[0.0]])), float("inf"))

    def test_all_products_but_attentions_and_the_last_become_whole(self) -> None:
        found, answers = self.quantised("static", self.windows)
        self.assertEqual((found["whole"], found["floats"]), (found["due"], []))
        self.assertEqual(found["due"], 1 + 2 * 6)  # the input layer, and six of each block
        compared = quantising.compared(exporting.torch_answers(self.model, self.windows), answers)
        self.assertGreaterEqual(compared["near"], 0.995)

    def test_a_product_that_stays_is_named(self) -> None:
        path = self.exported()
        left, due = quantising.left_out(path)
        with mock.patch.object(quantising, "left_out", lambda prepared: ([*left, self.first(prepared)], due)):
            found = quantising.quantize(path, self.output / "static.onnx", "static", self.windows)
        self.assertLess(found["whole"], found["due"])

    def first(self, path: Path) -> str:
        """Return the name of the first product."""
        return next(node.name for node in onnx.load(str(path)).graph.node if node.op_type in quantising.PRODUCTS)

    def test_dynamic_needs_no_calibration(self) -> None:
        found, answers = self.quantised("dynamic")
        self.assertEqual(found["floats"], [])
        self.assertTrue(np.isfinite(answers).all())

    def test_calibration_on_other_data_shows(self) -> None:
        self.assertLess(max(quantising.drift(self.windows, self.windows).values()), 1e-6)
        shifted = quantising.drift(self.windows + 2, self.windows)
        self.assertGreater(shifted["mean"], 1.5)
        self.assertGreater(quantising.drift(self.windows * 0.3, self.windows)["deviation"], 0.5)
        self.assertEqual(quantising.drift(self.windows, self.windows * 0)["mean"], float("inf"))

    def test_a_feature_that_never_changes_is_no_other_distribution(self) -> None:
        training, calibration = self.windows.copy(), self.windows[:100].copy()
        training[..., 3] = calibration[..., 3] = 0.3
        found = quantising.drift(calibration, training)
        self.assertLess(max(found.values()), 0.3)
        calibration[0, 0, 3] = 0.4
        self.assertGreater(quantising.drift(calibration, training)["deviation"], 1e3)

    def test_times_are_of_each_form(self) -> None:
        path = self.exported()
        found = interleaved({"one": path, "other": path}, self.windows, 60)
        self.assertEqual(set(found), {"one", "other"})
        self.assertLessEqual(found["one"]["p50"], found["one"]["p99"])

    def test_a_bundle_has_what_a_device_needs_and_is_the_same_each_time(self) -> None:
        for name in ("float.onnx", "int8.onnx"):
            self.exported(name)
        for name in (bundle.INPUTS, bundle.TRUTH):
            np.save(self.output / name, self.windows)
        profile = usable(HOME / "local_embedded.yaml", None)
        path = self.output / bundle.NAME
        with mock.patch.dict(os.environ, {"SLURM_JOB_ID": "12", "HPC_VALIDATION_ATTEMPT": "0"}):
            first = bundle.pack(path, self.output, "int8", ["float", "int8"], profile)
            self.assertEqual(bundle.pack(path, self.output, "int8", ["float", "int8"], profile), first)
        with zipfile.ZipFile(path) as packed:
            contents = json.loads(packed.read(bundle.CONTENTS))
            self.assertEqual({*packed.namelist()}, {bundle.CONTENTS, *contents["files"]})
        self.assertEqual((contents["job_id"], contents["deployed"]), ("12", "int8"))
        self.assertEqual(contents["limits"]["latency_ms"], 5.0)

    def leg(self, joined: Any, profile: Profile) -> Leg:
        """Return a leg in the output folder."""
        stall = Stall(self.output / "leg", joined.state, 0, 60)
        job, output = self.output / "job", self.output / "job/made"
        return Leg("made", joined, profile, result_facts(profile), job, output, job / CHECKPOINTS, "cpu", stall)

    def test_calibration_data_has_the_windows_that_the_profile_asks_for(self) -> None:
        chosen = {"enabled": True, "calibration_data": str(self.output / "data/train")}  # 64 windows
        with self.joined() as joined:
            for settings in ({**chosen, "calibration_samples": 64}, {"enabled": False, "calibration_samples": 65}):
                embedded.require_calibration(self.leg(joined, self.profile(post_training={"quantization": settings})))
            few = self.profile(post_training={"quantization": {**chosen, "calibration_samples": 65}})
            with self.assertRaisesRegex(KitError, "data/train, has 64 windows; expected 65 at least"):
                embedded.require_calibration(self.leg(joined, few))

    def test_a_source_is_trained_where_there_is_none_and_begun_with(self) -> None:
        settings = {"purpose": "fine_tune"}
        profile = self.profile(
            metadata=settings, training={"begins_with": str(self.output / "none"), "optimizer": {"lr": 5e-4}}
        )
        with self.joined() as joined:
            leg = self.leg(joined, profile)
            said = embedded.source(leg)
            self.assertEqual(
                (said["from"], leg.beginning()), ("this job", leg.saver(leg.job / SOURCE / CHECKPOINTS).best())
            )
            given = self.profile(
                metadata=settings, training={"begins_with": str(leg.beginning()), "optimizer": {"lr": 5e-4}}
            )
            other = embedded.source(self.leg(joined, given))
        self.assertEqual((other["from"], other["weights_sha256"]), ("the profile", said["weights_sha256"]))
