# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options in every spelling that getopt takes, and lines as Slurm ends them."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import options
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cli import SlurmError
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.script import option_argv, prepare

# What `sbatch --help` of 24.11 lists, and may be given.
ALLOWED = """
account bb bbf begin cpu-freq cpus-per-task dependency deadline delay-boot error export export-file get-user-env gid
gres gres-flags ignore-pbs input job-name no-kill licenses container container-id distribution mail-type mail-user
mcs-label ntasks nice no-requeue ntasks-per-node nodes oom-kill-step output overcommit partition power priority profile
propagate qos quiet reboot requeue oversubscribe core-spec signal spread-job switches thread-spec time time-min
tres-bind tres-per-task uid use-min-nodes verbose wckey cluster-constraint contiguous constraint nodefile mem mincpus
reservation tmp nodelist exclude exclusive mem-per-cpu resv-ports sockets-per-node cores-per-socket threads-per-core
extra-node-info ntasks-per-core ntasks-per-socket cpus-per-gpu gpus gpu-bind gpu-freq gpus-per-node gpus-per-socket
gpus-per-task mem-per-gpu wait-all-nodes
"""


def script(*lines: str) -> dict[str, object]:
    return {"script": "\n".join(["#!/bin/bash", *lines, "true", ""])}


REFUSED = "array clusters comment hold wait wrap test-only parsable chdir help usage version"


@pytest.mark.parametrize("name", REFUSED.split())
def test_no_abbreviation_of_a_refused_option_is_taken(name: str) -> None:
    for length in range(1, len(name) + 1):
        for key in (name[:length], name[:length].replace("-", "_"), f"--{name[:length]}"):
            with pytest.raises(SlurmError, match="cannot be given here"):
                option_argv({key: "x"})
    with pytest.raises(SlurmError, match="cannot be given here"):
        option_argv({name: False})


@pytest.mark.parametrize("name", ALLOWED.split())
def test_every_other_option_is_taken(name: str) -> None:
    assert option_argv({name: "1"}) == [f"--{name}=1"]
    prepare(script(f"#SBATCH --{name}=1", f"#SBATCH --{name} 1"), "admin")


@pytest.mark.parametrize("key", ["time", "time-min", "time_m", "deadl", "beg"])
def test_times_that_yaml_reads_as_numbers_are_refused_however_they_are_spelt(key: str) -> None:
    with pytest.raises(SlurmError, match="in quotes"):
        option_argv({key: 600})


@pytest.mark.parametrize(
    "words",
    [
        "--arr=0-3",
        "--arr 0-3",
        "--a=0-3",
        "-a0-3",
        "-a 0-3",
        "-Oa0-3",
        "-Qva 0-3",
        "-n1a0-3",
        "-c4a0-3",
        "-N1a0-3",
        "-sa0-3",
        "-ka0-3",
        "-Ba0-3",
        "-Sa0-3",
        '"--arr"ay=0-3',
        "'--ar\\ray=0-3'",
        "--ar\\ray=0-3",
        "-p gpu --array=0-3 # a comment",
        "-J x -Mother",
        "-OM other",
        "--cluste=other",
        "-QW",
        "--wai",
        "-vH",
        "--hol",
        "--test",
        "--wra=true",
        "-h",
        "--hel",
        "--usa",
        "-u",
        "-V",
        "--vers",
        "hetjob",
        "packjob",
        "HETJOB",
        "PackJob",
    ],
)
def test_directives_that_make_another_submission_are_refused_in_every_spelling(words: str) -> None:
    lines = (f"#SBATCH {words}", f"#SBATCH\t{words}", f"#SBATCH\f{words}", f"#SBATCH -p gpu\v{words}")
    for line in (*lines, *(line.replace("#SBATCH", "#SLURM") for line in lines)):
        with pytest.raises(SlurmError, match="Nothing was submitted"):
            prepare(script("# a comment", "", line), "admin")


