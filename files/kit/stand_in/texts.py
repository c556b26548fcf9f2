# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instructions and answers generated from seeded templates: short, all different, and learnable."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable

from kit.stand_in.words import CAPITALS, COLOURS, JOBS, NAMES, OPPOSITES, PLACES, THINGS, VERBS

SYSTEMS = (
    "You answer in one short sentence.",
    "You are a patient teacher who explains simple things.",
    "You are a helpful assistant in a small shop.",
    "You answer politely and never use more words than needed.",
)
MULTI_TURN_SHARE, SYSTEM_SHARE = 0.12, 0.1


@dataclass(frozen=True)
class Instruction:
    """One task and its answer; ``input`` may be empty."""

    category: str
    instruction: str
    input: str
    output: str

    @property
    def prompt(self) -> str:
        """The task as a user would type it."""
        return f"{self.instruction}\n{self.input}" if self.input else self.instruction


def _sum(draw: random.Random) -> Instruction:
    first, second = draw.randrange(100), draw.randrange(100)
    return Instruction("Open QA", f"What is {first} plus {second}?", "", f"{first} plus {second} is {first + second}.")


def _larger(draw: random.Random) -> Instruction:
    first, second = draw.sample(range(1000), 2)
    return Instruction(
        "Closed QA", "Which of the two numbers is larger?", f"{first} and {second}", f"{max(first, second)} is larger."
    )


def _opposite(draw: random.Random) -> Instruction:
    pair = list(draw.choice(OPPOSITES))
    draw.shuffle(pair)
    thing, other = draw.sample(sorted(THINGS), 2)
    return Instruction(
        "Rewrite",
        "Replace the adjective by its opposite.",
        f"The {thing} is more {pair[0]} than the {other}.",
        f"The {thing} is more {pair[1]} than the {other}.",
    )


def _plural(draw: random.Random) -> Instruction:
    count, thing = draw.randrange(2, 30), draw.choice(sorted(THINGS))
    return Instruction(
        "Rewrite", f"Say that you have {count} of this thing.", thing, f"I have {count} {THINGS[thing]}."
    )


def _colour(draw: random.Random) -> Instruction:
    thing, colour, place = draw.choice(sorted(THINGS)), draw.choice(COLOURS), draw.choice(PLACES)
    return Instruction(
        "Closed QA",
        f"What colour is the {thing}?",
        f"There is a {colour} {thing} in the {place}.",
        f"The {thing} is {colour}.",
    )


def _past(draw: random.Random) -> Instruction:
    name, (now, then), place = draw.choice(NAMES), draw.choice(VERBS), draw.choice(PLACES)
    return Instruction(
        "Rewrite",
        "Put the sentence into the past tense.",
        f"{name} {now} near the {place}.",
        f"{name} {then} near the {place}.",
    )


def _greeting(draw: random.Random) -> Instruction:
    name, job, place = draw.choice(NAMES), draw.choice(JOBS), draw.choice(PLACES)
    return Instruction(
        "Generation",
        f"Write a greeting for {name}, a {job} at the {place}.",
        "",
        f"Dear {name}, I hope that your work as a {job} at the {place} goes well.",
    )


def _capital(draw: random.Random) -> Instruction:
    country, name = draw.choice(sorted(CAPITALS)), draw.choice(NAMES)
    return Instruction(
        "Chat",
        f"{name} asks: what is the capital of {country}?",
        "",
        f"{name}, the capital of {country} is {CAPITALS[country]}.",
    )


def _list(draw: random.Random) -> Instruction:
    things = draw.sample(sorted(THINGS), 3)
    return Instruction(
        "Extract",
        "Count the things in the list and name the last one.",
        ", ".join(things),
        f"There are 3 things, and the last one is the {things[-1]}.",
    )


def _meeting(draw: random.Random) -> Instruction:
    (first, second), place, hour = draw.sample(NAMES, 2), draw.choice(PLACES), draw.randrange(1, 13)
    return Instruction(
        "Summarize",
        "Say in one sentence who meets where and when.",
        f"{first} told {second} to be at the {place} at {hour} o'clock.",
        f"{first} and {second} meet at the {place} at {hour}.",
    )


TASKS: Sequence[Callable[[random.Random], Instruction]] = (
    _sum,
    _larger,
    _opposite,
    _plural,
    _colour,
    _past,
    _greeting,
    _capital,
    _list,
    _meeting,
)


def instructions(count: int, seed: int) -> list[Instruction]:
    """Return ``count`` instructions, all different."""
    draw = random.Random(seed)  # noqa: S311 - repeatable, not secret
    found: dict[str, Instruction] = {}
    while len(found) < count:
        made = draw.choice(TASKS)(draw)
        found.setdefault(made.prompt, made)
    return list(found.values())


def conversations(count: int, seed: int) -> list[dict[str, Any]]:
    """Return ``count`` rows of the hub's conversation format: prompt, prompt_id, messages, category.

    Some have a second question and its answer, some begin with a system turn; no two begin with the same question.
    """
    draw = random.Random(seed + 1)  # noqa: S311 - repeatable, not secret
    made = instructions(2 * count, seed)
    rows = []
    for first, second in zip(made[:count], made[count:]):
        turns = [first, second] if draw.random() < MULTI_TURN_SHARE else [first]
        messages = [_turn("system", draw.choice(SYSTEMS))] if draw.random() < SYSTEM_SHARE else []
        for turn in turns:
            messages += [_turn("user", turn.prompt), _turn("assistant", turn.output)]
        rows.append(
            {
                "prompt": first.prompt,
                "prompt_id": hashlib.sha256(first.prompt.encode()).hexdigest(),
                "messages": messages,
                "category": first.category,
            }
        )
    return rows


def _turn(role: str, content: str) -> dict[str, str]:
    return {"content": content, "role": role}


def corpus() -> list[str]:
    """Return the texts to train a stand-in's tokenizer, of the same kind as in the stand-ins for data."""
    made = [f"{each.prompt}\n{each.output}" for each in instructions(4000, seed=0)]
    return [*made, *SYSTEMS]


def digest(texts: Any) -> str:
    """Return a short hash of texts for a recipe: different templates give a different stand-in."""
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:12]
