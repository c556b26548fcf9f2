# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a training: three files, then a profile of config/profiles, then the inventory's own; all checked.

A setting is known by its file and its keys, joined by dots: model.n_embd, deepspeed.train_batch_size, training.steps.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import yaml
from kit import strict_json
from kit.errors import KitError
from kit.pretraining import checkpoints, price

FILES = {"model": "model_config.json", "deepspeed": "deepspeed_config.json", "training": "training_config.yaml"}
PROFILES = "profiles"

Rule = tuple[Callable[[Any], bool], str]  # whether a value is right, and what is expected


def _whole(low: int, high: int = 1 << 62) -> Rule:
    return (
        lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
        f"a whole number from {low}" + (f" to {high}" if high < 1 << 62 else ""),
    )


def _number(low: float, high: float) -> Rule:
    return (
        lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high,
        f"a number from {low:g} to {high:g}",
    )


def _but(refused: float, rule: Rule) -> Rule:
    return lambda value: rule[0](value) and value != refused, f"{rule[1]} and not {refused:g}"


def _one_of(*values: object) -> Rule:
    expected = ("one of " if len(values) > 1 else "") + ", ".join(map(str, values))
    return lambda value: any(value is each or value == each for each in values), expected


def _or_null(rule: Rule) -> Rule:
    return lambda value: value is None or rule[0](value), f"{rule[1]}, or null"


BOOLEAN: Rule = (lambda value: isinstance(value, bool), "true or false")
TEXT: Rule = (lambda value: isinstance(value, str) and bool(value), "a text")
PATH: Rule = (lambda value: isinstance(value, str) and value.startswith("/"), "an absolute path")
BUCKET: Rule = (
    lambda value: (
        isinstance(value, str) and bool(re.fullmatch(r"gs://[a-z0-9][a-z0-9._-]+[a-z0-9](/[\w.=-]+)*/?", value))
    ),
    "gs://bucket/prefix",
)
PAIR: Rule = (
    lambda value: (
        isinstance(value, list) and len(value) == 2 and all(_but(1, _number(0, 1))[0](each) for each in value)
    ),
    "two numbers from 0 to 1 and not 1",
)
NUMBERS: Rule = (
    lambda value: isinstance(value, list) and bool(value) and all(_number(0, 1e9)[0](each) for each in value),
    "a list of numbers",
)
NO_COST: Rule = (lambda value: value is None, "null, or price_per_hour and price_of")
SOURCE: Rule = (
    lambda value: value == "share",
    "share; from a bucket they come there by hpc_validation_datasets: "
    "{pretraining_tokens: {source: download, url: gs://bucket/prefix}}",
)

