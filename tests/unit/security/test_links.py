# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links, FIFOs and foreign files in place of what a job writes are no evidence and nobody's instruction."""

from __future__ import annotations

import json
import os
import typing as t
from pathlib import Path

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.collector import Request, check, collect
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence.opening import EvidenceError, open_regular
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import markers
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.cancel import journal_comments
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.identity import Identity
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.journal import Journal
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.script import COMMENT_PREFIX
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.submit import Context
from kit.evidence import reports

OWN = {"job_id": "7", "attempt": 0, "score": 1.0}


def read(output: Path, name: str = "metrics.json") -> dict[str, t.Any]:
    request = Request("7", 0, str(output), files={"metrics": {"path": name, "format": "json"}}, settle=0)
    return collect(request, timeout=5)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = tmp_path / "models/canary/job-7"
    folder.mkdir(parents=True)
    return folder


def test_metrics_that_lead_out_of_the_output_folder_are_no_evidence(output, tmp_path):
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps(OWN))
    (output / "metrics.json").symlink_to(outside)
    document = read(output)
    assert "metrics" not in document
    assert [problem["problem"] for problem in document["problems"]] == ["not_regular"]


def test_a_folder_on_the_way_that_leads_out_is_no_evidence(output, tmp_path):
    (tmp_path / "metrics.json").write_text(json.dumps(OWN))
    (output / "sub").symlink_to(tmp_path)
    assert [problem["problem"] for problem in read(output, "sub/metrics.json")["problems"]] == ["not_regular"]


def test_a_link_in_place_of_the_jobs_folder_is_no_evidence(output, tmp_path):
    other = tmp_path / "other"
    output.rename(other)
    (other / "metrics.json").write_text(json.dumps(OWN))
    output.symlink_to(other)
    assert [problem["problem"] for problem in read(output)["problems"]] == ["not_regular"]


def test_a_fifo_is_not_waited_for(output):
    os.mkfifo(output / "metrics.json")
    assert [problem["problem"] for problem in read(output)["problems"]] == ["not_regular"]


def test_a_log_that_is_a_link_is_no_evidence_and_its_end_is_not_shown(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("-----BEGIN PRIVATE KEY-----\n")
    log = tmp_path / "job.out"
    log.symlink_to(secret)
    with pytest.raises(EvidenceError, match="symbolic link"), open_regular(str(log), None):
        pass
    assert markers.tail(str(log), 10) == []


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/etc/passwd", path), os.mkdir])
def test_what_is_no_regular_file_is_no_marker(tmp_path, make):
    make(str(tmp_path / "7.end.json"))
    assert markers.read(str(tmp_path / "7.end.json"), Identity("7")) is None


def test_a_linked_marker_of_the_same_job_is_none(tmp_path):
    (tmp_path / "elsewhere").write_text('{"job_id": "7", "attempt": 0, "exit_code": 0}')
    assert markers.read(str(tmp_path / "elsewhere"), Identity("7"))
    (tmp_path / "7.end.json").symlink_to(tmp_path / "elsewhere")
    assert markers.read(str(tmp_path / "7.end.json"), Identity("7")) is None


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/../../b", "/etc/passwd", "//etc/passwd", ".", "a\0b", ""])
def test_paths_that_climb_are_refused_before_anything_is_read(output, name):
    request = Request("7", 0, str(output), artifacts=[name])
    assert check(request)
    assert check(Request("7", 0, str(output), files={"m": {"path": name, "format": "json"}}))


def test_an_absolute_path_is_of_the_folder_it_lies_in(output):
    for path, wrong in ((f"{output}/metrics.json", False), (f"{output}-other/metrics.json", True), (str(output), True)):
        request = Request("7", 0, str(output), files={"m": {"path": path, "format": "json"}})
        assert bool(check(request)) is wrong, path


def entry(journal: Path, content: str = "a" * 64, **changes: t.Any) -> Path:
    """What a task writes when it submits."""
    document = {"hash": content, "comment": COMMENT_PREFIX + content[:16], "user": "admin", "state": "submitted"}
    path = journal / f"{content}.json"
    path.write_text(json.dumps({**document, "written": 1, **changes}))
    return path


def cancelled(journal: Path) -> set[str]:
    """The comments by which a cleanup would cancel jobs."""
    return journal_comments(Context(lambda *_: pytest.fail("Slurm was asked"), Journal(str(journal)), "admin"), "")


def test_only_entries_of_ones_own_cancel_anything(tmp_path, monkeypatch):
    entry(tmp_path)
    assert cancelled(tmp_path) == {COMMENT_PREFIX + "a" * 16}
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert cancelled(tmp_path) == set()


@pytest.mark.parametrize("comment", ["", "nightly build", None, 0])
def test_an_entry_cannot_name_jobs_that_this_project_did_not_submit(tmp_path, comment):
    entry(tmp_path, comment=comment)
    assert cancelled(tmp_path) == set()


def test_a_journal_of_links_and_fifos_is_read_without_them_and_without_waiting(tmp_path):
    journal = tmp_path / "journal"
    journal.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (journal / f"{'a' * 64}.json").symlink_to(entry(elsewhere))
    os.mkfifo(journal / f"{'b' * 64}.json")
    (journal / f"{'c' * 64}.json").write_text("[" * 100_000)
    (journal / f"{'d' * 64}.json").write_text('{"hash": "' + "e" * 64 + '"}')
    assert Journal(str(journal)).entries() == []


def test_a_lock_or_a_revocation_is_not_written_through_a_link(tmp_path):
    journal, victim = Journal(str(tmp_path)), tmp_path / "victim"
    (tmp_path / "revoked.token").symlink_to(victim)
    journal.revoke("token")
    (tmp_path / f"{'a' * 64}.lock").symlink_to(victim)
    with pytest.raises(Exception, match="lock"), journal.lock("a" * 64):
        pass
    assert not victim.exists()


def test_journal_entries_are_for_their_user_alone(tmp_path):
    journal = Journal(str(tmp_path / "journal"))
    (tmp_path / "journal").mkdir()
    journal.write({"hash": "a" * 64})
    with journal.lock("a" * 64):
        pass
    journal.revoke("token")
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "journal").iterdir()} == {0o600}


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/etc/passwd", path), os.mkdir])
@pytest.mark.parametrize("name", ["host.json", "messages.txt"])
def test_a_nodes_report_is_read_only_from_regular_files(tmp_path, make, name):
    (tmp_path / "7").mkdir()
    make(str(tmp_path / "7" / name))
    found = reports.gather(tmp_path, tmp_path, "7")
    assert found["host"] is None
    assert found["messages"] == ""


def test_removing_reports_does_not_follow_links(tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("x")
    folder = tmp_path / "run"
    (folder / "7").mkdir(parents=True)
    (folder / "7" / "link").symlink_to(victim)
    reports.remove(folder, tmp_path, ["7"])
    assert not (folder / "7").exists()
    assert (victim / "precious").exists()
