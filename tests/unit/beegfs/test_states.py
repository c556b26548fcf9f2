# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every state that was recorded of BeeGFS 7.4.7, replayed to the whole module: states.yml says what must be found."""

from __future__ import annotations

import re
import typing as t

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import remedies
from hpcval_cluster import beegfs_states

from tests.unit.beegfs import page
from tests.unit.beegfs.host import not_passed
from tests.unit.beegfs.page import STATES

DEADLINE = 30.0
GRACE = 10.0  # seconds beyond the deadline in which the check has ended, whatever is frozen
# Time for the processes themselves, of which a scaled second has more than a real one.
FACTOR = 0.2


def symptom(finding: dict[str, t.Any]) -> str:
    """The symptom whose remedy a finding has."""
    return next(
        name
        for name, text in remedies.load().items()
        if re.fullmatch(re.sub(r"\\{\w+\\}", ".+?", re.escape(text)), finding["remedy"])
    )


def found(result: dict[str, t.Any]) -> list[str]:
    """What did not pass: verdict, id, place and remedy."""
    return [
        f"{finding['verdict']} {finding['id']}, {finding['where'].get('target', '-')}, {symptom(finding)}"
        for finding in not_passed(result)
    ]


def check(host, state, factor):
    host.is_in(state, factor=factor)
    result = host.check(deadline=DEADLINE * factor, expect=STATES[state].get("expect", {}))
    assert found(result) == STATES[state]["finds"]
    assert result["verdict"] == STATES[state]["verdict"]
    return result


def test_every_recorded_state_is_in_the_table():
    assert set(STATES) == set(beegfs_states.recorded())


def test_the_page_has_the_table():
    """`pytest tests/unit/beegfs -m slow --beegfs-document` renews it, with the seconds that it takes."""
    assert set(page.seconds_of()) == set(STATES)
    assert page.table(page.seconds_of()) in page.PAGE.read_text()


@pytest.mark.parametrize("state", STATES)
def test_a_recorded_state(host, state):
    result = check(host, state, FACTOR)
    assert result["seconds"] <= DEADLINE * FACTOR + GRACE


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_a_recorded_state_at_its_own_speed(host, state, seconds):
    result = check(host, state, 1.0)
    seconds[state] = f"{result['seconds']:.1f}"
    assert result["seconds"] <= DEADLINE + GRACE


@pytest.mark.parametrize("state", ["healthy-no-mirrors", "storage-mirrored-only", "both-mirrored-healthy"])
def test_a_healthy_system_passes_whatever_of_it_is_mirrored(host, state):
    assert STATES[state]["finds"] == []
    result = check(host, state, FACTOR)
    assert result["verdict"] == "pass"
    assert result["failed"] is False


def test_states_that_a_frozen_server_keeps_waiting_are_told_as_far_as_they_were_printed(host):
    host.is_in("resync-behind-a-frozen-server", factor=FACTOR)
    result = host.check(deadline=DEADLINE * FACTOR)
    assert result["seconds"] <= DEADLINE * FACTOR + GRACE
    assert result["verdict"] == "fail"
    places = {(each["verdict"], each["id"], each["where"].get("target", "")) for each in not_passed(result)}
    assert ("fail", "share.nodes_reachable", "storage server stor1") in places
    for number in (201, 202):
        assert ("undetermined", "share.targets_consistent", f"storage target {number} on stor2") in places
    # Room is asked last: on a busy machine no scaled time is left for it.
    states = {place for place in places if not place[1].startswith("share.target_free")}
    assert not [place for place in states if "meta" in place[2]]
    assert not [place for place in places if place[1] == "share.targets_consistent" and "stor1" in place[2]]


@pytest.mark.parametrize("scenario", ["hang", "garbage", "silent", "mgmtd-dead-rc0", "not-installed"])
def test_a_tool_of_which_nothing_comes_is_one_finding_with_a_remedy_of_its_own(host, scenario):
    host.is_in(scenario, factor=FACTOR)
    result = host.check(deadline=DEADLINE * FACTOR, cli="beegfs-ctl")
    assert result["seconds"] <= DEADLINE * FACTOR + GRACE
    (finding,) = not_passed(result)
    assert (finding["id"], result["verdict"]) == ("share.servers", "undetermined")
    expected = {"hang": "silent", "not-installed": "tool", "silent": "foreign"}.get(scenario, "foreign")
    assert symptom(finding) == f"share.servers.{expected}"


def test_a_wrapper_that_chatters_on_stdout_is_named_and_one_on_the_error_stream_does_no_harm(host):
    host.is_in("healthy")
    tool = host.folder / "bin/beegfs-ctl"
    real = tool.with_name("real")
    text = tool.read_text().replace("TOOL = Path(sys.argv[0])", f"TOOL = Path({str(tool)!r})")
    real.write_text(text)
    real.chmod(0o755)
    for stream, verdict in (("", "undetermined"), (" >&2", "pass")):
        tool.write_text(f'#!/bin/sh\necho "loading the module beegfs"{stream}\nexec {real} "$@"\n')
        result = host.check()
        assert result["verdict"] == verdict
        if verdict != "pass":
            assert {symptom(each) for each in not_passed(result) if each["id"] == "share.servers"} == {
                "share.servers.foreign"
            }


def test_what_a_management_server_says_of_itself_proves_that_quota_is_enforced(host):
    host.is_in("healthy-no-mirrors", factor=FACTOR)
    assert host.check(deadline=6.0, expect={"quota": True})["verdict"] == "undetermined"
    (host.folder / "etc/beegfs-client.conf").write_text("quotaEnabled = true\n")
    (host.folder / "etc/beegfs-mgmtd.conf").write_text(
        "# quotaEnableEnforcement = false\nquotaEnableEnforcement = true\n"
    )
    assert host.check(deadline=6.0, expect={"quota": True})["verdict"] == "pass"
    (host.folder / "etc/beegfs-mgmtd.conf").write_text("quotaEnableEnforcement = false\n")
    assert host.check(deadline=6.0, expect={"quota": True})["verdict"] == "fail"
