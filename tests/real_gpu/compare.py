# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what the kit's probe says of each GPU with nvidia-smi: python compare.py SMI.xml PROBE.json

SMI.xml is the output of `nvidia-smi -q -x`, PROBE.json that of `python -m kit probe`. Exit code 1 if a value that
cannot change between the two differs.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

# The probe's key, nvidia-smi's element, and by how much they may differ since they were asked one after the other.
VALUES: tuple[tuple[str, str, float], ...] = (
    ("name", "product_name", 0),
    ("uuid", "uuid", 0),
    ("pci", "pci/pci_bus_id", 0),
    ("serial", "serial", 0),
    ("minor", "minor_number", 0),
    ("vbios", "vbios_version", 0),
    ("memory.total", "fb_memory_usage/total", 0),
    ("memory.reserved", "fb_memory_usage/reserved", 1),
    ("memory.used", "fb_memory_usage/used", 1024),
    ("mig.current", "mig_mode/current_mig", 0),
    ("mig.pending", "mig_mode/pending_mig", 0),
    ("persistence_mode", "persistence_mode", 0),
    ("compute_mode", "compute_mode", 0),
    ("ecc.mode", "ecc_mode/current_ecc", 0),
    ("ecc.pending", "ecc_mode/pending_ecc", 0),
    ("ecc.sram_threshold_exceeded", "ecc_errors/aggregate/sram_threshold_exceeded", 0),
    ("remapped_rows.corrected", "remapped_rows/remapped_row_corr", 0),
    ("remapped_rows.uncorrected", "remapped_rows/remapped_row_unc", 0),
    ("remapped_rows.pending", "remapped_rows/remapped_row_pending", 0),
    ("remapped_rows.failed", "remapped_rows/remapped_row_failure", 0),
    ("remapped_rows.banks_exhausted", "remapped_rows/row_remapper_histogram/row_remapper_histogram_none", 0),
    ("recovery_action", "gpu_recovery_action", 0),
    ("performance_state", "performance_state", 8),
    ("clocks.sm_mhz", "clocks/sm_clock", 2000),
    ("clocks.sm_max_mhz", "max_clocks/sm_clock", 0),
    ("clocks.memory_mhz", "clocks/mem_clock", 3000),
    ("clocks.memory_max_mhz", "max_clocks/mem_clock", 0),
    ("power.draw_w", "gpu_power_readings/instant_power_draw", 100),
    ("power.limit_w", "gpu_power_readings/current_power_limit", 0),
    ("power.default_limit_w", "gpu_power_readings/default_power_limit", 0),
    ("power.min_limit_w", "gpu_power_readings/min_power_limit", 0),
    ("power.max_limit_w", "gpu_power_readings/max_power_limit", 0),
    ("temperature.gpu_c", "temperature/gpu_temp", 5),
    ("temperature.margin_c", "temperature/gpu_temp_tlimit", 5),
    ("temperature.memory_c", "temperature/memory_temp", 5),
    ("temperature.slowdown_c", "temperature/gpu_temp_slow_threshold", 0),
    ("temperature.shutdown_c", "temperature/gpu_temp_max_threshold", 0),
    ("pcie.generation", "pci/pci_gpu_link_info/pcie_gen/current_link_gen", 4),
    ("pcie.generation_max", "pci/pci_gpu_link_info/pcie_gen/max_link_gen", 0),
    ("pcie.width", "pci/pci_gpu_link_info/link_widths/current_link_width", 0),
    ("pcie.width_max", "pci/pci_gpu_link_info/link_widths/max_link_width", 0),
    ("pcie.replays", "pci/replay_counter", 0),
    ("utilization.gpu", "utilization/gpu_util", 100),
    ("utilization.memory", "utilization/memory_util", 100),
    ("fabric.state", "fabric/state", 0),
)
WORDS = {
    "enabled": "yes", "disabled": "no", "true": "yes", "false": "no", "default": "0", "n/a": "-", "none": "-",
    "not supported": "-", "[n/a]": "-",
}  # fmt: skip
LONGEST = 12  # characters of a number; what is longer names something
DIFFERENT, MISSING = "DIFFERENT", "only one"


def plain(value: Any, key: str = "") -> str:
    """Return a value as both may write it: numbers without unit, yes and no, - for nothing."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "-"
    if key.startswith("memory.") and isinstance(value, int):
        return f"{value / (1 << 20):g}"
    text = str(value).strip()
    word = WORDS.get(text.lower())
    if word is not None:
        return word
    number = re.fullmatch(r"P?(-?[0-9]+(?:\.[0-9]+)?)(?: ?(?:MiB|MHz|W|C|%|bank\(s\)|T?\.?x?))?x?", text)
    return f"{float(number[1]):g}" if number and len(text) < LONGEST else text.lower()


def verdict(mine: str, theirs: str, most: float) -> str:
    """Return how two values compare."""
    if mine == theirs:
        return "equal"
    if "-" in (mine, theirs):
        return MISSING
    try:
        apart = abs(float(mine) - float(theirs))
    except ValueError:
        return DIFFERENT
    return f"near, {apart:g} apart" if most and apart <= most else DIFFERENT


def at(value: Any, path: str) -> Any:
    """Return what is at a dotted path, None where nothing is."""
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def main() -> int:
    """Print the table."""
    smi, probe = ElementTree.parse(sys.argv[1]).getroot(), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    rows = [("driver.version", probe["driver"]["version"], smi.findtext("driver_version"), 0.0)]
    rows.append(("driver.cuda", probe["driver"]["cuda"], smi.findtext("cuda_version"), 0.0))
    rows.append(("listed", probe["listed"], smi.findtext("attached_gpus"), 0.0))
    beside = {each.findtext("uuid"): each for each in smi.findall("gpu")}
    for gpu in probe["gpus"]:
        element = beside.get(gpu["uuid"])
        if element is None:
            rows.append(("uuid", gpu["uuid"], None, 0.0))
            continue
        rows += [(key, at(gpu, key), element.findtext(path), most) for key, path, most in VALUES]
        reasons = element.find("clocks_event_reasons")
        active = sorted(
            each.tag.removeprefix("clocks_event_reason_")
            for each in (() if reasons is None else reasons)
            if (each.text or "") == "Active"
        )
        rows.append(("throttle_reasons", " ".join(sorted(gpu["throttle_reasons"] or [])), " ".join(active), 0.0))
    different = 0
    print(f"{'key':32} {'probe':38} {'nvidia-smi':38} compared")
    for key, mine, theirs, most in rows:
        texts = plain(mine, key), plain(theirs)
        found = verdict(*texts, most)
        different += found == DIFFERENT
        print(f"{key:32} {texts[0]:38} {texts[1]:38} {found}")
    for gpu in probe["gpus"]:
        print(f"not answered for {gpu['uuid']}: {gpu['unsupported']}")
    print(f"kernel log: {probe['kernel_log']}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
