# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prepare a submission: check the script, build sbatch's options, and compute the hash that identifies the job."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import options as slurm_options
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import SlurmError
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.text import clean

COMMENT_PREFIX = "hpc_validation:"
SCRIPT_BYTES = 4 << 20

# YAML reads an unquoted 10:00 as the number 600, which Slurm reads as minutes.
_TIMES = ("time-min", "deadline", "begin")  # time itself abbreviates the first


@dataclass(frozen=True)
class Submission:
    """One job ready to be submitted. argv is complete; stdin is the script if it was given inline."""

    argv: tuple[str, ...]
    stdin: bytes | None
    script: bytes
    name: str
    content_hash: str

    @property
    def comment(self) -> str:
        """The comment by which the job is found in Slurm again."""
        return COMMENT_PREFIX + self.content_hash[:16]

    @property
    def script_sha256(self) -> str:
        """SHA-256 of the script's bytes."""
        return hashlib.sha256(self.script).hexdigest()


def prepare(spec: Mapping[str, object], user: str) -> Submission:
    """Check one job's description and return what to submit. Raise SlurmError naming what is wrong; nothing is run."""
    path, text = spec.get("path"), spec.get("script")
    if (path is None) == (text is None):
        raise SlurmError("Give exactly one of path (a script on the cluster) and script (its text).")
    where = f"the script {path}" if path is not None else "the script given inline"
    script = _read(str(path)) if path is not None else str(text).encode("utf-8", "surrogateescape")
    _check(script, where)
    options = option_argv(spec.get("options") or {})
    _check_directives(script, where, options)
    _check_sum(script, where, spec.get("sha256"))
    chdir = spec.get("chdir")
    if chdir is not None:
        if not os.path.isdir(str(chdir)):
            raise SlurmError(f"chdir {str(chdir)!r} is not a directory on {os.uname().nodename}: create it first.")
        options.append(f"--chdir={chdir}")
    identity = {
        "script": hashlib.sha256(script).hexdigest(),
        "options": sorted(options),
        "share": spec.get("share") or "",
        "user": user,
    }
    content_hash = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return Submission(
        argv=(
            "sbatch",
            "--parsable",
            f"--comment={COMMENT_PREFIX}{content_hash[:16]}",
            *options,
            *([str(path)] if path is not None else []),
        ),
        stdin=None if path is not None else script,
        script=script,
        name=_job_name(script, options, str(path) if path is not None else None),
        content_hash=content_hash,
    )


def _read(path: str) -> bytes:
    host = os.uname().nodename
    if not path.startswith("/"):
        raise SlurmError(f"path {path!r} is not absolute: the script is looked for on {host}.")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise SlurmError(f"The script {path} on {host} is not a regular file.")
            return stream.read(SCRIPT_BYTES + 1)
    except FileNotFoundError:
        raise SlurmError(
            f"The script {path} does not exist on {host}: deploy it first, "
            f"or look at: ls -l {shlex.quote(os.path.dirname(path))}"
        ) from None
    except OSError as error:
        raise SlurmError(
            f"The script {path} on {host} cannot be read: {error.strerror}. Look at: ls -l {shlex.quote(path)}"
        ) from None


def _check(script: bytes, where: str) -> None:
    if not script.strip():
        raise SlurmError(f"Nothing was submitted: {where} is empty.")
    if len(script) > SCRIPT_BYTES:
        raise SlurmError(f"Nothing was submitted: {where} is larger than {SCRIPT_BYTES} bytes, more than Slurm takes.")
    if b"\0" in script:
        raise SlurmError(f"Nothing was submitted: {where} contains a NUL byte, so it is not a script.")
    if b"\r" in script:
        line = script[: script.index(b"\r")].count(b"\n") + 1
        raise SlurmError(
            f"Nothing was submitted: {where} has DOS line ends (line {line}), which sbatch rejects. "
            "Convert it with: sed -i 's/\\r$//' <script>"
        )
    if not script.startswith(b"#!"):
        first = clean(script.partition(b"\n")[0].decode("utf-8", "replace"), 80)
        raise SlurmError(
            f"Nothing was submitted: {where} does not begin with #! and an interpreter (its first line is {first!r}). "
            "Begin it with: #!/usr/bin/env bash"
        )


def _check_sum(script: bytes, where: str, wanted: object) -> None:
    if wanted is not None and hashlib.sha256(script).hexdigest() != str(wanted).lower():
        raise SlurmError(
            f"Nothing was submitted: {where} is not the one that was deployed (its SHA-256 should be {wanted}). "
            "Check who may write there, then run again."
        )


def _check_directives(script: bytes, where: str, options: Sequence[str]) -> None:
    for word in slurm_options.directives(script):
        why = slurm_options.refusal_of_directive(word)
        if why is not None:
            raise SlurmError(f"Nothing was submitted: {where} has the directive {clean(word, 60)}, but {why}.")
    foreign = slurm_options.foreign_directive(script)
    if foreign is not None and "--ignore-pbs" not in options:
        raise SlurmError(
            f"Nothing was submitted: {where} has {clean(foreign, 60)!r}, from which sbatch would also take options. "
            "Delete such lines, or set ignore_pbs: true under options."
        )


def _is_word(item: object) -> bool:
    """Return whether it is a number or a text that is not empty; of a list, sbatch would take null as a name."""
    return isinstance(item, (str, int, float)) and not isinstance(item, bool) and item != ""


def option_argv(options: object) -> list[str]:
    """Return sbatch's arguments for {option: value}. True gives the bare option; false and null leave it out."""
    if not isinstance(options, Mapping):
        raise SlurmError("options must be a dictionary of sbatch's long options without the dashes.")
    argv: list[str] = []
    for raw, value in options.items():
        key = str(raw).replace("_", "-").removeprefix("--")
        if not re.fullmatch(r"[a-z][a-z0-9-]*", key, re.ASCII):
            raise SlurmError(
                f"options: {clean(raw, 60)!r} is not one of sbatch's long options, such as gres or nodelist."
            )
        why = slurm_options.refusal(key)
        if why is not None:
            raise SlurmError(f"options: {key} cannot be given here: {why}.")
        if value is None or value is False:
            continue
        if value is True:
            argv.append(f"--{key}")
            continue
        if any(slurm_options.is_short_for(key, name) for name in _TIMES) and not isinstance(value, str):
            raise SlurmError(
                f'options: {key} is the number {value!r}. Write it in quotes, for example {key}: "00:10:00": '
                "YAML reads an unquoted 10:00 as 600, and Slurm reads 600 as minutes."
            )
        items = value if isinstance(value, (list, tuple)) else [value]
        text = ",".join(map(str, items))
        if not all(map(_is_word, items)) or "\0" in text or not text:
            raise SlurmError(f"options: {key} must be a text, a number, a list of them, or true.")
        argv.append(f"--{key}={text}")
    return argv


def _job_name(script: bytes, options: list[str], path: str | None) -> str:
    given = slurm_options.value_of("job-name", [*slurm_options.directives(script), *options])
    return clean(given or (os.path.basename(path) if path else "sbatch"), 200)
