# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every command of beegfs-ctl that a remedy names is one that the real tool takes, as far as it was recorded."""

from __future__ import annotations

import re

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import remedies
from hpcval_cluster import beegfs_states

from tests.unit.beegfs.told import FIXTURES

TRANSCRIPT = (FIXTURES / "transcripts/beegfs_7.4.7_live_ctl.txt").read_text()
MODES = set(re.findall(r"^ (--[a-z]+)(?: \(\*\))? +=> ", TRANSCRIPT, re.MULTILINE))
COMMANDS = sorted(
    {
        (symptom, match[0].rstrip(".,;:"))
        for symptom, text in remedies.load().items()
        for match in re.finditer(r"beegfs-ctl(?: --[a-z]+(?:=[^\s;,)]+)?(?: <user>)?)+", text)
    }
)
# Arguments that were read in the public source of 7.4.7 and are in no recorded command of that mode.
READ = {("--startresync", "--nodeid"), ("--setpattern", "--chunksize"), ("--storagebench", "--read")}


def accepted() -> set[tuple[str, str]]:
    """Mode and argument of every command that the tool did not refuse as malformed (exit code 1)."""
    commands = [row["argv"] for state in beegfs_states.recorded().values() for row in state["rows"] if row["rc"] != 1]
    for block in re.split(r"^\$ ", TRANSCRIPT, flags=re.MULTILINE)[1:]:
        command, _newline, answer = block.partition("\n")
        if command.startswith("beegfs-ctl ") and "[rc=1]" not in answer:
            commands.append(command.split()[1:])
    return {
        (words[0].partition("=")[0], word.partition("=")[0])
        for words in commands
        for word in words[1:]
        if word.startswith("--")
    }


ACCEPTED = accepted() | READ


def test_the_recordings_have_the_modes_and_there_are_commands():
    assert {"--listtargets", "--resyncstats", "--migrate"} <= MODES
    assert len(COMMANDS) > 20


@pytest.mark.parametrize(("symptom", "command"), COMMANDS)
def test_a_remedys_command_is_one_that_the_tool_takes(symptom, command):
    mode, *arguments = re.findall(r"--[a-z]+", command)
    assert mode in MODES, symptom
    assert {(mode, argument) for argument in arguments} <= ACCEPTED, symptom


@pytest.mark.parametrize(("symptom", "command"), [each for each in COMMANDS if re.search("resync", each[1])])
def test_a_resync_is_asked_for_by_node_of_metadata_and_by_target_of_storage(symptom, command):
    """As recorded, the other one is refused: 'Target ID can not be used when querying metadata nodes'."""
    assert ("--nodetype=meta" in command) == ("--nodeid=" in command), symptom
    assert ("--nodetype=storage" in command) == ("--targetid=" in command), symptom
    assert "--nodetype=" in command


def test_what_the_recordings_refuse_is_found():
    """The other argument of each type, which an earlier remedy named, ends with exit code 1."""
    rows = [row for row in beegfs_states.recorded()["healthy-no-mirrors"]["rows"] if row["argv"][0] == "--resyncstats"]
    codes = {" ".join(row["argv"][1:3]): row["rc"] for row in rows if len(row["argv"]) > 2}
    assert codes["--nodetype=meta --targetid=2"] == codes["--nodetype=storage --nodeid=2"] == 1
    assert codes["--nodetype=meta --nodeid=2"] != 1
    assert codes["--nodetype=storage --targetid=201"] != 1
