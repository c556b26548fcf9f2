# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The diagrams of document 004, from the playbook, the manifest, the profiles and a recorded run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml
from kit.profiles.check import section_of, usable
from kit.profiles.model import Logging

from tests.docs.drawing import CHARACTER, Drawing
from tests.docs.pages import ROOT

WORKLOAD = ROOT / "files/workloads/training_profiles"
RUN = ROOT / "tests/fixtures/profiles/run.json"
WIDTH, HEIGHT, GAP = 190, 56, 30  # pixels
ROW = HEIGHT + 50


def pipeline() -> Drawing:
    """Return the way of a profile through the playbook to the verdict."""
    drawing = Drawing("Training pipeline")
    manifest = _yaml(WORKLOAD / "workload.yml")
    profiles = [usable(path) for path in sorted((WORKLOAD / "Config_Samples").glob("*.yaml"))]
    for place, profile in enumerate(profiles):
        resources, mixed = profile.resources, profile.training.mixed_precision
        how = f"{resources.num_gpus} x {resources.gpu_type}, {mixed.dtype if mixed.enabled else 'float32'}"
        lines = [profile.metadata.document, profile.metadata.name, how]
        drawing.box(profile.metadata.document, lines, _left(2 * place), 20, WIDTH, HEIGHT, "file")
        drawing.arrow(profile.metadata.document, "check")
    check = ["kit profile check", "every error with its line"]
    drawing.box("check", check, _left(1), 20, WIDTH, HEIGHT, "play")
    roles = [*_roles(_yaml(ROOT / "playbooks/validate.yml"))]
    for place, role in enumerate(roles):
        drawing.box(role, ["role", role], _left(place), 20 + ROW, WIDTH, HEIGHT, "play")
        if place:
            drawing.arrow(roles[place - 1], role)
    drawing.arrow("check", "workload")
    for place, name in enumerate(manifest["data"]):
        drawing.box(name, ["data", name], _left(len(manifest["legs"]) + place), 20 + 2 * ROW, WIDTH, HEIGHT, "file")
        drawing.arrow("stage", name)
    legs = [leg.split(":") for leg in manifest["legs"]]
    all_ranks = manifest["resources"]["nodes"] * manifest["resources"]["ntasks_per_node"]
    for place, (name, *ranks) in enumerate(legs):
        lines = ["leg of the job", name, f"{ranks[0] if ranks else all_ranks} ranks"]
        drawing.box(name, lines, _left(place), 20 + 2 * ROW, WIDTH, HEIGHT, "job")
        drawing.arrow(legs[place - 1][0] if place else "workload", name)
    outputs = [manifest["output"]["progress"], manifest["output"]["metrics"]]
    for place, name in enumerate(outputs):
        drawing.box(name, ["output", name], _left(2 * place), 20 + 3 * ROW, WIDTH, HEIGHT, "file")
    drawing.arrow("measured", outputs[0])
    drawing.arrow(legs[-1][0], outputs[1])
    judged = [f"{len(manifest['criteria'])} criteria", "verdict.json"]
    drawing.box("verdict", judged, _left(4), 20 + 3 * ROW, WIDTH, HEIGHT, "play")
    drawing.arrow(outputs[1], "verdict")
    trackers = [name for name in Logging.model_fields if section_of(Logging, name)]
    for place, name in enumerate(trackers):
        lines = [name, "in a process of its own"]
        drawing.box(name, lines, _left(place), 20 + 4 * ROW, WIDTH, HEIGHT, "watch")
        drawing.arrow(outputs[0], name)
    return drawing


def timeline() -> Drawing:
    """Return when the parts of a recorded run began and ended."""
    run = json.loads(RUN.read_text(encoding="utf-8"))
    drawing = Drawing(f"Scheduling timeline, {run['what']}")
    begin, end = run["submitted"], run["ended"]
    left, width, top = 220, 900, 50
    drawing.box("what", [f"{run['what']}, {run['date']}"], 20, 10, 900, 20, "text")

    def bar(name: str, since: float, until: float, line: int, kind: str) -> None:
        scale = width / (end - begin)
        place = left + (since - begin) * scale
        seconds = f"{until - since:.0f} s"
        size = max(2.0, (until - since) * scale)
        lines = [seconds] if size > CHARACTER * len(seconds) else [""]
        drawing.box(name, lines, place, top + 30 * line, size, 22, kind)

    def label(text: str, line: int) -> None:
        drawing.box(f"label {text}", [text], 20, top + 30 * line, 190, 22, "text")

    label("in the queue", 0)
    bar("queue", begin, run["started"], 0, "pause")
    label("the job", 1)
    bar("job", run["started"], end, 1, "play")
    line = 2
    for name, attempts in run["legs"].items():
        for number, attempt in enumerate(attempts):
            again = f", attempt {number + 1}" if len(attempts) > 1 else ""
            label(f"{name}{again}", line)
            kind = "time" if attempt["first_failure"] == "none" else "failed"
            bar(f"{name} {number}", attempt["started"], attempt["ended"], line, kind)
            line += 1
    return drawing


def _left(place: float) -> float:
    return 20 + place * (WIDTH + GAP)


def _yaml(path: Any) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _roles(tasks: Any) -> Iterator[str]:
    """Return the names of the roles that plays include, in order, but not that of the settings."""
    if isinstance(tasks, list):
        for task in tasks:
            yield from _roles(task)
    elif isinstance(tasks, dict):
        role = tasks.get("ansible.builtin.include_role")
        if role and role["name"].rpartition(".")[2] != "hpc_validation":
            yield role["name"].rpartition(".")[2]
        for part in ("tasks", "block"):
            yield from _roles(tasks.get(part))
