# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A title names the quantity. The bound stands in a column of its own, and an inventory may override it."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.unit.conftest import ROOT

# Without "one", which is a pronoun in most titles.
WORDS = {"zero": 0, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "ten": 10}
WORDS |= {"half": 0.5, "third": 1 / 3, "quarter": 0.25, "tenth": 0.1}
NUMBER = re.compile(rf"\d+(?:[.,]\d+)*|\b(?:{'|'.join(WORDS)})\b")
TESTS = ("eq", "ne", "lt", "le", "gt", "ge", "between", "ratio_ge", "ratio_le", "exists", "decreasing")
FOLDERS = ("files/workloads/*/workload.yml", "files/scaffold/workload.yml", "files/criteria/*.yml")
MANIFESTS = sorted(path for folder in FOLDERS for path in ROOT.glob(folder))


def criteria(tree):
    """Yield (title, what it is tested against) of all that a file describes, options included."""
    if isinstance(tree, dict):
        described = {**tree, **(tree.get("each") or {})} if isinstance(tree.get("each"), dict) else tree
        if isinstance(tree.get("title"), str):
            yield tree["title"], [described[test] for test in TESTS if test in described]
        for part in tree.values():
            yield from criteria(part)
    elif isinstance(tree, list):
        for part in tree:
            yield from criteria(part)


def numbers_of(bounds):
    """Yield the numbers of bounds in every unit that a title may be in: as they are, in per cent, in minutes."""
    for bound in bounds:
        if isinstance(bound, dict):
            yield from numbers_of([bound[key] for key in ("bound", "min_drop", "min_bytes") if key in bound])
        elif isinstance(bound, list):
            yield from numbers_of(bound)
        elif isinstance(bound, (int, float)) and not isinstance(bound, bool):
            yield from (bound, bound * 100, abs(1 - bound) * 100, bound / 60, bound / 1e6, bound / 1e9)


def named(title, bounds):
    """Return the numbers of the bound that the title names."""
    told = [WORDS[word] if word in WORDS else float(word.replace(",", "")) for word in NUMBER.findall(title.lower())]
    return [number for number in told if any(number == pytest.approx(each) for each in numbers_of(bounds))]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_title_names_its_bound(path):
    found = list(criteria(yaml.safe_load(path.read_text(encoding="utf-8"))))
    assert found
    assert [title for title, bounds in found if named(title, bounds)] == []


@pytest.mark.parametrize(
    ("title", "bound"),
    [
        ("Two GPUs are at least 1.7 times as fast as one", {"bound": 1.7, "to": "x"}),
        ("Training completes in under 3 minutes", 180),
        ("Model achieves more than 95 % test accuracy", 0.95),
        ("Exactly two ranks train", 2),
        ("All 5 epochs ran", 5),
        ("No rank needs more than 10 % longer", 0.9),
        ("At most a quarter of a step", 0.25),
        ("The model has 7.2 billion parameters", [7.2e9, 7.3e9]),
    ],
)
def test_a_title_that_names_it_is_found(title, bound):
    assert named(title, [bound])


def test_other_numbers_may_stand():
    assert named("Checkpoints of CIFAR-10 on SmolLM-135M", [0.6]) == []
