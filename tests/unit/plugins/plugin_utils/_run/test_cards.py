# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deployment cards in a run's folder: written from what is there, and never in the verdict's way."""

from __future__ import annotations

import hashlib
import json

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common import schema
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import card_page, results
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import summary
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import cards, runs

from tests.unit.plugins.plugin_utils._edge import made_card
from tests.unit.plugins.plugin_utils._edge.made_card import HOST, WORKLOAD

VERSIONS = {"collection": "0.4.0", "ansible": "2.19.14", "python": "3.11.7"}


@pytest.fixture
def folder(tmp_path, example):
    """A run of the embedded profile that has left everything."""
    workload = {**example("manifest"), "id": WORKLOAD, "name": "embedded_profile"}
    plan = {"title": "Embedded", "accelerator": "simulated", "workloads": [workload]}
    folder = runs.start(tmp_path / "results", plan, VERSIONS)
    answer = made_card.answer()
    answer["folder"] = f"/home/a/.hpc_validation/{results.device_folder(folder, WORKLOAD)}"
    results.write(folder, WORKLOAD, HOST, answer)
    results.bundle_path(folder, WORKLOAD).write_bytes(b"a bundle")
    (folder / f"edge/profile-{WORKLOAD}.json").write_text(json.dumps(made_card.profile()))
    (folder / "evidence").mkdir()
    (folder / "evidence" / f"{WORKLOAD}.json").write_text(json.dumps(made_card.evidence()))
    return folder


def written(folder):
    """The card, the page and the drawings in the folder."""
    document = json.loads((folder / f"card-{WORKLOAD}.json").read_text(encoding="utf-8"))
    assert schema.problems("card", document) == []
    page = (folder / f"card-{WORKLOAD}.md").read_text(encoding="utf-8")
    assert page == card_page.markdown(document)
    return document, sorted(path.name for path in folder.glob("latency-*"))


def test_a_card_is_of_everything_that_the_run_left(folder):
    verdict = runs.finish(folder)
    assert cards.write(folder, verdict) == [f"card:     {folder}/card-{WORKLOAD}.md"]
    document, drawings = written(folder)
    assert (document["run"], document["verdict"]) == (folder.name, "undetermined")
    assert document["profile"]["license"] == "proprietary"
    assert document["devices"][0]["figures"]["p99_ms"] == 0.61
    assert document["devices"][0]["kernel"] == "5.10.192-tegra"
    assert document["deploy"]["bundle_sha256"] == hashlib.sha256(b"a bundle").hexdigest()
    assert drawings == [document["devices"][0]["histogram"]] == ["latency-edge01.svg"]


def test_the_verdict_lists_what_a_card_is_made_of_and_not_the_card(folder):
    first = runs.finish(folder)
    cards.write(folder, first)
    second = runs.finish(folder)
    assert first["evidence"] == second["evidence"]
    listed = {each["path"] for each in second["evidence"]}
    assert {f"edge/{WORKLOAD}/{HOST}.json", f"edge/bundle-{WORKLOAD}.zip"} <= listed
    cards.write(folder, second)
    assert written(folder)[0]["devices"][0]["host"] == HOST


def test_the_profile_of_the_evidence_comes_first(folder):
    evidence = {**made_card.evidence(), "profile": {"compliance": {"license": "judged"}}}
    (folder / "evidence" / f"{WORKLOAD}.json").write_text(json.dumps(evidence))
    cards.write(folder, runs.finish(folder))
    assert written(folder)[0]["profile"]["license"] == "judged"


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff", b" " * (2 << 20)])
def test_what_cannot_be_read_is_missed_on_the_card(folder, content):
    for path in (folder / f"edge/profile-{WORKLOAD}.json", folder / "evidence" / f"{WORKLOAD}.json"):
        path.unlink() if content is None else path.write_bytes(content)
    results.path(folder, WORKLOAD, HOST).write_bytes(content or b"")
    assert cards.write(folder, runs.finish(folder)) == [f"card:     {folder}/card-{WORKLOAD}.md"]
    document, drawings = written(folder)
    assert document["profile"]["license"] is None
    assert "cannot be read" in document["devices"][0]["problem"]
    assert drawings == []


def test_what_is_nested_too_deep_is_missed_too(folder):
    for path in (folder / f"edge/profile-{WORKLOAD}.json", results.path(folder, WORKLOAD, HOST)):
        path.write_bytes(b"[" * 100_000)
    cards.write(folder, runs.finish(folder))
    document, _drawings = written(folder)
    assert document["profile"]["license"] is None
    assert "cannot be read" in document["devices"][0]["no_histogram"]


def test_a_host_whose_name_is_no_files_is_itself_on_the_card(folder):
    odd = "lab/edge 02"
    results.write(folder, WORKLOAD, odd, {"schema": 1, "problem": {"id": "space", "text": "none left"}})
    cards.write(folder, runs.finish(folder))
    devices = {device["host"]: device for device in written(folder)[0]["devices"]}
    assert set(devices) == {HOST, odd}
    assert devices[odd]["problem"] == "space: none left"


def test_a_run_that_died_leaves_a_card_of_what_is_there(folder):
    for path in sorted((folder / "edge").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (folder / "evidence" / f"{WORKLOAD}.json").unlink()
    cards.write(folder, runs.finish(folder))
    document, drawings = written(folder)
    assert (document["devices"], document["models"], drawings) == ([], [], [])


@pytest.mark.parametrize("failing", ["write_atomic", "write_json"])
def test_a_card_that_cannot_be_written_is_told_and_the_verdict_stands(folder, monkeypatch, failing):
    verdict = runs.finish(folder)
    before = (folder / "verdict.json").read_bytes()

    def full(*_arguments):
        raise OSError(28, "No space left on device\n\x1b[31m")

    monkeypatch.setattr(cards, failing, full)
    (line,) = cards.write(folder, verdict)
    assert line.startswith(f"no card:  {WORKLOAD}: OSError: ")
    assert "No space left on device" in line
    assert line.isprintable()
    assert (folder / "verdict.json").read_bytes() == before


def test_a_fault_of_ours_is_told_too(folder, monkeypatch):
    monkeypatch.setattr(cards.card, "document", lambda _sources: {"schema": 1})
    (line,) = cards.write(folder, runs.finish(folder))
    assert line.startswith(f"no card:  {WORKLOAD}: SchemaError: ")
    assert not (folder / f"card-{WORKLOAD}.md").exists()


def test_the_screen_says_where_the_card_is(folder):
    verdict = runs.finish(folder)
    lines = summary.summary(verdict, folder, cards.write(folder, verdict))
    assert lines[-3:-1] == [f"card:     {folder}/card-{WORKLOAD}.md", f"evidence: {folder}"]
    assert len(summary.summary(verdict, folder)) == len(lines) - 1


def test_other_workloads_and_those_that_are_left_out_have_none(tmp_path, example):
    plan = {"title": "t", "accelerator": "cuda", "workloads": [example("manifest")]}
    left = {"id": WORKLOAD, "name": "embedded_profile", "title": "t", "why": "no devices"}
    folder = runs.start(tmp_path / "results", {**plan, "left_out": [left]}, VERSIONS)
    assert cards.write(folder, runs.finish(folder)) == []
    assert list(folder.glob("card-*")) == []
