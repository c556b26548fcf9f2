# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is refused before anything is submitted, and what makes two submissions the same."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import SlurmError, environment
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.script import (
    SCRIPT_BYTES,
    option_argv,
    prepare,
)

GOOD = "#!/bin/bash\n#SBATCH -J named\ntrue\n"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("true\n", "does not begin with #!"),
        ("#!/bin/bash\r\ntrue\r\n", "DOS line ends (line 1)"),
        ("#!/bin/bash\n\0", "NUL"),
        ("#!/bin/bash\n#SBATCH --array=1-3\n", "one entry is one job"),
        ("#!/bin/bash\n#SBATCH -a 1-3\n", "one entry is one job"),
        ("#!/bin/bash\n#SBATCH -W\n", "waiting is"),
        ("#!/bin/bash\n#SBATCH -p gpu --wait\n", "waiting is"),
        ("#!/bin/bash\n#SBATCH hetjob\n", "one entry is one job"),
    ],
)
def test_bad_scripts_are_refused(script: str, words: str) -> None:
    with pytest.raises(SlurmError, match=r"submitted") as error:
        prepare({"script": script}, "admin")
    assert words in str(error.value)


def test_a_refusal_says_which_script_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "job.sbatch"
    path.write_text(" ")
    for spec, where in (({"script": " "}, "the script given inline"), ({"path": str(path)}, f"the script {path}")):
        with pytest.raises(SlurmError) as error:
            prepare(spec, "admin")
        assert str(error.value) == f"Nothing was submitted: {where} is empty."


def test_directives_end_at_the_first_command() -> None:
    prepare({"script": "#!/bin/bash\ntrue\n#SBATCH --wait\n"}, "admin")


def test_bad_files_are_refused(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, words in (
        (tmp_path / "missing", "does not exist"),
        (tmp_path, "Is a directory"),
        (fifo, "not a regular file"),
        (Path("relative.sh"), "not absolute"),
    ):
        with pytest.raises(SlurmError, match=words):
            prepare({"path": str(path)}, "admin")


def test_neither_and_both_are_refused() -> None:
    for spec in ({}, {"path": "/x", "script": GOOD}):
        with pytest.raises(SlurmError, match=r"exactly one of path .* and script"):
            prepare(spec, "admin")


@pytest.mark.parametrize(
    ("options", "argv"),
    [
        ({"gres": "gpu:1"}, ["--gres=gpu:1"]),
        ({"cpus_per_task": 4}, ["--cpus-per-task=4"]),
        ({"exclusive": True, "requeue": False, "account": None}, ["--exclusive"]),
        ({"nodelist": ["n1", "n2"]}, ["--nodelist=n1,n2"]),
        ({"nice": 0, "signal": ["B", 9, 1.5]}, ["--nice=0", "--signal=B,9,1.5"]),
        ({"job-name": "a b; $(rm) 'x'\ny"}, ["--job-name=a b; $(rm) 'x'\ny"]),
    ],
)
def test_options(options: dict[str, object], argv: list[str]) -> None:
    assert option_argv(options) == argv


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"time": 600}, "in quotes"),
        ({"comment": "x"}, "content hash"),
        ({"wrap": "true"}, "give the text as script"),
        ({"array": "1-3"}, "one entry is one job"),
        ({"--gres --x": "gpu"}, "not one of sbatch"),
        ({"gres=gpu:1 --wrap": "x"}, "not one of sbatch"),
        ({"gres": {}}, "must be a text"),
        ({"gres": ""}, "must be a text"),
        ({"gres": "a\0b"}, "must be a text"),
        ({"partition": ["a", None]}, "partition must be a text"),
        ({"partition": [None]}, "partition must be a text"),
        ({"partition": ["a", True]}, "partition must be a text"),
        ({"partition": ["a", ""]}, "partition must be a text"),
        ({"partition": ["a", ["b"]]}, "partition must be a text"),
        ({"partition": ["a", {"b": 1}]}, "partition must be a text"),
        ({"partition": []}, "partition must be a text"),
        ("gres", "dictionary"),
    ],
)
def test_bad_options_are_refused(options: object, words: str) -> None:
    with pytest.raises(SlurmError) as error:
        option_argv(options)
    assert words in str(error.value)


def test_the_hash_is_of_everything_that_makes_a_submission() -> None:
    base = {"script": GOOD, "options": {"gres": "gpu:1", "mem": "1G"}, "share": "/s"}
    same = {"script": GOOD, "options": {"mem": "1G", "gres": "gpu:1"}, "share": "/s"}
    first = prepare(base, "admin")
    assert first.content_hash == prepare(same, "admin").content_hash
    assert first.comment == "hpc_validation:" + first.content_hash[:16]
    assert first.name == "named"
    others = [
        prepare({**base, "script": GOOD + "#"}, "admin"),
        prepare({**base, "options": {"gres": "gpu:2", "mem": "1G"}}, "admin"),
        prepare({**base, "share": "/t"}, "admin"),
        prepare(base, "root"),
    ]
    assert len({first.content_hash, *(each.content_hash for each in others)}) == 5