@pytest.mark.parametrize(
    "words",
    [
        "-n1",
        "-n 1",
        "-N2-4",
        "-N 1k",
        "-c4",
        "-B2:4:1",
        "-B*:*:1",
        "-S2",
        "-s",
        "-k",
        "-O",
        "-Gh200:2",
        "-t1:00:00",
        "-Jarray",
        "-J array",
        "-parray",
        "-J hetjob-1",
        "--job-name=packjob",
        "-pgpu -Qv",
        "-w n[1-2]",
        "--comment=x",
        "--comm=x",
        "--chdir=/tmp",
        "-D/tmp",
        "--parsable",
        "--",
        "-",
        "x",
    ],
)
def test_other_directives_are_taken(words: str) -> None:
    prepare(script(f"#SBATCH {words}"), "admin")
    prepare(script(f"#SLURM {words}"), "admin")


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\f", "\v", "\x1c", "\x1d", "\x1e"])
def test_a_line_ends_at_a_line_feed_alone(end: str) -> None:
    """What Python calls a line's end would hide the directives after it, or make some that Slurm does not see."""
    with pytest.raises(SlurmError, match="one entry is one job"):
        prepare(script(f"# a comment{end}true", "#SBATCH --array=0-3"), "admin")
    with pytest.raises(SlurmError, match="one entry is one job"):
        prepare(script(f"#SBATCH -J x{end}true", "#SBATCH --array=0-3"), "admin")
    prepare(script(f"# a comment{end}#SBATCH --array=0-3"), "admin")


@pytest.mark.parametrize("blank", ["", " ", "\t", "\f", "\v"])
def test_directives_end_at_the_first_command_and_not_at_a_blank_line(blank: str) -> None:
    with pytest.raises(SlurmError, match="one entry is one job"):
        prepare(script(blank, f"{blank}# a comment", "#SBATCH -a 1"), "admin")
    prepare(script(f"{blank}true", "#SBATCH -a 1"), "admin")


@pytest.mark.parametrize("line", ["#PBS -t 0-3", "#PBS -J 0-3", "#BSUB -H", "#PBS"])
def test_lines_for_other_schedulers_are_refused_as_sbatch_reads_them(line: str) -> None:
    with pytest.raises(SlurmError, match="ignore_pbs"):
        prepare(script("#SBATCH -p gpu", line), "admin")
    prepare({**script(line), "options": {"ignore_pbs": True}}, "admin")
    prepare(script("true", line), "admin")
    prepare(script(f" {line}", f"# {line}"), "admin")


def test_words_are_told_apart_as_slurm_does() -> None:
    lines = ["#!/bin/bash", "#SBATCH -J 'a b' --x=\"c d\"#e", "#SBATCH 'open", "# no", "#SBATCH--y", "#SLURM -w n1"]
    text = "\n".join([*lines, " #SLURM -a 1", "", "true", "#SBATCH -z", ""])
    assert options.directives(text.encode()) == ["-J", "a b", "--x=c d", "'open", "--y", "-w", "n1"]
    assert options.directives(b"#!/bin/sh") == []


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["-J", "a"], "a"),
        (["-Ja"], "a"),
        (["-OJa"], "a"),
        (["--job-name=a"], "a"),
        (["--job-name", "a"], "a"),
        (["--job=a"], "a"),
        (["--j", "a"], "a"),
        (["-Jb", "--job-n=a"], "a"),
        (["-J", "-Jb"], "-Jb"),
        (["-n", "1"], None),
        (["--jobs=b"], None),
        (["-J"], None),
        (["-J", "a", "b"], "a"),
    ],
)
def test_the_last_name_counts(words: list[str], name: str | None) -> None:
    assert options.value_of("job-name", words) == name


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("array", "one entry is one job: write one entry per task under jobs"),
        ("arr", "it is short for array, and one entry is one job: write one entry per task under jobs"),
        ("cluster", "it is short for clusters, and jobs are waited for on the cluster of this login node"),
        ("m", None),
    ],
)
def test_a_refusal_says_what_the_option_was_taken_for(key: str, why: str | None) -> None:
    assert options.refusal(key) == why


def test_a_value_is_found_behind_the_short_option_too() -> None:
    assert options.value_of("chdir", ["-D/tmp"]) == "/tmp"
    assert options.value_of("chdir", ["-D", "/tmp"]) == "/tmp"
