# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a deployment card as Markdown, from its document alone.

Pure. Text of jobs, devices and people is escaped and stays on its line; the commands hold nothing of it.
"""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import card_commands, card_page_devices
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.cells import (
    NOT_TOLD,
    bounded,
    coded,
    figure,
    names,
    share,
    size,
    table,
    title,
    told,
)
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.unmeasured import TITLES
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.values import Json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report.markdown import escaped, text

JSON = "the JSON file beside this page"
PROFILE = (
    ("description", "What for"),
    ("owner", "Owner"),
    ("data_classification", "Data classification"),
    ("license", "Licence"),
    ("approved_by", "Approved by"),
    ("created", "Written"),
    ("notes", "Notes"),
)


def markdown(card: Json) -> str:
    """Return the page."""
    sections = [
        _head(card),
        _deployed(card),
        _forms(card),
        card_page_devices.devices(card),
        _made(card),
        _provenance(card["provenance"]),
        _not_measured(card["not_measured"]),
        card_commands.section(card),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _head(card: Json) -> list[str]:
    profile, data = card["profile"], card["provenance"]["data"]
    lines = [
        f"# Deployment card: {told(profile['name'])}, version {told(profile['version'])}",
        "",
        f"Run {coded(card['run'])}, workload {coded(card['workload'])}: {told(card['title'])}. Profile of the "
        f"document {coded(profile['document'])}.",
        "",
        f"**Verdict: {told(card['verdict'])}.** {told(card['why'])}",
    ]
    if card["accelerator"] is None:
        lines += ["", "On which hardware it was trained is not told."]
    elif card["accelerator"] != "cuda":
        lines += ["", f"Trained on {text(card['accelerator'])} hardware: this says nothing about real GPUs."]
    if data["source"] == "stand-in":
        lines += ["", "**Trained on a stand-in for the data**: the model has learnt nothing of real machines."]
    if profile["approved_by"] is None and profile["license"] is not None:
        profile = {**profile, "approved_by": "nobody"}
    return [*lines, "", *(f"- {title}: {_line(profile[key])}" for key, title in PROFILE)]


def _line(value: str | None) -> str:
    return NOT_TOLD if value is None else escaped(value)


def _deployed(card: Json) -> list[str]:
    deployed, criteria = card["deployed"], card["criteria"]
    counts = ", ".join(f"{count} {text(word.replace('_', ' '))}" for word, count in criteria["counts"].items())
    lines = [
        "## What is deployed",
        "",
        f"- Model: {_form(deployed['model'])}, file {coded(deployed['file'])}, {size(deployed['bytes'])}",
        f"- SHA-256: {coded(deployed['sha256'])}",
        *card_page_devices.on_devices(card["devices"]),
        f"- Criteria: {counts or 'none'}",
    ]
    if criteria["not_passed"]:
        amiss = [f"- {_criterion(each)}" for each in criteria["not_passed"]]
        lines += ["", "These did not pass:", "", *bounded(amiss, JSON)]
    return lines


def _form(name: t.Any) -> str:
    return TITLES[name] if name in TITLES else told(name)


def _criterion(each: Json) -> str:
    unit = f" {told(each['unit'])}" if each["unit"] else ""
    value = "" if each["value"] is None else f": {text(each['value'])}{unit} (bound: {told(each['bound'])}{unit})"
    head = f"**{told(each['verdict'])}** {coded(each['id'])} {told(each['title'])}{value}"
    return f"{head}. {told(each['why'])}"


def _forms(card: Json) -> list[str]:
    kind = "Wrong answers" if card["profile"]["task"] == "classification" else "MAE"
    heads = ("Model", kind, "Size", "p50 on the cluster", "p99 on the cluster", "Dominated by")
    rows = [
        (
            title(model["name"]) + (" (deployed)" if model["name"] == card["deployed"]["model"] else ""),
            figure(model["error"], ".4f"),
            size(model["bytes"]),
            figure(model["p50_ms"], ".3f", "ms"),
            figure(model["p99_ms"], ".3f", "ms"),
            ", ".join(TITLES[name] for name in card["dominated"][model["name"]]) or "none",
        )
        for model in card["models"]
    ]
    lines = ["## Float, pruned, INT8", ""]
    if not rows:
        return [*lines, "Nothing is known of the models: there are no metrics of the job."]
    compared = names(card["compared_by"]) or "nothing, since no quantity is known of all models"
    left = f" Not known of all models: {names([*card['not_compared']])}." if card["not_compared"] else ""
    lines += [
        *table(heads, rows),
        "",
        "The latencies are of one process on the cluster, some inferences of each model in turn. A model is dominated "
        f"by one that is nowhere worse and somewhere better, as measured, by: {compared}.{left}",
    ]
    return lines + card_page_devices.forms(card)


def _made(card: Json) -> list[str]:
    made = card["made"]
    lines = [
        "## How it was made",
        "",
        f"- Trained on from: {told(made['from'])}, error on test data {figure(made['from_error'], '.4f')}; after "
        f"training {figure(made['error'], '.4f')}, with {figure(made['parameters'])} parameters",
    ]
    pruned, whole = made["pruning"], made["quantization"]
    if pruned:
        lines.append(
            f"- Pruned: a share of {figure(pruned['asked'], 'g')} was asked for; relative to before it has "
            f"{figure(pruned['macs'], '.3f')} of the multiplications and {figure(pruned['parameters'], '.3f')} of the "
            f"parameters. After {figure(pruned['extra_steps'])} more steps its error is "
            f"{figure(pruned['tuned_error'], '.4f')}, that of the unpruned model after as many "
            f"{figure(pruned['control_error'], '.4f')}"
        )
    if whole:
        calibration = whole["calibration"]
        lines += [
            f"- INT8, {told(whole['method'])}: {figure(whole['whole'])} products in whole numbers; still in floating "
            f"point although it should not be: {', '.join(map(text, whole['floats'])) or 'none'}",
            f"- INT8 against the model before: {share(whole['near'])} of the answers are within 0.1, the furthest is "
            f"{figure(whole['furthest'], '.3g')} away",
            f"- Calibrated with {figure(calibration['samples'])} samples; from the training data their mean is "
            f"{figure(calibration['mean'], '.3g')} away, their deviation {figure(calibration['deviation'], '.3g')}",
        ]
    return [*lines, f"- Exported: answers differ from PyTorch's by {figure(made['export_furthest'], '.2g')} at most"]


def _provenance(origin: Json) -> list[str]:
    job, source, data = origin["job"], origin["code"], origin["data"]
    lines = [
        "## Where it comes from",
        "",
        f"- Job: {coded(job['job_id'])} on {told(job['nodes'])}, {told(job['state'])}",
        f"- Code: version {told(source['collection'])} of the collection, SHA-256 of the job's script "
        f"{coded(source['script_sha256'])}",
        f"- Environment: {coded(source['environment'])}, SHA-256 of its lock {coded(source['lock_sha256'])}",
        f"- Data: {told(data['name'])}, {told(data['source'])}: {told(data['description'])}, revision "
        f"{told(data['revision'])}",
        *(f"- Data of the run: {text(each)}" for each in data["told"]),
        f"- Weights: SHA-256 of the trained ones {coded(origin['weights_sha256'])}, of those that it began with "
        f"{coded(origin['from_weights_sha256'])}",
    ]
    files = [*(("data", each) for each in data["files"]), *(("the job", each) for each in origin["evidence"])]
    if files:
        rows = [
            [text(each["name"]), kind, told(each["sha256"]), figure(each["bytes"])]  # as text: code ends a cell at |
            for kind, each in files
        ]
        lines += ["", *table(("File", "Of", "SHA-256", "Bytes"), rows, 3)]
    if origin["environment"]:
        rows = [[text(name), told(each["profile"]), told(each["here"])] for name, each in origin["environment"].items()]
        lines += [
            "",
            "What the profile was written for, and what it was trained with. The profile's versions are compared and "
            "never installed: the environment is the locked one.",
            "",
            *table(("", "Profile", "Here"), rows, 3),
        ]
    return lines


def _not_measured(unknown: list[Json]) -> list[str]:
    lines = [
        "- " + ": ".join(escaped(each[key]) for key in ("where", "what", "why") if each[key] is not None)
        for each in unknown
    ]
    return ["## What was not measured", "", *(bounded(lines, JSON) or ["- Nothing"])]