def test_the_name_given_as_option_wins() -> None:
    assert prepare({"script": GOOD, "options": {"job-name": "other"}}, "admin").name == "other"


def test_variables_that_change_slurm_are_taken_out() -> None:
    base = {
        "PATH": "/bin",
        "SLURM_CONF": "/etc/slurm.conf",
        "SLURM_JWT": "secret",
        "SLURM_TIME_FORMAT": "%H",
        "SBATCH_PARTITION": "x",
        "SQUEUE_FORMAT": "%i",
        "SACCT_FORMAT": "x",
        "SLURM_CLUSTERS": "y",
        "SLURM_JOB_ID": "3",
        "LC_ALL": "de_DE.UTF-8",
    }
    query, submit = environment(base, query=True), environment(base, query=False)
    assert query == {"PATH": "/bin", "SLURM_CONF": "/etc/slurm.conf", "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
    assert submit == {"PATH": "/bin", "SLURM_CONF": "/etc/slurm.conf", "LC_ALL": "de_DE.UTF-8"}


def test_a_script_that_is_not_the_deployed_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.sbatch"
    path.write_text(GOOD)
    wanted = hashlib.sha256(GOOD.encode()).hexdigest()
    assert prepare({"path": str(path), "sha256": wanted}, "admin").script == GOOD.encode()
    assert prepare({"path": str(path), "sha256": wanted.upper()}, "admin").script == GOOD.encode()
    path.write_text(GOOD + "# edited\n")
    with pytest.raises(SlurmError, match="is not the one that was deployed") as error:
        prepare({"path": str(path), "sha256": wanted}, "admin")
    assert str(path) in str(error.value)


def test_a_script_in_a_file_is_named_and_one_inline_is_handed_over(tmp_path: Path) -> None:
    path = tmp_path / "train.sbatch"
    path.write_text("#!/bin/bash\ntrue\n")
    options = {"mem": "1G", "gres": "gpu:1"}
    inline = prepare({"script": GOOD, "options": options}, "admin")
    assert inline.argv == ("sbatch", "--parsable", f"--comment={inline.comment}", "--mem=1G", "--gres=gpu:1")
    assert (inline.stdin, inline.name) == (GOOD.encode(), "named")
    given = prepare({"path": str(path), "chdir": str(tmp_path), "share": "/s"}, "admin")
    assert given.argv == ("sbatch", "--parsable", f"--comment={given.comment}", f"--chdir={tmp_path}", str(path))
    assert (given.stdin, given.script, given.name) == (None, path.read_bytes(), "train.sbatch")
    assert given.script_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert prepare({"script": "#!/bin/sh\ntrue"}, "admin").name == "sbatch"


def test_the_hash_is_the_one_by_which_jobs_in_the_queue_are_known() -> None:
    """Were it made otherwise, an upgrade would submit again what is in the queue."""
    given = prepare({"script": GOOD, "options": {"mem": "1G", "gres": "gpu:1"}}, "admin")
    script = hashlib.sha256(GOOD.encode()).hexdigest()
    identity = {"options": ["--gres=gpu:1", "--mem=1G"], "script": script, "share": "", "user": "admin"}
    assert given.content_hash == hashlib.sha256(json.dumps(identity).encode()).hexdigest()


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SlurmError, match="is not a directory"):
        prepare({"script": GOOD, "chdir": str(tmp_path / "x")}, "admin")


@pytest.mark.parametrize(("more", "refused"), [(0, False), (1, True), (2, True)])
def test_a_script_is_taken_up_to_slurms_limit(tmp_path: Path, more: int, refused: bool) -> None:
    text = GOOD + "#" * (SCRIPT_BYTES - len(GOOD) + more)
    path = tmp_path / "x"
    path.write_text(text)
    for spec in ({"script": text}, {"path": str(path)}):
        if refused:
            with pytest.raises(SlurmError, match="larger than 4194304 bytes"):
                prepare(spec, "admin")
        else:
            assert len(prepare(spec, "admin").script) == SCRIPT_BYTES


def test_a_script_without_an_interpreter_is_shown_by_its_first_line() -> None:
    with pytest.raises(SlurmError, match=r"its first line is 'a b'"):
        prepare({"script": "a b\nc\n"}, "admin")
