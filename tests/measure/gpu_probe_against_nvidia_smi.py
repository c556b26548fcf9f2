#!/usr/bin/env python3
# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares `kit probe` with nvidia-smi on a machine with NVIDIA GPUs, field by field; exit 1 where they disagree.

python3 tests/measure/gpu_probe_against_nvidia_smi.py [--kit files] [--seconds 10] [--python PYTHON-WITH-TORCH]

The state is read while nothing runs: nvidia-smi before and after the kit, whose values must lie between theirs. The
samples are taken under a load, if torch is there, while `nvidia-smi dmon` watches as well. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import typing as t
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

Json = dict[str, t.Any]
KIT = Path(__file__).resolve().parents[2] / "files"
MIB = 2**20
LOAD = """
import sys, time, torch
until = time.monotonic() + float(sys.argv[1])
pairs = [torch.randn(2, 8192, 8192, device=f"cuda:{i}", dtype=torch.float16) for i in range(torch.cuda.device_count())]
said = False
while time.monotonic() < until:
    for pair in pairs:
        for _ in range(20):
            pair[0] @ pair[1]
    for index in range(len(pairs)):
        torch.cuda.synchronize(index)
    if not said:
        print("busy", flush=True)
        said = True
"""


# ---- nvidia-smi ----


def number(text: str | None) -> float | None:
    """The number that a value such as `70.50 W`, `16x` or `P0` holds; None where nvidia-smi tells none."""
    word = (text or "").strip().split(" ")[0].strip("xPp%")
    try:
        return float(word)
    except ValueError:
        return None


def flag(text: str | None) -> bool | None:
    """Yes and Enabled are true."""
    return {"yes": True, "enabled": True, "no": False, "disabled": False}.get((text or "").strip().lower())


def words(text: str | None) -> str | None:
    """The text; None where nvidia-smi tells none."""
    text = (text or "").strip()
    return None if text in ("", "N/A", "[N/A]", "Requested functionality has been deprecated") else text


def parse_log(document: str) -> Json:
    """Return {driver, cuda, gpus: {PCI address: element}} of `nvidia-smi -q -x`."""
    root = ET.fromstring(document)
    gpus = {str(entry.get("id")).lower(): entry for entry in root.findall("gpu")}
    return {
        "driver": words(root.findtext("driver_version")),
        "cuda": words(root.findtext("cuda_version")),
        "gpus": gpus,
    }


def parse_dmon(text: str) -> dict[int, list[dict[str, float]]]:
    """Return the samples of `nvidia-smi dmon` by index, each by column name."""
    columns: list[str] = []
    samples: dict[int, list[dict[str, float]]] = {}
    for line in text.splitlines():
        cells = line.split()
        if line.startswith("#"):
            if "gpu" in cells[:2]:
                columns = cells[1:] if cells[0] == "#" else [cells[0].lstrip("#"), *cells[1:]]
        elif cells and columns and cells[0].isdigit():
            row = {name: value for name, cell in zip(columns, cells) if (value := number(cell)) is not None}
            samples.setdefault(int(cells[0]), []).append(row)
    return samples


def throttle(gpu: ET.Element) -> list[str] | None:
    """The reasons in force, by the kit's names."""
    for group in ("clocks_event_reasons", "clocks_throttle_reasons"):
        found = gpu.find(group)
        if found is not None:
            prefix = group[: -len("s")] + "_"
            active = [reason.tag for reason in found if (reason.text or "").strip() == "Active"]
            return sorted(tag[len(prefix) :] for tag in active)
    return None


def ecc(gpu: ET.Element, kind: str, corrected: bool, parts: tuple[str, ...] = ("sram", "dram")) -> float | None:
    """The sum over SRAM and DRAM, or one of them."""
    names = ("correctable",) if corrected else ("uncorrectable", "uncorrectable_parity", "uncorrectable_secded")
    told = [number(gpu.findtext(f"ecc_errors/{kind}/{part}_{name}")) for part in parts for name in names]
    counted = [count for count in told if count is not None]
    return sum(counted) if counted else None


# ---- comparing ----


@dataclass(frozen=True)
class Field:
    """What the kit calls a value, how nvidia-smi tells it, and by how much they may differ."""

    path: str
    of_smi: t.Callable[[ET.Element], t.Any]
    tolerance: float = 0.0
    scale: float = 1.0


def _one(path: str, read: t.Callable[[str | None], t.Any] = number) -> t.Callable[[ET.Element], t.Any]:
    return lambda gpu: read(gpu.findtext(path))


def _first(*paths: str) -> t.Callable[[ET.Element], t.Any]:
    """The first that is told: drivers name some of them differently."""
    return lambda gpu: next((v for path in paths if (v := number(gpu.findtext(path))) is not None), None)


