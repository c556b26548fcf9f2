# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the bundle that a job leaves for edge hosts, deploy.zip: whole, of this job, of bounded size. PRIVATE."""

from __future__ import annotations

import hashlib
import lzma
import re
import typing as t
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars, strict_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import npy
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.problem import ProblemError
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge.job import judge_job

Json = dict[str, t.Any]
MB = 1_000_000
MAX_BYTES = 500 * MB  # packed, and unpacked; roles/edge does not even fetch a larger one
MAX_CONTENTS = 1 << 20
CONTENTS, INPUTS, ANSWERS = "bundle.json", "inputs.npy", "answers.npy"
MODELS = ("float", "pruned", "int8")
# A device unpacks them beside the programs that run there: a json.py would be imported.
FILES = (*(f"{model}.onnx" for model in MODELS), INPUTS, ANSWERS)
SHA256 = re.compile(r"[0-9a-f]{64}")
CHUNK = 1 << 20
# What zipfile raises for an archive that is damaged, encrypted or packed in a way that it does not know.
TORN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OSError,
    LookupError,
)


@dataclass(frozen=True)
class Bundle:
    """A bundle whose files are what its contents, bundle.json, say."""

    path: Path
    contents: Json

    @property
    def deployed(self) -> str:
        """The name of the model that is deployed."""
        return str(self.contents["deployed"])

    @property
    def packed(self) -> Json:
        """SHA-256 and size of the deployed model's file."""
        return t.cast(Json, self.contents["files"][f"{self.deployed}.onnx"])

    def names(self) -> list[str]:
        """Return the names of all files in it."""
        return sorted([CONTENTS, *self.contents["files"]])

    def answers(self) -> npy.Floats:
        """Return what the cluster answered. Raise ValueError."""
        try:
            with zipfile.ZipFile(self.path) as packed:
                if packed.getinfo(ANSWERS).file_size > npy.MAX_BYTES:
                    raise ValueError(f"it has more than {npy.MAX_VALUES} values")
                content = packed.read(ANSWERS)
        except TORN as exc:
            raise ValueError(f"{ANSWERS} of the bundle cannot be read: {exc}") from exc
        try:
            return npy.parse(content)
        except ValueError as exc:
            raise ValueError(f"{ANSWERS} of the bundle: {exc}") from exc


def read(path: Path, job: Json, found: Json | None = None) -> Bundle:
    """Return the bundle at `path`, which a job left that ended well. `found` is as for `lacking`.

    Raise ProblemError, `job` or `bundle`.
    """
    outcome = judge_job(job)
    if outcome["verdict"] != "pass":
        raise ProblemError("job", f"its job did not end well: {outcome['why']}")
    missing = lacking(found or {})
    if missing:
        raise ProblemError("bundle", missing)
    try:
        size = path.stat().st_size
    except OSError as exc:
        raise ProblemError("bundle", f"{path} cannot be read: {exc.strerror}") from exc
    large = _too_large(size)
    if large:
        raise ProblemError("bundle", large)
    try:
        with zipfile.ZipFile(path) as packed:
            contents = _contents(packed)
            _require_own(contents, job)
            _require_whole(packed, contents)
    except TORN as exc:
        raise ProblemError("bundle", f"deploy.zip is torn: {exc}") from exc
    return Bundle(path, contents)


def lacking(found: Json) -> str | None:
    """Return why there is no bundle to read, by what was found in the job's folder: the result of a stat, or `msg`."""
    told, msg = found.get("stat"), found.get("msg")
    if msg or not isinstance(told, dict):
        return f"deploy.zip could not be fetched: {msg or 'nobody has looked for it'}"
    if not told.get("exists"):
        return "its job left no deploy.zip"
    if not told.get("isreg"):
        return "deploy.zip is no regular file"
    return _too_large(told["size"])


def _too_large(size: int) -> str | None:
    return f"deploy.zip has {size // MB} MB; expected at most {MAX_BYTES // MB}" if size > MAX_BYTES else None


