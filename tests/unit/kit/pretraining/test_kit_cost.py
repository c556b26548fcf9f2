# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit cost`: the two files and what it prints."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from kit.commands import cost
from kit.errors import KitError

from tests.unit.kit.pretraining_job import METRICS, SETTINGS, rows, write


def told(*arguments: object) -> dict[str, Any]:
    """What the command returns, for its command line."""
    parser = argparse.ArgumentParser(prog="python -m kit cost")
    cost.add_arguments(parser)
    return cost.run(parser.parse_args([str(each) for each in arguments]))


def test_it_writes_the_document_and_the_page(tmp_path: Path) -> None:
    printed = told(write(tmp_path, metrics=METRICS, found=rows([1.8] * 100)))
    document = json.loads((tmp_path / "cost.json").read_text())
    assert schema.problems("cost", document) == []
    assert [loss["mtbf_hours"] for loss in document["failures"]["losses"]] == [24, 168, 720]
    assert (tmp_path / "cost.md").read_text().startswith("# Cost of job 12\n")
    assert printed["document"] == str(tmp_path / "cost.json")
    assert printed["page"] == str(tmp_path / "cost.md")
    assert printed["lines"][1].startswith("Cost: 100,000 steps (2.03 epochs): 50.0 h (50.0 to 50.0), 396.00 USD")
    assert (printed["missing"], printed["assumed"]) == ([], [])


def test_it_says_what_is_missing(tmp_path: Path) -> None:
    printed = told(write(tmp_path, {**SETTINGS, "cost": None}), "--into", tmp_path / "elsewhere")
    assert [each.partition(":")[0] for each in printed["missing"]] == [
        "a speed",
        "a price",
        "the GPU's name",
        "how long a checkpoint stops the training; give --blocking-seconds",
    ]
    assert printed["lines"] == ["Cost: not known, no speed was measured", "Cost: no price is set"]
    assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == ["cost.json", "cost.md"]
    assert not (tmp_path / "cost.json").exists()


def test_options_state_what_the_files_do_not(tmp_path: Path) -> None:
    write(tmp_path, {**SETTINGS, "cost": None}, found=rows([1.8] * 100))
    price = ("--price-per-hour", 2, "--price-of", "gpu", "--currency", "EUR")
    machine = ("--gpu", "NVIDIA H200", "--nodes", 2, "--tokens", 1_048_576_000)
    times = ("--blocking-seconds", 9, "--restart-seconds", 90, "--mtbf-hours", 12, "--mtbf-hours", 48.5)
    printed = told(tmp_path, *price, *machine, *times)
    document = json.loads((tmp_path / "cost.json").read_text())
    assert document["price"] == {"price_per_hour": 2, "price_of": "gpu", "currency": "EUR", "per_hour": 16}
    assert (document["gpus"]["name"], document["gpus"]["nodes"]) == ("NVIDIA H200", 2)
    assert document["runs"][0]["steps"] == 1000
    assert [loss["mtbf_hours"] for loss in document["failures"]["losses"]] == [12, 48.5]
    assert (document["failures"]["blocking_seconds"], document["failures"]["restart_seconds"]) == (9, 90)
    assert (printed["missing"], printed["assumed"]) == ([], [])


def test_one_node_is_a_number_of_nodes(tmp_path: Path) -> None:
    told(write(tmp_path), "--nodes", 1)
    assert json.loads((tmp_path / "cost.json").read_text())["price"]["per_hour"] == 7.92


def test_a_price_counts_instead_of_the_settings(tmp_path: Path) -> None:
    told(write(tmp_path), "--price-per-hour", 1, "--price-of", "gpu")
    document = json.loads((tmp_path / "cost.json").read_text())
    assert document["price"] == {"price_per_hour": 1, "price_of": "gpu", "currency": "USD", "per_hour": 8}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--price-per-hour", 7.92], "cost.price_of: expected node or gpu, it is missing"),
        (["--price-of", "node"], "cost.price_per_hour: expected a number above 1e-09 and at most .*, found None"),
        (["--price-per-hour", 7.92, "--price-of", "node", "--currency", "$"], "cost.currency: "),
    ],
)
def test_half_a_price_is_refused(tmp_path: Path, arguments: list[object], said: str) -> None:
    with pytest.raises(KitError, match=said):
        told(write(tmp_path), *arguments)
    assert not (tmp_path / "cost.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--price-per-hour", "0", "--price-of", "node"],
        ["--price-per-hour", "1", "--price-of", "box"],
        ["--mtbf-hours", "inf"],
        ["--mtbf-hours", "nan"],
        ["--blocking-seconds", "-1"],
        ["--restart-seconds", "soon"],
        ["--nodes", "0"],
        ["--nodes", "1.5"],
        ["--tokens", "-1"],
    ],
)
def test_numbers_out_of_range_are_wrong_usage(tmp_path: Path, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        told(write(tmp_path), *arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize(("is_job", "code"), [(True, 0), (False, 1)])
def test_the_command_line(root: Path, tmp_path: Path, is_job: bool, code: int) -> None:
    if is_job:
        write(tmp_path, metrics=METRICS, found=rows([1.8] * 100))
    ended = subprocess.run(
        [sys.executable, "-B", "-m", "kit", "cost", str(tmp_path)],
        cwd=root / "files",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == code, ended.stderr
    if is_job:
        assert json.loads(ended.stdout)["missing"] == []
    else:
        assert "kit cost: " in ended.stderr
        assert "expected the output folder of a pretraining job" in ended.stderr
