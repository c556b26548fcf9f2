# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the result of slurm_cluster_info and the site's settings for sbatch, so that judges can rely on types.

Every value of a wrong type is reported, and then nothing is judged: partial facts are not used.
"""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars

Json = dict[str, t.Any]
Kind = t.Callable[[t.Any], bool]


def _is_text(value: t.Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_flag(value: t.Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _are_texts(value: t.Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_counts(value: t.Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value)) and all(map(_is_count, value.values()))


def _or_nothing(kind: Kind) -> Kind:
    return lambda value: value is None or kind(value)


# What each entry of a list must have, and its type in words.
PARTS: dict[str, dict[str, tuple[Kind, str]]] = {
    "controllers": {"host": (_is_text, "text"), "up": (_is_flag, "true or false")},
    "partitions": {
        "name": (_is_text, "text"),
        "state": (_or_nothing(_is_text), "text"),
        "default": (_is_flag, "true or false"),
    },
    "nodes": {
        "name": (_is_text, "text"),
        "state": (_or_nothing(_is_text), "text"),
        "flags": (_are_texts, "a list of texts"),
        "gres": (_are_counts, "an object of counts"),
        "partitions": (_are_texts, "a list of texts"),
        "reason": (_or_nothing(lambda value: isinstance(value, str)), "text"),
        "features": (_or_nothing(_are_texts), "a list of texts"),
        "gres_types": (_or_nothing(_are_texts), "a list of texts"),
    },
}


# The parts that the coverage of a run counts.
COUNTED = {"nodes": {key: PARTS["nodes"][key] for key in ("name", "gres", "state", "reason")}}


def read(info: t.Any, parts: dict[str, dict[str, tuple[Kind, str]]] | None = None) -> tuple[Json, list[str]]:
    """Return the facts and no errors, or, if a value of these parts (all by default) has a wrong type, the errors."""
    if not isinstance(info, dict):
        return {}, [f"the facts: expected an object, found {scalars.describe(info)}"]
    wrong = [words for part, keys in (parts or PARTS).items() for words in _amiss(info, part, keys)]
    if not isinstance(info.get("problems", []), list):
        wrong.append(f"problems: expected a list, found {scalars.describe(info['problems'])}")
    return ({}, wrong) if wrong else (info, [])


def _amiss(info: Json, part: str, keys: dict[str, tuple[Kind, str]]) -> t.Iterator[str]:
    entries = info.get(part, [])
    if not isinstance(entries, list):
        yield f"{part}: expected a list, found {scalars.describe(entries)}"
        return
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict):
            yield f"{part}[{place}]: expected an object, found {scalars.describe(entry)}"
            continue
        for key, (fits, kind) in keys.items():
            if not fits(entry.get(key)):
                yield f"{part}[{place}].{key}: expected {kind}, found {scalars.describe(entry.get(key))}"


def stated(settings: t.Any) -> Json:
    """Return the site's settings for sbatch as text, without null and false values; lists become comma-separated.

    An element of a list that is null is left out as well; slurm_job refuses such a list before it submits anything.
    """
    given = settings if isinstance(settings, dict) else {}
    said = {key: value for key, value in given.items() if value is not None and value is not False}
    return {key: value if key == "extra" else _text(value) for key, value in said.items()}


def _text(value: t.Any) -> str:
    return ",".join(str(item) for item in value if item is not None) if isinstance(value, (list, tuple)) else str(value)
