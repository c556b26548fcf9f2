# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`kit cost`: what a pretraining costs, from its job's output folder."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from kit.files import write_atomic, write_json
from kit.pretraining import cost, cost_page, failures, job_folder, price


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the job's output folder, with settings.json")
    parser.add_argument("--into", type=Path, help="folder for cost.json and cost.md (default: FOLDER)")
    parser.add_argument("--price-per-hour", type=positive_number, help="instead of the price in the settings")
    parser.add_argument("--price-of", choices=("node", "gpu"), help="what --price-per-hour is the price of")
    parser.add_argument("--currency", default=price.CURRENCY, help=f"of --price-per-hour (default {price.CURRENCY})")
    parser.add_argument("--gpu", help="the GPU's name, such as 'NVIDIA H100 80GB HBM3', for the MFU")
    parser.add_argument("--nodes", type=whole_number, help="nodes of the job")
    parser.add_argument("--tokens", type=whole_number, help="tokens of an epoch")
    parser.add_argument(
        "--blocking-seconds", type=positive_number, help="time for which a checkpoint stops the training"
    )
    parser.add_argument("--restart-seconds", type=positive_number, help="time from a failure to the next step")
    parser.add_argument(
        "--mtbf-hours",
        type=positive_number,
        action="append",
        help="mean time between failures of all the job's hardware; may be repeated (default "
        f"{', '.join(f'{hours:.0f}' for hours in failures.MTBF_HOURS)})",
    )


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write cost.json and cost.md; return their paths, the verdict's lines, and what is not known."""
    given = job_folder.Given(
        price=_price(arguments),
        gpu_name=arguments.gpu,
        nodes=arguments.nodes,
        epoch_tokens=arguments.tokens,
        blocking=arguments.blocking_seconds,
        restart=arguments.restart_seconds,
        mtbf_hours=tuple(arguments.mtbf_hours or failures.MTBF_HOURS),
    )
    report = cost.report(job_folder.read(arguments.folder, given))
    into = arguments.into or arguments.folder
    document, page = into / "cost.json", into / "cost.md"
    write_json(document, report)
    write_atomic(page, lambda stream: stream.write(cost_page.page(report).encode()))
    return {
        "document": str(document),
        "page": str(page),
        "lines": list(cost.verdict_lines(report)),
        "assumed": report["assumed"],
        "missing": report["missing"],
    }


def _price(arguments: argparse.Namespace) -> dict[str, Any] | None:
    if arguments.price_per_hour is None and arguments.price_of is None:
        return None
    given = {"price_per_hour": arguments.price_per_hour, "price_of": arguments.price_of}
    return {**given, "currency": arguments.currency}


def positive_number(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise ValueError(text)
    return number


def whole_number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