def _power(name: str, *others: str) -> t.Callable[[ET.Element], t.Any]:
    return _first(
        *(f"{group}/{leaf}" for group in ("gpu_power_readings", "power_readings") for leaf in (name, *others))
    )


_LINK = "pci/pci_gpu_link_info"
FIELDS = [
    Field("name", _one("product_name", words)),
    Field("uuid", _one("uuid", words)),
    Field("serial", _one("serial", words)),
    Field("vbios", _one("vbios_version", words)),
    Field("minor", _one("minor_number")),
    Field("memory.total", _one("fb_memory_usage/total"), 1, MIB),
    Field("memory.used", _one("fb_memory_usage/used"), 64, MIB),
    Field("mig.current", _one("mig_mode/current_mig", flag)),
    Field("mig.pending", _one("mig_mode/pending_mig", flag)),
    Field("persistence_mode", _one("persistence_mode", flag)),
    Field("ecc.mode", _one("ecc_mode/current_ecc", flag)),
    Field("ecc.pending", _one("ecc_mode/pending_ecc", flag)),
    *(
        Field(f"ecc.{name}_{kind}", lambda gpu, kind=kind, own=own: ecc(gpu, kind, own))  # type: ignore[misc]
        for kind in ("volatile", "aggregate")
        for name, own in (("corrected", True), ("uncorrected", False))
    ),
    Field("ecc.sram_uncorrected_aggregate", lambda gpu: ecc(gpu, "aggregate", False, ("sram",))),
    Field("ecc.sram_threshold_exceeded", _one("ecc_errors/aggregate/sram_threshold_exceeded", flag)),
    Field("retired_pages.single_bit", _one("retired_pages/multiple_single_bit_retirement/retired_count")),
    Field("retired_pages.double_bit", _one("retired_pages/double_bit_retirement/retired_count")),
    Field("remapped_rows.corrected", _one("remapped_rows/remapped_row_corr")),
    Field("remapped_rows.uncorrected", _one("remapped_rows/remapped_row_unc")),
    Field("remapped_rows.pending", _one("remapped_rows/remapped_row_pending", flag)),
    Field("remapped_rows.failed", _one("remapped_rows/remapped_row_failure", flag)),
    Field(
        "remapped_rows.banks_exhausted",
        _one("remapped_rows/row_remapper_histogram/row_remapper_histogram_none"),
    ),
    Field("performance_state", _one("performance_state")),
    Field("clocks.sm_mhz", _one("clocks/sm_clock"), 60),
    Field("clocks.sm_max_mhz", _one("max_clocks/sm_clock")),
    Field("clocks.memory_mhz", _one("clocks/mem_clock"), 60),
    Field("clocks.memory_max_mhz", _one("max_clocks/mem_clock")),
    Field("throttle_reasons", throttle),
    Field("temperature.gpu_c", _one("temperature/gpu_temp"), 2),
    Field("temperature.memory_c", _one("temperature/memory_temp"), 2),
    Field("power.draw_w", _power("instant_power_draw", "power_draw", "average_power_draw"), 15),
    Field("power.limit_w", _power("current_power_limit", "enforced_power_limit", "power_limit"), 0.01),
    Field("power.default_limit_w", _power("default_power_limit"), 0.01),
    Field("power.min_limit_w", _power("min_power_limit"), 0.01),
    Field("power.max_limit_w", _power("max_power_limit"), 0.01),
    Field("pcie.generation", _one(f"{_LINK}/pcie_gen/current_link_gen")),
    Field("pcie.generation_max", _one(f"{_LINK}/pcie_gen/max_link_gen")),
    Field("pcie.width", _one(f"{_LINK}/link_widths/current_link_width")),
    Field("pcie.width_max", _one(f"{_LINK}/link_widths/max_link_width")),
    Field("pcie.replays", _one("pci/replay_counter")),
    Field("utilization.gpu", _one("utilization/gpu_util"), 5),
]
# The kit's name of a sampled value, dmon's column, and by how much the means may differ.
SAMPLED = {
    "util": ("sm", 5.0, 1.0),
    "memory_used": ("fb", 256.0, float(MIB)),
    "power_w": ("pwr", 25.0, 1.0),
    "sm_clock_mhz": ("pclk", 60.0, 1.0),
}
Row = tuple[str, str, str, str, bool]


def at(facts: t.Any, path: str) -> t.Any:
    """The value at a dotted path; None where there is none."""
    for key in path.split("."):
        facts = facts.get(key) if isinstance(facts, dict) else None
    return facts