RULES: dict[str, Rule] = {
    "model.architecture": _one_of("gpt2"),
    "model.n_embd": _whole(1, 1 << 16),
    "model.n_layer": _whole(1, 1 << 12),
    "model.n_head": _whole(1, 1 << 12),
    "model.n_positions": _whole(1, 1 << 20),
    "model.vocab_size": _whole(2, 1 << 32),
    "model.bos_token_id": _whole(0),
    "model.eos_token_id": _whole(0),
    "model.tie_word_embeddings": _one_of(True),
    # The numbers of samples and the sum of their checksums are exact in 64 bits of floating point.
    "deepspeed.train_batch_size": _whole(1, 1 << 20),
    "deepspeed.train_micro_batch_size_per_gpu": _whole(1, 1 << 20),
    "deepspeed.gradient_clipping": _number(0, 1e6),
    "deepspeed.bf16.enabled": BOOLEAN,
    "deepspeed.fp16.enabled": BOOLEAN,
    "deepspeed.fp16.loss_scale": _number(0, 1e9),
    "deepspeed.fp16.initial_scale_power": _whole(0, 32),
    "deepspeed.fp16.loss_scale_window": _whole(1),
    "deepspeed.fp16.hysteresis": _whole(1),
    "deepspeed.fp16.min_loss_scale": _number(0, 1e9),
    "deepspeed.zero_optimization.stage": _one_of(3),  # checkpoints hold what it shares out
    "deepspeed.zero_optimization.overlap_comm": BOOLEAN,
    "deepspeed.zero_optimization.contiguous_gradients": BOOLEAN,
    "deepspeed.zero_optimization.reduce_bucket_size": _whole(1),
    "deepspeed.zero_optimization.stage3_prefetch_bucket_size": _whole(0),
    "deepspeed.zero_optimization.stage3_param_persistence_threshold": _whole(0),
    "deepspeed.zero_optimization.stage3_max_live_parameters": _whole(1),
    "deepspeed.zero_optimization.stage3_max_reuse_distance": _whole(1),
    "deepspeed.zero_optimization.zero_hpz_partition_size": _whole(1),
    "deepspeed.zero_optimization.offload_optimizer.device": _one_of("none", "cpu"),
    "deepspeed.zero_optimization.offload_optimizer.pin_memory": BOOLEAN,
    "deepspeed.zero_optimization.offload_param.device": _one_of("none", "cpu"),
    "deepspeed.zero_optimization.offload_param.pin_memory": BOOLEAN,
    "training.steps": _whole(1, 1 << 31),
    "training.seed": _whole(0),
    "training.schedule.learning_rate": _but(0, _number(0, 1)),
    "training.schedule.warmup_steps": _whole(0),
    "training.schedule.decay_steps": _whole(1),
    "training.schedule.min_ratio": _number(0, 1),
    "training.optimizer.betas": PAIR,
    "training.optimizer.eps": _but(0, _number(0, 1)),
    "training.optimizer.weight_decay": _number(0, 1),
    "training.compile": BOOLEAN,
    "training.data.source": SOURCE,
    "training.data.credentials": _or_null(PATH),
    "training.data.deadline": _number(1, 86400),
    "training.data.validation_batches": _whole(1),
    "training.checkpoint.format": _one_of(*checkpoints.FILES),
    "training.checkpoint.every": _whole(1),
    "training.checkpoint.keep": _whole(2),
    "training.checkpoint.remote": _or_null(BUCKET),
    "training.checkpoint.keep_remote": _whole(2),
    "training.watch.stall_seconds": _number(10, 86400),
    "training.watch.textfile": _or_null(PATH),
    "training.watch.http_port": _whole(0, 65535),
    "training.watch.http_address": TEXT,
    "training.watch.tensorboard": BOOLEAN,
    "training.watch.wandb": BOOLEAN,
    "training.watch.wandb_key": _or_null(PATH),
    "training.watch.probe_every": _whole(1),
    "training.cost": NO_COST,  # of those below only the form: kit.pretraining.price has the rules
    "training.cost.price_per_hour": _number(0, 1e9),
    "training.cost.price_of": _one_of("node", "gpu"),
    "training.cost.currency": TEXT,
    "training.cost.scenarios": NUMBERS,
}
WITHOUT_DEFAULT = ("deepspeed.fp16.", "deepspeed.zero_optimization.", "training.cost")
COMPUTED = {"deepspeed.gradient_accumulation_steps": "it follows from the batch, the micro batch, and the ranks"}
# What changes the result: with another of these a training is not the same one.
OF_THE_RESULT = (
    "model.",
    "deepspeed.train_batch_size",
    "deepspeed.gradient_clipping",
    "deepspeed.bf16.enabled",
    "deepspeed.fp16.enabled",
    "training.seed",
    "training.schedule.",
    "training.optimizer.",
)


class SettingsError(KitError):
    """A setting is unknown, missing, of a wrong value, or does not fit the others; the message names it."""


