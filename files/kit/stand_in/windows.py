# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-in for windows of features with their answers: made by a rule, so that the best possible error is known.

Features are independent and normal. What a window is worth is a mean over its time steps of one turn of the features,
let through by another; the answer is that and noise, or its quartile with some classes changed by chance. No model can
do better than the noise, and one that does was told the answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FEATURES, STEPS = 32, 16
NOISE = 0.5
CHANGED = 0.1  # share of classes that are another by chance
CLASSES = 4
QUARTILES = (-0.6745, 0.0, 0.6745)
SCALE = 0.46  # standard deviation of what the mean is made of, as measured
BEST_MAE = NOISE * math.sqrt(2 / math.pi)
BEST_ACCURACY = 1 - CHANGED
RULE_SEED = 7
PART = 20_000  # samples that are made at once


@dataclass(frozen=True)
class Rule:
    """How answers are made: ``turned`` by an angle (radians) away from the rule of all others, and ``shifted``."""

    turned: float = 0.0
    shifted: float = 0.0


def _directions(rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """Return both directions that features are looked at from, turned in a plane each."""
    random = np.random.default_rng(RULE_SEED)
    made = random.standard_normal((4, FEATURES)) / math.sqrt(FEATURES)
    cosine, sine = math.cos(rule.turned), math.sin(rule.turned)
    return cosine * made[0] + sine * made[2], cosine * made[1] + sine * made[3]


def worth(inputs: np.ndarray, rule: Rule) -> np.ndarray:
    """Return what each window is worth, (samples,), of mean 0 and deviation 1: for (samples, time steps, features)."""
    u, v = _directions(rule)
    gate = 1 / (1 + np.exp(-3 * (inputs @ v)))
    mean = (np.tanh(2 * (inputs @ u)) * gate).mean(axis=1)
    found: np.ndarray = mean * math.sqrt(inputs.shape[1]) / SCALE + rule.shifted
    return found


ALIKE = Rule()


def write(stem: Path, samples: int, seed: int, rule: Rule = ALIKE, *, classes: bool = False) -> None:
    """Write so many samples to STEM-inputs.npy and STEM-answers.npy."""
    random = np.random.default_rng([RULE_SEED, seed])
    inputs = np.empty((samples, STEPS, FEATURES), dtype=np.float32)
    answers = np.empty(samples if classes else (samples, 1), dtype=np.int64 if classes else np.float32)
    for begin in range(0, samples, PART):
        part = slice(begin, min(begin + PART, samples))
        made = random.standard_normal(inputs[part].shape)
        inputs[part] = made
        found = worth(made, rule)
        if classes:
            right = np.digitize(found, QUARTILES)
            other = (right + random.integers(1, CLASSES, right.shape)) % CLASSES
            answers[part] = np.where(random.random(right.shape) < CHANGED, other, right)
        else:
            answers[part] = (found + NOISE * random.standard_normal(found.shape))[:, None]
    for name, array in (("inputs", inputs), ("answers", answers)):
        with stem.with_name(f"{stem.name}-{name}.npy").open("wb") as stream:
            np.save(stream, array, allow_pickle=False)
