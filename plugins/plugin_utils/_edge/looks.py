# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conclude from a look at the edge hosts which wheels they need, and which workloads can be measured there. PRIVATE."""

from __future__ import annotations

import shlex
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars, strict_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import problem
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.requirements import PYTHONS
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.titles import PYTHON, REACHED, TITLES, WHEELS
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import findings, remedies

Json = dict[str, t.Any]
BOUNDS = {REACHED: "answers", PYTHON: f"CPython {PYTHONS}", WHEELS: "all there"}
SOURCES = {REACHED: "look.py", PYTHON: "look.py", WHEELS: "kit wheelhouse"}
# What a problem of a look says of; any other is one of reaching the host.
KINDS = {"python": PYTHON, "wheels": WHEELS}


def outcome(registered: t.Any, limit: str = "") -> Json:
    """Return {look, requirement, problem} of what edge_host answered on a host, whatever it is."""
    told = registered if isinstance(registered, dict) else {}
    found = told.get("problem")
    if not told and limit:
        found = problem.problem(problem.LEFT_OUT, f"left out by --limit {limit}")
    elif not told:
        found = problem.problem("unreachable", "it was not looked at")
    elif isinstance(found, dict) and {"id", "text"} <= set(found):
        found = problem.problem(str(found["id"]), str(found["text"]))
    elif not told.get("requirement"):
        found = problem.problem("unreachable", str(told.get("msg") or "its look has no answer"))
    else:
        found = None
    return {"look": told.get("look"), "requirement": told.get("requirement") if not found else None, "problem": found}


def wheels(outcomes: t.Mapping[str, Json], cache: str) -> list[Json]:
    """Return the folders of wheels that the hosts need, each once: {key, lock, python, machine, libc, output}."""
    found: dict[str, Json] = {}
    for each in outcomes.values():
        if each["requirement"]:
            key = _key(each["requirement"])
            found.setdefault(key, {"key": key, **each["requirement"], "output": f"{cache}/{key}"})
    return [found[key] for key in sorted(found)]


def _key(requirement: Json) -> str:
    return "-".join(requirement[name] for name in ("lock", "python", "machine", "libc"))


def made(results: t.Iterable[Json], failure: str | None = None) -> dict[str, Json]:
    """Return what `kit wheelhouse` answered for each key, or {problem}; `results` are those of the task's loop."""
    found: dict[str, Json] = {}
    for result in results:
        try:
            answer = strict_json.parse(str(result["stdout"])) if result.get("rc") == 0 else None
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or not {"folder", "wheels", "packages"} <= set(answer):
            # That it ended by itself, with a reason, is an answer: there are no such wheels where it was told to look.
            answer = {"problem": problem.problem("wheels", _failed(result)), "is_told": result.get("rc") == 1}
        found[result["item"]["key"]] = answer
    return found if failure is None else {**found, "": {"problem": problem.problem("wheels", failure)}}


def _failed(result: Json) -> str:
    """Return why wheels could not be fetched, with the command as a person would run it."""
    words = [str(word) for word in result.get("cmd") or []]
    command = shlex.join(words[words.index("--") + 1 :] if "--" in words else words)
    said = str(result.get("stderr") or result.get("msg") or "it said nothing").strip()[-600:]
    wheel = result["item"]
    whose = f"onnxruntime for Python {wheel['python']} on {wheel['machine']} (glibc {wheel['libc']})"
    return f"{whose}: {said}: from {command or 'kit wheelhouse'}, with PYTHONPATH=files of the collection"


def concluded(outcomes: t.Mapping[str, Json], fetched: t.Mapping[str, Json], workloads: list[str]) -> Json:
    """Return {hosts, findings}: what each host is measured with, or its problem, and what the run records.

    A host that nothing is locked for holds the workloads back; one that cannot be reached only if none can.
    """
    hosts = {name: _with_wheels(each, fetched) for name, each in _each_once(outcomes).items()}
    none_reached = not any(_kind(each) != REACHED for each in hosts.values())
    found = [
        finding
        for name, each in hosts.items()
        for finding in _findings(name, each, workloads, none_reached=none_reached)
    ]
    return {"hosts": hosts, "findings": found}


def _each_once(outcomes: t.Mapping[str, Json]) -> dict[str, Json]:
    """Return the outcomes; a device that an earlier name has is a problem of each later one."""
    first: dict[str, str] = {}
    found = {}
    for name, each in outcomes.items():
        device = (each["look"] or {}).get("device")
        other = first.setdefault(device, name) if device and not each["problem"] else name
        told = problem.problem(
            "twice", f"it is the same device as {other}, by its name and its kernel's start: {device}"
        )
        found[name] = each if other == name else {**each, "requirement": None, "problem": told}
    return found


def _with_wheels(each: Json, fetched: t.Mapping[str, Json]) -> Json:
    """Return the outcome of a host with its wheelhouse, or with the problem of having none."""
    if each["problem"]:
        return {**each, "wheelhouse": None}
    answer = fetched.get(_key(each["requirement"])) or fetched.get("") or {}
    if "wheels" in answer:
        return {**each, "wheelhouse": answer}
    told = answer.get("problem") or problem.problem("wheels", "they were not fetched")
    unfetched = "fail" if answer.get("is_told") else "undetermined"
    return {**each, "wheelhouse": None, "problem": told, "unfetched": unfetched}


def _kind(each: Json) -> str | None:
    """Return the check that a host's problem is one of; None without a problem."""
    return KINDS.get(each["problem"]["id"], REACHED) if each["problem"] else None


def _findings(host: str, each: Json, workloads: list[str], *, none_reached: bool) -> t.Iterator[Json]:
    kind = _kind(each)
    if kind is None:
        for identity in TITLES:
            yield _finding(identity, "pass", {"host": host}, _well(identity, each))
        return
    verdict = "undetermined" if kind == REACHED else each.get("unfetched", "fail")
    symptom = f"{kind}.fetched" if each.get("unfetched") else kind
    symptom = f"{kind}.twice" if each["problem"]["id"] == "twice" else symptom
    holds = kind != REACHED or none_reached
    for workload in workloads if holds else [None]:
        where = {"host": host, **({"workload": workload} if workload else {})}
        yield _finding(kind, verdict, where, each["problem"]["text"], symptom, _value(kind, each))


def _well(identity: str, each: Json) -> str:
    look, wheelhouse = each["look"] or {}, each["wheelhouse"]
    if identity == REACHED:
        return f"{look.get('board') or look.get('machine')} answers"
    if identity == PYTHON:
        return f"it is {look.get('python')}"
    return f"{len(wheelhouse['wheels'])} wheels for {each['requirement']['lock']}"


def _value(kind: str, each: Json) -> t.Any:
    look = each["look"] or {}
    return {PYTHON: look.get("python"), WHEELS: look.get("machine")}.get(kind)


def _finding(
    identity: str, verdict: str, where: Json, why: str, symptom: str | None = None, value: t.Any = None
) -> Json:
    return findings.finding(
        identity,
        TITLES[identity],
        verdict,
        value=scalars.bounded(value),
        bound=BOUNDS[identity],
        source=SOURCES[identity],
        why=scalars.printable(why),
        remedy=remedies.remedy(symptom, where) if symptom else None,
        where=where,
    )
