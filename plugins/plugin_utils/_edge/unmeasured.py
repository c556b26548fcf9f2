# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a card cannot say and why: each value that is a text, each undecided criterion, and what nobody tried.

Pure. Devices of which the same is unknown for the same reason are told together.
"""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.hostlist import fold_nodes
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import card_device
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.values import Json, at, entries, words

MAX_ENTRIES = 300
LONG = 1000  # characters: a device that is not reached lacks everything
TITLES = {"float": "float", "pruned": "pruned", "int8": "INT8"}
MODEL_FIGURES = (
    ("error", "error"),
    ("bytes", "size"),
    ("p50_ms", "latency p50 on the cluster"),
    ("p99_ms", "latency p99 on the cluster"),
)
PROFILE = (
    ("document", "document"),
    ("name", "name"),
    ("version", "version"),
    ("owner", "owner"),
    ("data_classification", "data classification"),
    ("license", "licence"),
)


def of(card: Json, evidence: t.Any) -> list[Json]:
    """Return what is not known: `what`, `where` (hosts, folded; null for none) and `why`."""
    found = [*_devices(card["devices"]), *_models(card), *_made(card["made"]), *_profile(card["profile"])]
    found += _criteria(card["criteria"])
    found += [
        _entry(f"evidence: {words(at(each, 'source'))}", words(at(each, "detail")) or "it could not be read")
        for each in entries(at(evidence, "problems"))
    ]
    found += _never(card, evidence)
    more = len(found) - MAX_ENTRIES
    return found if more <= 0 else [*found[:MAX_ENTRIES], _entry(f"{more} more", "this list is bounded")]


def _entry(what: str, why: str, where: str | None = None) -> Json:
    return {"what": words(what, LONG), "where": words(where, LONG), "why": words(why)}


def _devices(devices: list[Json]) -> list[Json]:
    """Return what is unknown of the devices, in as few entries as there are reasons and groups of devices."""
    by_reason: dict[tuple[str, str], list[str]] = {}  # (host, reason) → what
    for device in devices:
        for what, why in _of_device(device):
            by_reason.setdefault((device["host"], why), []).append(what)
    by_hosts: dict[tuple[str, str], list[str]] = {}  # (what, reason) → hosts
    for (host, why), whats in by_reason.items():
        by_hosts.setdefault((", ".join(dict.fromkeys(whats)), why), []).append(host)
    return [_entry(what, why, fold_nodes(hosts)) for (what, why), hosts in by_hosts.items()]


def _of_device(device: Json) -> t.Iterator[tuple[str, str]]:
    for key, title, _unit in card_device.FIGURES:
        value = device["figures"][key]
        if isinstance(value, str):
            yield title, value
    if isinstance(device["energy_mj"], str):
        yield card_device.ENERGY, device["energy_mj"]
    for name, figures in device["models"].items():
        why = next((value for value in figures.values() if isinstance(value, str)), None)
        if why:
            yield f"latency of {TITLES[name]} in turn with the others", why
    if isinstance(device["tensorrt_p50_ms"], str):
        yield "TensorRT", device["tensorrt_p50_ms"]
    if isinstance(device["as_judged"], str):
        yield "whether the file is the one that was judged", device["as_judged"]
    if isinstance(device["undisturbed"], str):
        yield "whether it was undisturbed", device["undisturbed"]
    if device["no_histogram"]:
        yield "histogram", device["no_histogram"]


def _models(card: Json) -> t.Iterator[Json]:
    for model in card["models"]:
        for key, title in MODEL_FIGURES:
            if isinstance(model[key], str):
                yield _entry(f"{TITLES[model['name']]}: {title}", model[key])
    names = [model["name"] for model in card["models"]]
    for name, title in TITLES.items():
        if name not in names:
            yield _entry(f"{title}: everything", "metrics.json has no such model")


def _made(made: Json) -> t.Iterator[Json]:
    for key, title in (("pruning", "pruning"), ("quantization", "quantisation")):
        if made[key] is None:
            yield _entry(title, "metrics.json does not have it: the profile may have it off")
    for key, title in (
        ("from_error", "error of the model that it began with"),
        ("error", "error of the trained model on test data"),
        ("export_furthest", "difference between the exported model's answers and PyTorch's"),
    ):
        if isinstance(made[key], str):
            yield _entry(title, made[key])


def _profile(profile: Json) -> t.Iterator[Json]:
    missing = [title for key, title in PROFILE if profile[key] is None]
    if missing:
        yield _entry(f"profile: {', '.join(missing)}", "the profile is not in this folder, or does not have it")


def _criteria(criteria: Json) -> t.Iterator[Json]:
    for each in (*criteria["not_passed"], *criteria["not_applicable"]):
        if each["verdict"] in ("undetermined", "not_applicable"):
            verdict = each["verdict"].replace("_", " ")
            yield _entry(f"{each['id']} {each['title']}", f"{verdict}: {each['why'] or 'it does not say why'}")


def _never(card: Json, evidence: t.Any) -> t.Iterator[Json]:
    """Return what no run measures, or this one did not."""
    expected, there = at(evidence, "edge", "expected"), len(card["devices"])
    if isinstance(expected, int) and expected != there:
        yield _entry("devices", f"{expected} were expected, and there is something of {there}")
    if not there:
        yield _entry("every figure of a device", "no device was measured")
    yield _entry("speed, memory and power on any other device", "figures are those of the devices that are named")
    if card["accelerator"] != "cuda":
        yield _entry("training on a real GPU", f"the cluster's accelerator is {card['accelerator'] or 'not known'}")
