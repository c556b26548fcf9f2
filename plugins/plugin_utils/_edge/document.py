# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make edge.json, the document on which a workload's criteria about edge hosts are judged. Pure. PRIVATE.

A value that cannot be had is a text that says why: where a criterion expects a number, the judge finds none, and the
report shows the text. Only of what is a text itself, the power mode, null says that it is not known.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import npy, problem
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.bundle import Bundle
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.figures import Figures
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.judged import OtherBundleError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.problem import ProblemError

Json = dict[str, t.Any]
MB, GB = 1e6, 1e9
AS_LOCKED = "as locked"
NOTHING = "it measured nothing"
LOCKED = ("onnxruntime", "numpy")
LIMITS = (
    *("latency_ms", "size_mb", "memory_gb", "temperature_c", "power_w"),
    *("power_rails", "soak_seconds", "power_mode"),
)
FACTS = ("machine", "python", "onnxruntime", "numpy", "kernel")
KERNELS = {"armv8l": "aarch64", "i686": "x86_64"}  # of 64 bits, beneath a Python of 32
SHA256 = re.compile(r"[0-9a-f]{64}")


class Told(t.NamedTuple):
    """What is known of a host: what it said when it was looked at, what it was sent, and what it answered."""

    document: Json  # as `results.read` returns it
    look: Json | None = None
    packages: Json | None = None


def document(job: Json, told: t.Mapping[str, Told], bundle: Bundle | ProblemError, judged: str | ProblemError) -> Json:
    """Return edge.json for the job, with all hosts of `told`; `judged` is the SHA-256 of the model that was judged."""
    try:
        truth: npy.Floats | str = problem.words(bundle.told) if isinstance(bundle, ProblemError) else bundle.answers()
    except ValueError as exc:
        truth = str(exc)
    return {
        "schema": 1,
        "job_id": job["job_id"],
        "attempt": job["attempt"],
        "expected": len(told),
        "limits": _limits(bundle),
        "hosts": {name: _host(each, bundle, truth, judged) for name, each in told.items()},
    }


def _limits(bundle: Bundle | ProblemError) -> Json:
    """Return the profile's bounds as the job left them."""
    if isinstance(bundle, ProblemError):
        return dict.fromkeys(LIMITS, problem.words(bundle.told))
    given = bundle.contents["limits"]
    lacking = {name: "the bundle does not have this limit" for name in LIMITS if name not in given}
    return {**scalars.bounded(given), **lacking}


def _host(told: Told, bundle: Bundle | ProblemError, truth: npy.Floats | str, judged: str | ProblemError) -> Json:
    """Return what is judged of one host."""
    why = None
    if told.document.get("problem"):
        why = problem.words(told.document["problem"])
    elif isinstance(bundle, ProblemError):
        why = problem.words(bundle.told)
    of_another = None if why else _of_another(told)
    why = why or of_another
    result = told.document.get("measured") if why is None else None
    limits = {} if isinstance(bundle, ProblemError) else bundle.contents["limits"]
    measured = Figures(result, why or NOTHING, limits)
    look = told.look or {}
    return {
        **{name: measured.text(name, look.get(name)) for name in FACTS},
        "board": measured.board(look),
        **_deployed({} if of_another else told.document, bundle, judged, why),
        **_runtime(measured, told.packages, told.document.get("problem")),
        "cold_start_s": measured.positive("cold_start_seconds"),
        **measured.latencies(),
        "cpu_share": measured.number("latency", "cpu_share"),
        "repeats": measured.repeats(),
        "memory_gb": measured.positive("peak_rss_bytes", per=GB),
        "near": measured.near(truth),
        **measured.soak(),
        "power_mode": measured.power_mode(),
        "as_powered": measured.as_powered(limits.get("power_mode")),
        "models": measured.models(),
    }


def _of_another(told: Told) -> str | None:
    """Return why the answer is another device's than the one that was looked at, None if nothing says so."""
    look, result = told.look or {}, told.document.get("measured")
    if not isinstance(result, dict):
        return None
    name, of = str(look.get("device") or "").partition(" ")[0], told.document.get("host")
    if name and of != name:
        return f"it is of the device {scalars.show(of)}; the one that was looked at is {name}"
    machine, on = look.get("machine"), result.get("machine")
    if machine and on not in (machine, KERNELS.get(machine, machine)):
        return f"it is of a processor {scalars.show(on)}; the device that was looked at has {machine}"
    return None


def _deployed(document: Json, bundle: Bundle | ProblemError, judged: str | ProblemError, why: str | None) -> Json:
    """Return which model the host has, its size, and whether it is the one that was judged.

    This is told also of a host that has it and could not measure it.
    """
    if isinstance(bundle, ProblemError):
        is_other = isinstance(bundle, OtherBundleError) and why == problem.words(bundle.told)
        return {"model": why, "as_judged": False if is_other else why, "size_mb": why}
    found = document.get("deployed")
    deployed: Json = found if isinstance(found, dict) else {}
    name, digest = deployed.get("model"), deployed.get("sha256")
    size: t.Any = deployed.get("bytes")
    is_own: bool | str = name == bundle.deployed and digest == bundle.packed["sha256"]
    if not isinstance(digest, str) or not SHA256.fullmatch(digest):
        is_own = why or f"deployed.sha256 is {scalars.describe(digest)}; expected the SHA-256 of the file there"
    elif is_own:
        is_own = problem.words(judged.told) if isinstance(judged, ProblemError) else digest == judged
    is_size = scalars.is_number(size) and size > 0
    lacking = why or f"deployed.bytes is {scalars.describe(size)}; expected the size of the file there"
    return {
        "model": scalars.bounded(name) if isinstance(name, str) and name else why or bundle.deployed,
        "as_judged": is_own,
        "size_mb": size / MB if is_size else lacking,
    }


def _runtime(measured: Figures, packages: Json | None, told: Json | None) -> Json:
    """Return whether ONNX Runtime and NumPy are the locked ones: in words, and as a value that can be judged."""
    if told and told["id"] == "runtime":
        return {"runtime": problem.words(told), "as_locked": False}
    if measured.result is None:
        return {"runtime": None, "as_locked": measured.why}
    wanted = {name: (packages or {}).get(name) for name in LOCKED}
    if not all(isinstance(version, str) for version in wanted.values()):
        return {"runtime": None, "as_locked": "which versions are locked for it is not known"}
    other = [
        f"{name} {scalars.bounded(measured.result.get(name))}, expected {version}"
        for name, version in wanted.items()
        if measured.result.get(name) != version
    ]
    return {"runtime": "; ".join(other) or AS_LOCKED, "as_locked": not other}