def _contents(packed: zipfile.ZipFile) -> Json:
    """Return bundle.json, checked as far as anything here relies on it."""
    names = packed.namelist()
    if len(set(names)) < len(names):
        raise ProblemError("bundle", "deploy.zip has a file twice")
    if CONTENTS not in names:
        raise ProblemError("bundle", f"deploy.zip has no {CONTENTS}")
    unpacked = sum(entry.file_size for entry in packed.infolist())
    if unpacked > MAX_BYTES or packed.getinfo(CONTENTS).file_size > MAX_CONTENTS:
        raise ProblemError("bundle", f"unpacked deploy.zip has {unpacked // MB} MB; expected at most {MAX_BYTES // MB}")
    contents = strict_json.parse(packed.read(CONTENTS), parse_constant=_refuse)
    wrong = _wrong(contents)
    if wrong:
        raise ProblemError("bundle", f"{CONTENTS} in deploy.zip: {wrong}")
    return t.cast(Json, contents)


def _refuse(name: str) -> t.NoReturn:
    raise ValueError(f"{name} is not a number")


def _wrong(contents: t.Any) -> str | None:
    if not isinstance(contents, dict) or contents.get("schema") != 1:
        return "expected a document of schema 1"
    files, limits = contents.get("files"), contents.get("limits")
    if not isinstance(files, dict) or not all(map(_is_described, files, files.values())):
        return f"files: expected some of {', '.join(FILES)}, each with sha256 and bytes{_foreign(files)}"
    if contents.get("deployed") not in MODELS:
        return f"deployed is {scalars.show(contents.get('deployed'))}; expected one of {', '.join(MODELS)}"
    lacking = [name for name in (f"{contents['deployed']}.onnx", INPUTS, ANSWERS) if name not in files]
    if lacking:
        return f"files: {', '.join(lacking)} is not there"
    if not isinstance(limits, dict):
        return f"limits is {scalars.describe(limits)}; expected an object"
    return None


def _foreign(files: t.Any) -> str:
    """Return which name is not one that a bundle has, as the end of a sentence."""
    others = sorted(set(files) - set(FILES)) if isinstance(files, dict) else []
    return f"; found {scalars.show(others[0])}" if others else ""


def _is_described(name: str, entry: t.Any) -> bool:
    return (
        name in FILES
        and isinstance(entry, dict)
        and isinstance(entry.get("sha256"), str)
        and SHA256.fullmatch(entry["sha256"]) is not None
        and isinstance(entry.get("bytes"), int)
        and not isinstance(entry["bytes"], bool)
    )


def _require_own(contents: Json, job: Json) -> None:
    """Raise ProblemError unless this job and this attempt made it."""
    theirs = (contents.get("job_id"), contents.get("attempt"))
    if theirs != (job["job_id"], job["attempt"]) or isinstance(theirs[1], bool):
        raise ProblemError(
            "bundle",
            f"deploy.zip is of job {scalars.show(theirs[0])}, attempt {scalars.show(theirs[1])}; "
            f"expected {job['job_id']}, attempt {job['attempt']}",
        )


def _require_whole(packed: zipfile.ZipFile, contents: Json) -> None:
    """Raise ProblemError unless the files are those that the contents list."""
    listed, there = {CONTENTS, *contents["files"]}, set(packed.namelist())
    if listed != there:
        raise ProblemError(
            "bundle", f"the files of deploy.zip are not those that it lists: {', '.join(sorted(listed ^ there))[:200]}"
        )
    for name, entry in contents["files"].items():
        found = hashlib.sha256()
        if packed.getinfo(name).file_size != entry["bytes"]:
            raise ProblemError(
                "bundle", f"{name} in deploy.zip has {packed.getinfo(name).file_size} bytes; expected {entry['bytes']}"
            )
        with packed.open(name) as stream:
            while chunk := stream.read(CHUNK):
                found.update(chunk)
        if found.hexdigest() != entry["sha256"]:
            raise ProblemError("bundle", f"{name} in deploy.zip is not the file that it lists: its SHA-256 is another")
