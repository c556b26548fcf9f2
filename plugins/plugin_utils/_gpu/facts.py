# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read single values from facts that may be damaged: a value of the right type, or the reason it is missing."""

from __future__ import annotations

import typing as t

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.findings import SILENT
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.reading import Reading

Json = dict[str, t.Any]

# NVML's errors for what the card or its driver does not have. Any other error is a failure to read.
LACKS = "NotSupported"  # the card itself does not have it; the others are about driver and binding
UNSUPPORTED = {LACKS, "FunctionNotFound", "ArgumentVersionMismatch"}

_KINDS: dict[str, t.Callable[[t.Any], bool]] = {
    "a number": scalars.is_number,
    "a count": lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63,
    "true or false": lambda value: isinstance(value, bool),
    "a text": lambda value: isinstance(value, str) and bool(value.strip()),
    "a list": lambda value: isinstance(value, list),
    "an object": lambda value: isinstance(value, dict),
}
NUMBER, COUNT, FLAG, TEXT, LIST, OBJECT = _KINDS


def read(facts: t.Any, path: str, kind: str) -> Reading:
    """Return the value at the dotted `path` if it is of `kind`; `facts["unsupported"]` says why a value is null."""
    value = facts
    for key in path.split("."):
        if not isinstance(value, dict):
            return _absent(facts, path) if value is None else _wrong(path, value, OBJECT)
        value = value.get(key)
    if value is None:
        return _absent(facts, path)
    return Reading(value) if _KINDS[kind](value) else _wrong(path, value, kind)


def _wrong(path: str, value: t.Any, kind: str) -> Reading:
    return Reading(missing=f"{path}: expected {kind}, found {scalars.describe(value)}", damaged=True)


def _absent(facts: t.Any, path: str) -> Reading:
    return absent(facts, path) or Reading(missing=f"{path} was not reported")


def absent(facts: t.Any, path: str) -> Reading | None:
    """Return the reason in `facts["unsupported"]` for the dotted `path` or a group that contains it, if any."""
    reasons = facts.get("unsupported") if isinstance(facts, dict) else None
    name = path
    while name and isinstance(reasons, dict):
        reason = reasons.get(name)
        if isinstance(reason, str) and reason:
            return Reading(missing=f"{path}: {reason}", unsupported=reason in UNSUPPORTED, reason=reason)
        name = name.rpartition(".")[0]
    return None


def mig_on(gpu: t.Any) -> bool:
    """Return whether MIG splits a GPU, one of the facts' `gpus`."""
    return read(gpu, "mig.current", FLAG).value is True


class Gpu:
    """One entry of the facts' `gpus`."""

    def __init__(self, facts: t.Any, position: int) -> None:
        self.facts = facts
        self.error = _error(facts)
        index = read(facts, "index", COUNT).value
        names = [read(facts, key, TEXT).value for key in ("pci", "uuid")]
        known = ", ".join(scalars.printable(name) for name in names if name)
        self.name = f"GPU {position if index is None else index}" + (f" ({known})" if known else "")

    @property
    def split(self) -> bool:
        """Whether MIG splits it, in which case NVML reports less about the whole GPU."""
        return self.error.value == "" and mig_on(self.facts)

    @property
    def symptom(self) -> str:
        """The symptom of a GPU that does not answer."""
        return "gpu.answers.hung" if "did not answer" in str(self.error.value) else "gpu.answers"

    def get(self, path: str, kind: str) -> Reading:
        """Return the fact at `path`; nothing can be read from a GPU that does not answer."""
        if self.error.value == "":
            return read(self.facts, path, kind)
        if self.error.missing:
            return Reading(missing=self.error.missing)
        return Reading(missing=f"{SILENT}: {scalars.printable(self.error.value)}", symptom=self.symptom)


def _error(facts: t.Any) -> Reading:
    """Return why the GPU as a whole could not be read, or an empty string if it could."""
    if not isinstance(facts, dict):
        return Reading(missing=f"expected an object, found {scalars.describe(facts)}")
    if "error" not in facts:
        return Reading(missing="whether reading this GPU failed was not reported")
    return Reading("") if facts["error"] is None else read(facts, "error", TEXT)