@dataclass(frozen=True)
class Settings:
    """Checked settings by their full names, and the ranks that they are for."""

    values: Mapping[str, Any]
    ranks: int

    def __getitem__(self, name: str) -> Any:
        """Return a setting by its full name."""
        return self.values[name]

    def get(self, name: str, otherwise: Any = None) -> Any:
        """Return a setting that may be left out."""
        return self.values.get(name, otherwise)

    @property
    def batch(self) -> int:
        """The samples of a step, on all ranks together."""
        return int(self["deepspeed.train_batch_size"])

    @property
    def micro(self) -> int:
        """The samples that a rank computes at a time."""
        return int(self["deepspeed.train_micro_batch_size_per_gpu"])

    @property
    def accumulation(self) -> int:
        """The number of micro batches of a rank in a step."""
        return self.batch // (self.micro * self.ranks)

    @property
    def length(self) -> int:
        """The tokens of a sample."""
        return int(self["model.n_positions"])

    @property
    def precision(self) -> str:
        """The precision of weights and activations while computing."""
        return "bf16" if self["deepspeed.bf16.enabled"] else "fp16" if self.get("deepspeed.fp16.enabled") else "fp32"

    def of_the_result(self) -> dict[str, Any]:
        """Return the settings that change the result."""
        return {name: value for name, value in self.values.items() if name.startswith(OF_THE_RESULT)}

    def fingerprint(self) -> str:
        """Return a SHA-256 of the settings that change the result."""
        return hashlib.sha256(json.dumps(self.of_the_result(), sort_keys=True).encode()).hexdigest()

    def learning_rate(self, step: int) -> float:
        """Return the rate of a step, counted from 1: a linear warm-up, then a cosine down to its least."""
        most, warmup = self["training.schedule.learning_rate"], self["training.schedule.warmup_steps"]
        if step <= warmup:
            return float(most * step / warmup)
        span = max(1, self["training.schedule.decay_steps"] - warmup)
        done = min(1.0, (step - warmup) / span)
        least = self["training.schedule.min_ratio"]
        return float(most * (least + (1 - least) * 0.5 * (1 + math.cos(math.pi * done))))

    def deepspeed(self) -> dict[str, Any]:
        """Return DeepSpeed's own configuration."""
        given = _nested({name: value for name, value in self.values.items() if name.startswith("deepspeed.")})
        return {
            **given["deepspeed"],
            "gradient_accumulation_steps": self.accumulation,
            "steps_per_print": 1 << 30,  # nothing on the screen for each step
            # In the host's memory it insists on an AdamW of its own, which a compiler has to build on the node.
            "zero_force_ds_cpu_optimizer": False,
        }

    def document(self) -> dict[str, Any]:
        """Return the settings as they are written beside a job's results."""
        nested = _nested(self.values)
        return {
            "model": nested["model"],
            "batch": {
                "global": self.batch,
                "micro": self.micro,
                "accumulation": self.accumulation,
                "ranks": self.ranks,
            },
            "precision": self.precision,
            "zero": {
                "stage": self["deepspeed.zero_optimization.stage"],
                "offload": self.get("deepspeed.zero_optimization.offload_optimizer.device", "none"),
                "checkpoint_activations": False,
            },
            "deepspeed": self.deepspeed(),
            **nested["training"],
            "fingerprint": self.fingerprint(),
        }


def load(folder: Path, profile: str | None, own: Mapping[str, Any], ranks: int) -> Settings:
    """Return the settings of the files in ``folder``, changed by a profile, then by ``own``. Raise SettingsError."""
    documents = {kind: _read(folder / name) for kind, name in FILES.items()}
    given = _checked(documents, "the configuration")
    if profile:
        path = folder / PROFILES / f"{profile}.yaml"
        if not path.is_file():
            known = ", ".join(sorted(each.stem for each in path.parent.glob("*.yaml")))
            raise SettingsError(f"unknown profile {profile!r}; available: {known}")
        _replace(given, _checked(_read(path), f"{PROFILES}/{profile}.yaml"))
    _replace(given, _checked(own, "hpc_validation_pretraining"))
    missing = [name for name in RULES if name not in given and not name.startswith(WITHOUT_DEFAULT)]
    if missing:
        raise SettingsError(f"{', '.join(missing)}: missing")
    settings = Settings(given, ranks)
    _require_fit(settings)
    return settings


