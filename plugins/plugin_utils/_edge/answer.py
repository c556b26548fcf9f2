# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the one line that a program on an edge host answers with. Pure. PRIVATE to the collection.

What a device says is data: of the wrong type, twice, or of another run it is a problem, and never an exception of ours.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars, strict_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import problem
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.problem import ProblemError

Json = dict[str, t.Any]
MARK = "HPC_VALIDATION_EDGE "
MAX_CHARACTERS = 64 << 20
SAID = 400  # characters at the end of what a program said on standard error
NOT_STARTED = (126, 127)  # how a shell ends if it cannot run the program
LOOK = {"python": str, "implementation": str, "machine": str, "system": str, "home": str}
LOOK_OR_NULL = {"libc": str, "board": str, "device": str}


def read(done: Json, program: str) -> Json:
    """Return the document that `program` answered with; `done` has rc, stdout and stderr. Raise ProblemError."""
    lines = [line for line in str(done["stdout"]).split("\n") if line.startswith(MARK)]
    said = " ".join(str(done["stderr"]).split())[-SAID:]
    if not lines and done["rc"] in NOT_STARTED:
        raise ProblemError("python", f"{program} cannot be run there: {said or 'no reason is told'}")
    if not lines:
        raise ProblemError(
            "crashed", f"it ended with exit code {done['rc']} and no answer: {said or 'it said nothing'}"
        )
    if len(lines) > 1:
        raise ProblemError("result", f"it answered {len(lines)} times; expected one line")
    if len(lines[0]) > MAX_CHARACTERS:
        raise ProblemError("result", f"its answer has more than {MAX_CHARACTERS} characters")
    try:
        # NaN and infinities stay visible as what they are, in a form that JSON has.
        document = strict_json.parse(lines[0][len(MARK) :], parse_constant=str)
    except (ValueError, RecursionError) as exc:
        raise ProblemError("result", f"its answer cannot be read: {exc}") from exc
    if not isinstance(document, dict) or document.get("schema") != 1:
        raise ProblemError("result", "its answer is not a document of schema 1")
    return document


def look(document: Json) -> Json:
    """Return what a host says of itself, each value of its type. Raise ProblemError."""
    found: Json = {}
    for key, kind in {**LOOK, **LOOK_OR_NULL}.items():
        value = document.get(key)
        if not isinstance(value, kind) and not (value is None and key in LOOK_OR_NULL):
            raise ProblemError("result", f"{key} is {scalars.describe(value)}; expected text")
        found[key] = None if value is None else scalars.bounded(value)
    free = document.get("free_mb")
    found["free_mb"] = free if scalars.is_number(free) else None
    return found


def measured(document: Json, run: str) -> Json:
    """Return the document of a measurement in this run, with either a problem or a result. Raise ProblemError."""
    told = problem.read(document.get("problem"))
    result = document.get("measured")
    if result is not None and not isinstance(result, dict):
        raise ProblemError("result", f"measured is {scalars.describe(result)}; expected an object")
    if told is None and not result:
        raise ProblemError("result", "it answered with neither a result nor a problem")
    folder = document.get("folder")
    if result and not (isinstance(folder, str) and re.split("/", folder.rstrip("/"))[-1] == run):
        raise ProblemError("result", f"it is of {scalars.show(folder)}; expected a folder of the run {run}")
    return {**document, "problem": told}
