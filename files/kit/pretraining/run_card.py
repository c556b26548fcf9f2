# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The card of a training and its model (`run_card.md`): what was trained, on which data and machine, and how it went.

Pure: from the job's ``settings.json``, ``metrics.json`` and rows, the manifest of its tokens, and the checkpoints that
it went on from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kit.pretraining import pace, shape
from kit.pretraining.markdown import table, text

POINTS = 12  # of a curve
Json = Mapping[str, Any]


def points(rows: Iterable[Json], name: str, count: int = POINTS) -> list[tuple[int, Any]]:
    """Return up to ``count`` pairs of a step and the row's ``name``, evenly spaced, with the first and the last.

    Of a step that was repeated the later row counts. A value that is not finite stays as it is: it is what happened.
    """
    found = {row["step"]: row[name] for row in rows if pace.is_number(row.get("step")) and row.get(name) is not None}
    curve = sorted(found.items())
    if not curve:
        return []
    kept = {round(place * (len(curve) - 1) / (count - 1)) for place in range(count)}
    return [curve[place] for place in sorted(kept)]


def page(
    settings: Json,
    metrics: Json,
    rows: Sequence[Json],
    tokens_manifest: Json | None = None,
    resumed_from: Sequence[Json] = (),
    verdict: str | None = None,
) -> str:
    """Return the card. What is not known is said to be; only ``settings`` must be whole, else KitError.

    ``resumed_from`` are the checkpoints that the training went on from, the first one first: ``job_id``, ``name``,
    ``step`` and ``manifest_sha256`` of each.
    """
    model = shape.read_model(settings.get("model"))
    last = rows[-1] if rows else {}
    parts = (
        ("Model", _model(model, settings)),
        ("Data", _data(settings, metrics, tokens_manifest)),
        ("Training", _training(model, settings, last, verdict)),
        ("Loss", _loss(rows)),
        ("Hardware and versions", _machine(metrics)),
        ("Continued from", _chain(resumed_from)),
    )
    lines = [f"# A GPT of {shape.parameters(model):,} parameters", ""]
    for title, body in parts:
        lines += [f"## {title}", "", *body, ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _model(model: shape.Model, settings: Json) -> list[str]:
    tied = "the same weights" if model.tied else "other weights"
    return [
        f"- A decoder of GPT-2's architecture: {model.n_layer} layers of width {model.n_embd}, {model.n_head} heads, "
        f"inputs of up to {model.n_positions:,} tokens, {model.vocab_size:,} words; both embeddings are {tied}",
        f"- Parameters: {shape.parameters(model):,}",
        f"- Trained in {text(settings.get('precision'))}",
    ]


def _data(settings: Json, metrics: Json, manifest: Json | None) -> list[str]:
    lines = [
        f"- Source: {text(_part(settings, 'data').get('source'))}",
        f"- SHA-256 of its manifest: {text(_part(metrics, 'tokens').get('manifest_sha256'))}",
    ]
    if manifest is None:
        return lines
    train, held_out = (_part(_part(manifest, "splits"), name).get("tokens") for name in ("train", "validation"))
    lines += [
        f"- Tokens: {_number(train)} to train on, {_number(held_out)} held out",
        f"- Made from: {text(manifest.get('source'))}",
    ]
    if manifest.get("entropy") is not None:
        lines.append(
            f"- **Stand-in tokens**: a random source of {text(manifest['entropy'])} nats per token made them, and the "
            "model has learned no language"
        )
    return lines


def _training(model: shape.Model, settings: Json, last: Json, verdict: str | None) -> list[str]:
    batch = _part(settings, "batch")
    step: Any = last.get("step")
    seen = None
    if pace.is_number(step) and pace.is_number(batch.get("global")):
        seen = step * shape.tokens_per_step(model, batch["global"])
    lines = [
        f"- Step {_number(step)} of {_number(settings.get('steps'))}, {_number(seen)} tokens",
        f"- A step: {_number(batch.get('global'))} sequences of {model.n_positions:,} tokens",
        f"- Seed: {text(settings.get('seed'))}",
        f"- Fingerprint of the settings that change the result: {text(settings.get('fingerprint'))}",
    ]
    for name in ("optimizer", "schedule"):
        values = ", ".join(f"{key} {value}" for key, value in sorted(_part(settings, name).items()))
        lines.append(f"- {name.capitalize()}: {text(values or None)}")
    if verdict is not None:
        lines.append(f"- Verdict: {text(verdict)}")
    return lines


def _loss(rows: Sequence[Json]) -> list[str]:
    lines: list[str] = []
    for name, title in (("loss", "Training loss"), ("validation_loss", "Held-out loss")):
        curve = points(rows, name)
        if curve:
            cells = [(f"{step:,}", f"{value:.4f}" if pace.is_number(value) else text(value)) for step, value in curve]
            lines += [*([""] if lines else []), *table(("Step", f"{title} (nats per token)"), cells)]
    return lines or ["No step has ended."]


def _machine(metrics: Json) -> list[str]:
    ranks = [each for each in _part(metrics, "ranks").values() if isinstance(each, dict)]
    nodes = sorted({str(each["node"]) for each in ranks if each.get("node")})
    return [
        f"- GPU: {text(metrics.get('gpu_name'))}, ranks: {_number(metrics.get('world_size'))}",
        f"- Nodes: {text(', '.join(nodes) or None)}",
        *(
            f"- {title}: {text(metrics.get(name))}"
            for name, title in (
                ("torch_version", "PyTorch"),
                ("deepspeed_version", "DeepSpeed"),
                ("cuda_version", "CUDA"),
            )
        ),
    ]


def _chain(resumed_from: Sequence[Json]) -> list[str]:
    if not resumed_from:
        return ["Nothing: it began at step 0."]
    return [
        f"{number}. {text(each.get('name'))}, step {_number(each.get('step'))}, of job {text(each.get('job_id'))}; "
        f"SHA-256 of its manifest {text(each.get('manifest_sha256'))}"
        for number, each in enumerate(resumed_from, 1)
    ]


def _part(document: Json, name: str) -> Json:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _number(value: Any) -> str:
    return f"{value:,}" if pace.is_number(value) else text(value)
