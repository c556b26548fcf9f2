# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kit and plugins say to each other is the same on both sides: files/schemas/wire.json says what.

Neither side reads the file or imports the other. The kit runs where jobs run, without the collection.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.module_utils._evidence import document, log
from ansible_collections.mlops.hpc_validation.plugins.module_utils._probe import gpu as gpu_module
from ansible_collections.mlops.hpc_validation.plugins.module_utils._slurm import markers as slurm_markers
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._gpu import node as gpu_node
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._preflight import nodes
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._share import findings, guard
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._workloads import plan
from kit import files, quote
from kit.evidence import markers, reports
from kit.gpu import probe
from kit.host import facts as host_facts
from kit.job import Job
from kit.share import coherence, look, mounts

from tests.unit.conftest import ROOT

WIRE: dict[str, t.Any] = json.loads((ROOT / "files/schemas/wire.json").read_text(encoding="utf-8"))
JOB = Job("4711_3", 2)
CODES = {each["code"]: each for each in WIRE["guard"]}


def pattern(kind: str) -> str:
    return str(WIRE["markers"][kind].replace("%j", JOB.job_id))


def test_the_kit_ends_logs_with_the_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    markers.end(tmp_path, JOB, 5)
    nonce = json.loads((tmp_path / pattern("end")).read_text())["nonce"]
    line = WIRE["end_line"].format(job=JOB.job_id, attempt=JOB.attempt, exit=5, nonce=nonce)
    assert [text.splitlines()[-1] for text in capfd.readouterr()] == [line, line]


def test_the_collector_knows_the_line() -> None:
    nonce = "0123456789abcdef" * 2
    line = WIRE["end_line"].format(job=JOB.job_id, attempt=JOB.attempt, exit=5, nonce=nonce)
    match = log._END.fullmatch(line.encode())
    assert match
    assert match.groups() == (b"4711_3", b"2", b"5", nonce.encode())
    assert line.startswith(log._END_TEXT.decode() + " ")


def test_what_the_kit_quotes_is_passed_over() -> None:
    text = 'it said "RuntimeError: CUDA error"\\ and went on'
    assert quote.quoted(text) == WIRE["quote"].format(json=json.dumps(text))
    assert log._QUOTED.sub(b"", WIRE["quote"].format(json=json.dumps(text)).encode()) == b""


@pytest.mark.parametrize("kind", WIRE["markers"])
def test_the_kit_writes_markers_under_their_names(tmp_path: Path, kind: str) -> None:
    write = {
        "begin": lambda: markers.begin(tmp_path, JOB),
        "progress": lambda: markers.progress(tmp_path, JOB, {}),
        "end": lambda: markers.end(tmp_path, JOB, 0),
    }
    write[kind]()
    assert [path.name for path in tmp_path.iterdir()] == [pattern(kind)]


def test_the_kit_gathers_markers_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "markers").mkdir()
    for kind in WIRE["markers"]:
        (tmp_path / "markers" / pattern(kind)).write_text(json.dumps({"kind": kind}))
    found = reports.gather(tmp_path, tmp_path / "markers", JOB.job_id)
    assert (found["begin"], found["end"]) == ({"kind": "begin"}, {"kind": "end"})


def test_plugins_and_roles_look_for_markers_under_their_names() -> None:
    assert {f"{kind}_marker": name for kind, name in WIRE["markers"].items()} == plan.MARKERS
    assert set(slurm_markers.KINDS) == set(WIRE["markers"])
    tasks = yaml.safe_load((ROOT / "roles/preflight/tasks/nodes.yml").read_text(encoding="utf-8"))
    submitted = [task[name] for task in tasks[0]["block"] for name in task if name.endswith(".slurm_job")]
    (asked,) = (each for each in submitted if each.get("state") != "absent")
    assert {kind: Path(asked[f"{kind}_marker"]).name for kind in ("begin", "end")} == {
        kind: WIRE["markers"][kind] for kind in ("begin", "end")
    }


def test_the_guards_exit_codes_mean_the_same() -> None:
    assert {code: getattr(mounts, each["name"]) for code, each in CODES.items()} == {code: code for code in CODES}
    assert {code: check for code, (check, *_rest) in guard.GUARD.items()} == {
        code: each["check"] for code, each in CODES.items()
    }


def test_a_python_that_is_too_old_is_told_by_its_own_code() -> None:
    assert {mounts.OLD_PYTHON, nodes.OLD_PYTHON} == {WIRE["old_python"]}
    assert f"exit {WIRE['old_python']}\n" in (ROOT / "roles/preflight/templates/guard.j2").read_text(encoding="utf-8")
    tasks = yaml.safe_load((ROOT / "roles/bootstrap/tasks/guard.yml").read_text(encoding="utf-8"))
    assert f"__bootstrap_guard.rc not in [0, {WIRE['old_python']}]" in [task.get("failed_when") for task in tasks]


def coherence_facts(folder: Path) -> dict[str, t.Any]:
    """What task 0 tells where no folder can be made."""
    (folder / "file").touch()
    arguments = argparse.Namespace(folder=str(folder / "file"), run="x", node="n1", wait=1.0, deadline=30.0)
    found = coherence.run(arguments, {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_NNODES": "2"})
    assert found
    return found


@pytest.mark.parametrize(
    ("name", "collect"),
    [
        ("gpus", lambda folder: probe.collect(probe.Options(kernel_log="none", root=folder, limit=5.0))),
        ("host", lambda _folder: host_facts.facts(JOB, image=None, reach=[], index=False)),
        ("share", lambda folder: look.collect(look.Options(str(folder), "other", checks=("mount",)))),
        ("coherence", coherence_facts),
    ],
)
def test_the_kits_facts_are_of_the_version(
    name: str, collect: t.Callable[[Path], dict[str, t.Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert collect(tmp_path)["schema"] == WIRE["facts"][name]


@pytest.mark.parametrize("name", ["gpus", "host", "share"])
def test_the_schemas_are_of_the_version(name: str) -> None:
    schema = json.loads((ROOT / f"files/schemas/{name}.json").read_text(encoding="utf-8"))
    assert schema["properties"]["schema"] == {"const": WIRE["facts"][name]}


def test_facts_that_plugins_make_in_the_kits_place_are_of_the_version() -> None:
    assert gpu_module._nothing("x")["schema"] == gpu_node.SCHEMA == WIRE["facts"]["gpus"]


def test_share_facts_of_another_version_are_not_judged(example: t.Callable[[str], t.Any]) -> None:
    facts = example("share")
    known = findings.findings(facts, {}, share_type=facts["type"], node="n1")
    other = {**copy.deepcopy(facts), "schema": WIRE["facts"]["share"] + 1}
    (refused,) = findings.findings(other, {}, share_type=facts["type"], node="n1")
    assert len(known) > 1
    assert (refused["id"], refused["verdict"]) == ("share.mounted", "undetermined")


def test_numbers_that_are_not_finite_have_the_same_words() -> None:
    values = [float("nan"), float("inf"), float("-inf")]
    assert files.plain(values) == WIRE["non_finite"]
    assert list(scalars.NON_FINITE_TEXTS) == WIRE["non_finite"]
    assert document.clean(values) == [{scalars.NON_FINITE_KEY: word} for word in WIRE["non_finite"]]
    for word in document.parse(files.json_line(values)):
        assert word in WIRE["non_finite"]
        assert scalars.is_non_finite(word)