def agree(own: t.Any, told: list[t.Any], tolerance: float) -> bool:
    """Whether the kit's value lies between nvidia-smi's two, or is one of them; what one of the two lacks, both do."""
    numbers = [value for value in told if isinstance(value, float)]
    if isinstance(own, (int, float)) and not isinstance(own, bool) and len(numbers) == len(told):
        return min(numbers) - tolerance <= own <= max(numbers) + tolerance
    return own in told if not isinstance(own, str) else own.lower() in [str(value).lower() for value in told]


def compare(facts: Json, before: Json, after: Json) -> list[Row]:
    """Return (GPU, field, kit, nvidia-smi, whether they agree) of the node and of each GPU of the kit's."""
    rows: list[Row] = []

    def add(gpu: str, name: str, own: t.Any, told: list[t.Any], tolerance: float = 0.0) -> None:
        shown = " … ".join(dict.fromkeys(map(_show, told)))
        rows.append((gpu, name, _show(own), shown, agree(own, told, tolerance)))

    for key, path in (("driver", "driver.version"), ("cuda", "driver.cuda")):
        add("-", path, at(facts, path), [before[key], after[key]])
    add("-", "count", len(facts["gpus"]), [float(len(before["gpus"]))])
    for gpu in facts["gpus"]:
        name = str(gpu["pci"])
        told = [log["gpus"].get(name.lower()) for log in (before, after)]
        add(name, "pci", name, [str(entry.get("id")) if entry is not None else None for entry in told])
        if None in told:
            continue
        for field in FIELDS:
            own = at(gpu, field.path)
            if isinstance(own, (int, float)) and not isinstance(own, bool):
                own = own / field.scale
            own = sorted(own) if isinstance(own, list) else own
            add(name, field.path, own, [field.of_smi(entry) for entry in told], field.tolerance)
    return rows


def compare_samples(facts: Json, dmon: dict[int, list[dict[str, float]]]) -> list[Row]:
    """Return the rows for the means of what was sampled."""
    rows: list[Row] = []
    for gpu in facts["gpus"]:
        for name, (column, tolerance, scale) in SAMPLED.items():
            own = at(facts, f"samples.gpus.{gpu['uuid']}.{name}.mean")
            told = [row[column] for row in dmon.get(gpu["index"], []) if column in row]
            mean = sum(told) / len(told) if told else None
            own = own / scale if isinstance(own, (int, float)) else own
            # A mean of dmon's whole numbers at 1 Hz against the kit's at 5 Hz: five per cent more of leeway.
            agreed = own is not None and mean is not None and agree(own, [mean], tolerance + 0.05 * abs(mean))
            rows.append((str(gpu["pci"]), f"mean {name}", _show(own), _show(mean), agreed))
    return rows


def _show(value: t.Any) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def markdown(rows: list[Row]) -> str:
    """Return the table."""
    lines = ["| GPU | field | gpu_probe | nvidia-smi | |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row[:4])} | {'' if row[4] else '**differs**'} |" for row in rows)])


# ---- running ----


def _smi() -> Json:
    done = subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, text=True, check=True, timeout=120)
    return parse_log(done.stdout)


def _kit(folder: Path, *options: str) -> Json:
    done = subprocess.run(
        [sys.executable, "-m", "kit", "probe", "--kernel-log", "none", *options],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    document: Json = json.loads(done.stdout)
    return document


@contextlib.contextmanager
def _load(python: str, seconds: float) -> t.Iterator[bool]:
    """Keep the GPUs busy; false where torch is not there."""
    process = subprocess.Popen([python, "-c", LOAD, str(seconds)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        yield process.stdout.readline().strip() == "busy"
    finally:
        process.kill()
        process.wait()


def main() -> int:
    """Compare, print, and say whether they agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kit", type=Path, default=KIT, help="folder that holds the package kit")
    parser.add_argument("--seconds", type=int, default=10, help="how long to sample")
    parser.add_argument("--python", default=sys.executable, help="interpreter with torch, for the load")
    arguments = parser.parse_args()

    before = _smi()
    facts = _kit(arguments.kit)
    rows = compare(facts, before, _smi())
    with _load(arguments.python, arguments.seconds + 60) as busy:
        watch = ["nvidia-smi", "dmon", "-s", "pucm", "-d", "1", "-c", str(arguments.seconds)]
        dmon = subprocess.Popen(watch, stdout=subprocess.PIPE, text=True)
        sampled = _kit(arguments.kit, "--sample", str(arguments.seconds), "--interval", "0.2", "--no-health")
        watched, _other = dmon.communicate(timeout=120)
    rows += compare_samples(sampled, parse_dmon(watched))

    differing = [row for row in rows if not row[4]]
    print(markdown(rows))
    print(f"\n{len(rows)} values, {len(differing)} differ; sampled {'under load' if busy else 'without load'}")
    return 1 if differing or not facts["gpus"] else 0


if __name__ == "__main__":
    sys.exit(main())
