# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands on the two streams: answers, messages, and what is at fault by their words."""

from __future__ import annotations

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs import config, output
from ansible_collections.mlops.hpc_validation.plugins.module_utils._beegfs.output import cause, said
from hpcval_cluster import beegfs_states

FOOTER = """
[BeeGFS Control Tool Version: 7.4.7
Refer to the default config file (/etc/beegfs/beegfs-client.conf)
or visit http://www.beegfs.com to find out about configuration options.]

"""


def test_a_configurations_error_is_quoted_and_its_footer_is_not():
    heard = said("", f"\nError: Unable to open auth file: /x (SysErr: Permission denied)\n{FOOTER}")
    assert heard.messages == ("Error: Unable to open auth file: /x (SysErr: Permission denied)",)
    assert heard.lines == ()
    assert heard.cut is False


def test_what_is_marked_as_an_error_goes_before_other_messages_and_those_before_the_log():
    out = "(0) 03:23:53 Main [Messaging (RPC)] >> from the log\na row\n [ERROR from x: y]\n"
    err = "sudo: unable to resolve host\nUnrecoverable error: z\nthe consequence\n"
    heard = said(out, err)
    assert heard.lines == ("a row",)
    assert heard.messages == (
        "[ERROR from x: y]",
        "Unrecoverable error: z",
        "sudo: unable to resolve host",
        "the consequence",
        "from the log",
    )
    assert heard.reason() == "[ERROR from x: y]; Unrecoverable error: z; sudo: unable to resolve host"


def test_a_message_is_quoted_once():
    log = "(0) 04:08:04 Main [App] >> Couldn't find any usable NIC\n"
    assert said(log * 2, "Error: Couldn't find any usable NIC\n").messages == ("Error: Couldn't find any usable NIC",)
    assert said("", "").reason() == "without a message"


def test_a_last_line_without_an_end_is_left_out_and_told():
    heard = said("a row\nhalf a r", "")
    assert (heard.lines, heard.cut) == (("a row",), True)
    assert said("a row\n", "").cut is False
    assert said("a row\n   ", "").cut is False


def test_lines_end_where_the_tool_ends_them():
    assert said("a\x0bb\u2028c\n", "").lines == ("a\x0bb\u2028c",)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("wrong-secret", "secret"),
        ("auth-file-missing", "configuration"),
        ("auth-file-unreadable", "permission"),
        ("config-missing", "configuration"),
        ("wrong-port", "management"),
        ("management-address-without-a-host", "management"),
        ("management-name-unknown", "name"),
        ("client-card-without-link", "network"),
        ("mgmtd-killed", "management"),
    ],
)
def test_the_cause_by_the_words_of_the_real_tool(state, expected):
    for row in beegfs_states.recorded()[state]["rows"]:
        assert cause(said(row["out"], row["err"]).reason()) == expected
    assert expected in output.GENERAL


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Unrecoverable error: No connAuthFile configured. Using BeeGFS without", "secret"),
        ("This mode requires root privileges.", "permission"),
        ("sudo: a password is required", "permission"),
        ("Sorry, user x is not allowed to execute 'beegfs-ctl' as root", "permission"),
        ("x is not in the sudoers file", "permission"),
        ("Error: unable to read auth file: open /x: permission denied", "permission"),
        ("Error: unable to proceed without a working management node: rpc error", "management"),
        ("dial tcp: lookup mgmt: no such host", "name"),
        ("Error: The config argument 'x' is invalid", "configuration"),
        ("beegfs-ctl did not answer in 5 s", "silent"),
        ("Soft disconnect from 10.0.0.2:8003; Peer: beegfs-storage stor2 [ID: 2]", None),
        ("Communication error: Receive timed out from: 10.99.0.2:8003", None),
        ("Invalid argument: --mirrorgroups", None),
        ("Path does not exist", None),
    ],
)
def test_the_cause_by_other_words(words, expected):
    assert cause(words) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("quotaEnabled = true\n", True),
        ("quotaEnabled=1\n", True),
        ("  quotaEnabled   =  YES  \n", True),
        ("quotaEnabled = false\n", False),
        ("quotaEnabled = 0\n", False),
        ("quotaEnabled = false\nquotaEnabled = y\n", True),
        ("#quotaEnabled = true\n", None),
        ("quotaEnabledX = true\n", None),
        ("quotaEnabled = true # as it should be\n", None),
        ("", None),
    ],
)
def test_a_setting_of_a_configuration_file(tmp_path, text, value):
    path = tmp_path / "a.conf"
    path.write_text(text)
    assert config.flag(str(path), "quotaEnabled") is value


def test_configuration_files_that_are_not_there_say_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "FOLDER", str(tmp_path))
    assert config.quota_enforcement(None) == {"client": None, "management": None}
    (tmp_path / "beegfs-client.conf").write_text("quotaEnabled = true\n")
    (tmp_path / "beegfs-mgmtd.conf").write_text("quotaEnableEnforcement = false\n")
    assert config.quota_enforcement(None) == {"client": True, "management": False}
    assert config.quota_enforcement(str(tmp_path / "other.conf")) == {"client": None, "management": False}


def test_of_a_file_without_end_a_part_is_read(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text("quotaEnabled = true\n" + "#" * (2 * config.MAX_BYTES) + "\nquotaEnabled = false\n")
    assert config.flag(str(path), "quotaEnabled") is True
