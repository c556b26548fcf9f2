# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write what a deployment card says of the devices: tables with a row for each, and their histograms. Pure."""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.cells import (
    bounded,
    figure,
    names,
    share,
    table,
    title,
    told,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.values import Json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.markdown import NOT_MEASURED, text

SHOWN = 3  # drawings on the page itself; if there are more, only links to them
Column = tuple[str, Callable[[Json], str]]


def _of(key: str, form: str, unit: str = "") -> Callable[[Json], str]:
    return lambda device: figure(device["figures"][key], form, unit)


def _fact(name: str) -> Callable[[Json], str]:
    return lambda device: told(device[name])


def _undisturbed(device: Json) -> str:
    if device["undisturbed"] is not True:
        return "**no**"
    again = device["repeats"]
    return f"yes, at try {again + 1:g}" if scalars.is_number(again) and again > 0 else "yes"


FACTS: tuple[Column, ...] = (
    ("Board", _fact("board")),
    ("Machine", _fact("machine")),
    ("Kernel", _fact("kernel")),
    ("Python", _fact("python")),
    ("ONNX Runtime", _fact("onnxruntime")),
    ("NumPy", _fact("numpy")),
    ("Power mode", lambda device: "none" if device["power_mode"] is None else text(device["power_mode"])),
)
LATENCY: tuple[Column, ...] = (
    ("p50", _of("p50_ms", ".3f")),
    ("p95", _of("p95_ms", ".3f")),
    ("p99", _of("p99_ms", ".3f")),
    ("Highest", _of("max_ms", ".3f")),
    ("A second", _of("per_second", ",.0f")),
    ("As the cluster's", lambda device: share(device["figures"]["near"])),
    ("Undisturbed", _undisturbed),
    ("Histogram", lambda device: f"[SVG]({device['histogram']})" if device["histogram"] else "none"),
)
SOAK: tuple[Column, ...] = (
    ("Cold start", _of("cold_start_s", ".2f", "s")),
    ("Memory", _of("memory_gb", ".3f", "GB")),
    ("Temperature", _of("temperature_c", ".1f", "°C")),
    ("Throttle events", _of("throttle_events", "g")),
    ("Mean power", _of("power_w", ".2f", "W")),
    ("Rails of it", lambda device: ", ".join(map(text, device["power_rails"])) or "none"),
)
ENGINE: Column = ("TensorRT p50", lambda device: figure(device["tensorrt_p50_ms"], ".3f"))


def devices(card: Json) -> list[str]:
    """Return the section on the devices."""
    there, bound = card["devices"], card["bound_ms"]
    lines = ["## Devices", ""]
    if not there:
        return [*lines, "No device was measured."]
    limit = f"; the profile's bound is {figure(bound, 'g')} ms" if scalars.is_number(bound) else ""
    engines = any(scalars.is_number(device["tensorrt_p50_ms"]) for device in there)
    columns = (*LATENCY, ENGINE) if engines else LATENCY
    disturbed = [f"- {text(d['host'])}: {text(d['undisturbed'])}" for d in there if d["undisturbed"] is not True]
    lines += _rows(there, FACTS, len(FACTS) + 1)
    lines += ["", f"Latency of the deployed model at batch 1, by ONNX Runtime on one core, in milliseconds{limit}:", ""]
    lines += _rows(there, columns)
    if disturbed:
        lines += ["", "Not undisturbed:", "", *bounded(disturbed, "the JSON file beside this page")]
    lines += ["", "Start, memory, and what the sensors read while it went on answering:", "", *_rows(there, SOAK)]
    drawn = [device for device in there if device["histogram"]]
    if len(drawn) <= SHOWN:
        for device in drawn:
            lines += ["", f"![Histogram of the latency on {text(device['host'])}]({device['histogram']})"]
    return lines


def forms(card: Json) -> list[str]:
    """Return the latency of each model on each device."""
    if not card["devices"] or not card["models"]:
        return []
    columns = [(f"{title(model['name'])} p50, p99", _pair(model["name"])) for model in card["models"]]
    columns.append(("Energy of the deployed model", _energy))
    return [
        "",
        "On the devices, in milliseconds, some inferences of each model in turn as well; energy of an inference is "
        "measured of the deployed model alone:",
        "",
        *_rows(card["devices"], tuple(columns)),
    ]


def on_devices(there: list[Json]) -> list[str]:
    """Return lines that say whether the devices had the file that was judged."""
    same = [device["host"] for device in there if device["as_judged"] is True]
    other = [device["host"] for device in there if device["as_judged"] is False]
    lines = [f"- The same file was on: {names(same)}"] if same else []
    return lines + ([f"- **Another file was on: {names(other)}**"] if other else [])


def _energy(device: Json) -> str:
    of = f" ({', '.join(map(text, device['energy_of']))})" if device["energy_of"] else ""
    return figure(device["energy_mj"], ".3g", "mJ") + (of if scalars.is_number(device["energy_mj"]) else "")


def _rows(there: list[Json], columns: tuple[Column, ...], left: int = 1) -> list[str]:
    heads = ("Device", *(head for head, _cell in columns))
    return table(heads, [[text(device["host"]), *(cell(device) for _title, cell in columns)] for device in there], left)


def _pair(name: str) -> Callable[[Json], str]:
    def cell(device: Json) -> str:
        values = [device["models"][name][key] for key in ("p50_ms", "p99_ms")]
        known = any(map(scalars.is_number, values))
        return ", ".join(figure(value, ".3f") for value in values) if known else NOT_MEASURED

    return cell