class _Strict(yaml.SafeLoader):
    """Refuses a key that appears twice, as strict_json does: the second would replace the first without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping. Raise YAMLError with the place of a key that was there before."""
        seen: set[Any] = set()
        for key, _value in node.value:
            name = self.construct_object(key, deep=True)
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{name!r} appears twice", key.start_mark)
            seen.add(name)
        return dict(super().construct_mapping(node, deep))


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.suffix == ".json":
            found = strict_json.read(path)
        else:
            found = yaml.load(path.read_text(encoding="utf-8"), _Strict)  # noqa: S506 - it is a SafeLoader
    # PyYAML raises whatever a value that does not suit its tag leads to.
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError, yaml.YAMLError) as error:
        raise SettingsError(f"{path.name} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise SettingsError(f"{path.name}: expected keys and values, found {type(found).__name__}")
    return found


def _checked(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the document's values by full name. Raise SettingsError for the first that is unknown or wrong."""
    found = {}
    if not isinstance(document, dict):
        raise SettingsError(f"{where}: expected keys and values, found {type(document).__name__}")
    for name, value in _flat(document):
        if name in found:
            raise SettingsError(f"{where}: {name} appears twice: as {found[name]!r}, and as {value!r}")
        if name in COMPUTED:
            raise SettingsError(f"{where}: {name} cannot be set: {COMPUTED[name]}")
        if name not in RULES:
            close = difflib.get_close_matches(name, RULES, 1)
            raise SettingsError(f"{where}: {name}: unknown setting" + (f"; is it {close[0]}?" if close else ""))
        is_right, expected = RULES[name]
        if not is_right(value):
            raise SettingsError(f"{where}: {name} is {value!r}, expected {expected}")
        found[name] = value
    return found


def _flat(document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the full names and values. A mapping is a value where no settings are below it, or where it may be null."""
    for key, value in document.items():
        name = f"{prefix}{key}"
        has_below = any(rule.startswith(f"{name}.") for rule in RULES)
        if isinstance(value, dict) and has_below and (value or name not in RULES):
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _replace(values: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Change the values. A block that replaces null replaces all of it, and the other way round."""
    for name, value in changes.items():
        for other in [known for known in values if known.startswith(f"{name}.") or name.startswith(f"{known}.")]:
            del values[other]
        values[name] = value


def _require_fit(settings: Settings) -> None:
    """Raise SettingsError where settings do not fit one another."""
    if settings["model.n_embd"] % settings["model.n_head"]:
        raise SettingsError(
            f"model.n_head {settings['model.n_head']} does not divide model.n_embd {settings['model.n_embd']}"
        )
    for name in ("model.bos_token_id", "model.eos_token_id"):
        if settings[name] >= settings["model.vocab_size"]:
            raise SettingsError(
                f"{name} {settings[name]} is not in a vocabulary of {settings['model.vocab_size']} tokens"
            )
    if settings["deepspeed.bf16.enabled"] and settings.get("deepspeed.fp16.enabled"):
        raise SettingsError("deepspeed.bf16.enabled and deepspeed.fp16.enabled are both true")
    if settings["training.schedule.decay_steps"] < settings["training.schedule.warmup_steps"]:
        raise SettingsError("training.schedule.decay_steps is less than warmup_steps")
    batch, micro, ranks = settings.batch, settings.micro, settings.ranks
    if batch % (micro * ranks):
        fits = [each for each in range(1, batch // ranks + 1) if batch % (each * ranks) == 0]
        advice = (
            f"with {ranks} ranks deepspeed.train_micro_batch_size_per_gpu can be {', '.join(map(str, fits[-8:]))}"
            if fits
            else f"ranks that divide {batch} are {', '.join(str(n) for n in range(1, batch + 1) if batch % n == 0)}"
        )
        raise SettingsError(
            f"a batch of {batch} samples cannot be split into micro batches of {micro} on {ranks} ranks; {advice}"
        )
    partition = settings.get("deepspeed.zero_optimization.zero_hpz_partition_size", 1)
    if ranks % min(partition, ranks):  # DeepSpeed takes the ranks where there are fewer
        raise SettingsError(
            f"deepspeed.zero_optimization.zero_hpz_partition_size {partition} does not divide the {ranks} ranks"
        )
    _require_price(_nested(settings.values)["training"]["cost"])


def _require_price(cost: Any) -> None:
    """Raise SettingsError if the cost could not be computed when the training has ended."""
    for key, why in (
        ("price_per_hour", ""),
        ("price_of", "; a price of a node taken for that of a GPU is wrong by their number"),
    ):
        if cost is not None and key not in cost:
            raise SettingsError(f"training.cost.{key} is missing{why}")
    try:
        price.read(cost)
    except KitError as error:
        raise SettingsError(f"training.{error}") from error


def require_steps(settings: Settings) -> None:
    """Raise SettingsError if the steps have no room for what the legs of an acceptance do."""
    steps, every = settings["training.steps"], settings["training.checkpoint.every"]
    if steps % every or steps < 3 * every:
        raise SettingsError(
            f"training.steps is {steps} and training.checkpoint.every {every}: an acceptance needs at least three "
            f"checkpoints, the last at the end"
        )


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        *above, last = name.split(".")
        place = found
        for key in above:
            place = place.setdefault(key, {})
        place[last] = value
    return found
