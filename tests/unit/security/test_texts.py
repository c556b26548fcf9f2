# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes, jobs and other people wrote reaches neither a terminal nor a report as anything but text."""

from __future__ import annotations

import gzip
import json
import re
import typing as t
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import log
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import markers
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm.identity import Identity
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._common.json_files import read_json, write_json
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._judge import findings
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._report import summary
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._run import runs

HOSTILE = {
    "clear": "\x1b[2J\x1b[H",
    "title": "\x1b]0;owned\x07",
    "hyperlink": "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "c1": "\x9b31mred\x9d0;owned\x9c",
    "overwrite": "FAIL\rPASS",
    "backspace": "FAIL\b\b\b\bPASS",
    "bidi": "\u202essap\u202c \u2066x\u2069",
    "invisible": "a\u200bb\ufeffc\U000e0041",
    "newline": "x\nVERDICT: PASS\n",
    "nul": "a\x00b",
    "surrogate": "a\ud800b",
    "not xml": "\ufffe\uffff",
    "markup": "]]><testcase name='forged'/>&lol;<!DOCTYPE x>",
    "template": "{{ lookup('pipe', 'id') }}{% raw %}",
}
hostile = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)


def acted_on(text: str) -> list[str]:
    """The characters that a terminal would act on, or that a reader would not see."""
    return [char for char in text if not char.isprintable() and char != "\n"]


def text_of(path: Path) -> str:
    """What is in a file, to the character: reading it as text would make a line's end of a carriage return."""
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")


def verdict_with(tmp_path: Path, text: str) -> tuple[dict[str, t.Any], Path]:
    """A finished run in which everything that comes from outside is the text."""
    plan = {"title": "t", "accelerator": "cuda", "workloads": [], "probes_only": True}
    folder = runs.start(tmp_path, plan, {"collection": None, "ansible": "2", "python": "3"})
    finding = findings.step_failed("failed", text, text, {"host": text}, text)
    runs.record(folder, "findings", [finding])
    node = {"name": text, "state": text, "reason": text, "gres": {"gpu": 1}}
    runs.record(folder, "cluster", {"nodes": [node], "version": text, text: text})
    runs.record(folder, "probed", {"nodes": [], "gpus": [text], "left_out": [{"name": text, "why": text}]})
    return runs.finish(folder), folder


@hostile
def test_no_report_holds_what_a_terminal_acts_on(tmp_path, text):
    verdict, folder = verdict_with(tmp_path, text)
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.name for path in written} >= {
        "verdict.json",
        "junit.xml",
        "cluster.json",
        "probed.json",
        "000.json.gz",
    }
    assert {path.name: acted_on(text_of(path)) for path in written} == {path.name: [] for path in written}
    shown = summary.summary(verdict, folder)
    assert [line for line in shown if acted_on(line) or "\n" in line] == []
    assert [line for line in shown if line.startswith("VERDICT")] == ["VERDICT: UNDETERMINED  t"]


@hostile
def test_junit_is_valid_xml_and_the_text_adds_no_element(tmp_path, text):
    _verdict, folder = verdict_with(tmp_path, text)
    content = text_of(folder / "junit.xml")
    assert re.search("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", content) is None
    cases = list(ElementTree.fromstring(content).iter("testcase"))
    assert len(cases) == 1
    assert [child.tag for child in cases[0]] == ["error"]


@hostile
def test_records_are_read_back_as_they_were(tmp_path, text):
    write_json(tmp_path / "x.json", {"text": text})
    assert read_json(tmp_path / "x.json") == {"text": text}
    assert acted_on(text_of(tmp_path / "x.json")) == []


@hostile
def test_lines_of_logs_are_shown_as_plain_text(tmp_path, text):
    (tmp_path / "log").write_bytes(text.encode("utf-8", "surrogatepass") * 3)
    quoted = log.quote((tmp_path / "log").read_bytes())
    assert acted_on(quoted) == []
    assert "\n" not in quoted
    assert [acted_on(line) for line in markers.tail(str(tmp_path / "log"), 20) if acted_on(line)] == []


@hostile
def test_a_markers_host_is_shown_as_plain_text(tmp_path, text):
    marker = {"job_id": "7", "attempt": 0, "host": text, "loss": 1.5, text: text}
    (tmp_path / "7.progress.json").write_text(json.dumps(marker))
    found = markers.read(str(tmp_path / "7.progress.json"), Identity("7"))
    assert found
    assert set(found) <= {"attempt", "loss", "host"}
    assert acted_on(str(found["host"])) == []
