# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide whether the runs of a baseline can be compared with a run: only the number of GPUs may differ.

The module legs.py defines what a baseline is. Pure. PRIVATE to the collection.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.job import judge_job
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.legs import LEGS, MEASURED, NAMES, STORED
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.rows import UndeterminedError

SECONDS_OF_A_DAY = 86400
# Over a longer time a machine may change in ways that none of the compared facts shows.
MOST_DAYS = 90
# The documents that runs are compared by; for the run itself also legs.json, which has the rules.
COMPARED = ("metrics", "provenance")
COMPARED_OF_OWN = (*COMPARED, LEGS)
_EQUAL = {"weak": "batch_per_rank", "strong": "batch"}  # rule → the metric that must not differ


def runs(own: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the runs of the baseline of `own`; raise UndeterminedError if it has none."""
    baseline = own.get("baseline")
    if baseline is None:
        raise UndeterminedError(
            "there is no baseline to compare with: the job must run its legs, or you must give the saved evidence of "
            "an earlier run"
        )
    found = _at(baseline, "runs")
    if _at(baseline, "source") not in (LEGS, STORED) or not isinstance(found, list) or not found:
        raise UndeterminedError("the baseline does not say which runs it is made of")
    if not all(isinstance(run, dict) for run in found):
        raise UndeterminedError("one of the baseline's runs is not evidence")
    _require_both_legs_or_one_run(own, found)
    return found


def _require_both_legs_or_one_run(own: dict[str, Any], found: list[dict[str, Any]]) -> None:
    """Require one leg before and one after: their difference shows whether the machine was steady."""
    if is_of_legs(own) or any("leg" in run for run in found):
        names = [_at(run, "leg", "name") for run in found]
        if sorted(map(str, names)) != sorted(NAMES):
            raise UndeterminedError(f"the baseline's legs are {scalars.show(names)}, not {' and '.join(NAMES)}")
    elif len(found) != 1:
        raise UndeterminedError(f"the stored baseline is {len(found)} runs, not one")


def title(run: dict[str, Any]) -> str:
    """Return the name of the run in reasons."""
    name = _at(run, "leg", "name")
    return "the baseline" if name is None else f"the baseline's leg {scalars.printable(str(name))}"


def is_of_legs(own: dict[str, Any]) -> bool:
    """Return whether the baseline's runs are legs of the same job."""
    return bool(_at(own, "baseline", "source") == LEGS)


def require_comparable(own: dict[str, Any], run: dict[str, Any]) -> None:
    """Raise UndeterminedError unless `run` passed, ran long enough, and matches `own` in all that is compared."""
    _require_success(own, run)
    _require_work(own, run)
    if is_of_legs(own):
        _require_zero(_at(own, LEGS, MEASURED, "exit_code"), "the measured leg's")
    _require_window(own, run)
    _require_nodes(own, run)
    _require_gpus(own, run)
    _require_software(own, run)
    _require_data(own, run)


def age(own: dict[str, Any], found: list[dict[str, Any]]) -> str | None:
    """Return the job and the age of a stored baseline, None for legs. Raise UndeterminedError if it is unknown."""
    if is_of_legs(own):
        return None
    jobs = ", ".join(sorted({scalars.printable(str(_at(run, "job", "job_id"))) for run in found}))
    started, ended = _at(own, "job", "started"), [_at(run, "job", "ended") for run in found]
    if not all(scalars.is_number(time) for time in (started, *ended)):
        raise UndeterminedError(
            f"the age of the stored baseline of job {jobs} is unknown: it ended at {scalars.show(ended[0])}, and "
            f"this job began at {scalars.show(started)}"
        )
    if max(ended) > started:
        raise UndeterminedError(f"the stored baseline of job {jobs} ended after this job began")
    days = int((started - min(ended)) // SECONDS_OF_A_DAY)
    if days >= MOST_DAYS:
        raise UndeterminedError(
            f"the stored baseline of job {jobs} is {days} days old; it must be less than {MOST_DAYS} days old"
        )
    old = "less than a day" if days == 0 else "1 day" if days == 1 else f"{scalars.show(days)} days"
    return f"stored baseline of job {jobs}, {old} old"


def _at(document: Any, *path: str) -> Any:
    """Return the value at `path`, or None if there is none."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(item) for item in value)


def _on_cpu(own: dict[str, Any]) -> bool:
    """Return whether the inventory has no GPUs, so that no run names one."""
    return bool(_at(own, "context", "accelerator") == "cpu")


def _require_success(own: dict[str, Any], run: dict[str, Any]) -> None:
    outcome = judge_job(run.get("job"))
    if outcome["verdict"] != "pass":
        raise UndeterminedError(f"its job did not pass: {outcome['why']}")
    if is_of_legs(own) and run["job"] != own.get("job"):
        raise UndeterminedError("it is not a leg of this job")
    if "leg" in run:
        _require_zero(_at(run, "leg", "exit_code"), "its")


def _require_zero(code: Any, whose: str) -> None:
    if isinstance(code, bool) or not isinstance(code, int) or code != 0:
        raise UndeterminedError(f"{whose} exit code is {scalars.describe(code)}, not 0")


def _require_work(own: dict[str, Any], run: dict[str, Any]) -> None:
    """Require the same workload on fewer ranks; legs.json says what must stay equal."""
    _require_same("workload", *(_at(one, "job", "name") for one in (run, own)), needed=True)
    its, mine = _counts(own, run, "world_size")
    if its >= mine:
        raise UndeterminedError(f"it ran on {scalars.show(its)} ranks, no fewer than this job's {scalars.show(mine)}")
    rule = _at(own, LEGS, "work")
    equal = _EQUAL.get(rule) if isinstance(rule, str) else None
    if equal is None:
        raise UndeterminedError(f"legs.json does not say which work stays equal: {scalars.describe(rule)}")
    its, mine = _counts(own, run, equal)
    if its != mine:
        raise UndeterminedError(f"its {equal} is {scalars.show(its)} and this job's {scalars.show(mine)}")


def _counts(own: dict[str, Any], run: dict[str, Any], name: str) -> tuple[int, int]:
    """Return a count from the metrics of `run` and of `own`; raise UndeterminedError unless both are counts."""
    its, mine = (_at(one, "metrics", name) for one in (run, own))
    for count, whose in ((its, "its"), (mine, "this job's")):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise UndeterminedError(f"{whose} {name} is {scalars.describe(count)}, not a whole number of at least 1")
    return its, mine


def _require_window(own: dict[str, Any], run: dict[str, Any]) -> None:
    """Require speeds that were both measured for as long as legs.json says."""
    least = _at(own, LEGS, "steady_seconds")
    for one, whose in ((run, "its"), (own, "this job's")):
        found = _at(one, "metrics", "steady", "seconds")
        if not scalars.is_number(least) or not scalars.is_number(found) or not 0 < least <= found:
            raise UndeterminedError(
                f"{whose} speed was measured over {scalars.show(found)} s, and {scalars.show(least)} s are needed"
            )


def _nodes(run: dict[str, Any]) -> Any:
    if "leg" in run:
        return _at(run, "leg", "nodes")
    return _at(run, "job", "nodes") or [_at(run, "provenance", "node")]


def _require_nodes(own: dict[str, Any], run: dict[str, Any]) -> None:
    its, mine = _nodes(run), _nodes(own)
    for nodes, whose in ((its, "it"), (mine, "this job")):
        if not nodes or not _are_names(nodes):
            raise UndeterminedError(f"which node {whose} ran on is unknown: {scalars.describe(nodes)}")
    if not set(its) <= set(mine):
        raise UndeterminedError(f"it ran on {', '.join(its)} and this job on {', '.join(mine)}")


def _require_gpus(own: dict[str, Any], run: dict[str, Any]) -> None:
    its, mine = (_at(one, "metrics", "gpu_uuids") for one in (run, own))
    for gpus, whose in ((its, "it"), (mine, "this job")):
        if not _are_names(gpus):
            raise UndeterminedError(f"which GPUs {whose} ran on is unknown: {scalars.describe(gpus)}")
        if len(set(gpus)) < len(gpus):
            raise UndeterminedError(f"{whose} names a GPU twice: {scalars.show(gpus)}")
    if not mine and not its and not _on_cpu(own):
        raise UndeterminedError("neither it nor this job names the GPUs that it ran on")
    if bool(mine) != bool(its) or not set(its) <= set(mine):
        raise UndeterminedError(f"its GPUs are {scalars.show(its)} and this job's {scalars.show(mine)}")


def _require_software(own: dict[str, Any], run: dict[str, Any]) -> None:
    both = (run, own)
    _require_same("driver", *(_at(one, "provenance", "driver_version") for one in both), needed=not _on_cpu(own))
    in_image = any(_at(one, "provenance", "container") is not None for one in both)
    _require_same("container", *(_at(one, "provenance", "container", "sha256") for one in both), needed=in_image)
    # A lock does not describe an image that the site supplies; its SHA-256 does.
    locks = (_at(one, "provenance", "runtime", "lock_sha256") for one in both)
    _require_same("lock", *locks, needed=not in_image)


def _require_data(own: dict[str, Any], run: dict[str, Any]) -> None:
    its, mine = (_at(one, "provenance", "data", "files") or None for one in (run, own))
    sums = [_at(one, "metrics", "data", "sha256") for one in (run, own)]
    _require_same("data", *sums, needed=its is None and mine is None)
    if its != mine:
        differing = _first_difference(its, mine)
        raise UndeterminedError(f"its data are {differing[0]} and this job's {differing[1]}")


def _first_difference(its: Any, mine: Any) -> tuple[str, str]:
    """Return both sides as text: of two sets of files only the first that differs, to keep the message short."""
    if not isinstance(its, dict) or not isinstance(mine, dict):
        return scalars.show(its), scalars.show(mine)
    name = next(name for name in sorted({*its, *mine}) if _part(its, name) != _part(mine, name))
    return scalars.show(_part(its, name)), scalars.show(_part(mine, name))


def _part(files: dict[str, Any], name: str) -> dict[str, Any]:
    return {name: files[name]} if name in files else {}


def _require_same(what: str, its: Any, mine: Any, *, needed: bool) -> None:
    """Require the same text in both; if it is not `needed`, both may be missing."""
    if its is None and mine is None:
        if needed:
            raise UndeterminedError(f"neither its {what} is known nor this job's")
    elif its != mine or not _is_text(its):
        raise UndeterminedError(f"its {what} is {scalars.show(its)} and this job's {scalars.show(mine)}")
